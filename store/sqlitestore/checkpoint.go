package sqlitestore

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// checkpointer copies the write-ahead log into the file.
//
// SQLite would do it in the commit that makes the log long, and that caller would wait for megabytes to be copied and
// synced. Instead a goroutine with a connection of its own copies what is there while the writer goes on. The log can
// begin anew only when all of it is copied, though, and under load there is always a rest that came meanwhile. So when
// the rest is small, the writer copies it itself, between two transactions; and when the log has reached its bound, it
// does so however much it is.
type checkpointer struct {
	conn  *conn
	begin int // frames in the log from which on it is copied
	small int // frames that the writer copies itself
	bound int // frames that the log may have

	wanted  chan struct{}
	running atomic.Bool
	pass    sync.Mutex // held by the goroutine while it copies
	done    chan struct{}
}

// newCheckpointer returns a checkpointer for a log of so many bytes.
func newCheckpointer(c *conn, log, page int64) *checkpointer {
	bound := int(log / page)
	return &checkpointer{
		conn: c, begin: bound / 4, small: bound / 32, bound: bound,
		wanted: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// run is the goroutine.
func (k *checkpointer) run() {
	defer close(k.done)
	for range k.wanted {
		k.pass.Lock()
		// What cannot be copied now, because of a reader or an I/O error, is copied next time.
		_, _ = k.conn.walk("PASSIVE")
		k.pass.Unlock()
		k.running.Store(false)
	}
}

// close ends the goroutine. The writer has ended before.
func (k *checkpointer) close() error {
	close(k.wanted)
	<-k.done
	return k.conn.close()
}

// committed is called by the writer, with its connection, after each commit.
func (k *checkpointer) committed(c *conn) {
	log, err := c.walk("NOOP")
	if err != nil || log.frames < k.begin {
		return
	}
	full := log.frames >= k.bound
	switch {
	case k.running.Load() && !full:
	case full || log.frames-log.copied <= k.small:
		k.pass.Lock()
		_, _ = c.walk("PASSIVE")
		k.pass.Unlock()
	default:
		k.running.Store(true)
		k.wanted <- struct{}{}
	}
}

// walLog is how much is in the log and how much of it is in the file too.
type walLog struct{ frames, copied int }

// walk runs a checkpoint of the kind; NOOP only looks.
func (c *conn) walk(kind string) (walLog, error) {
	row, err := c.run("PRAGMA wal_checkpoint(" + kind + ")")
	if err != nil {
		return walLog{}, err
	}
	var log walLog
	if len(row) == 3 {
		log.frames, _ = strconv.Atoi(row[1])
		log.copied, _ = strconv.Atoi(row[2])
	}
	return log, nil
}
