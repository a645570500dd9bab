package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/eyas-edge/eyas/internal/yamlfile"
)

// maxNames bounds the classes of a dataset.
const maxNames = 1 << 16

// dataYAML is what matters of a YOLO dataset's description. Other keys are other tools' and are passed over.
type dataYAML struct {
	path   string
	splits map[string][]string // train, val, test: folders or lists of pictures
	names  []string
}

// parseDataYAML reads path, train, val, test and names. It walks the syntax tree instead of
// decoding it, because names is a list or a map. Its errors start with a place or say what is not there.
func parseDataYAML(data []byte) (*dataYAML, error) {
	doc, err := yamlfile.Parse(data)
	if err != nil {
		return nil, err
	}
	if doc.Body == nil {
		return nil, yamlfile.At(nil, "it is empty")
	}
	root := yamlfile.Pairs(doc.Body)
	if root == nil {
		return nil, yamlfile.At(doc.Body, "it is no map of path, val and names")
	}
	d := &dataYAML{splits: map[string][]string{}}
	var classes ast.Node // nc: how many names there have to be
	for _, e := range root {
		key, _ := yamlfile.Scalar(e.Key)
		switch key {
		case "path":
			d.path, err = scalar(e.Value)
		case "train", "val", "test":
			d.splits[key], err = scalars(e.Value)
		case "names":
			d.names, err = namesOf(e.Value)
		case "nc":
			classes = e.Value
		}
		if err != nil {
			return nil, err
		}
	}
	if len(d.names) == 0 {
		return nil, yamlfile.At(doc.Body, "it has no names: it wants the names of its classes")
	}
	if classes != nil {
		n, err := yamlfile.Whole(classes)
		if err != nil {
			return nil, err
		}
		if n != len(d.names) {
			return nil, yamlfile.At(classes, "nc says %d classes, and names gives %d: make them agree", n, len(d.names))
		}
	}
	return d, nil
}

// scalar returns a plain value as text; "" for null and for nothing.
func scalar(n ast.Node) (string, error) {
	s, ok := yamlfile.Scalar(n)
	if !ok {
		return "", yamlfile.At(n, "wants a plain value")
	}
	return s, nil
}

// scalars returns a plain value, or a list of them.
func scalars(n ast.Node) ([]string, error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		s, err := scalar(n)
		if s == "" || err != nil {
			return nil, err
		}
		return []string{s}, nil
	}
	var out []string
	for _, v := range list.Values {
		s, err := scalar(v)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// namesOf returns the names of classes 0, 1, ... from a list or a map by number; none for nothing. A number
// without a name gets itself as one.
func namesOf(n ast.Node) ([]string, error) {
	pairs := yamlfile.Pairs(n)
	if pairs == nil {
		if text, ok := yamlfile.Scalar(n); ok && text != "" {
			return nil, yamlfile.At(n, "names is %.40q: it has to be a list such as [cat, dog], or a map from number to name", text)
		}
		return scalars(n)
	}
	var out []string
	var set []bool
	for _, e := range pairs {
		key, err := scalar(e.Key)
		if err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= maxNames {
			return nil, yamlfile.At(e.Key, "class %.20q is no number below %d", key, maxNames)
		}
		name, err := scalar(e.Value)
		if err != nil {
			return nil, err
		}
		for len(out) <= i {
			out, set = append(out, strconv.Itoa(len(out))), append(set, false)
		}
		if set[i] {
			return nil, yamlfile.At(e.Key, "class %d has two names", i)
		}
		out[i], set[i] = name, true
	}
	return out, nil
}

// label is one object of a label file, in 0..1 of the picture: x1,y1,x2,y2.
type label struct {
	class int
	box   [4]float64
}

// parseLabels reads a YOLO label file: one object a line, its class and either centre x, centre y, width, height or the
// points of a polygon, whose bounding box it is, all in 0..1 of the picture. dropped counts objects without area:
// nothing can match them.
func parseLabels(data []byte, classes int) (out []label, dropped int, err error) {
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		l, err := parseLabel(fields, classes)
		if err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		if l.box[0] < l.box[2] && l.box[1] < l.box[3] {
			out = append(out, l)
		} else {
			dropped++
		}
	}
	return out, dropped, nil
}

func parseLabel(fields []string, classes int) (label, error) {
	if n := len(fields); n != 5 && (n < 7 || n%2 == 0) {
		return label{}, fmt.Errorf("%d values: a box has 5, a polygon 7 or more and an odd number", n)
	}
	values := make([]float64, len(fields))
	for i, f := range fields {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return label{}, fmt.Errorf("%.20q is no number", f)
		}
		if i > 0 && (v < -0.01 || v > 1.01) { // rounding of other tools is tolerated
			return label{}, fmt.Errorf("%v is not in 0..1 of the picture", v)
		}
		values[i] = v
	}
	class := values[0]
	if class != math.Trunc(class) || class < 0 || class >= float64(classes) {
		return label{}, fmt.Errorf("class %s: there are %d names", fields[0], classes)
	}
	l := label{class: int(class)}
	if v := values[1:]; len(v) == 4 {
		l.box = [4]float64{v[0] - v[2]/2, v[1] - v[3]/2, v[0] + v[2]/2, v[1] + v[3]/2}
	} else {
		l.box = [4]float64{v[0], v[1], v[0], v[1]}
		for p := range slices.Chunk(v, 2) {
			l.box[0], l.box[2] = min(l.box[0], p[0]), max(l.box[2], p[0])
			l.box[1], l.box[3] = min(l.box[1], p[1]), max(l.box[3], p[1])
		}
	}
	return l, nil
}
