package targettest

import (
	"strings"
	"time"

	"github.com/belfryhq/belfry/target"
)

func secretLaws() []Law {
	return []Law{
		{"secrets in errors", "No header value, no user info, no query, no payload is in an error", checkSecretsInErrors},
		{"secrets in checks", "What Check says tells no header value, no user info, no query, no payload", checkSecretsInChecks},
		{"secrets in lanes", "The name of a lane tells no user info and no query", checkSecretsInLanes},
	}
}

// canary is a text that is looked for where it must not be.
const canary = "cAnArY7f3e"

// secret returns a delivery with the canary in every place that may hold a secret.
func (e *env) secret() target.Delivery {
	d := e.delivery([]byte(`{"password":"` + canary + `"}`))
	d.Metadata = []byte(`"` + canary + `"`)
	d.Headers = map[string]string{"Authorization": "Bearer " + canary, "X-Law": canary}
	if e.harness.Secrets != nil {
		e.harness.Secrets(&d, canary)
	}
	return d
}

func checkSecretsInErrors(e *env) {
	e.step("accept")
	e.accepted(e.secret())
	for _, a := range []Answer{
		{Kind: Fail, Body: []byte(canary)},
		{Kind: Refuse, Body: []byte(canary)},
		{Kind: Cut},
		{Kind: Echo},
		{Kind: Hang},
		{Kind: Status, Status: 302, Body: []byte(canary)},
		{Kind: Status, Status: 401, Body: []byte(canary)},
		{Kind: Status, Status: 503, RetryAfter: canary, Body: []byte(canary)},
		{Kind: Unreachable},
	} {
		e.step("%v %d", a.Kind, a.Status)
		if !e.can(a) {
			continue
		}
		d := e.secret()
		if a.Kind == Hang {
			d.Timeout = time.Second / 5
		}
		err := e.deliver(e.Context(), d)
		if err == nil {
			e.fail("it was delivered")
		}
		e.silent(err)
	}
}

func checkSecretsInChecks(e *env) {
	spoil := map[string]func(*target.Delivery){
		"a value with a line break":  func(d *target.Delivery) { d.Headers["X-Law"] = canary + "\r\nX: y" },
		"a value with a zero byte":   func(d *target.Delivery) { d.Headers["X-Law"] = canary + "\x00" },
		"a name that is none":        func(d *target.Delivery) { d.Headers["X Law"] = canary },
		"no name":                    func(d *target.Delivery) { d.Headers[""] = canary },
		"an address with a line end": func(d *target.Delivery) { d.Address += "\n" },
		"an address with a blank":    func(d *target.Delivery) { d.Address = " " + d.Address },
		"an address without end":     func(d *target.Delivery) { d.Address += strings.Repeat("x", 10_000) },
	}
	for name, change := range spoil {
		e.step("%s", name)
		d := e.secret()
		change(&d)
		if c, ok := e.target.(target.Checker); ok {
			err := c.Check(d)
			if err == nil {
				e.fail("Check accepts it")
			}
			e.silent(err)
		}
		e.silent(e.deliver(e.Context(), d))
	}
}

func checkSecretsInLanes(e *env) {
	l, ok := e.target.(target.Laner)
	if !ok {
		e.Skipf("the target is no Laner")
	}
	if lane := l.Lane(e.secret()); strings.Contains(lane, canary) {
		e.fail("the lane is %q", lane)
	}
}

// silent fails the law if the canary is in the text of the error or of one that it wraps.
func (e *env) silent(err error) {
	e.Helper()
	if err == nil {
		return
	}
	if strings.Contains(err.Error(), canary) {
		e.fail("the error is %q", err)
	}
	switch u := err.(type) { //nolint:errorlint // each link of the chain is looked at in turn
	case interface{ Unwrap() error }:
		e.silent(u.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range u.Unwrap() {
			e.silent(err)
		}
	}
}
