// Package archtest holds the rules of who may import whom.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/belfryhq/belfry"

// rule forbids imports and says why.
type rule struct {
	from   string   // the packages it binds: this one and those below
	except []string // packages below that it does not bind
	may    []string // packages of the module that may be imported (these and those below)
	reason string
}

var rules = []rule{
	{"store", []string{"store/storetest", "store/internal", "store/memstore", "store/sqlitestore"}, nil,
		"the contract of a store stands alone, so that a store outside this module needs nothing else"},
	{"store/storetest", nil, []string{"store"}, "the conformance suite depends on the contract only; its own tests may use memstore"},
	{"store/memstore", nil, []string{"store"}, "an adapter knows its contract and its vendor, never another adapter or the engine"},
	{"store/internal/sqlstore", nil, []string{"store"}, "what SQL databases share knows none of them"},
	{"store/sqlitestore", nil, []string{"store", "store/internal/sqlstore"}, "an adapter knows its contract and its vendor, never another adapter or the engine"},
	{"target", []string{"target/targettest", "target/httptarget", "target/natstarget"}, nil,
		"the contract of a target stands alone"},
	{"target/targettest", nil, []string{"target"}, "the conformance suite depends on the contract only"},
	{"target/httptarget", nil, []string{"target"}, "an adapter knows its contract and its vendor"},
	{"target/natstarget", nil, []string{"target"}, "an adapter knows its contract and its vendor"},
	{"internal/lifecycle", nil, []string{"store", "target"}, "decisions are pure: they know the contracts and nothing that does I/O"},
	{"internal/combine", nil, []string{}, "a machine of its own"},
	{"internal/engineclock", nil, []string{"store"}, "the clock knows instants only"},
	{"internal/dispatch", nil, []string{"store", "target", "internal/lifecycle", "internal/combine", "internal/engineclock"},
		"the machine sees the contracts and the decisions, no adapter and not the library around it"},
	{"api", nil, []string{"", "api"}, "an API is a view over the library; it knows no store and no target"},
	{"telemetry", nil, []string{"", "store", "target"}, "metrics wrap the contracts from outside"},
}

func TestImportsPointOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	checked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bench" || d.Name() == "tools" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root && d.Name() != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		checked++
		checkFile(t, path, filepath.ToSlash(dir))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 50 {
		t.Fatalf("only %d files were found", checked)
	}
}

func checkFile(t *testing.T, path, dir string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || imported != module && !strings.HasPrefix(imported, module+"/") {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		for _, r := range rules {
			if r.binds(dir) && !r.allows(dir, name) {
				t.Errorf("%s imports %q: %s", path, name, r.reason)
			}
		}
		if name == "cmd" || strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(dir, "cmd") {
			t.Errorf("%s imports %q: the program is who puts things together, nothing depends on it", path, name)
		}
	}
}

func (r rule) binds(dir string) bool {
	if !below(dir, r.from) {
		return false
	}
	for _, other := range r.except {
		if below(dir, other) {
			return false
		}
	}
	return true
}

func (r rule) allows(dir, name string) bool {
	if below(name, dir) && name != "" {
		return true
	}
	for _, allowed := range r.may {
		if allowed == name || allowed != "" && r.from == allowed && below(name, allowed) {
			return true
		}
	}
	return below(name, r.from) && r.from == "api"
}

// below reports whether a package is the one named or one under it.
func below(name, parent string) bool { return name == parent || strings.HasPrefix(name, parent+"/") }
