package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// script is a Lua script as servers know it.
type script struct {
	name string
	text string
	hash string
}

// scripts are all that a store runs.
type scripts struct {
	put, claim, settle, extend, replace, forfeit   *script
	get, holder, fetch, list, next, overdue, purge *script
	plain, enter, sizes, docPut, docList           *script
}

// loadScripts puts the scripts together from their files.
func loadScripts() *scripts {
	return &scripts{
		put:     newScript("put", "lib", "message", "accept"),
		plain:   newScript("put_plain"),
		enter:   newScript("enter", "lib", "message"),
		claim:   newScript("claim", "lib", "message", "less"),
		settle:  newScript("settle", "lib", "message", "accept"),
		extend:  newScript("extend", "lib"),
		replace: newScript("replace", "lib", "message"),
		forfeit: newScript("forfeit", "lib", "message"),
		get:     newScript("get", "lib", "message"),
		holder:  newScript("holder", "lib", "message"),
		fetch:   newScript("fetch", "lib", "message"),
		list:    newScript("list", "lib", "message", "less"),
		next:    newScript("next"),
		overdue: newScript("overdue"),
		purge:   newScript("purge", "lib", "message"),
		sizes:   newScript("sizes"),
		docPut:  newScript("doc_put"),
		docList: newScript("doc_list"),
	}
}

// newScript returns the script of a file, with those it needs before it.
func newScript(name string, needs ...string) *script {
	var text []byte
	for _, file := range append(needs, name) {
		source, err := sources.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic("redisstore: the file of a script is embedded: " + err.Error())
		}
		text = append(append(text, source...), '\n')
	}
	hash := sha1.Sum(text)
	return &script{name: name, text: string(text), hash: hex.EncodeToString(hash[:])}
}

// call is one command of the store, mostly of a script, and its answer.
type call struct {
	script *script // nil: args are a plain command
	keys   []string
	args   []any
	write  bool

	reply any
	err   error
}

// key returns the key that decides on which node of a Cluster the call runs.
func (c *call) key() string {
	if len(c.keys) > 0 {
		return c.keys[0]
	}
	return c.args[1].(string)
}

// queue adds the call to a pipeline. Whole sends the script itself and not its hash.
func (c *call) queue(ctx context.Context, pipe redis.Pipeliner, whole bool) *redis.Cmd {
	switch {
	case c.script == nil:
		return pipe.Do(ctx, c.args...)
	case whole:
		return pipe.Eval(ctx, c.script.text, c.keys, c.args...)
	default:
		return pipe.EvalSha(ctx, c.script.hash, c.keys, c.args...)
	}
}

// fail notes why the call failed.
func (c *call) fail(err error) {
	if c.script != nil {
		err = fmt.Errorf("script %s: %w", c.script.name, err)
	}
	c.err = err
}

// list returns the answer as a list.
func (c *call) list() []any { return asList(c.reply) }

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func asInt(v any) int64 {
	n, _ := v.(int64)
	return n
}

func asText(v any) string {
	text, _ := v.(string)
	return text
}
