package models

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxLabelsFile is far above any real labels file; ImageNet's takes 30 KB.
const maxLabelsFile = 1 << 20

// ReadLabels reads a labels file: see ParseLabels.
func ReadLabels(path string) ([]string, error) {
	data, err := readSmall(path, maxLabelsFile)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	return ParseLabels(path, data)
}

// ParseLabels reads the class names in data, the bytes of the file called name: where that ends in
// .yaml or .yml, the key names (a list, or a map from class id to name) of a data set's data.yaml,
// whose other keys are ignored; else one name a line, the first being class 0. Blank lines
// at the end are ignored. Errors carry the file and the line.
func ParseLabels(name string, data []byte) ([]string, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return yamlLabels(name, data)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("labels %s: not a text file: it wants one class name a line", name)
	}
	set := labelSet{}
	for i, line := range strings.Split(strings.TrimRight(string(data), " \t\r\n"), "\n") {
		if err := set.add(i, line); err != nil {
			return nil, fmt.Errorf("labels %s:%d: %w", name, i+1, err)
		}
	}
	if len(set.names) == 1 && set.names[0] == "" {
		return nil, fmt.Errorf("labels %s: empty: it wants one class name a line", name)
	}
	return set.names, nil
}

func yamlLabels(name string, data []byte) ([]string, error) {
	file, err := parseYAML(data)
	if err != nil {
		return nil, fmt.Errorf("labels %s", yamlError(name, err))
	}
	for _, kv := range topLevel(file) {
		if kv.Key.GetToken().Value == "names" {
			names, err := labelsOf(kv.Value)
			if err != nil {
				return nil, fmt.Errorf("labels %s", yamlError(name, err))
			}
			return names, nil
		}
	}
	return nil, fmt.Errorf("labels %s: no key names: it wants a list, or a map from class id to name", name)
}

// parseYAML reads a document without anchors, aliases and tags: neither labels nor a sidecar need
// them, a few nested aliases grow without bound, and the decoder panics on some tags.
func parseYAML(data []byte) (*ast.File, error) {
	if line := tooDeep(data); line > 0 {
		return nil, &position{line: line, column: 1, msg: "nested too deeply"}
	}
	var file *ast.File
	err := guard(func() (err error) {
		file, err = parser.ParseBytes(data, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(file.Docs) > 1 {
		return nil, at(file.Docs[1].Body, "a second document: only one is read")
	}
	for _, doc := range file.Docs {
		var v plain
		if doc.Body != nil {
			ast.Walk(&v, doc.Body)
		}
		if v.found != nil {
			return nil, at(v.found, "anchors, aliases and tags are not taken")
		}
	}
	return file, nil
}

// guard turns a panic of the YAML library into an error: fuzzing finds documents, which nobody writes
// by hand, that it does not survive.
func guard(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = &position{line: 1, column: 1, msg: "this YAML cannot be read"}
		}
	}()
	return f()
}

// maxDepth is far above what labels and settings need. The parser's time grows with the square
// of the depth: 16 KB of opening brackets take it seconds.
const maxDepth = 32

// tooDeep returns the line on which brackets, or dashes in a row, nest deeper than maxDepth; 0
// if none do. Brackets inside of quotes count, too.
func tooDeep(data []byte) int {
	brackets, dashes, line := 0, 0, 1
	for i, c := range data {
		switch c {
		case '\n':
			line++
			dashes = 0
		case '[', '{':
			brackets++
		case ']', '}':
			brackets = max(brackets-1, 0)
		case '-', '?': // an indicator if a space follows
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t') {
				dashes++
			}
		case ' ', '\t':
		default:
			dashes = 0
		}
		if brackets > maxDepth || dashes > maxDepth {
			return line
		}
	}
	return 0
}

// plain looks for nodes that are more than plain data.
type plain struct{ found ast.Node }

func (v *plain) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		v.found = n
		return nil
	}
	return v
}

// topLevel returns the keys of a document that is a mapping, nil for any other.
func topLevel(file *ast.File) []*ast.MappingValueNode {
	if len(file.Docs) == 0 {
		return nil
	}
	return pairs(file.Docs[0].Body)
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// labelsOf reads a list of names, or a map from class id to name. A name is the text as
// written, so that a class called no or 1 keeps its name.
func labelsOf(n ast.Node) ([]string, error) {
	set := labelSet{}
	add := func(id int, v ast.Node) error {
		s, ok := scalar(v)
		if !ok {
			return at(v, "a class name has to be plain text")
		}
		if err := set.add(id, s); err != nil {
			return at(v, err.Error())
		}
		return nil
	}
	if seq, ok := n.(*ast.SequenceNode); ok {
		for i, v := range seq.Values {
			if err := add(i, v); err != nil {
				return nil, err
			}
		}
		return set.names, nil
	}
	kvs := pairs(n)
	if kvs == nil {
		return nil, at(n, "class names have to be a list, or a map from class id to name")
	}
	for _, kv := range kvs {
		id, err := strconv.Atoi(kv.Key.GetToken().Value)
		if err != nil {
			return nil, at(kv.Key, fmt.Sprintf("%q is no class id", kv.Key.GetToken().Value))
		}
		if err := add(id, kv.Value); err != nil {
			return nil, err
		}
	}
	return set.names, nil
}

// scalar returns the text of a scalar as it was written.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.NullNode:
		return "", true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case ast.ScalarNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// position is an error at a place in a YAML document.
type position struct {
	line, column int
	msg          string
}

func (p *position) Error() string { return fmt.Sprintf("%d:%d: %s", p.line, p.column, p.msg) }

func at(n ast.Node, msg string) error {
	p := &position{line: 1, column: 1, msg: msg}
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			p.line, p.column = t.Position.Line, t.Position.Column
		}
	}
	return p
}

// readSmall reads a file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, info.Size(), limit)
	}
	data := make([]byte, info.Size())
	n, err := f.ReadAt(data, 0)
	if n < len(data) {
		return nil, errors.Join(fmt.Errorf("%s is cut off", path), err)
	}
	return data, nil
}
