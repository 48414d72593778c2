// Command bench measures Belfry beside the bare database on this machine and prints ratios: figures of different machines
// are not comparable, ratios of one run are. Each subject is a flag-free word:
//
//	go run . accept    accepts per second at 1, 16 and 64 callers, beside a bare loop of inserts
//	go run . lag       how late deliveries begin at 1 to 5,000 per second
//	go run . drain     claim + deliver + settle of a backlog
//	go run . hold      time and memory to hold many waiting messages, and claims and lag among them
//	go run . all       all of these
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/belfryhq/belfry/store"
	"github.com/belfryhq/belfry/store/memstore"
	"github.com/belfryhq/belfry/store/sqlitestore"
)

func main() {
	waiting := flag.Int("waiting", 1_000_000, "messages to hold in `hold`")
	seconds := flag.Int("seconds", 5, "length of each measurement")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer f.Close()
		_ = pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	fmt.Printf("%s %s/%s, %d cores, payloads of 256 bytes\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	b := bench{ctx: context.Background(), span: time.Duration(*seconds) * time.Second, waiting: *waiting}
	if err := b.run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// bench is one run.
type bench struct {
	ctx     context.Context
	span    time.Duration
	waiting int
}

func (b *bench) run(subject string) error {
	subjects := map[string]func() error{"accept": b.accept, "lag": b.lag, "drain": b.drain, "hold": b.hold}
	if subject == "all" {
		return errors.Join(b.accept(), b.lag(), b.drain(), b.hold())
	}
	measure, ok := subjects[subject]
	if !ok {
		return fmt.Errorf("subject %q is none of accept, lag, drain, hold, all", subject)
	}
	return measure()
}

// kinds are the stores that are measured.
var kinds = []string{"memory", "sqlite"}

// open opens a fresh store; done closes and removes it.
func (b *bench) open(kind string) (s store.Store, path string, done func(), err error) {
	if kind == "memory" {
		s := memstore.New()
		return s, "", func() { _ = s.Close() }, nil
	}
	dir, err := os.MkdirTemp("", "belfry-bench")
	if err != nil {
		return nil, "", nil, err
	}
	path = filepath.Join(dir, "belfry.db")
	sq, err := sqlitestore.Open(b.ctx, path, sqlitestore.Settings{})
	if err != nil {
		return nil, "", nil, err
	}
	return sq, path, func() { _ = sq.Close(); _ = os.RemoveAll(dir) }, nil
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// payload is what every message carries.
var payload = make([]byte, 256)

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
