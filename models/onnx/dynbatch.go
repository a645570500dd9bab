package onnx

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
)

// DynamicBatchVersion changes with what DynamicBatch makes of a model.
const DynamicBatchVersion = 1

// DynamicBatch returns a model that was exported for one picture as one that takes any number: n pictures give on axis
// 0 of each output what the model gives for each of them alone. inputs are the names of those that hold the pictures,
// or something of each picture, on axis 0; every other input is the same for all. m is not changed, and the two share
// the weights.
//
// It follows the axis that tells pictures apart from the inputs through every operator, and knows of each operator
// when one picture's part of the result depends on that picture alone. Numbers of the graph that stand for the one
// picture are replaced: targets of Reshape and Expand, sizes of Resize, ends of Slice, results of Shape. What it does
// not know, and what mixes pictures or drops the axis, it refuses in one line that names the node. So the results are
// equal but for the order in which an engine's kernels add numbers up.
func (m *Model) DynamicBatch(inputs ...string) (*Model, error) {
	if err := m.checkOne(inputs); err != nil {
		return nil, err
	}
	s, err := m.values(nil, false)
	if err != nil {
		return nil, err
	}
	r := &rebatcher{s: s, axes: make(map[string]int), names: m.names(), param: "batch"}
	for i := 1; m.hasParam(r.param); i++ {
		r.param = fmt.Sprintf("batch_%d", i)
	}
	for _, name := range inputs {
		r.axes[name] = 0
	}
	out, graph := *m, *m.Graph
	out.Graph, out.Rewritten = &graph, true
	out.IRVersion = max(out.IRVersion, 4) // before, weights had to be inputs, too
	if graph.Nodes, err = r.nodes(&graph); err != nil {
		return nil, err
	}
	if err := r.checkOutputs(graph.Outputs); err != nil {
		return nil, err
	}
	graph.Initializers = slices.Concat(graph.Initializers, r.add)
	for i := range graph.Initializers {
		graph.Initializers[i].Listed = false // nobody feeds another value, and engines do more with constants
	}
	r.declare(&graph)
	return &out, r.verify(m, &out, inputs)
}

// checkOne refuses what DynamicBatch is not for.
func (m *Model) checkOne(inputs []string) error {
	if len(m.Functions) > 0 {
		return errors.New("it defines operators of its own, which are not followed")
	}
	if m.Opsets[""] < 7 {
		return fmt.Errorf("its operators are of version %d, known are those from 7 on", m.Opsets[""])
	}
	for _, name := range inputs {
		i := slices.IndexFunc(m.Graph.Inputs, func(v ValueInfo) bool { return v.Name == name })
		if i < 0 {
			return fmt.Errorf("it has no input %.60q", name)
		}
		if s := m.Graph.Inputs[i].Sizes(); len(s) == 0 || s[0] != 1 {
			return fmt.Errorf("its input %.60q is %s, not of one picture", name, showShape(s))
		}
	}
	if len(inputs) == 0 {
		return errors.New("it has no input of pictures")
	}
	return nil
}

// names returns all names of values in the graph.
func (m *Model) names() map[string]bool {
	names := make(map[string]bool)
	for _, v := range m.Graph.Inputs {
		names[v.Name] = true
	}
	for i := range m.Graph.Initializers {
		names[m.Graph.Initializers[i].Name] = true
	}
	for n := range m.Nodes() {
		for _, out := range n.Outputs {
			names[out] = true
		}
	}
	return names
}

// hasParam says whether an input or output has a dynamic axis of that name already.
func (m *Model) hasParam(name string) bool {
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		if slices.ContainsFunc(v.Shape, func(d Dim) bool { return d.Param == name }) {
			return true
		}
	}
	return false
}

