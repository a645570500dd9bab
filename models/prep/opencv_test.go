package prep

import (
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
		got, _ := fill(t, Recipe{Resize: Stretch, NHWC: true, Type: tensor.Uint8}, c.newW, c.newH, fr)
		if crc := crc32.ChecksumIEEE(got.Data); crc != c.crc {
			t.Errorf("%dx%d to %dx%d: checksum %08x, OpenCV's is %08x", c.srcW, c.srcH, c.newW, c.newH, crc, c.crc)
		}
	}
}
