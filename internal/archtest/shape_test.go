package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"testing"
)

// vague are names of packages that say nothing about what is inside.
var vague = []string{"util", "utils", "common", "helper", "helpers", "base", "shared", "misc", "types", "models", "manager"}

func TestPackagesAreNamedForWhatTheyAre(t *testing.T) {
	for _, s := range load(t) {
		if slices.Contains(vague, path.Base(s.pkg)) || slices.Contains(vague, s.syntax.Name.Name) {
			t.Errorf("%s: the package name %q says nothing; name the noun that it is about", s.file, s.syntax.Name.Name)
		}
	}
}

func TestNothingRegistersItself(t *testing.T) {
	for _, s := range load(t) {
		for _, decl := range s.syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !s.test {
				t.Errorf("%s has an init function: adapters are listed in one explicit table, in cmd/belfry/adapters.go", s.file)
			}
		}
	}
}

func TestThePureDecisionsReadNoClock(t *testing.T) {
	for _, s := range load(t) {
		if !under(s.pkg, "internal/lifecycle") || s.test {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if names, ok := clockRead(n); ok {
				t.Errorf("%s uses %s: the lifecycle gets its instants as arguments", s.file, names)
			}
			return true
		})
	}
}

// clockRead reports whether a node asks the time package for the present or waits for a later one.
func clockRead(n ast.Node) (name string, ok bool) {
	selector, isSelector := n.(*ast.SelectorExpr)
	if !isSelector {
		return "", false
	}
	pkg, isName := selector.X.(*ast.Ident)
	if !isName || pkg.Name != "time" {
		return "", false
	}
	reads := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	return "time." + selector.Sel.Name, slices.Contains(reads, selector.Sel.Name)
}

func TestPackagesAndFilesBeginWithAComment(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range load(t) {
		if s.test {
			continue
		}
		documented[s.pkg] = documented[s.pkg] || s.syntax.Doc != nil
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment: begin one of its files with what it is and promises", pkg)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range load(t) {
		if s.test {
			continue
		}
		for _, decl := range s.syntax.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: the exported name %s has no doc comment", s.file, name)
			}
		}
	}
}

// undocumented returns the exported names that a declaration declares without saying what they are.
func undocumented(decl ast.Decl) []string {
	var names []string
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Doc != nil {
			return nil
		}
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Doc == nil && s.Name.IsExported() {
				names = append(names, s.Name.Name)
			}
			if s, ok := spec.(*ast.ValueSpec); ok && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
				names = append(names, s.Names[0].Name)
			}
		}
	}
	return names
}

// exportedReceiver reports whether a function is none's method or that of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}
