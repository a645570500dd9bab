package abi

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/eyas-edge/eyas/internal/testenv"
)

var update = flag.Bool("update", false, "write the golden file")

// layout is what Go says: each line names a C expression and its value.
func layout() string {
	var out strings.Builder
	line := func(expression string, value uint64) { fmt.Fprintf(&out, "%s = %#x\n", expression, value) }
	size := func(name string, n uintptr) { line("sizeof(struct "+name+")", uint64(n)) }
	at := func(name, field string, n uintptr) {
		line("offsetof(struct "+name+", "+field+")", uint64(n))
	}
	size("v4l2_capability", unsafe.Sizeof(Capability{}))
	at("v4l2_capability", "card", unsafe.Offsetof(Capability{}.Card))
	at("v4l2_capability", "bus_info", unsafe.Offsetof(Capability{}.BusInfo))
	at("v4l2_capability", "device_caps", unsafe.Offsetof(Capability{}.DeviceCaps))
	size("v4l2_fmtdesc", unsafe.Sizeof(FormatDesc{}))
	at("v4l2_fmtdesc", "pixelformat", unsafe.Offsetof(FormatDesc{}.PixelFormat))
	size("v4l2_frmsizeenum", unsafe.Sizeof(FrameSize{}))
	at("v4l2_frmsizeenum", "discrete.width", unsafe.Offsetof(FrameSize{}.MinWidth))
	at("v4l2_frmsizeenum", "discrete.height", unsafe.Offsetof(FrameSize{}.MaxWidth))
	at("v4l2_frmsizeenum", "stepwise.step_width", unsafe.Offsetof(FrameSize{}.StepWidth))
	at("v4l2_frmsizeenum", "stepwise.step_height", unsafe.Offsetof(FrameSize{}.StepHeight))
	size("v4l2_frmivalenum", unsafe.Sizeof(FrameInterval{}))
	at("v4l2_frmivalenum", "width", unsafe.Offsetof(FrameInterval{}.Width))
	at("v4l2_frmivalenum", "type", unsafe.Offsetof(FrameInterval{}.Type))
	at("v4l2_frmivalenum", "discrete", unsafe.Offsetof(FrameInterval{}.Min))
	at("v4l2_frmivalenum", "stepwise.max", unsafe.Offsetof(FrameInterval{}.Max))
	size("v4l2_pix_format", unsafe.Sizeof(PixFormat{}))
	at("v4l2_pix_format", "bytesperline", unsafe.Offsetof(PixFormat{}.BytesPerLine))
	at("v4l2_pix_format", "colorspace", unsafe.Offsetof(PixFormat{}.Colorspace))
	at("v4l2_pix_format", "priv", unsafe.Offsetof(PixFormat{}.Priv))
	at("v4l2_pix_format", "ycbcr_enc", unsafe.Offsetof(PixFormat{}.YCbCrEnc))
	at("v4l2_pix_format", "quantization", unsafe.Offsetof(PixFormat{}.Quantization))
	size("v4l2_format", unsafe.Sizeof(Format{}))
	at("v4l2_format", "fmt.pix", unsafe.Offsetof(Format{}.Pix))
	size("v4l2_streamparm", unsafe.Sizeof(StreamParm{}))
	at("v4l2_streamparm", "parm.capture.capability", unsafe.Offsetof(StreamParm{}.Capability))
	at("v4l2_streamparm", "parm.capture.timeperframe", unsafe.Offsetof(StreamParm{}.TimePerFrame))
	size("v4l2_requestbuffers", unsafe.Sizeof(RequestBuffers{}))
	at("v4l2_requestbuffers", "memory", unsafe.Offsetof(RequestBuffers{}.Memory))
	size("v4l2_buffer", unsafe.Sizeof(Buffer{}))
	at("v4l2_buffer", "flags", unsafe.Offsetof(Buffer{}.Flags))
	at("v4l2_buffer", "timestamp.tv_sec", unsafe.Offsetof(Buffer{}.Seconds))
	at("v4l2_buffer", "timestamp.tv_usec", unsafe.Offsetof(Buffer{}.Microseconds))
	at("v4l2_buffer", "sequence", unsafe.Offsetof(Buffer{}.Sequence))
	at("v4l2_buffer", "memory", unsafe.Offsetof(Buffer{}.Memory))
	at("v4l2_buffer", "m.offset", unsafe.Offsetof(Buffer{}.Offset))
	at("v4l2_buffer", "length", unsafe.Offsetof(Buffer{}.Length))
	for _, r := range []struct {
		name  string
		value uint
	}{
		{"VIDIOC_QUERYCAP", QueryCap}, {"VIDIOC_ENUM_FMT", EnumFmt}, {"VIDIOC_S_FMT", SetFmt}, {"VIDIOC_REQBUFS", ReqBufs},
		{"VIDIOC_QUERYBUF", QueryBuf}, {"VIDIOC_QBUF", QBuf}, {"VIDIOC_DQBUF", DQBuf}, {"VIDIOC_STREAMON", StreamOn},
		{"VIDIOC_STREAMOFF", StreamOff}, {"VIDIOC_S_PARM", SetParm}, {"VIDIOC_ENUM_FRAMESIZES", EnumFrameSizes},
		{"VIDIOC_ENUM_FRAMEINTERVALS", EnumFrameIntervals},
		{"V4L2_CAP_VIDEO_CAPTURE", CapVideoCapture}, {"V4L2_CAP_VIDEO_CAPTURE_MPLANE", CapVideoCaptureMPlane},
		{"V4L2_CAP_STREAMING", CapStreaming}, {"V4L2_CAP_DEVICE_CAPS", CapDeviceCaps},
		{"V4L2_FRMSIZE_TYPE_DISCRETE", TypeDiscrete}, {"V4L2_FRMIVAL_TYPE_CONTINUOUS", TypeContinuous}, {"V4L2_FRMSIZE_TYPE_STEPWISE", TypeStepwise},
		{"V4L2_BUF_TYPE_VIDEO_CAPTURE", TypeVideoCapture}, {"V4L2_MEMORY_MMAP", MemoryMap}, {"V4L2_PIX_FMT_PRIV_MAGIC", PrivMagic},
		{"V4L2_CAP_TIMEPERFRAME", CapTimePerFrame}, {"VIDEO_MAX_FRAME", MaxBuffers},
		{"V4L2_FIELD_NONE", FieldNone}, {"V4L2_FIELD_SEQ_TB", FieldSeqTB}, {"V4L2_FIELD_SEQ_BT", FieldSeqBT},
		{"V4L2_BUF_FLAG_ERROR", BufError}, {"V4L2_BUF_FLAG_TIMESTAMP_MASK", BufTimestampMask}, {"V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC", BufMonotonic},
		{"V4L2_COLORSPACE_SMPTE240M", ColorspaceSMPTE240M}, {"V4L2_COLORSPACE_REC709", ColorspaceREC709}, {"V4L2_COLORSPACE_JPEG", ColorspaceJPEG},
		{"V4L2_COLORSPACE_BT2020", ColorspaceBT2020}, {"V4L2_COLORSPACE_DCI_P3", ColorspaceDCIP3},
		{"V4L2_YCBCR_ENC_601", Enc601}, {"V4L2_YCBCR_ENC_709", Enc709}, {"V4L2_YCBCR_ENC_XV601", EncXV601}, {"V4L2_YCBCR_ENC_XV709", EncXV709},
		{"V4L2_YCBCR_ENC_BT2020", EncBT2020}, {"V4L2_YCBCR_ENC_BT2020_CONST_LUM", EncBT2020CL}, {"V4L2_YCBCR_ENC_SMPTE240M", EncSMPTE240M},
		{"V4L2_QUANTIZATION_FULL_RANGE", FullRange}, {"V4L2_QUANTIZATION_LIM_RANGE", LimitedRange},
		{"V4L2_PIX_FMT_YUYV", uint(FourCC("YUYV"))}, {"V4L2_PIX_FMT_NV12", uint(FourCC("NV12"))}, {"V4L2_PIX_FMT_YUV420", uint(FourCC("YU12"))},
		{"V4L2_PIX_FMT_GREY", uint(FourCC("GREY"))}, {"V4L2_PIX_FMT_MJPEG", uint(FourCC("MJPG"))}, {"V4L2_PIX_FMT_JPEG", uint(FourCC("JPEG"))},
	} {
		line(r.name, uint64(r.value))
	}
	return out.String()
}

// The golden file holds for amd64 and arm64, whose layouts are the same.
func TestLayout(t *testing.T) {
	const golden = "testdata/layout.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(layout()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := layout(); got != string(want) {
		t.Errorf("got\n%s", got)
	}
}

// The kernel's header says the same as the golden file, to each compiler that is there.
func TestHeader(t *testing.T) {
	for _, cc := range []string{"cc", "aarch64-linux-gnu-gcc"} {
		t.Run(cc, func(t *testing.T) {
			path, err := exec.LookPath(cc)
			testenv.Require(t, err == nil, cc+" is not installed")
			var checks strings.Builder
			checks.WriteString("#include <stddef.h>\n#include <linux/videodev2.h>\n")
			for line := range strings.Lines(layout()) {
				expression, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
				fmt.Fprintf(&checks, "_Static_assert((unsigned long)(%s) == %s, \"%s\");\n", expression, value, expression)
			}
			file := filepath.Join(t.TempDir(), "layout.c")
			if err := os.WriteFile(file, []byte(checks.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(path, "-fsyntax-only", file).CombinedOutput(); err != nil {
				testenv.Require(t, !strings.Contains(string(out), "videodev2.h: No such file"), "the kernel's headers for "+cc+" are not installed")
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
