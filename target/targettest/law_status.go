package targettest

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/belfryhq/belfry/target"
)

func statusLaws() []Law {
	return []Law{
		{"status", "Of all status codes, 2xx alone is a delivery; the error of any other tells the code", checkStatus},
		{"observation", "The status and the beginning of the answer are observed, each delivery's its own", checkObservation},
		{"retry after seconds", "With 429 and 503 the delay that Retry-After asks for in seconds is passed on", checkRetryAfterSeconds},
		{"retry after date", "With 429 and 503 the instant that Retry-After names is passed on as a delay", checkRetryAfterDate},
		{"retry after nonsense", "A Retry-After that cannot be read leaves the delay to the policy", checkRetryAfterNonsense},
	}
}

// statuses are codes of every class, the final ones only.
var statuses = []int{
	101,
	200, 201, 202, 203, 204, 205, 206, 207, 226, 299,
	300, 301, 302, 303, 304, 307, 308,
	400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 413, 415, 418, 421, 422, 425, 429, 431, 451, 499,
	500, 501, 502, 503, 504, 507, 511, 599, 999,
}

func checkStatus(e *env) {
	e.answer(Answer{Kind: Status, Status: 200})
	for _, code := range statuses {
		e.step("status %d", code)
		if !e.can(Answer{Kind: Status, Status: code}) {
			continue
		}
		err := e.deliver(e.Context(), e.delivery([]byte("x")))
		if code/100 == 2 {
			e.judged(err, target.Delivered)
			continue
		}
		e.judged(err, target.Retry)
		if !strings.Contains(err.Error(), strconv.Itoa(code)) {
			e.fail("the error is %q", err)
		}
	}
}

func checkObservation(e *env) {
	var seen []*target.Observation
	bodies := [][]byte{[]byte("first answer"), []byte("another one!")}
	for i, body := range bodies {
		e.answer(Answer{Kind: Status, Status: 500 + i, Body: body})
		d := e.delivery([]byte("x"))
		d.Observed = &target.Observation{}
		_ = e.deliver(e.Context(), d)
		seen = append(seen, d.Observed)
	}
	for i, o := range seen {
		if o.Status != 500+i || !bytes.Equal(o.Response, bodies[i]) {
			e.fail("answer %d was observed as %d %q, want %d %q", i+1, o.Status, o.Response, 500+i, bodies[i])
		}
	}
}

func checkRetryAfterSeconds(e *env) {
	for _, code := range []int{429, 503} {
		for value, want := range map[string]time.Duration{"0": 0, "1": time.Second, "120": 2 * time.Minute, "86400": 24 * time.Hour} {
			e.step("status %d, Retry-After: %s", code, value)
			if after := e.asked(code, value); after != want {
				e.fail("the delay is %v, want %v", after, want)
			}
		}
		e.step("status %d, more seconds than a duration can hold", code)
		if after := e.asked(code, "9300000000"); after <= 0 {
			e.fail("the delay is %v", after)
		}
	}
}

func checkRetryAfterDate(e *env) {
	const layout = "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, code := range []int{429, 503} {
		e.step("status %d, in two minutes", code)
		after := e.asked(code, time.Now().UTC().Add(2*time.Minute).Format(layout))
		if after < 2*time.Minute-2*time.Second-patience*e.prompt || after > 2*time.Minute+2*time.Second {
			e.fail("the delay is %v, want about %v", after, 2*time.Minute)
		}
		e.step("status %d, an hour ago", code)
		if after := e.asked(code, time.Now().UTC().Add(-time.Hour).Format(layout)); after != 0 {
			e.fail("the delay is %v, want none", after)
		}
	}
}

// asked delivers to a destination that answers with the status and the field Retry-After and returns the delay that the
// error passes on.
func (e *env) asked(code int, retryAfter string) time.Duration {
	e.Helper()
	e.answer(Answer{Kind: Status, Status: code, RetryAfter: retryAfter})
	err := e.deliver(e.Context(), e.delivery([]byte("x")))
	verdict, after, asked := target.Judge(err)
	if verdict != target.Retry || !asked {
		e.fail("the verdict of %v is %v (delay asked for: %t), want retry with a delay", describe(err), verdictName(verdict), asked)
	}
	return after
}

func checkRetryAfterNonsense(e *env) {
	for _, value := range []string{"soon", "-5", "1.5", "+7", "0x10", "12 apples", "99999999999999999999999", "Mon, 99 Foo 2031 25:61:00 GMT"} {
		e.step("Retry-After: %s", value)
		e.answer(Answer{Kind: Status, Status: 503, RetryAfter: value})
		e.judged(e.deliver(e.Context(), e.delivery([]byte("x"))), target.Retry)
	}
	e.step("a status of success")
	e.answer(Answer{Kind: Status, Status: 200, RetryAfter: "60"})
	e.judged(e.deliver(e.Context(), e.delivery([]byte("x"))), target.Delivered)
}
