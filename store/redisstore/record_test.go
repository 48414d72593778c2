package redisstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/belfryhq/belfry/store"
)

// What a message and its attempts are is read back by the laws of the suite; here it is what a broken record does.

func FuzzBrokenRecordsAreErrors(f *testing.F) {
	m := store.Message{
		Queue: "q", ID: "i", Kind: "k", Group: "g", LastError: "e", Payload: []byte("p"), Headers: map[string]string{"a": "b"},
		Metadata: []byte("{}"), ExpiresAt: time.UnixMilli(5), Retry: store.Retry{Delays: []time.Duration{1, 2}},
	}
	head, body := appendHead(nil, &m, 1, 2, 3), appendBody(nil, &m)
	history, _ := appendHistory(nil, []store.Attempt{{Number: 1, StartedAt: time.UnixMilli(7), Response: []byte("r")}})
	for _, record := range [][]byte{head, body, history, {}, {0xff, 0xff, 0xff, 0xff}} {
		f.Add(string(record))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m store.Message
		_, _ = readHead(text, &m) // none may panic or ask for memory that the record cannot fill
		_ = readBody(text, &m)
		_, _ = readHistory(text)
		_, _ = readHints(text)
		_, _ = readDoc("d", text)
	})
}

func TestEveryCutOfARecordIsAnError(t *testing.T) {
	t.Parallel()
	m := store.Message{Queue: "q", ID: "i", Kind: "kind", Target: "t", Params: map[string]string{"a": "b"}, Retry: store.Retry{MaxAttempts: 3}}
	head, body := string(appendHead(nil, &m, 1, 2, 0)), string(appendBody(nil, &m))
	for i := range len(head) {
		if _, err := readHead(head[:i], new(store.Message)); err == nil {
			t.Errorf("the first %d of %d bytes of a head are read", i, len(head))
		}
	}
	for i := range len(body) {
		if err := readBody(body[:i], new(store.Message)); err == nil {
			t.Errorf("the first %d of %d bytes of a body are read", i, len(body))
		}
	}
}

func TestABodyOfAnotherFormatIsAnError(t *testing.T) {
	t.Parallel()
	body := appendBody(nil, &store.Message{})
	body[4]++
	if err := readBody(string(body), new(store.Message)); err == nil {
		t.Error("it is read")
	}
}

func TestHintsComeBack(t *testing.T) {
	t.Parallel()
	want := []store.QueueHint{{Queue: "a", At: time.UnixMilli(-5).UTC()}, {Queue: "ü", At: store.Never}, {Queue: ""}}
	var notice []byte
	for _, h := range want {
		notice = appendHint(notice, h)
	}
	if got, err := readHints(string(notice)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}
