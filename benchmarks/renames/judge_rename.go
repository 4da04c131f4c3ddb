// Lines of JSON in, lines of JSON out: which names of a Go file are one object for go/types.
// {"path": …, "text": …} -> [[start, …], …], each list the places of one object that is declared in the file, but for the
// first: what nothing is known of, since its package is not there.
package main

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

type request struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// The standard library is known; of other packages nothing is.
type known struct{ source types.Importer }

func (k known) Import(path string) (*types.Package, error) {
	if strings.Contains(strings.Split(path, "/")[0], ".") || path == "C" {
		pkg := types.NewPackage(path, filepath.Base(path))
		pkg.MarkComplete()
		return pkg, nil
	}
	return k.source.Import(path)
}

func groups(asked request, imports types.Importer, set *token.FileSet) [][]int {
	file, err := parser.ParseFile(set, asked.Path, asked.Text, 0)
	if err != nil {
		return nil
	}
	files := []*ast.File{file}
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(asked.Path), "*.go"))
	for _, name := range others {
		if filepath.Base(name) == filepath.Base(asked.Path) {
			continue
		}
		other, err := parser.ParseFile(set, name, nil, 0)
		if err == nil && other.Name.Name == file.Name.Name {
			files = append(files, other)
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, Error: func(error) {}, FakeImportC: true}
	config.Check(file.Name.Name, set, files, info)
	found, unknown := map[token.Pos][]int{}, []int{}
	ast.Inspect(file, func(node ast.Node) bool {
		ident, ok := node.(*ast.Ident)
		if !ok || ident.Name == "_" {
			return true
		}
		var at token.Pos
		if object := info.Uses[ident]; object != nil {
			at = object.Pos()
		} else if object, ok := info.Defs[ident]; ok {
			at = ident.Pos() // of a switch on types there is no object, and it stands for itself
			if object != nil {
				at = object.Pos()
			}
		} else if ident.Obj != nil {
			at = ident.Obj.Pos() // where a type is not known, the parser still knows the scopes
		}
		object := info.Uses[ident]
		if object == nil {
			object = info.Defs[ident]
		}
		if at.IsValid() && isVariable(object) && set.File(at) == set.File(ident.Pos()) {
			found[at] = append(found[at], set.Position(ident.Pos()).Offset)
		} else if object == nil && !at.IsValid() {
			unknown = append(unknown, set.Position(ident.Pos()).Offset)
		}
		return true
	})
	all := [][]int{unknown}
	for _, places := range found {
		all = append(all, places)
	}
	return all
}

// Whether an object is more than a field, a method or a label; what is not known is.
func isVariable(object types.Object) bool {
	switch each := object.(type) {
	case *types.Var:
		return !each.IsField()
	case *types.Func:
		signature, ok := each.Type().(*types.Signature)
		return !ok || signature.Recv() == nil
	case *types.Label:
		return false
	}
	return true
}

func main() {
	set := token.NewFileSet()
	imports := known{importer.ForCompiler(set, "source", nil)}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked request
		json.Unmarshal(lines.Bytes(), &asked)
		out.Encode(groups(asked, imports, set))
	}
}
