package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the path that all packages of the product begin with.
const module = "github.com/belfryhq/belfry"

// source is one Go file of the product.
type source struct {
	file    string // from the top of the tree
	pkg     string // the folder, from the top of the tree; "." is the root package
	test    bool
	imports []string // packages of the product as pkg, others with their path
	syntax  *ast.File
}

// load parses every Go file of the module; nested modules and test data are not of it.
func load(t *testing.T) []source {
	t.Helper()
	top := filepath.Join("..", "..")
	var sources []source
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			return skip(name, rel)
		}
		if path.Ext(rel) != ".go" {
			return nil
		}
		s, err := parse(name, rel)
		sources = append(sources, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 50 {
		t.Fatalf("found %d files of Go under %s: is that the top of the tree?", len(sources), top)
	}
	return sources
}

func skip(name, rel string) error {
	if rel == "." {
		return nil
	}
	base := path.Base(rel)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func parse(name, rel string) (source, error) {
	s := source{file: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go")}
	var err error
	s.syntax, err = parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return s, err
	}
	for _, spec := range s.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return s, err
		}
		s.imports = append(s.imports, local(imported))
	}
	return s, nil
}

// local returns the import path of one of the product's packages without the module.
func local(imported string) string {
	if imported == module {
		return "."
	}
	return strings.TrimPrefix(imported, module+"/")
}

// isLocal reports whether an import is one of the product's packages.
func isLocal(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	switch first {
	case ".", "store", "target", "api", "compat", "bullmq", "telemetry", "dashboard", "internal", "cmd":
		return true
	}
	return false
}

// isStandard reports whether an import is of the standard library.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !isLocal(imported) && !strings.Contains(first, ".")
}

// under reports whether a package is one of the folders or beneath one.
func under(pkg string, folders ...string) bool {
	for _, folder := range folders {
		if pkg == folder || strings.HasPrefix(pkg, folder+"/") {
			return true
		}
	}
	return false
}