// rebatcher goes once through a graph for one picture.
//
// A value carries the batch on axis k if for n pictures that axis is n times as long, and its ith part is what the
// value is for picture i. The length for one picture need not be 1: [1,116,400] may become [58,2,400], and that
// [58n,2,400].
type rebatcher struct {
	s     *inferrer      // shapes and small constants of the model as it is
	axes  map[string]int // of the batch, by value; a value that is not here is the same for all pictures
	names map[string]bool
	param string        // name of the dynamic axis
	add   []Initializer // the constants that were changed
	ahead []Node        // to come in front of the node that is being looked at
	next  int           // number of the next new value
}

// nodes returns the rewritten nodes of a graph.
func (r *rebatcher) nodes(g *Graph) ([]Node, error) {
	defined := map[string]bool{"": true} // an optional input that is left out
	for _, v := range g.Inputs {
		defined[v.Name] = true
	}
	for i := range g.Initializers {
		defined[g.Initializers[i].Name] = true
	}
	list := make([]Node, 0, len(g.Nodes))
	for i := range g.Nodes {
		n := g.Nodes[i]
		for _, in := range n.Inputs {
			if !defined[in] {
				return nil, r.refuse(&n, fmt.Errorf("its input %.60q comes later or from nowhere", in))
			}
		}
		for _, out := range n.Outputs {
			if defined[out] && out != "" {
				return nil, r.refuse(&n, fmt.Errorf("its output %.60q is there already", out))
			}
			defined[out] = true
		}
		if err := r.node(&n); err != nil {
			return nil, r.refuse(&n, err)
		}
		list = append(append(list, r.ahead...), n)
		r.ahead = r.ahead[:0]
	}
	return list, nil
}

func (r *rebatcher) refuse(n *Node, err error) error {
	op := strings.Trim(fmt.Sprintf("%.60q", key(n.Domain, n.Op)), `"`) // which may hold anything, a line feed too
	return fmt.Errorf("node %.60q (%s): %w", cmp.Or(n.Name, strings.Join(n.Outputs, ",")), op, err)
}

// node settles on which axes the outputs of a node carry the batch, and changes what has to be changed in it.
func (r *rebatcher) node(n *Node) error {
	if len(n.graphs()) > 0 {
		return errors.New("holds an inner graph, which is not followed")
	}
	op := key(n.Domain, n.Op)
	if len(n.Outputs) == 0 {
		return errors.New("gives nothing")
	}
	if random[op] {
		return errors.New("gives something else each time")
	}
	if !slices.ContainsFunc(n.Inputs, func(in string) bool { _, ok := r.axes[in]; return ok }) {
		return nil
	}
	if why, ok := mixing[op]; ok {
		return errors.New(why)
	}
	rule, ok := batchRules[op]
	if !ok {
		return errors.New("it is not known whether it keeps the pictures of a batch apart")
	}
	if err := rule(&batchCall{call: &call{Node: n, s: r.s, opset: r.s.model.Opsets[""]}, r: r}); err != nil {
		return err
	}
	for _, out := range n.Outputs {
		if _, ok := r.axes[out]; !ok && out != "" && n.Op != "Constant" { // as Shape becomes
			return fmt.Errorf("nothing is known of its output %.60q", out)
		}
	}
	return nil
}

// random are operators that give something else in each run.
var random = map[string]bool{
	"RandomNormal": true, "RandomNormalLike": true, "RandomUniform": true, "RandomUniformLike": true,
	"Multinomial": true, "Bernoulli": true,
}

// mixing says of operators that never keep pictures apart, why.
var mixing = map[string]string{
	"DynamicQuantizeLinear": "takes its scale from all pictures of a batch",
	"NonMaxSuppression":     "puts what it keeps of all pictures into one list",
	"NonZero":               "puts what it finds in all pictures into one list",
	"Unique":                "puts what it finds in all pictures into one list",
	"Compress":              "puts what it keeps of all pictures into one list",
}

