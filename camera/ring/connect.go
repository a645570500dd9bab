package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Errors of a reader.
var (
	ErrNoRing  = errors.New("there is no such ring now")                        // no socket, none that is served, or a camera that has not come yet
	ErrNoFrame = errors.New("the ring has no frame yet")                        // nothing was published
	ErrClosed  = errors.New("the ring is over")                                 // connect again: a camera that changed has another
	ErrBusy    = errors.New("the writer overwrites faster than it can be read") // Newest found no whole frame in its tries
)

// Connect opens the ring called name of a socket in dir, for reading. It fails with ErrNoRing where there is
// none at the time.
func Connect(dir, name string) (*Reader, error) {
	file, err := socketName(name)
	if err != nil {
		return nil, err
	}
	r, err := connect(filepath.Join(dir, file))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		err = ErrNoRing
	}
	if err != nil {
		return nil, fmt.Errorf("ring %s: %w", name, err)
	}
	return r, nil
}

func connect(path string) (*Reader, error) {
	deadline := time.Now().Add(connectTimeout)
	conn, err := dial(path, deadline)
	if errors.Is(err, os.ErrDeadlineExceeded) { // as many as the socket lets wait are waiting
		return nil, errors.New("its process does not answer: it is stopped or hangs")
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	cred, err := peer(conn)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	generation, file, err := receive(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("process %d does not answer: it is stopped or hangs", cred.Pid)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping stays
	r, err := open(file)
	if err != nil {
		return nil, err
	}
	r.generation, r.pid = generation, int(cred.Pid)
	return r, nil
}

// receive takes the greeting and the descriptor that comes with it.
func receive(conn *net.UnixConn) (generation uint32, file *os.File, err error) {
	var b [greetingBytes]byte
	oob := make([]byte, unix.CmsgSpace(4)) // room for one descriptor: the kernel drops any more
	n, oobn, _, _, err := conn.ReadMsgUnix(b[:], oob)
	if err != nil && !errors.Is(err, io.EOF) { // which a refusal ends in
		return 0, nil, err
	}
	file, err = descriptor(oob[:oobn])
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if err != nil && file != nil {
			_ = file.Close()
		}
	}()
	if n != greetingBytes || string(b[:len(magic)]) != magic {
		return 0, nil, errors.New("it refused, or is not a ring's socket")
	}
	if v := binary.LittleEndian.Uint32(b[atVersion:]); v != version {
		return 0, nil, versionError(v)
	}
	generation = binary.LittleEndian.Uint32(b[12:])
	if generation == 0 {
		return 0, nil, ErrNoRing
	}
	if file == nil {
		return 0, nil, errors.New("its socket gave no descriptor")
	}
	return generation, file, nil
}

// descriptor returns the file that came with a message, nil if none did.
func descriptor(oob []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var file *os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue // something else than descriptors
		}
		for _, fd := range fds {
			if file != nil { // there is room for one, rounded up
				_ = unix.Close(fd)
				continue
			}
			file = os.NewFile(uintptr(fd), "ring")
		}
	}
	return file, nil
}

// open maps a ring for reading. The file may come from anybody: its seals say that it cannot shrink under
// the mapping, and its header has to fit its size.
func open(file *os.File) (*Reader, error) {
	fd := int(file.Fd())
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, errors.New("its memory is not sealed: it is not a ring")
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	var b [headBytes]byte
	if _, err := file.ReadAt(b[:], 0); err != nil {
		return nil, errors.New("its memory is too short: it is not a ring")
	}
	head, err := parseHeader(b[:], info.Size())
	if err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map it: %w", err)
	}
	return &Reader{head: head, mem: mem, clock: newClock()}, nil
}
