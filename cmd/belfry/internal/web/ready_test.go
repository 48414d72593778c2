package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPingsAreSharedAndKeptForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		p := NewPinger(func(context.Context) error {
			asked.Add(1)
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		for range 50 {
			go func() { _ = p.Ping(context.Background()) }()
		}
		time.Sleep(900 * time.Millisecond)
		if err := p.Ping(t.Context()); err != nil || asked.Load() != 1 {
			t.Errorf("asked %d times, %v", asked.Load(), err)
		}
		time.Sleep(time.Second)
		if err := p.Ping(t.Context()); err != nil || asked.Load() != 2 {
			t.Errorf("asked %d times, %v", asked.Load(), err)
		}
	})
}

func TestAPingEndsEvenIfTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := NewPinger(func(context.Context) error { <-release; return nil })
		start := time.Now()
		if err := p.Ping(t.Context()); !errors.Is(err, errSlow) {
			t.Error(err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		close(release)
	})
}

func TestReadinessSaysWhyItIsRed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		r := NewReadiness(NewPinger(func(context.Context) error {
			if down.Load() {
				return errors.New("password is secret")
			}
			return nil
		}), "sqlite", "strict")
		for _, step := range []struct {
			do     func()
			status int
			says   string
		}{
			{func() {}, http.StatusServiceUnavailable, "starting"},
			{r.Running, http.StatusOK, `{"status":"ready","store":"sqlite","durability":"strict"}`},
			{func() { down.Store(true) }, http.StatusServiceUnavailable, "the store cannot be reached"},
			{func() { down.Store(false) }, http.StatusOK, "ready"},
			{func() { r.Ended("shutting down") }, http.StatusServiceUnavailable, "shutting down"},
		} {
			step.do()
			time.Sleep(freshPing)
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if w.Code != step.status || !strings.Contains(w.Body.String(), step.says) || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, step.status, step.says)
			}
		}
	})
}
