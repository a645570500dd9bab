package models

import (
	"fmt"
	"strings"

	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/models/onnx"
)

// settleInput finds the picture input and, with DETR-style models, the one for sizes.
func (l *loader) settleInput() error {
	picture := -1
	var others []int
	for i, in := range l.graph.Inputs {
		if len(in.Shape) == 4 && picture < 0 {
			picture = i
		} else {
			others = append(others, i)
		}
	}
	if picture < 0 {
		return fmt.Errorf("no input takes a picture: it has %s, and a detector wants [batch,3,height,width] or [batch,height,width,3]",
			values(l.graph.Inputs))
	}
	in := l.graph.Inputs[picture]
	l.Input = Input{Index: picture, Name: in.Name, Type: in.Type, Batch: max(in.Shape[0].Size, 0)}
	switch in.Type {
	case tensor.Float32, tensor.Float16, tensor.Uint8:
	case tensor.BFloat16:
		return fmt.Errorf("input %s is bfloat16, which cameras' runtimes do not take: export the model as float32 or float16 (half=True)", in.Name)
	default:
		return fmt.Errorf("input %s is %s: Eyas feeds float32, float16 or uint8", in.Name, in.Type)
	}
	if err := l.settleLayout(in.Sizes()); err != nil {
		return err
	}
	for _, i := range others {
		in := l.graph.Inputs[i]
		if in.Type != tensor.Int64 && in.Type != tensor.Int32 || len(in.Shape) != 2 || in.Shape[1].Size > 0 && in.Shape[1].Size != 2 || l.SizeInput >= 0 {
			return fmt.Errorf("it also wants the input %s: Eyas feeds one picture, and int64 [batch,2] with its size to DETR-style models; "+
				"export the network alone", valueText(in))
		}
		l.SizeInput = i
	}
	return nil
}

// settleLayout tells planes from channels last by where the 3 stands, or the 1 of a grey input.
func (l *loader) settleLayout(shape []int) error {
	first, last := shape[1], shape[3]
	switch {
	case l.side.Layout != "":
		l.Input.NHWC = l.side.Layout == "nhwc"
	case first == 3 && last == 3:
		return fmt.Errorf("input %v: channels may come first or last: say 'layout: nchw' or 'layout: nhwc' in the sidecar", shape)
	case first == 3, last == 3:
		l.Input.NHWC = last == 3
	case first == 1, last == 1:
		l.Input.NHWC = first != 1
	case first < 0 && last < 0:
		return fmt.Errorf("input %v does not say where the channels are: say 'layout: nchw' or 'layout: nhwc' in the sidecar", shape)
	default:
		l.Input.NHWC = first > 0 && last < 0 // the axis that is not a size is the unknown one
	}
	c, h, w := first, shape[2], last
	if l.Input.NHWC {
		c, h, w = last, first, shape[2]
	}
	if c < 0 {
		c = 3
	}
	if c != 1 && c != 3 {
		return fmt.Errorf("input %v has %d channels: Eyas feeds 3 colours or 1 grey level a pixel", shape, c)
	}
	l.Input.Channels, l.Input.H, l.Input.W = c, max(h, 0), max(w, 0)
	if max(h, w) > MaxSide {
		return fmt.Errorf("input %v: a side has at most %d pixels", shape, MaxSide)
	}
	return nil
}

// values lists inputs or outputs for a message.
func values(list []onnx.ValueInfo) string {
	var s []string
	for i, v := range list {
		if i == 12 {
			s = append(s, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		s = append(s, valueText(v))
	}
	return strings.Join(s, ", ")
}

// valueText is a value as name, type and shape: "images float32 [batch,3,640,640]".
func valueText(v onnx.ValueInfo) string {
	if !v.HasShape {
		return fmt.Sprintf("%s %s of unknown shape", printable(v.Name), v.Type)
	}
	return fmt.Sprintf("%s %s [%s]", printable(v.Name), v.Type, strings.Join(dims(v), ","))
}

// dims are the declared dimensions as text: a number, the axis' name, or ?.
func dims(v onnx.ValueInfo) []string {
	out := make([]string, len(v.Shape))
	for i, d := range v.Shape {
		switch {
		case d.Size >= 0:
			out[i] = fmt.Sprint(d.Size)
		case d.Param != "":
			out[i] = printable(d.Param)
		default:
			out[i] = "?"
		}
	}
	return out
}
