package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	goruntime "runtime"
	"sync"
	"sync/atomic"
)

// Digest is the hash of a content: the SHA-256 over its size in bytes (64 bits, little endian) and the SHA-256 of each of its
// blocks of 256 KiB. In this form all processors compute it, and hashing is a good part of a warm start:
// 6 ms of 27 for a model of 3.7 MB with one processor at 1.5 GB/s.
type Digest [sha256.Size]byte

const blockBytes = 256 << 10

// digestBytes returns the digest of data, which nobody may change meanwhile.
func digestBytes(data []byte) Digest {
	d, _ := digest(int64(len(data)), func(_ []byte, at, n int64) ([]byte, error) { return data[at : at+n], nil })
	return d
}

// digestFile returns the digest of the first size bytes of r.
func digestFile(r io.ReaderAt, size int64) (Digest, error) {
	return digest(size, func(buf []byte, at, n int64) ([]byte, error) {
		got, err := r.ReadAt(buf[:n], at)
		if int64(got) == n {
			err = nil
		} else if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return buf[:got], err
	})
}

// digest takes size bytes from read, which returns those at an offset and may use buf, of blockBytes.
func digest(size int64, read func(buf []byte, at, n int64) ([]byte, error)) (Digest, error) {
	blocks := (size + blockBytes - 1) / blockBytes
	if blocks > 1<<20 { // 256 GiB: the list of sums would take more than 32 MiB
		return Digest{}, errors.New("is too large to be hashed")
	}
	list := make([]byte, 8+blocks*sha256.Size)
	binary.LittleEndian.PutUint64(list, uint64(size))
	var next atomic.Int64
	work := func() error {
		buf := make([]byte, blockBytes)
		for {
			i := next.Add(1) - 1
			if i >= blocks {
				return nil
			}
			block, err := read(buf, i*blockBytes, min(blockBytes, size-i*blockBytes))
			if err != nil {
				next.Store(blocks) // the others stop
				return err
			}
			sum := sha256.Sum256(block)
			copy(list[8+i*sha256.Size:], sum[:])
		}
	}
	errs := make([]error, max(1, min(int64(goruntime.GOMAXPROCS(0)), blocks)))
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = work() })
	}
	all.Wait()
	return sha256.Sum256(list), errors.Join(errs...)
}
