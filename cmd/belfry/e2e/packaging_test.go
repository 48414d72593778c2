package e2e

import (
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
	out, err := exec.Command(binary, "config", "--env").Output()
	if err != nil {
		t.Fatal(err)
	}
	if read(t, ".env.example") != string(out) {
		t.Error(".env.example is not what `belfry config --env` prints; run make generate")
	}
}

func TestTheExampleEnvironmentIsValidWhenUncommented(t *testing.T) {
	uncommented := regexp.MustCompile(`(?m)^# ([A-Z][A-Z0-9_]*=)`).ReplaceAllString(read(t, ".env.example"), "$1")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(uncommented), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary, "config", "--json")
	c.Dir, c.Env = dir, []string{}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := strings.Count(string(out), `"from": ".env"`); n < 10 {
		t.Errorf("only %d settings come from .env", n)
	}
}

func TestTheComposeFileStartsHealthyServicesOnly(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image       string
			Build       string
			Healthcheck map[string]any
			Environment map[string]string
			MemLimit    string                                `yaml:"mem_limit"`
			ReadOnly    bool                                  `yaml:"read_only"`
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
	server := file.Services["belfry"]
	if server.MemLimit != "512m" || server.Environment["GOMEMLIMIT"] != "460MiB" || !server.ReadOnly {
		t.Errorf("the server's bounds are %+v: GOMEMLIMIT is nine tenths of mem_limit, the file system read-only", server)
	}
}

func TestTheImageIsStaticAndUnprivileged(t *testing.T) {
	text := read(t, "Dockerfile")
	for _, line := range []string{"FROM scratch", "USER 65532:65532", "EXPOSE 8080", "CGO_ENABLED=0", "-trimpath", "HEALTHCHECK"} {
		if !strings.Contains(text, line) {
			t.Errorf("the Dockerfile lacks %q", line)
		}
	}
	if strings.Count(text, "\nFROM ") != 2 {
		t.Error("the image is not built in two stages")
	}
}

// The image has no files but the program and the certificate authorities, so the zones of execute_at_local are in the program.
func TestTheProgramInTheEmptyImageKnowsTimeZones(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/belfryhq/belfry/cmd/belfry").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "time/tzdata\n") {
		t.Error("the program does not import time/tzdata: where the machine has no zone files it knows no zone but UTC")
	}
}
