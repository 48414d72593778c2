package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/belfryhq/belfry/store"
)

// modelFields returns the fields of a struct that are not zero, those named apart, as text: " Name value" each.
func modelFields(of any, but ...string) string {
	var b strings.Builder
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if f.IsZero() || slices.Contains(but, name) {
			continue
		}
		fmt.Fprintf(&b, " %s %s", name, modelValue(f.Interface()))
	}
	return b.String()
}

func modelValue(v any) string {
	switch v := v.(type) {
	case time.Time:
		return modelInstant(v)
	case string, []byte:
		return fmt.Sprintf("%q", v)
	case *store.Gate:
		return fmt.Sprintf("%+v", *v)
	case []store.Attempt:
		return fmt.Sprintf("of %d", len(v))
	case *store.Attempt:
		return fmt.Sprintf("%d", v.Number)
	case *store.Message:
		return modelMessage(*v)
	case []store.Message:
		return modelMessages(v)
	default:
		return fmt.Sprintf("%+v", v)
	}
}

func modelMessage(m store.Message) string {
	return modelKey(m.Key()) + "{" + strings.TrimSpace(modelFields(m, "Queue", "ID")) + "}"
}

func modelMessages(ms []store.Message) string {
	text := make([]string, len(ms))
	for i, m := range ms {
		text[i] = modelMessage(m)
	}
	return "[" + strings.Join(text, ", ") + "]"
}

func (op *modelPut) String() string {
	var flags string
	if op.mode&store.Overwrite != 0 {
		flags += " overwrite"
	}
	if op.mode&store.Atomic != 0 {
		flags += " atomic"
	}
	return fmt.Sprintf("%s put%s %s", op.now, flags, modelMessages(op.messages))
}

func (op *modelClaim) String() string {
	var b strings.Builder
	for _, qc := range op.claim.Queues {
		fmt.Fprintf(&b, " %s(%s)", qc.Queue, strings.TrimSpace(modelFields(qc, "Queue")))
	}
	for _, key := range op.claim.Keys {
		fmt.Fprintf(&b, " %s", modelKey(key))
	}
	return fmt.Sprintf("now %s claim%s by%s", modelInstant(op.claim.Now), b.String(), modelFields(op.claim, "Now", "Queues", "Keys"))
}

func (op *modelSettle) String() string {
	text := make([]string, len(op.settlements))
	for i, s := range op.settlements {
		but := []string{"Token", "Outcome", "At"}
		if !s.Outcome.State().Finished() {
			but = []string{"Token", "Outcome", "PurgeAt"}
		}
		name := map[store.Outcome]string{
			store.OutcomeDone: "done", store.OutcomeRetry: "retry", store.OutcomeRelease: "release",
			store.OutcomeBury: "bury", store.OutcomeCancel: "cancel",
		}[s.Outcome]
		text[i] = fmt.Sprintf("%s %s%s", op.refs[i], name, modelFields(s, but...))
	}
	return fmt.Sprintf("%s settle [%s]", op.now, strings.Join(text, "; "))
}

func (op *modelExtend) String() string {
	return fmt.Sprintf("%s extend %v until %s", op.now, op.tokens, modelInstant(op.until))
}

func (op *modelReplace) String() string {
	text := make([]string, len(op.changes))
	for i, c := range op.changes {
		mode := map[store.ChangeMode]string{store.Swap: "swap", store.Revoke: "revoke", store.Mark: "mark"}[c.Mode]
		text[i] = fmt.Sprintf("%s %s", mode, op.refs[i])
		if c.Mode != store.Mark {
			text[i] += " {" + strings.TrimSpace(modelFields(c.Message, "Queue", "ID", "Version")) + "}"
		}
	}
	return fmt.Sprintf("%s replace [%s]", op.now, strings.Join(text, "; "))
}

func (op *modelForfeit) String() string {
	return fmt.Sprintf("%s forfeit %q before %d", op.now, op.owner, op.epoch)
}

func (op *modelPurge) String() string { return fmt.Sprintf("%s purge at most %d", op.now, op.limit) }

func (op *modelList) String() string { return "list and count" + modelFields(op.query) }

func (op *modelQueues) String() string { return "queues" + modelFields(op.window) }

func (op *modelDoc) String() string {
	verb := "put"
	if op.delete {
		verb = "delete"
	}
	return fmt.Sprintf("%s doc %s@-%d %q", verb, op.name, op.back, op.body)
}

func (op *modelDocs) String() string {
	return fmt.Sprintf("docs prefix %q after %q limit %d", op.prefix, op.after, op.limit)
}

func (modelAudit) String() string  { return "compare all contents" }
func (modelReopen) String() string { return "close and open again" }
