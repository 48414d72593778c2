// Package auth checks API keys: named ones, kept only as hashes, compared in constant time.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// MinKey is how many characters a key has at least.
const MinKey = 32

// Keys are the API keys that are accepted. The zero value accepts none. It does not change after it was made.
type Keys struct {
	keys []key
}

type key struct {
	name string
	hash [sha256.Size]byte
}

// Parse makes Keys of a list of "name:key" and "name:sha256:<hex>". The errors name the key, never its value.
func Parse(specs ...string) (Keys, error) {
	var keys Keys
	for i, spec := range specs {
		name, secret, ok := strings.Cut(spec, ":")
		if !ok || name == "" {
			return Keys{}, fmt.Errorf("key %d: write it as name:key or name:sha256:<64 hexadecimal digits>", i+1)
		}
		k := key{name: name}
		if digits, hashed := strings.CutPrefix(secret, "sha256:"); hashed {
			sum, err := hex.DecodeString(digits)
			if err != nil || len(sum) != sha256.Size {
				return Keys{}, fmt.Errorf("key %q: its SHA-256 must have 64 hexadecimal digits", name)
			}
			copy(k.hash[:], sum)
		} else {
			if len(secret) < MinKey {
				return Keys{}, fmt.Errorf("key %q has %d characters: use at least %d, e.g. from `openssl rand -hex 32`", name, len(secret), MinKey)
			}
			k.hash = sha256.Sum256([]byte(secret))
		}
		for _, other := range keys.keys {
			if other.name == name {
				return Keys{}, fmt.Errorf("key %q is given twice: give each key its own name", name)
			}
		}
		keys.keys = append(keys.keys, k)
	}
	return keys, nil
}

// Check returns the name of the key that a request carries in X-API-Key or as a bearer token. It takes the same time
// whichever key is wrong.
func (k Keys) Check(r *http.Request) (name string, ok bool) {
	given := r.Header.Get("X-API-Key")
	if given == "" {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "bearer") {
			given = strings.TrimSpace(token)
		}
	}
	hash := sha256.Sum256([]byte(given))
	for _, candidate := range k.keys {
		if subtle.ConstantTimeCompare(hash[:], candidate.hash[:]) == 1 {
			name, ok = candidate.name, true
		}
	}
	return name, ok && given != ""
}

type nameKey struct{}

// Require lets requests with a valid key through, the key's name in their context; denied answers the others, with the header
// that tells how to send a key set already.
func (k Keys) Require(next http.Handler, denied http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := k.Check(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="belfry"`)
			denied(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nameKey{}, name)))
	})
}

// Name returns the name of the key that a request was let through with.
func Name(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
