package memplan

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteTable writes the document for people: the scheme, a column for each batch size, the regions of the
// whole ladder, and where figures come from that are not exact.
func (d *Document) WriteTable(w io.Writer) error {
	var b bytes.Buffer
	var notes footnotes
	if len(d.Batches) > 0 {
		fmt.Fprintf(&b, "%s\n\n", d.Scheme)
		d.batchGrid(&notes).write(&b)
		b.WriteByte('\n')
		d.regionGrid(&notes).write(&b)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "total %s%s\n", exactBytes(d.Total), d.limits())
	for _, m := range d.Models {
		if m.Quota > 0 {
			fmt.Fprintf(&b, "model %s needs %s, quota %s\n", m.Name, exactBytes(m.Need), exactBytes(m.Quota))
		}
	}
	switch {
	case d.LargestBatch == 0 && len(d.Batches) > 0:
		b.WriteString("no batch size fits\n")
	case !d.Fits:
		fmt.Fprintf(&b, "the largest batch size that fits is %d\n", d.LargestBatch)
	}
	notes.write(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// limits names what the total is held against.
func (d *Document) limits() string {
	var parts []string
	if d.Capacity.Budget > 0 {
		parts = append(parts, "budget "+exactBytes(d.Capacity.Budget))
	}
	if d.Capacity.Machine > 0 {
		parts = append(parts, "this machine has "+FormatBytes(d.Capacity.Machine))
	}
	if d.Capacity.Dedicated >= 0 {
		parts = append(parts, d.Capacity.name()+" "+FormatBytes(d.Capacity.Dedicated))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// batchKinds are the rows of the table of batch sizes.
var batchKinds = []struct {
	kind  Kind
	bytes func(*BatchPlan) int64
}{
	{Weights, func(b *BatchPlan) int64 { return b.Weights }}, {Headroom, func(b *BatchPlan) int64 { return b.Headroom }},
	{Arena, func(b *BatchPlan) int64 { return b.ArenaBytes }}, {Spill, func(b *BatchPlan) int64 { return b.Spill }},
	{Tensors, func(b *BatchPlan) int64 { return b.Tensors }}, {Frames, func(b *BatchPlan) int64 { return b.Frames }},
	{Engine, func(b *BatchPlan) int64 { return b.Engine }}, {Children, func(b *BatchPlan) int64 { return b.Children }},
	{Go, func(b *BatchPlan) int64 { return b.Go }},
}

func (d *Document) batchGrid(notes *footnotes) grid {
	g := grid{align: "l"}
	add := func(name string, cell func(*BatchPlan) string) {
		row := []string{name}
		for i := range d.Batches {
			row = append(row, cell(&d.Batches[i]))
		}
		g.rows = append(g.rows, row)
	}
	add("batch", func(b *BatchPlan) string { return strconv.Itoa(b.Batch) })
	for _, k := range batchKinds {
		if !slices.ContainsFunc(d.Batches, func(b BatchPlan) bool { return k.bytes(&b) != 0 || b.Basis[k.kind] != "" }) {
			continue // a row of nothing
		}
		add(string(k.kind), func(b *BatchPlan) string { return FormatBytes(k.bytes(b)) + notes.mark(b.Basis[k.kind]) })
		if k.kind == Arena {
			add("  lower bound", func(b *BatchPlan) string { return FormatBytes(b.Arena.LowerBound) })
			add("  minimal", (*BatchPlan).minimal)
		}
	}
	add("total", func(b *BatchPlan) string { return FormatBytes(b.Total) })
	add("fits", func(b *BatchPlan) string { return yes(b.Fits) })
	return g
}

// minimal says whether a lower arena could exist.
func (b *BatchPlan) minimal() string {
	if b.Arena.Proven {
		return "proven"
	}
	return "not proven"
}

func yes(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func (d *Document) regionGrid(notes *footnotes) grid {
	g := grid{align: "llrrl", rows: [][]string{{"region", "of", "size", "bytes", "memory"}}}
	for _, r := range d.Regions {
		memory := string(r.Placement)
		if r.Placement == "" {
			memory = "-"
		}
		g.rows = append(g.rows, []string{string(r.Kind), r.Owner, FormatBytes(r.Bytes) + notes.mark(r.Basis), strconv.FormatInt(r.Bytes, 10), memory})
	}
	return g
}

// footnotes numbers remarks by asterisks, in the order in which they first come.
type footnotes []string

// mark returns the asterisks of a remark, none for an empty one.
func (f *footnotes) mark(text string) string {
	if text == "" {
		return ""
	}
	i := slices.Index(*f, text)
	if i < 0 {
		i = len(*f)
		*f = append(*f, text)
	}
	return strings.Repeat("*", i+1)
}

func (f footnotes) write(b *bytes.Buffer) {
	for i, text := range f {
		fmt.Fprintf(b, "%s %s\n", strings.Repeat("*", i+1), text)
	}
}
