package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// The digest is what its description says, however many blocks there are, from memory and from a file.
func TestDigest(t *testing.T) {
	seen := map[Digest]int{}
	for _, size := range []int{0, 1, blockBytes - 1, blockBytes, blockBytes + 1, 2 * blockBytes, 5*blockBytes + 77} {
		data := content(3, size)
		list := binary.LittleEndian.AppendUint64(nil, uint64(size))
		for rest := data; len(rest) > 0; {
			n := min(len(rest), blockBytes)
			sum := sha256.Sum256(rest[:n])
			list, rest = append(list, sum[:]...), rest[n:]
		}
		want := Digest(sha256.Sum256(list))
		if got := digestBytes(data); got != want {
			t.Errorf("%d bytes in memory: %x, want %x", size, got, want)
		}
		if got, err := digestFile(bytes.NewReader(data), int64(size)); got != want || err != nil {
			t.Errorf("%d bytes of a file: %x, %v, want %x", size, got, err, want)
		}
		if other, ok := seen[want]; ok {
			t.Errorf("%d and %d bytes have one digest", size, other)
		}
		seen[want] = size
	}
}

func TestDigestFailures(t *testing.T) {
	data := content(3, 3*blockBytes)
	if _, err := digestFile(bytes.NewReader(data), int64(len(data))+1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short file: %v", err)
	}
	if _, err := digestFile(bytes.NewReader(nil), 1<<62); err == nil {
		t.Error("a file of any size")
	}
}
