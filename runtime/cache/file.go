package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// An entry's file is a header and the content. All numbers are little endian:
//
//	offset size
//	     0    8  magic
//	     8    4  version of the format
//	    12    4  kind
//	    16   32  key
//	    48    8  bytes of the content
//	    56   32  digest of the content
//	    88       content, to the end of the file
//
// Every byte is checked, so there is one file for a content: what decodes is what encode makes.
const (
	magic      = "eyascach"
	version    = 1
	headerSize = 88
)

// kind is what an entry holds.
type kind uint32

const (
	weightsKind kind = 1
	planKind    kind = 2
)

// limit returns the most bytes that an entry may have.
func (k kind) limit() int64 {
	if k == weightsKind {
		return 2 << 30 // a FlatBuffer's offsets have 31 bits
	}
	return 16 << 20
}

// file returns the name of a key's file: it depends on nothing else.
func (k kind) file(key Key) string {
	if k == weightsKind {
		return key.String() + ".ort"
	}
	return key.String() + ".plan"
}

// header is what an entry's file says of its content.
type header struct {
	kind kind
	key  Key
	size int64
	sum  Digest
}

// describe returns the header of a content.
func describe(k kind, key Key, data []byte) header {
	return header{kind: k, key: key, size: int64(len(data)), sum: digestBytes(data)}
}

// verify checks a content by the bytes that will be used.
func (h header) verify(data []byte) error {
	if digestBytes(data) != h.sum {
		return errors.New("is damaged: its hash differs")
	}
	return nil
}

func (h header) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.kind))
	b = append(b, h.key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.size))
	return append(b, h.sum[:]...)
}

// decodeHeader reads the first headerSize bytes of a file of fileSize bytes, which has to be the entry of kind k and
// of key. The size that it returns is the content's real one and within the kind's limit.
func decodeHeader(b []byte, fileSize int64, k kind, key Key) (header, error) {
	if len(b) < headerSize || fileSize < headerSize {
		return header{}, fmt.Errorf("is cut off: it has %d bytes", fileSize)
	}
	h := header{
		kind: kind(binary.LittleEndian.Uint32(b[12:])),
		key:  Key(b[16:48]),
		size: int64(binary.LittleEndian.Uint64(b[48:])),
		sum:  Digest(b[56:headerSize]),
	}
	switch v := binary.LittleEndian.Uint32(b[8:]); {
	case string(b[:len(magic)]) != magic:
		return header{}, errors.New("is no file of this cache")
	case v != version:
		return header{}, fmt.Errorf("has version %d, read is %d", v, version)
	case h.kind != k:
		return header{}, fmt.Errorf("holds an entry of kind %d, not %d", h.kind, k)
	case h.key != key:
		return header{}, errors.New("holds the entry of another key")
	case h.size != fileSize-headerSize:
		return header{}, fmt.Errorf("is cut off or has too much: it has %d bytes after its header and says %d", fileSize-headerSize, h.size)
	case h.size > k.limit():
		return header{}, fmt.Errorf("has %d bytes, at most %d are read", h.size, k.limit())
	}
	return h, nil
}
