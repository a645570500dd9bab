package picture

import (
	"bytes"
	"encoding/binary"
)

// exifMark comes before the TIFF structure in a JPEG's APP1 segment, and by mistake in
// some WebP files.
var exifMark = []byte("Exif\x00\x00")

// orientation returns the EXIF orientation 1..8 in the first directory of a TIFF structure, with
// or without the Exif mark before it. Whatever is broken or out of range counts as 1: a
// camera's mistake in the metadata is no reason to refuse its picture.
func orientation(tiff []byte) int {
	const tagOrientation, typeShort, typeLong = 0x0112, 3, 4
	tiff = bytes.TrimPrefix(tiff, exifMark)
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder
	switch string(tiff[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 1
	}
	entries := tiff[at+2:]
	for n := order.Uint16(tiff[at:]); n > 0 && len(entries) >= 12; n-- {
		if order.Uint16(entries) == tagOrientation {
			v := uint32(0)
			switch order.Uint16(entries[2:]) {
			case typeShort:
				v = uint32(order.Uint16(entries[8:]))
			case typeLong:
				v = order.Uint32(entries[8:])
			}
			if v >= 1 && v <= 8 {
				return int(v)
			}
			return 1
		}
		entries = entries[12:]
	}
	return 1
}
