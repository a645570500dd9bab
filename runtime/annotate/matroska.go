package annotate

import (
	"encoding/binary"
	"time"
)

// Raw pictures with their times go to ffmpeg as Matroska (RFC 9559): it is the plainest format that
// ffmpeg reads from a pipe and that carries a time for each picture. One video track of
// uncompressed RGBA, one cluster a picture, no index, sizes of segment and clusters known or
// unknown as a live stream has them.

// tick is the unit of time in the stream. Finer than Matroska's usual millisecond, so that
// 29.97 frames a second stay even; MPEG-4 takes up to 65535 ticks a second.
const tick = 100 * time.Microsecond

// The element IDs in use, their length marker included.
const (
	idEBML            = 0x1A45DFA3
	idDocType         = 0x4282
	idDocTypeVersion  = 0x4287
	idDocTypeReadable = 0x4285
	idSegment         = 0x18538067
	idInfo            = 0x1549A966
	idTimestampScale  = 0x2AD7B1
	idMuxingApp       = 0x4D80
	idWritingApp      = 0x5741
	idTracks          = 0x1654AE6B
	idTrackEntry      = 0xAE
	idTrackNumber     = 0xD7
	idTrackUID        = 0x73C5
	idTrackType       = 0x83
	idFlagLacing      = 0x9C
	idCodecID         = 0x86
	idVideo           = 0xE0
	idPixelWidth      = 0xB0
	idPixelHeight     = 0xBA
	idFourCC          = 0x2EB524 // UncompressedFourCC
	idCluster         = 0x1F43B675
	idTimestamp       = 0xE7
	idSimpleBlock     = 0xA3
)

// matroskaHeader returns what comes before the first picture.
func matroskaHeader(w, h int) []byte {
	head := master(nil, idEBML,
		text(nil, idDocType, "matroska"),
		number(nil, idDocTypeVersion, 4),
		number(nil, idDocTypeReadable, 2),
	)
	head = binary.BigEndian.AppendUint32(head, idSegment)
	head = append(head, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // unknown size
	head = master(head, idInfo,
		number(nil, idTimestampScale, uint64(tick)),
		text(nil, idMuxingApp, "eyas"),
		text(nil, idWritingApp, "eyas"),
	)
	return master(head, idTracks, master(nil, idTrackEntry,
		number(nil, idTrackNumber, 1),
		number(nil, idTrackUID, 1),
		number(nil, idTrackType, 1), // video
		number(nil, idFlagLacing, 0),
		text(nil, idCodecID, "V_UNCOMPRESSED"),
		master(nil, idVideo,
			number(nil, idPixelWidth, uint64(w)),
			number(nil, idPixelHeight, uint64(h)),
			text(nil, idFourCC, "RGBA"),
		),
	))
}

// appendPictureHeader appends what comes before the pixels of a picture of n bytes.
func appendPictureHeader(b []byte, at uint64, n int) []byte {
	const blockHead = 4 // track number as a vint, time relative to the cluster, flags
	stamp := number(nil, idTimestamp, at)
	b = appendID(b, idCluster)
	b = appendSize(b, len(stamp)+1+8+blockHead+n)
	b = append(b, stamp...)
	b = appendID(b, idSimpleBlock)
	b = appendSize(b, blockHead+n)
	return append(b, 0x81, 0, 0, 0x80) // track 1, at the cluster's time, a key frame
}

func master(b []byte, id uint32, children ...[]byte) []byte {
	n := 0
	for _, c := range children {
		n += len(c)
	}
	b = appendSize(appendID(b, id), n)
	for _, c := range children {
		b = append(b, c...)
	}
	return b
}

func text(b []byte, id uint32, s string) []byte {
	return append(appendSize(appendID(b, id), len(s)), s...)
}

func number(b []byte, id uint32, v uint64) []byte {
	return binary.BigEndian.AppendUint64(appendSize(appendID(b, id), 8), v)
}

// appendID appends an element's ID without leading zeros.
func appendID(b []byte, id uint32) []byte {
	for shift := 24; shift >= 0; shift -= 8 {
		if id>>shift != 0 {
			b = append(b, byte(id>>shift))
		}
	}
	return b
}

// appendSize appends a size in its 8-byte form, which holds 56 bits.
func appendSize(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint64(b, 1<<56|uint64(n))
}
