package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// root is the top of the repository.
var root = filepath.Join("..", "..", "..")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheExampleEnvironmentListsEverySetting(t *testing.T) {
	c := exec.Command(binary, "config", "--json")
	c.Dir, c.Env = t.TempDir(), []string{}
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var settings []struct {
		Variables []string
		Default   string
	}
	if err := json.Unmarshal(out, &settings); err != nil {
		t.Fatal(err)
	}
	example := read(t, ".env.example")
	known := map[string]bool{}
	for _, s := range settings {
		if len(s.Variables) == 0 {
			continue
		}
		line := "# " + s.Variables[0] + "=" + s.Default
		known[s.Variables[0]] = true
		if !strings.Contains(example+"\n", "\n"+line+"\n") {
			t.Errorf(".env.example lacks the line %q", line)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# ([A-Z][A-Z0-9_]*)=`).FindAllStringSubmatch(example, -1) {
		if !known[m[1]] {
			t.Errorf(".env.example lists %s, which the program does not know", m[1])
		}
	}
}

func TestTheComposeFileStartsHealthyServicesOnly(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image       string
			Build       string
			Healthcheck map[string]any
			DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &file); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		if s.Healthcheck == nil {
			t.Errorf("service %s has no health check", name)
		}
		for other, d := range s.DependsOn {
			if d.Condition != "service_healthy" || file.Services[other].Healthcheck == nil {
				t.Errorf("service %s does not wait for %s to be healthy", name, other)
			}
		}
	}
	if !strings.HasPrefix(file.Services["postgres"].Image, "postgres:15") || file.Services["belfry"].Build != "." || file.Services["nats"].Image == "" {
		t.Errorf("the services are %+v", file.Services)
	}
}

func TestTheImageIsStaticAndUnprivileged(t *testing.T) {
	text := read(t, "Dockerfile")
	for _, line := range []string{"FROM scratch", "USER 65532:65532", "EXPOSE 8080", "CGO_ENABLED=0"} {
		if !strings.Contains(text, line) {
			t.Errorf("the Dockerfile lacks %q", line)
		}
	}
	if strings.Count(text, "\nFROM ") != 2 {
		t.Error("the image is not built in two stages")
	}
}
