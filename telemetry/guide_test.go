package telemetry_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// guide lists the metrics for those who run Belfry.
const guide = "../docs/guide/metrics.md"

// TestTheGuideListsEveryMetric compares each row of the guide, name, type, labels and meaning, with what is registered.
func TestTheGuideListsEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	families := complete(t).gather()
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "| `belfry_"); ok {
			name, _, _ = strings.Cut(name, "`")
			listed["belfry_"+name] = strings.TrimSpace(line)
		}
	}
	for name, family := range families {
		if row := rowOf(family); listed[name] != row {
			t.Errorf("%s has in its tables\n  %s\nbut should have\n  %s", guide, listed[name], row)
		}
	}
	for _, used := range regexp.MustCompile(`belfry_[a-z_]+`).FindAllString(string(text), -1) {
		if families[used] == nil && families[strings.TrimSuffix(used, "_bucket")] == nil {
			t.Errorf("%s speaks of %s, which does not exist", guide, used)
		}
	}
}

// rowOf is a metric's row in the guide.
func rowOf(f *dto.MetricFamily) string {
	labels := make([]string, 0, 3)
	for _, l := range f.GetMetric()[0].GetLabel() {
		labels = append(labels, "`"+l.GetName()+"`")
	}
	order := []string{"`op`", "`class`", "`result`", "`kind`", "`target`", "`state`"}
	slices.SortFunc(labels, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	cells := strings.Join(labels, ", ")
	if cells != "" {
		cells += " "
	}
	return fmt.Sprintf("| `%s` | %s | %s| %s |", f.GetName(), strings.ToLower(f.GetType().String()), cells, f.GetHelp())
}

// TestTheGuideNamesEveryLabelsValues looks for the values of the labels that have few.
func TestTheGuideNamesEveryLabelsValues(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]bool{}
	for _, family := range complete(t).gather() {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "result" || l.GetName() == "class" {
					values[l.GetValue()] = true
				}
			}
		}
	}
	for _, value := range slices.Sorted(maps.Keys(values)) {
		if !strings.Contains(string(text), "`"+value+"`") {
			t.Errorf("%s does not tell what %q means", guide, value)
		}
	}
}
