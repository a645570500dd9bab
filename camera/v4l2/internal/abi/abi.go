// Package abi is the kernel's side of V4L2, as linux/videodev2.h declares it for 64-bit machines: the structures and
// request numbers that capturing needs, and the few system calls behind an interface in whose place tests put a driver.
package abi

import "unsafe"

// System is what capturing asks of the kernel beside poll, which works on the descriptors that Open returns. Errors are
// unix.Errno values.
type System interface {
	Open(path string) (fd int, err error) // for reading and writing, without blocking
	Close(fd int) error
	Ioctl(fd int, request uint, arg unsafe.Pointer) error
	Map(fd int, offset int64, length int) ([]byte, error) // shared, for reading
	Unmap(mem []byte) error
}

// FourCC makes a pixel format's number of its name.
func FourCC(name string) uint32 {
	return uint32(name[0]) | uint32(name[1])<<8 | uint32(name[2])<<16 | uint32(name[3])<<24
}

// Capability is struct v4l2_capability.
type Capability struct {
	Driver                            [16]byte
	Card, BusInfo                     [32]byte
	Version, Capabilities, DeviceCaps uint32
	_                                 [3]uint32
}

// Flags of Capability.
const (
	CapVideoCapture       = 0x00000001
	CapVideoCaptureMPlane = 0x00001000
	CapStreaming          = 0x04000000
	CapDeviceCaps         = 0x80000000 // DeviceCaps holds what this node can do
)

// FormatDesc is struct v4l2_fmtdesc.
type FormatDesc struct {
	Index, Type, Flags uint32
	Description        [32]byte
	PixelFormat        uint32
	MbusCode           uint32
	_                  [3]uint32
}

// FrameSize is struct v4l2_frmsizeenum. A discrete size lies in MinWidth and MaxWidth: use Discrete.
type FrameSize struct {
	Index, PixelFormat, Type                                        uint32
	MinWidth, MaxWidth, StepWidth, MinHeight, MaxHeight, StepHeight uint32
	_                                                               [2]uint32
}

// Discrete returns the size of a discrete answer, which shares its place with the first two fields of the others.
func (f *FrameSize) Discrete() (w, h uint32) { return f.MinWidth, f.MaxWidth }

// Fract is struct v4l2_fract, of seconds where it is a time.
type Fract struct{ Numerator, Denominator uint32 }

// FrameInterval is struct v4l2_frmivalenum. Min is the interval of a discrete answer, and the shortest of the others.
type FrameInterval struct {
	Index, PixelFormat, Width, Height, Type uint32
	Min, Max, Step                          Fract
	_                                       [2]uint32
}

// Kinds of an answer in FrameSize and FrameInterval.
const (
	TypeDiscrete   = 1
	TypeContinuous = 2
	TypeStepwise   = 3
)

// PixFormat is struct v4l2_pix_format.
type PixFormat struct {
	Width, Height, PixelFormat, Field             uint32
	BytesPerLine, SizeImage, Colorspace           uint32
	Priv, Flags, YCbCrEnc, Quantization, XferFunc uint32
}

// Format is struct v4l2_format with its member for capturing.
type Format struct {
	Type uint32
	_    uint32 // the union holds pointers on some devices
	Pix  PixFormat
	_    [200 - unsafe.Sizeof(PixFormat{})]byte
}

// StreamParm is struct v4l2_streamparm with its member for capturing.
type StreamParm struct {
	Type                    uint32
	Capability, CaptureMode uint32
	TimePerFrame            Fract
	ExtendedMode            uint32
	ReadBuffers             uint32
	_                       [200 - 6*4]byte
}

// RequestBuffers is struct v4l2_requestbuffers.
type RequestBuffers struct {
	Count, Type, Memory, Capabilities, Flags uint32
}

// Buffer is struct v4l2_buffer.
type Buffer struct {
	Index, Type, BytesUsed, Flags, Field uint32
	Seconds, Microseconds                int64
	_                                    [16]byte // time code
	Sequence, Memory                     uint32
	Offset                               uint32
	_                                    uint32 // the union holds a pointer for other kinds of memory
	Length                               uint32
	_                                    [2]uint32
}

// Values of the fields above.
const (
	TypeVideoCapture = 1
	MemoryMap        = 1
	PrivMagic        = 0xfeedcafe // PixFormat's fields behind Priv are filled in
	CapTimePerFrame  = 0x1000     // of StreamParm.Capability
	MaxBuffers       = 32

	FieldNone  = 1
	FieldSeqTB = 5
	FieldSeqBT = 6

	BufError         = 0x40
	BufTimestampMask = 0xe000
	BufMonotonic     = 0x2000
)

// Values of PixFormat.Colorspace, YCbCrEnc and Quantization; 0 is always the default.
const (
	ColorspaceSMPTE240M = 2
	ColorspaceREC709    = 3
	ColorspaceJPEG      = 7
	ColorspaceBT2020    = 10
	ColorspaceDCIP3     = 12

	Enc601       = 1
	Enc709       = 2
	EncXV601     = 3
	EncXV709     = 4
	EncSYCC      = 5
	EncBT2020    = 6
	EncBT2020CL  = 7
	EncSMPTE240M = 8

	FullRange    = 1
	LimitedRange = 2
)

// The direction bits of a request number.
const (
	write = 1 << 30
	read  = 2 << 30
)

// The request numbers: direction, size of the argument, 'V', number.
const (
	QueryCap           = read | uint(unsafe.Sizeof(Capability{}))<<16 | 'V'<<8 // number 0
	EnumFmt            = read | write | uint(unsafe.Sizeof(FormatDesc{}))<<16 | 'V'<<8 | 2
	SetFmt             = read | write | uint(unsafe.Sizeof(Format{}))<<16 | 'V'<<8 | 5
	ReqBufs            = read | write | uint(unsafe.Sizeof(RequestBuffers{}))<<16 | 'V'<<8 | 8
	QueryBuf           = read | write | uint(unsafe.Sizeof(Buffer{}))<<16 | 'V'<<8 | 9
	QBuf               = read | write | uint(unsafe.Sizeof(Buffer{}))<<16 | 'V'<<8 | 15
	DQBuf              = read | write | uint(unsafe.Sizeof(Buffer{}))<<16 | 'V'<<8 | 17
	StreamOn           = write | uint(4)<<16 | 'V'<<8 | 18
	StreamOff          = write | uint(4)<<16 | 'V'<<8 | 19
	SetParm            = read | write | uint(unsafe.Sizeof(StreamParm{}))<<16 | 'V'<<8 | 22
	EnumFrameSizes     = read | write | uint(unsafe.Sizeof(FrameSize{}))<<16 | 'V'<<8 | 74
	EnumFrameIntervals = read | write | uint(unsafe.Sizeof(FrameInterval{}))<<16 | 'V'<<8 | 75
)
