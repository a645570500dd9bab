package prep

import (
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/eyas-edge/eyas/camera/frame"
	"github.com/eyas-edge/eyas/internal/tensor"
)

// What OpenCV 4.6.0 (Debian, cv::resize with INTER_LINEAR on CV_8UC3) makes of a packed picture
// whose byte i is i*i*31 + i*7 + i/32, as a checksum of its output. Models were trained on
// pictures that it resized: levels are to be equal, not nearly so.
func TestResizeEqualsOpenCV(t *testing.T) {
	for _, c := range []struct {
		srcW, srcH, newW, newH int
		crc                    uint32
	}{
		{8, 6, 5, 4, 0x96645585},
		{7, 5, 16, 11, 0x4d2f2675},
		{64, 48, 32, 24, 0x7f5557e2},
		{101, 67, 64, 43, 0x154cdf55},
		{33, 80, 90, 218, 0x935e1922},
		{640, 3, 213, 2, 0xacfd1fee},
		{1, 9, 7, 4, 0x302f2c72},
		{50, 50, 51, 49, 0x37e942e6},
	} {
		data := make([]byte, 3*c.srcW*c.srcH)
		for i := range data {
			data[i] = byte(i*i*31 + i*7 + i>>5)
		}
		fr, err := frame.New(frame.RGB24, c.srcW, c.srcH, []frame.Plane{{Data: data, Stride: 3 * c.srcW}}, fixedTime, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := filled(t, Recipe{Resize: Stretch, NHWC: true, Type: tensor.Uint8}, c.newW, c.newH, fr)
		if crc := crc32.ChecksumIEEE(got.Data); crc != c.crc {
			t.Errorf("%dx%d to %dx%d: checksum %08x, OpenCV's is %08x", c.srcW, c.srcH, c.newW, c.newH, crc, c.crc)
		}
	}
}

// YUV pictures, whose conversion is not OpenCV's to the bit, and packed ones: levels are next to OpenCV's.
func TestFillIsNextToOpenCV(t *testing.T) {
	cv := newOpenCV(t)
	for _, s := range []struct{ w, h, side, most int }{
		{1024, 768, 640, 2}, {1920, 1080, 640, 1}, {1280, 720, 640, 2}, {1600, 1200, 640, 2}, {1920, 1080, 416, 2},
		{322, 242, 640, 2}, {322, 242, 203, 2}, {640, 480, 640, 1},
	} {
		for _, format := range []frame.Format{frame.NV12, frame.I420, frame.YUYV, frame.BGR24} {
			for _, content := range []string{"noise", "photo"} {
				fr := picture(t, format, s.w, s.h, 0, false, 5)
				if content == "photo" {
					fr = cv.photo(format, s.w, s.h)
				}
				want := cv.load(fr, s.side)
				for twin, f := range bothTwins(t, Recipe{Pad: 114, NHWC: true, Type: tensor.Uint8}, s.side, s.side) {
					dst := newTensor(t, f.recipe, 1, s.side, s.side)
					tr, err := f.Fill(dst, 0, fr)
					if err != nil {
						t.Fatal(err)
					}
					var off [256]int
					for i, got := range dst.Data {
						off[max(got, want[i])-min(got, want[i])]++
					}
					values, beyond := 3*tr.NewW*tr.NewH, 0
					for _, n := range off[s.most+1:] {
						beyond += n
					}
					name := fmt.Sprintf("%s %dx%d to %d, %s, %s twin", format, s.w, s.h, s.side, content, twin)
					t.Logf("%s: of %d values %d are off by 1, %d by 2, %d by more", name, values, off[1], off[2], values-off[1]-off[2]-(off[0]-(len(want)-values)))
					if beyond*1000 > values || format == frame.BGR24 && off[0] != len(want) {
						t.Errorf("%s: %d of %d values are more than %d levels off", name, beyond, values, s.most)
					}
				}
			}
		}
	}
}
