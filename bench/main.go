// Command bench measures Belfry beside the bare database on this machine and prints ratios: figures of different machines
// are not comparable, ratios of one run are. -systems says what is measured, Belfry on its stores and peers, then comes what:
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
	"maps"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

func main() {
	waiting := flag.Int("waiting", 1_000_000, "messages to hold in `hold`")
	backlog := flag.Int("backlog", 100_000, "messages to deliver in `drain`")
	systems := flag.String("systems", "memory,sqlite", "what to measure: "+strings.Join(known(), ", "))
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
	b := bench{
		ctx: context.Background(), span: time.Duration(*seconds) * time.Second, waiting: *waiting, backlog: *backlog,
		systems: strings.Split(*systems, ","),
	}
	if err := b.run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// bench is one run.
type bench struct {
	ctx     context.Context
	span    time.Duration
	waiting int
	backlog int
	systems []string
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

// known returns the names of all systems.
func known() []string { return slices.Sorted(maps.Keys(openers)) }

// has reports whether a system is measured.
func (b *bench) has(name string) bool { return slices.Contains(b.systems, name) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// payloadSize is how many bytes every message carries.
const payloadSize = 256
