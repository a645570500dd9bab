package ort

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShort(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", "Got invalid dimensions", "Got invalid dimensions"},
		{"empty", " \n", "no reason given"},
		{"lines", "first\n\tsecond\r\n", "first second"},
		{"terminal", "a\x1b[31mred\x00", "a [31mred"},
		{"load", "Error creating C session from file: Load model from /tmp/a b.onnx failed:Protobuf parsing failed.", "Protobuf parsing failed"},
		{"load by throw", "Load model from /m.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:182 onnxruntime::Model::Model(onnx::ModelProto&&, const PathString&, const ModelOptions&) Unsupported model IR version: 99, max supported IR version: 13",
			"Unsupported model IR version: 99, max supported IR version: 13"},
		{"node", "Non-zero status code returned while running Add node. Name:'/24/Add' Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/math/element_wise_ops.h:540 void onnxruntime::BroadcastIterator::Append(ptrdiff_t, ptrdiff_t) axis == 1 || axis == largest was false. Attempting to broadcast",
			"node '/24/Add' (Add): axis == 1 || axis == largest was false. Attempting to broadcast"},
		{"code in a node", "Non-zero status code returned while running Transpose node. Name:'t' Status Message: [ONNXRuntimeError] : 2 : INVALID_ARGUMENT : The output is wrong.",
			"node 't' (Transpose): The output is wrong"},
		{"template", "x.cc:9 std::unique_ptr<T> onnxruntime::F(int) [with T = int; U = char] it broke", "it broke"},
		{"name only", "Error: tensorprotoutils.cc:461 ValidateExternalDataPathFromDir External data path does not exist", "Error: External data path does not exist"},
		{"stack", "it broke\nStacktrace:\n#0 a\n#1 b", "it broke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := short(c.text); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestShortIsBounded(t *testing.T) {
	got := short(strings.Repeat("€", 1<<17))
	if len(got) > maxMessage+3 || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestKinds(t *testing.T) {
	err := fail(ErrTerminated, "%s: run: terminated", "m")
	if err.Error() != "m: run: terminated" || !errors.Is(err, ErrRun) || errors.Is(err, ErrModel) {
		t.Errorf("%v", err)
	}
}

func FuzzShort(f *testing.F) {
	f.Add("x.cc:9 f(int) [with T = int] it broke")
	f.Add("Load model from a failed:")
	f.Fuzz(func(t *testing.T, text string) {
		got := short(text)
		if got == "" || len(got) > maxMessage+3 || strings.ContainsAny(got, "\n\r\x1b\x00") {
			t.Errorf("%q", got)
		}
	})
}
