package prep

import (
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
	"github.com/eyas-edge/eyas/internal/testenv"
)

// BenchmarkOpenCV alternates passes of both twins with OpenCV's cvtColor, resize, copyMakeBorder and blobFromImage of
// the same picture, one thread each, and reports medians and how many times as long OpenCV takes. Times are the thread's
// processor time, the same as the wall's on an idle machine. An op is one round.
func BenchmarkOpenCV(b *testing.B) {
	cv := newOpenCV(b)
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	r := Recipe{Pad: 114, Std: [3]float32{255, 255, 255}, Type: tensor.Float32}
	for _, s := range []struct{ w, h, side int }{{1920, 1080, 640}, {1280, 720, 640}, {1600, 1200, 640}, {1920, 1080, 416}} {
		for _, format := range []frame.Format{frame.NV12, frame.YUYV, frame.BGR24} {
			for _, content := range []string{"photo", "noise"} {
				b.Run(fmt.Sprintf("%dx%d-to-%d/%s/%s", s.w, s.h, s.side, format, content), func(b *testing.B) {
					fr := picture(b, format, s.w, s.h, 0, false, 5)
					if content == "photo" {
						fr = cv.photo(format, s.w, s.h)
					}
					cv.load(fr, s.side)
					dst := newTensor(b, r, 1, s.side, s.side)
					times := map[string][]float64{}
					twins := bothTwins(b, r, s.side, s.side)
					for b.Loop() {
						for _, twin := range slices.Sorted(maps.Keys(twins)) {
							times["OpenCV"] = append(times["OpenCV"], cv.Time())
							start := testenv.ThreadTime(b)
							if _, err := twins[twin].Fill(dst, 0, fr); err != nil {
								b.Fatal(err)
							}
							times[twin] = append(times[twin], testenv.ThreadTime(b)-start)
						}
					}
					b.ReportMetric(0, "ns/op")
					for name, t := range times {
						slices.Sort(t)
						median := t[len(t)/2]
						b.ReportMetric(median/1e6, name+"-ms")
						if name != "OpenCV" {
							slices.Sort(times["OpenCV"])
							b.ReportMetric(times["OpenCV"][len(times["OpenCV"])/2]/median, "x-"+name)
						}
					}
				})
			}
		}
	}
}
