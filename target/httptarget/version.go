package httptarget

import (
	"runtime/debug"
	"strings"
)

// module is the module whose version the default User-Agent tells.
const module = "github.com/belfryhq/belfry"

// userAgent returns Belfry/<version>, or Belfry alone in a build that has no version.
func userAgent() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "Belfry"
	}
	if info.Main.Path == module {
		return product(info.Main.Version)
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return product(dep.Version)
		}
	}
	return "Belfry"
}

// product returns the product token of a module version.
func product(version string) string {
	if !strings.HasPrefix(version, "v") {
		return "Belfry"
	}
	return "Belfry/" + version[1:]
}
