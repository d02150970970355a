package polyflake_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every exported name has a comment: constants, variables, functions, and types with their fields and methods. The
// comment on a function or a type begins with its name.
func TestExportedNamesHaveComments(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	positions := token.NewFileSet()
	found := 0
	check := func(name *ast.Ident, isNamed bool, comments ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		found++
		text := ""
		for _, comment := range comments {
			text += comment.Text()
		}
		words := strings.Fields(text)
		if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
			words = words[1:]
		}
		if len(words) == 0 {
			t.Errorf("%s: %s has no comment", positions.Position(name.Pos()), name)
		} else if isNamed && strings.Trim(words[0], ",:") != name.Name {
			t.Errorf("%s: the comment on %s begins with %s", positions.Position(name.Pos()), name, words[0])
		}
	}
	fields := func(of ast.Expr) {
		var list []*ast.Field
		switch of := of.(type) {
		case *ast.StructType:
			list = of.Fields.List
		case *ast.InterfaceType:
			list = of.Methods.List
		}
		for _, field := range list {
			for _, name := range field.Names {
				check(name, false, field.Doc, field.Comment)
			}
		}
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(positions, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		// Drops the methods of unexported types.
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				check(declaration.Name, true, declaration.Doc)
			case *ast.GenDecl:
				ofOne := declaration.Doc
				if declaration.Lparen.IsValid() {
					ofOne = nil // the comment belongs to the group
				}
				for _, spec := range declaration.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						check(spec.Name, true, ofOne, spec.Doc)
						fields(spec.Type)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							check(name, false, ofOne, spec.Doc, spec.Comment)
						}
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d exported names were found", found)
	}
}
