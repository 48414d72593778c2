package e2e

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belfryhq/belfry/internal/testserver"
)

// shared is a store that several servers can share, on a database server of the test's own.
type shared struct {
	name  string
	start func(t testing.TB) (url string, db *testserver.Server)
	all   bool // every scenario in every run; else steady load and kills only, and all at full scale
}

var sharedStores = []shared{
	{"PostgreSQL", func(t testing.TB) (string, *testserver.Server) {
		s := testserver.StartPostgres(t)
		return s.URL, s
	}, true},
	{"Redis", func(t testing.TB) (string, *testserver.Server) {
		s := testserver.StartRedis(t)
		return s.URL, s
	}, false},
}

// onShared runs a scenario on every store that it is meant for.
func onShared(t *testing.T, always bool, scenario func(t *testing.T, f *fleet)) {
	for _, s := range sharedStores {
		if !always && !s.all && !full {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			url, db := s.start(t)
			scenario(t, newFleet(t, url, db))
		})
	}
}

// fleet is three servers on one store, under load.
type fleet struct {
	*load
	db      *testserver.Server
	url     string
	n       int // timers
	servers [3]atomic.Pointer[server]
}

func newFleet(t *testing.T, url string, db *testserver.Server) *fleet {
	f := &fleet{load: &load{t: t, r: newReceiver(t)}, db: db, url: url, n: 2000}
	if full {
		f.n = 20_000
	}
	for i := range f.servers {
		f.servers[i].Store(f.serve())
	}
	f.pick = func() *server { return f.servers[rand.N(len(f.servers))].Load() }
	return f
}

func (f *fleet) serve() *server { return serve(f.t, f.t.TempDir(), "BELFRY_STORE="+f.url) }

// delivered returns how many deliveries a server has made.
func (f *fleet) delivered(s *server) int {
	f.t.Helper()
	res, err := client.Get(s.url + "/metrics")
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^belfry_attempts_total\{.*result="delivered".*\} (\S+)$`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		f.t.Fatal(err)
	}
	return int(n)
}

func TestSeveralServersShareTheWork(t *testing.T) {
	onShared(t, true, func(t *testing.T, f *fleet) {
		f.r.slow = 5 * time.Millisecond
		f.submit(f.n, 8, time.Second, 4*time.Second)
		f.verdict(f.n, 1)
		for i := range f.servers {
			if n := f.delivered(f.servers[i].Load()); n < f.n/20 {
				t.Errorf("server %d delivered %d of %d timers", i, n, f.n)
			}
		}
	})
}

func TestAKilledServerLosesNothingOfTheStoreItShares(t *testing.T) {
	onShared(t, true, func(t *testing.T, f *fleet) {
		f.r.slow = 5 * time.Millisecond
		kills := 4
		if full {
			kills = 20
		}
		var wait sync.WaitGroup
		wait.Go(func() { f.submit(f.n, 8, time.Second, 5*time.Second) })
		for range kills {
			time.Sleep(time.Second)
			f.servers[0].Load().kill()
			f.servers[0].Store(f.serve())
		}
		wait.Wait()
		if duplicates := f.verdict(f.n, kills+1); duplicates > kills*(256+500) {
			t.Errorf("FAIL: %d duplicates after %d kills", duplicates, kills)
		}
	})
}

func TestAFrozenServerChangesNothingWhenItIsBack(t *testing.T) {
	onShared(t, false, func(t *testing.T, f *fleet) {
		f.r.slow = 20 * time.Millisecond
		awake := f.servers[1:]
		f.pick = func() *server { return awake[rand.N(len(awake))].Load() }
		var wait sync.WaitGroup
		wait.Go(func() { f.submit(f.n, 8, time.Second, 4*time.Second) })
		time.Sleep(2 * time.Second)
		frozen := f.servers[0].Load().cmd.Process
		if err := frozen.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // its leases of 2 s run out
		if err := frozen.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		if duplicates := f.verdict(f.n, 2); duplicates > 256+500 {
			t.Errorf("FAIL: %d duplicates", duplicates)
		}
	})
}

func TestADatabaseOutageDelaysAndLosesNothing(t *testing.T) {
	onShared(t, false, func(t *testing.T, f *fleet) {
		outage := 5 * time.Second
		if full {
			outage = time.Minute
		}
		f.submit(f.n/2, 8, 4*time.Second, 9*time.Second)
		if err := f.db.Stop(); err != nil {
			t.Fatal(err)
		}
		down := time.Now()
		time.Sleep(time.Second)
		for i := range f.servers {
			began := time.Now()
			a, err := f.servers[i].Load().call(t.Context(), http.MethodPost, "/timers", f.r.timer("refused", time.Now().Add(time.Hour)))
			if took := time.Since(began); err != nil || a.status != http.StatusServiceUnavailable || took > 2*time.Second {
				t.Errorf("an accept during the outage was answered after %v: %v %d %s", took, err, a.status, a.text)
			}
		}
		time.Sleep(time.Until(down.Add(outage)))
		if err := f.db.Start(); err != nil {
			t.Fatal(err)
		}
		back, before := time.Now(), f.r.distinct()
		f.r.await(t, f.n/2, 90*time.Second)
		t.Logf("%d timers were left; all had fired %v after the database was back", f.n/2-before, time.Since(back))
		if before == f.n/2 {
			t.Error("all timers had fired before the outage: it proves nothing")
		}
		f.verdict(f.n/2, 2)
	})
}

func TestTheDoctorShowsTheServersThatShareAStore(t *testing.T) {
	onShared(t, false, func(t *testing.T, f *fleet) {
		c := exec.Command(binary, "doctor", "--json")
		c.Env = []string{"HOME=" + t.TempDir(), "API_KEY=" + key, "BELFRY_STORE=" + f.url}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var findings []struct {
			Check, Detail string
			OK            bool
		}
		if err := json.Unmarshal(out, &findings); err != nil {
			t.Fatal(err)
		}
		nodes := 0
		for _, found := range findings {
			if found.Check == "node" && found.OK && strings.Contains(found.Detail, "runs, holds") {
				nodes++
			}
		}
		if nodes != len(f.servers) {
			t.Errorf("the doctor sees %d servers:\n%s", nodes, out)
		}
	})
}
