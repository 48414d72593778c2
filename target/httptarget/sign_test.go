package httptarget_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/httptarget"
)

// The texts of two secrets.
var (
	oldSecret = "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("old "), 6))
	newSecret = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("new "), 12))
)

func secret(t testing.TB, text string) httptarget.Secret {
	t.Helper()
	s, err := httptarget.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signed makes a delivery and returns what arrived.
func signed(t *testing.T, s httptarget.Settings, d target.Delivery) seen {
	t.Helper()
	server, requests := observer(t)
	s.Allow = loopback
	d.Address = server.URL
	if err := newTarget(t, s).Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return <-requests
}

// verify is what a receiver with the secret says of a request.
func verify(t *testing.T, secret string, r seen) error {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return w.Verify([]byte(r.body), r.Header)
}

func TestReceiversOfStandardWebhooksVerifyTheSignature(t *testing.T) {
	t.Parallel()
	both := httptarget.Settings{Secrets: []httptarget.Secret{secret(t, newSecret), secret(t, oldSecret)}}
	for name, d := range map[string]target.Delivery{
		"an ordinary message":       {ID: "0198c0de-0000-7000-8000-000000000001", Payload: []byte(`{"a":1}`)},
		"an empty payload":          {ID: "m1"},
		"bytes that are no text":    {ID: "m2", Payload: []byte{0xff, 0, '.', '\n'}},
		"an id that is no header":   {ID: "größe 5%.\n", Payload: []byte("x")},
		"an id of the longest kind": {ID: strings.Repeat("ü", 127), Payload: []byte("x")},
	} {
		r := signed(t, both, d)
		for _, s := range []string{oldSecret, newSecret} {
			if err := verify(t, s, r); err != nil {
				t.Errorf("%s: %v with %v", name, err, r.Header)
			}
		}
		r.body += " "
		if verify(t, newSecret, r) == nil {
			t.Errorf("%s: another payload is verified", name)
		}
	}
}

func TestTheIDIsTheMessagesAndTheTimestampTheAttempts(t *testing.T) {
	t.Parallel()
	s := httptarget.Settings{Secrets: []httptarget.Secret{secret(t, newSecret)}}
	before := time.Now().Unix()
	d := target.Delivery{ID: "order-7", Attempt: 4, CreatedAt: time.Unix(1, 0), FireAt: time.Unix(2, 0), DueAt: time.Unix(3, 0)}
	r := signed(t, s, d)
	at, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil || at < before || at > time.Now().Unix() {
		t.Errorf("the timestamp is %d (%v), want that of now", at, err)
	}
	if id := r.Header.Get("webhook-id"); id != "order-7" {
		t.Errorf("the id is %q", id)
	}
	if n := len(strings.Fields(r.Header.Get("webhook-signature"))); n != 1 {
		t.Errorf("one secret made %d signatures", n)
	}
	r.Header.Set("webhook-timestamp", strconv.FormatInt(at-360, 10))
	if verify(t, newSecret, r) == nil {
		t.Error("another timestamp is verified")
	}
}

func TestSecretsMayDependOnTheDelivery(t *testing.T) {
	t.Parallel()
	s := httptarget.Settings{
		Secrets: []httptarget.Secret{secret(t, oldSecret)},
		SecretsOf: func(_ context.Context, d target.Delivery) ([]httptarget.Secret, error) {
			switch d.Queue {
			case "signed":
				return []httptarget.Secret{secret(t, newSecret)}, nil
			case "broken":
				return nil, errors.New("the vault is sealed")
			case "empty":
				return make([]httptarget.Secret, 1), nil
			}
			return nil, nil
		},
	}
	if err := verify(t, newSecret, signed(t, s, target.Delivery{Queue: "signed", ID: "m"})); err != nil {
		t.Error(err)
	}
	if h := signed(t, s, target.Delivery{Queue: "plain", ID: "m"}).Header; h.Get("webhook-signature")+h.Get("webhook-id") != "" {
		t.Errorf("a queue without secrets is signed: %v", h)
	}
	for queue, want := range map[string]string{"broken": "signing secret: the vault is sealed", "empty": "signing secret: is empty"} {
		err := newTarget(t, s).Deliver(t.Context(), target.Delivery{Queue: queue, Address: nowhere})
		failed(t, err, want)
	}
}

func TestSecretsAreReadAsStandardWebhooksWritesThem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{oldSecret, newSecret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		if _, err := httptarget.ParseSecret(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	const canary = "c2VjcmV0"
	for _, text := range []string{"", "whsec_", canary, "whsec_" + canary, "whsec_not base64 " + canary, "whsk_" + canary} {
		_, err := httptarget.ParseSecret(text)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
}

func TestASecretDoesNotShowHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	s := secret(t, oldSecret)
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t", "%p"} {
		fmt.Fprintf(&out, verb+" ", s)
		fmt.Fprintf(&out, verb+" ", []httptarget.Secret{s})
		fmt.Fprintf(&out, verb+" ", httptarget.Settings{Secrets: []httptarget.Secret{s}}.Secrets)
	}
	_ = json.NewEncoder(&out).Encode(map[string]any{"secret": s, "secrets": []httptarget.Secret{s}})
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", s, "secrets", []httptarget.Secret{s})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "secrets", []httptarget.Secret{s})
	if n := strings.Count(out.String(), "***"); n < 30 {
		t.Errorf("stars are written %d times", n)
	}
	for _, leak := range []string{"old ", "6f6c64", "6F6C64", "111 108 100", "157 154 144", oldSecret[6:16]} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in:\n%s", leak, out.String())
		}
	}
}

func BenchmarkSignedDelivery(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	tgt := newTarget(b, httptarget.Settings{Allow: loopback, Secrets: []httptarget.Secret{secret(b, newSecret)}})
	d := target.Delivery{ID: "0198c0de-0000-7000-8000-000000000001", Address: s.URL, Payload: make([]byte, 1024)}
	b.ReportAllocs()
	for b.Loop() {
		if err := tgt.Deliver(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
