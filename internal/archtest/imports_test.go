package archtest

import (
	"strings"
	"testing"
)

// rule forbids imports.
type rule struct {
	name   string
	reason string
	tests  bool // it holds for test files, too
	in     func(pkg string) bool
	never  func(pkg, imported string) bool
	breach [2]string // a package and an import that the rule must catch
}

// adapter returns the folder of the store or target that a package belongs to; empty: it belongs to none. The suites and
// what stores share are not adapters.
func adapter(pkg string) string {
	parts := strings.Split(pkg, "/")
	if len(parts) < 2 || parts[0] != "store" && parts[0] != "target" {
		return ""
	}
	switch parts[1] {
	case "storetest", "targettest", "internal":
		return ""
	}
	return parts[0] + "/" + parts[1]
}

// root, contracts: the packages that a rule speaks of.
func root(pkg string) bool { return pkg == "." }

func contracts(pkg string) bool { return pkg == "store" || pkg == "target" }

func suites(pkg string) bool { return under(pkg, "store/storetest", "target/targettest") }

func in(folders ...string) func(string) bool {
	return func(pkg string) bool { return under(pkg, folders...) }
}

// rules are the import rules.
var rules = []rule{
	{
		name:   "contracts stand on the standard library alone",
		reason: "everything depends on them, and whoever writes a store or a target needs nothing else",
		in:     contracts,
		never:  func(_, imported string) bool { return !isStandard(imported) },
		breach: [2]string{"store", "github.com/google/uuid"},
	},
	{
		name:   "suites need their contract and the standard library",
		reason: "an adapter outside this repository runs them without our dependencies",
		in:     suites,
		never: func(pkg, imported string) bool {
			return !isStandard(imported) && !contracts(imported) && !under(imported, pkg)
		},
		breach: [2]string{"store/storetest", "pgregory.net/rapid"},
	},
	{
		name:   "adapters know their contract and nothing else of the product",
		reason: "a store that knows another, or the engine, decides what the engine should decide",
		in:     func(pkg string) bool { return adapter(pkg) != "" || under(pkg, "store/internal") },
		never: func(pkg, imported string) bool {
			own := under(imported, adapter(pkg)) && adapter(pkg) != ""
			shared := under(pkg, "store") && (imported == "store" || under(imported, "store/internal"))
			contract := under(pkg, "target") && (imported == "target" || pkg == "target/bullmqtarget" && imported == "bullmq")
			return isLocal(imported) && !own && !shared && !contract
		},
		breach: [2]string{"store/pgstore", "store/sqlitestore"},
	},
	{
		name:   "the library knows contracts, not adapters, APIs or commands",
		reason: "who imports the library pays for no driver and no server they do not use",
		in:     root,
		never: func(_, imported string) bool {
			return adapter(imported) != "" || under(imported, "api", "cmd", "compat", "telemetry", "dashboard", "bullmq") || suites(imported)
		},
		breach: [2]string{".", "store/memstore"},
	},
	{
		name:   "machines inside know contracts and each other, not the library that uses them",
		reason: "imports point one way; what both need belongs into a contract",
		in:     in("internal"),
		never: func(_, imported string) bool {
			return root(imported) || adapter(imported) != "" || under(imported, "api", "cmd", "compat", "telemetry", "dashboard", "bullmq")
		},
		breach: [2]string{"internal/dispatch", "."},
	},
	{
		name:   "APIs work on the library, never on an adapter",
		reason: "each API runs over every store and every target",
		in:     in("api", "telemetry", "dashboard"),
		never:  func(_, imported string) bool { return adapter(imported) != "" || under(imported, "cmd", "compat") },
		breach: [2]string{"api/timers", "target/httptarget"},
	},
	{
		name:   "nobody imports the program",
		reason: "it is where everything is put together",
		tests:  true,
		in:     func(pkg string) bool { return !under(pkg, "cmd") },
		never:  func(_, imported string) bool { return under(imported, "cmd") },
		breach: [2]string{"api/v1", "cmd/belfry/internal/config"},
	},
	{
		name:   "the lifecycle does no input or output",
		reason: "it decides: given a message, an outcome, a policy and an instant it returns a settlement, the same one every time",
		in:     in("internal/lifecycle"),
		never: func(_, imported string) bool {
			return under(imported, "os", "net", "io", "log", "database", "context", "sync", "runtime")
		},
		breach: [2]string{"internal/lifecycle", "os"},
	},
	{
		name:   "only suites and tests import testing",
		reason: "it adds flags to every program that links it",
		in:     func(pkg string) bool { return !suites(pkg) && !under(pkg, "internal/testserver") },
		never:  func(_, imported string) bool { return under(imported, "testing") },
		breach: [2]string{"internal/dispatch", "testing"},
	},
	{
		name:   "profiles are served by the program alone",
		reason: "importing net/http/pprof adds handlers to the default mux of whoever uses the library",
		in:     func(pkg string) bool { return !under(pkg, "cmd") },
		never:  func(_, imported string) bool { return imported == "net/http/pprof" || imported == "expvar" },
		breach: [2]string{"telemetry", "net/http/pprof"},
	},
	{
		name:   "no cgo",
		reason: "the program is one static binary",
		tests:  true,
		in:     func(string) bool { return true },
		never:  func(_, imported string) bool { return imported == "C" },
		breach: [2]string{"store/sqlitestore", "C"},
	},
}

func TestImportsKeepTheRules(t *testing.T) {
	sources := load(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range sources {
				if s.test && !r.tests || !r.in(s.pkg) {
					continue
				}
				for _, imported := range s.imports {
					if r.never(s.pkg, imported) {
						t.Errorf("%s imports %s: %s, because %s", s.file, imported, r.name, r.reason)
					}
				}
			}
		})
	}
}

func TestEachImportRuleCatchesItsBreach(t *testing.T) {
	for _, r := range rules {
		if pkg, imported := r.breach[0], r.breach[1]; !r.in(pkg) || !r.never(pkg, imported) {
			t.Errorf("the rule %q does not catch %s importing %s", r.name, pkg, imported)
		}
	}
}