// complete returns the shape of a value, which has to be known in full: what a batch axis is follows from sizes.
func (r *rebatcher) complete(name string) ([]int, error) {
	v := r.s.vals[name]
	if v == nil || v.shape == nil {
		return nil, fmt.Errorf("the shape of %.60q is not known", name)
	}
	if product(v.shape) < 1 {
		return nil, fmt.Errorf("the shape %s of %.60q depends on data, or holds nothing", showShape(v.shape), name)
	}
	return v.shape, nil
}

// fresh returns a name that no value has.
func (r *rebatcher) fresh() (name string) {
	for taken := true; taken; taken = r.names[name] {
		name = fmt.Sprintf("batch_value_%d", r.next)
		r.next++
	}
	return name
}

// constant adds an initialiser of one dimension with these elements and returns its name.
func (r *rebatcher) constant(t tensor.Type, elements int, data []byte) string {
	name := r.fresh()
	r.add = append(r.add, Initializer{Name: name, Type: t, Dims: []int{elements}, raw: data})
	return name
}

// insert adds a node in front of the one that is being looked at, and returns the name of what it gives.
func (r *rebatcher) insert(op string, inputs []string, attrs ...Attr) string {
	name := r.fresh()
	r.ahead = append(r.ahead, Node{Op: op, Name: name, Inputs: inputs, Outputs: []string{name}, Attrs: attrs})
	return name
}

// ints adds a constant of type int64.
func (r *rebatcher) ints(list []int) string {
	return r.constant(tensor.Int64, len(list), int64Bytes(list))
}

func int64Bytes(list []int) []byte {
	data := make([]byte, 0, 8*len(list))
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return data
}

// checkOutputs refuses outputs in which the pictures cannot be told apart on axis 0.
func (r *rebatcher) checkOutputs(outputs []ValueInfo) error {
	for _, o := range outputs {
		k, carries := r.axes[o.Name]
		if !carries {
			return fmt.Errorf("its output %.60q is the same for all pictures", o.Name)
		}
		if shape := r.s.vals[o.Name].shape; k != 0 || shape[0] != 1 {
			return fmt.Errorf("its output %.60q is %s, not one entry for each picture", o.Name, showShape(shape))
		}
	}
	return nil
}

// declare changes the declared shapes of all values that carry the batch.
func (r *rebatcher) declare(g *Graph) {
	change := func(v ValueInfo) ValueInfo {
		if k, ok := r.axes[v.Name]; ok && k < len(v.Shape) {
			v.Shape = slices.Clone(v.Shape)
			d := Dim{Size: -1}
			if v.Shape[k].Size == 1 {
				d.Param = r.param
			}
			v.Shape[k] = d
		}
		return v
	}
	g.Inputs, g.Outputs, g.Values = slices.Clone(g.Inputs), slices.Clone(g.Outputs), maps.Clone(g.Values)
	for i := range g.Inputs {
		g.Inputs[i] = change(g.Inputs[i])
	}
	for i := range g.Outputs {
		g.Outputs[i] = change(g.Outputs[i])
	}
	for name, v := range g.Values {
		g.Values[name] = change(v)
	}
}

// verify infers the shapes of the rewritten model for three pictures, by rules that know nothing of batches: every
// value has to be that of one picture, three times as long on its axis.
func (r *rebatcher) verify(m, out *Model, inputs []string) error {
	const pictures = 3 // less common among the sizes of a graph than 2 and 4
	given := make(map[string][]int)
	for _, v := range m.Graph.Inputs {
		if slices.Contains(inputs, v.Name) {
			given[v.Name] = v.Sizes()
			given[v.Name][0] = pictures
		}
	}
	shapes, err := out.Infer(given)
	if err != nil {
		return fmt.Errorf("rewritten for any number of pictures: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(r.axes)) {
		want, err := r.complete(name)
		if err != nil {
			return err
		}
		want = slices.Clone(want)
		want[r.axes[name]] *= pictures
		if got := shapes[name]; !slices.Equal(got, want) {
			return fmt.Errorf("rewritten for any number of pictures its value %.60q is %s for %d of them, not %s",
				name, showShape(got), pictures, showShape(want))
		}
	}
	return nil
}
