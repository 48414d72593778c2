package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCommand tells which build this is.
type versionCommand struct {
	JSON bool `name:"json" help:"As JSON."`
}

// build is what a build knows of itself.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes that are not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version may be set by the linker; otherwise it is the module's.
var version string

// thisBuild returns what this build knows of itself.
func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Run prints the build.
func (c *versionCommand) Run(m *Main) error {
	b := thisBuild()
	if c.JSON {
		return json.NewEncoder(m.Stdout).Encode(b)
	}
	text := fmt.Sprintf("belfry %s", b.Version)
	if b.Revision != "" {
		text += fmt.Sprintf(" (%.12s)", b.Revision)
	}
	_, err := fmt.Fprintf(m.Stdout, "%s, %s, %s\n", text, b.Go, b.Platform)
	return err
}
