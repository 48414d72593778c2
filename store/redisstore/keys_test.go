package redisstore

import (
	"strings"
	"testing"
)

func FuzzTagsOfQueuesDiffer(f *testing.F) {
	f.Add("a", "a ")
	f.Add("", "%")
	f.Add("docs", ":docs")
	f.Add("{a}", "%7Ba}")
	f.Add("ü", "\xc3")
	f.Fuzz(func(t *testing.T, a, b string) {
		tag1, tag2 := tag(a), tag(b)
		if (a == b) != (tag1 == tag2) {
			t.Errorf("%q and %q have the tags %q and %q", a, b, tag1, tag2)
		}
		if len(tag1) == 0 || strings.ContainsAny(tag1, "{} \x00\r\n") || !strings.HasPrefix(tag1, ":") {
			t.Errorf("the tag of %q is %q", a, tag1)
		}
	})
}

func TestKeysOfAQueueHaveItsHashTag(t *testing.T) {
	t.Parallel()
	k := keyspace{"p"}
	for _, queue := range []string{"", "a", "a}b{c", "timers"} {
		heads, never := k.pair(queue)
		want := "p{" + tag(queue) + "}:"
		if heads != want+"h" || never != want+"!" {
			t.Errorf("the keys of %q are %q and %q", queue, heads, never)
		}
	}
}

func TestLexicalRangesOfNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prefix, after, low, high string }{
		{"", "", "-", "+"},
		{"", "b", "(b", "+"},
		{"a/", "", "[a/", "(a0"},
		{"a/", "a/1", "(a/1", "(a0"},
		{"b", "a", "[b", "(c"},
		{"a\xff", "", "[a\xff", "(b"},
		{"\xff", "", "[\xff", "+"},
	} {
		if low, high := lexRange(c.prefix, c.after); low != c.low || high != c.high {
			t.Errorf("names of %q after %q: from %q to %q, want %q and %q", c.prefix, c.after, low, high, c.low, c.high)
		}
	}
}
