package natstarget_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/belfryhq/belfry/target"
	"github.com/belfryhq/belfry/target/natstarget"
)

func TestSubjectsThatCanBePublishedToAreAccepted(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{
		"a", "events.timer", "Events.Timer-1_x", "größe.日本", "$KV.bucket.key", "_INBOX.x", "a.b.c.d.e.f.g", "a:b/c", "$JSON.x",
		strings.Repeat("a", natstarget.MaxSubject),
	} {
		if err := natstarget.CheckSubject(subject); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
}

func TestSubjectsThatCannotBePublishedToAreRefused(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{
		"":                  "is empty",
		".":                 "a part between full stops is empty",
		".a":                "a part between full stops is empty",
		"a.":                "a part between full stops is empty",
		"a..b":              "a part between full stops is empty",
		"a.*":               "* at byte 2 makes it a pattern",
		"*":                 "pattern",
		"a.>":               "> at byte 2 makes it a pattern",
		">":                 "pattern",
		"a*b":               "pattern",
		"a b":               "byte 1 is the character U+0020",
		" a":                "U+0020",
		"a\t":               "U+0009",
		"a\r\nPUB x 0\r\n":  "U+000D",
		"a\x00":             "U+0000",
		"a\u00a0b":          "U+00A0",
		"a\x7f":             "U+007F",
		"a\xff":             "not UTF-8",
		"$JS.API.INFO":      "controls NATS itself",
		"$JS":               "controls NATS itself",
		"$SYS.REQ.SERVER.X": "controls NATS itself",
		strings.Repeat("a", natstarget.MaxSubject+1): "has 2049 bytes; at most 2048",
	} {
		if err := natstarget.CheckSubject(subject); err == nil || !strings.HasPrefix(err.Error(), "subject") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q in it", subject, err, want)
		}
	}
}

func TestHeadersAreChecked(t *testing.T) {
	t.Parallel()
	many := make(map[string]string)
	for i := range natstarget.MaxHeaders {
		many["X-"+strconv.Itoa(i)] = "v"
	}
	for name, headers := range map[string]map[string]string{
		"none": nil, "ordinary ones": {"X-One": "1", "x-one": "2", "Authorization": "Bearer t", "Host": "h"}, "text": {"X": "größe"}, "empty": {"X": ""}, "many": many,
	} {
		if err := natstarget.CheckHeaders(headers); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	many["X-More"] = "v"
	for want, headers := range map[string]map[string]string{
		"no header name":      {"X Y": "canary"},
		`header ""`:           {"": "canary"},
		"X:Y":                 {"X:Y": "canary"},
		"X\\r\\nY":            {"X\r\nY": "canary"},
		"control character":   {"X": "canary\r\nY: z"},
		"byte 6":              {"X": "canary\x00"},
		"not UTF-8":           {"X": "canary\xff"},
		"there are 33":        many,
		"they have 8193 byte": {"X": strings.Repeat("v", natstarget.MaxHeaderBytes)},
	} {
		if err := natstarget.CheckHeaders(headers); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: the error is %v, want %q in it", headers, err, want)
		}
	}
}

func TestCheckNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	tgt := newTarget(t, natstarget.Settings{URL: "nats://127.0.0.1:1"})
	for want, d := range map[string]target.Delivery{
		`subject "a.*"`:   {Address: "a.*"},
		`header "X Y"`:    {Address: "a", Headers: map[string]string{"X Y": "1"}},
		"content type: ":  {Address: "a", ContentType: "a\nb"},
		"key: ":           {Address: "a", Params: map[string]string{"key": "a\nb"}},
		`param "method":`: {Address: "a", Params: map[string]string{"method": "GET"}},
		"timeout: ":       {Address: "a", Timeout: -time.Second},
	} {
		if err := tgt.Check(d); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, want %q first", err, want)
		}
		if d.Timeout == 0 {
			if verdict, _, _ := target.Judge(tgt.Deliver(t.Context(), d)); verdict == target.Delivered {
				t.Errorf("%s: it was delivered", want)
			}
		}
	}
	if err := tgt.Check(target.Delivery{Address: "a", Params: map[string]string{"key": "user 123"}}); err != nil {
		t.Error(err)
	}
}

func FuzzSubject(f *testing.F) {
	for _, s := range []string{"events.timer", "a..b", "a.*", "a\r\nb", "größe", "\xff", "$JS.API.INFO"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		if natstarget.CheckSubject(subject) == nil && (!server.IsValidLiteralSubject(subject) || strings.ContainsAny(subject, " \t\r\n\x00")) {
			t.Errorf("%q is accepted, and is no subject", subject)
		}
	})
}

func FuzzMessageID(f *testing.F) {
	f.Add("timers", "a/b", "timers/a", "b")
	f.Add("größe", "%", "a\n", "")
	f.Fuzz(func(t *testing.T, queue, id, otherQueue, otherID string) {
		a := natstarget.MessageID(target.Delivery{Queue: queue, ID: id})
		b := natstarget.MessageID(target.Delivery{Queue: otherQueue, ID: otherID})
		if (a == b) != (queue == otherQueue && id == otherID) {
			t.Errorf("%q %q is %q, %q %q is %q", queue, id, a, otherQueue, otherID, b)
		}
		if natstarget.CheckHeaders(map[string]string{"Nats-Msg-Id": a[:min(len(a), 8000)]}) != nil || strings.Contains(a, " ") {
			t.Errorf("%q is no header", a)
		}
	})
}
