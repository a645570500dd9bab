package onnx

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/eyas-edge/eyas/internal/regular"
)

// maxFile is the largest file that can be a protobuf message.
const maxFile = 2 << 30

// Function is a model-local function: an operator that the file itself defines.
type Function struct {
	Domain, Name string
	Nodes        []Node
}

// Open reads the ONNX file at path. What is no ONNX file is told from its first bytes,
// before the rest is read.
func Open(path string) (*Model, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder: name the .onnx file in it", path)
	}
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s: has %d bytes and an ONNX file at most 2 GiB: export it with external data", path, info.Size())
	}
	head := make([]byte, min(info.Size(), headBytes))
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := foreign(head, path); err != nil {
		return nil, named(path, err)
	}
	data := make([]byte, info.Size())
	copy(data, head)
	if _, err := io.ReadFull(f, data[len(head):]); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m, err := Parse(data, filepath.Dir(path))
	if err != nil {
		return nil, named(path, err)
	}
	m.Path = path
	return m, nil
}

// named puts the path in front of an error. What the bytes did not tell the name may.
func named(path string, err error) error {
	if errors.Is(err, errNotONNX) {
		err = byName(path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Parse reads a model from data, which must not change afterwards. dir is the folder that
// external data lies in; "" refuses external data. It refuses what does not hold together: a
// tensor whose data is missing, more nodes than fit the bytes, graphs nested too deep. What it allocates
// stays within a small multiple of len(data).
func Parse(data []byte, dir string) (*Model, error) {
	if err := foreign(data[:min(len(data), headBytes)], ""); err != nil {
		return nil, err
	}
	m := &Model{Opsets: make(map[string]int64), Metadata: make(map[string]string), Size: int64(len(data))}
	r := &reader{dir: dir, items: len(data)/bytesPerItem + spareItems, ext: make(map[string]int64)}
	for rest := data; len(rest) > 0; {
		f, after, err := next(rest)
		switch {
		case err != nil && m.IRVersion == 0 && m.Graph == nil:
			return nil, errNotONNX
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errTruncated
		case err != nil:
			return nil, errDamaged
		}
		if err := r.model(m, f); err != nil {
			return nil, err
		}
		rest = after
	}
	switch {
	case m.Graph == nil && m.IRVersion == 0:
		return nil, errNotONNX
	case m.Graph == nil:
		return nil, errors.New("the file holds no graph: it is truncated or no ONNX file, download or export it again")
	case len(m.Graph.Nodes) == 0:
		return nil, errors.New("the graph holds no operators: it is truncated or no model, export it again")
	case len(m.Graph.Inputs) == 0:
		return nil, errors.New("the graph has no inputs, so there is nothing to feed a picture to: export the whole model")
	case len(m.Graph.Outputs) == 0:
		return nil, errors.New("the graph has no outputs, so there is nothing to read: export the whole model")
	}
	return m, nil
}

// model reads one field of a ModelProto into m.
func (r *reader) model(m *Model, f field) (err error) {
	switch {
	case f.isInt(1):
		m.IRVersion = int64(f.n)
	case f.is(2):
		m.Producer = string(f.val)
	case f.is(3):
		m.ProducerVersion = string(f.val)
	case f.is(7):
		if m.Graph != nil {
			return errors.New("the file holds two graphs: it is damaged, export it again")
		}
		m.Graph, err = r.graph(f.val)
	case f.is(8):
		domain, version := "", int64(0)
		err = each(f.val, func(f field) error {
			switch {
			case f.is(1):
				domain = string(f.val)
			case f.isInt(2):
				version = int64(f.n)
			}
			return nil
		})
		if domain == "ai.onnx" {
			domain = ""
		}
		m.Opsets[domain] = version
	case f.is(14):
		var key, value string
		key, value, err = entry(f.val)
		m.Metadata[key] = value
	case f.is(25):
		err = r.function(m, f.val)
	}
	return err
}

// function reads a FunctionProto.
func (r *reader) function(m *Model, msg []byte) error {
	if err := r.take(1+count(msg, 7), "nodes"); err != nil {
		return err
	}
	var fn Function
	err := each(msg, func(f field) error {
		switch {
		case f.is(1):
			fn.Name = string(f.val)
		case f.is(7):
			n, err := r.node(f.val)
			fn.Nodes = append(fn.Nodes, n)
			return err
		case f.is(10):
			fn.Domain = string(f.val)
		}
		return nil
	})
	m.Functions = append(m.Functions, fn)
	return err
}

// Nodes goes through all nodes of the model: the graph's, those of graphs inside of nodes, and
// those of functions.
func (m *Model) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		ok := walk(m.Graph.Nodes, yield)
		for i := 0; ok && i < len(m.Functions); i++ {
			ok = walk(m.Functions[i].Nodes, yield)
		}
	}
}

func walk(nodes []Node, yield func(*Node) bool) bool {
	for i := range nodes {
		if !yield(&nodes[i]) {
			return false
		}
		for _, g := range nodes[i].graphs() {
			if !walk(g.Nodes, yield) {
				return false
			}
		}
	}
	return true
}

// graphs returns the graphs that the node's attributes hold.
func (n *Node) graphs() []*Graph {
	var list []*Graph
	for i := range n.Attrs {
		if g := n.Attrs[i].G; g != nil {
			list = append(list, g)
		}
		list = append(list, n.Attrs[i].Graphs...)
	}
	return list
}

// ForeignEngine returns the name of the first node that carries a compiled engine of another
// runtime (EPContext), and whether there is one. Loading such a model runs foreign code.
func (m *Model) ForeignEngine() (name string, found bool) {
	for n := range m.Nodes() {
		if n.Op == "EPContext" {
			return n.Name, true
		}
	}
	return "", false
}
