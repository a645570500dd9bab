package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestFlagsFirst(t *testing.T) {
	var cli commands
	parser, err := newParser(&cli, io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"run a.jpg b.jpg", "run a.jpg b.jpg"},
		{"run a.jpg --conf 0.5 b.jpg", "run --conf 0.5 a.jpg b.jpg"},
		{"run a.jpg --conf=0.5 b.jpg --events c.jpg", "run --conf=0.5 --events a.jpg b.jpg c.jpg"},
		{"run a.jpg -m x.onnx b.jpg -qm y.onnx c.jpg -mz.onnx d.jpg -q e.jpg", "run -m x.onnx -qm y.onnx -mz.onnx -q a.jpg b.jpg c.jpg d.jpg e.jpg"},
		{"run a.jpg -q -- --odd.jpg b.jpg", "run -q -- a.jpg --odd.jpg b.jpg"},
		{"run - a.jpg", "run - a.jpg"},
		{"run a.jpg --unknown b.jpg", "run --unknown a.jpg b.jpg"},
		{"run a.jpg -m", "run a.jpg -m"}, // the parser says what is missing
		{"eval m.onnx --coco x.json", "eval --coco x.json m.onnx"},
		{"nothing a --b c", "nothing a --b c"},
		{"--help run", "--help run"},
	} {
		if got := flagsFirst(parser.Model, strings.Fields(c.args)); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: got %s, want %s", c.args, got, c.want)
		}
	}
}
