package models

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/eyas-edge/eyas/internal/regular"
	"github.com/eyas-edge/eyas/internal/yamlfile"
)

// maxLabelsFile is far above any real labels file; ImageNet's takes 30 KB.
const maxLabelsFile = 1 << 20

// ReadLabels reads a labels file: see ParseLabels.
func ReadLabels(path string) ([]string, error) {
	data, err := regular.Read(path, maxLabelsFile)
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
	doc, err := yamlfile.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("labels %s:%w", name, err)
	}
	for _, kv := range yamlfile.Pairs(doc.Body) {
		if kv.Key.GetToken().Value == "names" {
			names, err := labelsOf(kv.Value)
			if err != nil {
				return nil, fmt.Errorf("labels %s:%w", name, err)
			}
			return names, nil
		}
	}
	return nil, fmt.Errorf("labels %s: no key names: it wants a list, or a map from class id to name", name)
}

// labelsOf reads a list of names, or a map from class id to name. A name is the text as
// written, so that a class called no or 1 keeps its name.
func labelsOf(n ast.Node) ([]string, error) {
	set := labelSet{}
	add := func(id int, v ast.Node) error {
		s, ok := yamlfile.Scalar(v)
		if !ok {
			return yamlfile.At(v, "a class name has to be plain text")
		}
		if err := set.add(id, s); err != nil {
			return yamlfile.At(v, "%v", err)
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
	kvs := yamlfile.Pairs(n)
	if kvs == nil {
		return nil, yamlfile.At(n, "class names have to be a list, or a map from class id to name")
	}
	for _, kv := range kvs {
		id, err := strconv.Atoi(kv.Key.GetToken().Value)
		if err != nil {
			return nil, yamlfile.At(kv.Key, "%.60q is no class id", kv.Key.GetToken().Value)
		}
		if err := add(id, kv.Value); err != nil {
			return nil, err
		}
	}
	return set.names, nil
}
