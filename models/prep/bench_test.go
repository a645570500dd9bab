package prep

import (
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
)

func BenchmarkFill(b *testing.B) {
	unit := [3]float32{255, 255, 255}
	for _, c := range []struct {
		name     string
		format   frame.Format
		w, h, in int
		r        Recipe
	}{
		{"I420-1280x720-to-416-f32", frame.I420, 1280, 720, 416, Recipe{Pad: 114, Type: tensor.Float32}},
		{"NV12-1920x1080-to-640-f32", frame.NV12, 1920, 1080, 640, Recipe{Pad: 114, Std: unit, Type: tensor.Float32}},
		{"YUYV-640x480-to-640-f32", frame.YUYV, 640, 480, 640, Recipe{Pad: 114, Std: unit, Type: tensor.Float32}},
		{"RGB24-640x480-to-640-f32", frame.RGB24, 640, 480, 640, Recipe{Pad: 114, Std: unit, Type: tensor.Float32}},
		{"RGB24-500x375-to-640-f32", frame.RGB24, 500, 375, 640, Recipe{Pad: 114, Std: unit, Type: tensor.Float32}},
		{"RGB24-640x480-stretch-640-f32", frame.RGB24, 640, 480, 640, Recipe{Resize: Stretch, Std: unit, Type: tensor.Float32}},
		{"RGB24-640x480-to-416-u8-nhwc", frame.RGB24, 640, 480, 416, Recipe{Pad: 114, NHWC: true, Type: tensor.Uint8}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, err := NewFiller(c.r, c.in, c.in)
			if err != nil {
				b.Fatal(err)
			}
			dst, fr := newTensor(b, c.r, 1, c.in, c.in), picture(b, c.format, c.w, c.h, 0, true, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Fill(dst, 0, fr); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkToRGB(b *testing.B) {
	fr, dst := picture(b, frame.I420, 1280, 720, 0, true, 1), make([]byte, 3*1280*720)
	for b.Loop() {
		if err := ToRGB(dst, fr); err != nil {
			b.Fatal(err)
		}
	}
}
