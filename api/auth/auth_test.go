package auth_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belfryhq/belfry/api/auth"
)

var secret = strings.Repeat("k", auth.MinKey)

func TestOnlyAValidKeyIsLetThrough(t *testing.T) {
	sum := sha256.Sum256([]byte("hashed-" + secret))
	keys, err := auth.Parse("plain:"+secret, "hashed:sha256:"+hex.EncodeToString(sum[:]))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		header, value, want string
	}{
		"the header":         {"X-API-Key", secret, "plain"},
		"a bearer token":     {"Authorization", "Bearer " + secret, "plain"},
		"bearer in any case": {"Authorization", "bearer " + secret, "plain"},
		"a key kept hashed":  {"X-API-Key", "hashed-" + secret, "hashed"},
		"the hash itself":    {"X-API-Key", hex.EncodeToString(sum[:]), ""},
		"another scheme":     {"Authorization", "Basic " + secret, ""},
		"a wrong key":        {"X-API-Key", secret + "x", ""},
		"an empty key":       {"X-API-Key", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(c.header, c.value)
			if got, ok := keys.Check(r); got != c.want || ok != (c.want != "") {
				t.Errorf("Check = %q, %v; want %q", got, ok, c.want)
			}
		})
	}
	if _, ok := (auth.Keys{}).Check(httptest.NewRequest(http.MethodGet, "/", nil)); ok {
		t.Error("no keys let a request without a key through")
	}
}

func TestWhoIsDeniedIsToldHowToSendAKey(t *testing.T) {
	w := httptest.NewRecorder()
	deny := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	auth.Keys{}.Require(http.NotFoundHandler(), deny).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != `Bearer realm="belfry"` {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestABadListOfKeysIsRefusedWithoutRepeatingASecret(t *testing.T) {
	for _, specs := range [][]string{{"nameless"}, {":" + secret}, {"short:0123456789"}, {"a:sha256:zz"}, {"a:" + secret, "a:" + secret}} {
		_, err := auth.Parse(specs...)
		if err == nil {
			t.Errorf("%d keys were accepted", len(specs))
			continue
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}
