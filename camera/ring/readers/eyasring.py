#!/usr/bin/env python3
"""eyasring reads the ring of one of Eyas' cameras, with the standard library alone. docs/frames.md describes the memory.

    eyasring.py SOCKET             say what the ring holds and how its newest frame is
    eyasring.py SOCKET save FILE   write the bytes of the newest frame
    eyasring.py SOCKET verify      check frames that a test has stamped, until the ring is over
"""

import fcntl
import mmap
import os
import socket
import struct
import sys
import threading
import time

VERSION = 1
HEAD = struct.Struct("<8sIIQQQQ8sIIIII")  # magic to planes
NEWEST, CLOSED = 192, 212
SLOT_HEADS, SLOT_HEAD = 256, 64
SLOT = struct.Struct("<QQqqq")  # count to published, behind the sequence
TRIES = 16
F_GET_SEALS, F_SEAL_SHRINK = 1034, 2


class Ring:
    """The ring behind a socket, mapped for reading."""

    def __init__(self, path):
        fd = connect(path)
        try:
            if not fcntl.fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK:
                raise ValueError("its memory is not sealed")  # else it could shrink under us: SIGBUS
            size = os.fstat(fd).st_size
            if size < SLOT_HEADS:
                raise ValueError("its memory is too short")
            self.mem = mmap.mmap(fd, size, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        (magic, version, self.slots, memory, self.first, self.slot_bytes, self.frame_bytes, name,
         self.width, self.height, self.matrix, self.full, self.planes) = HEAD.unpack_from(self.mem)
        self.format = name.rstrip(b"\0").decode("ascii")
        self.lock = threading.Lock()
        self.retried = 0
        if magic != b"EYASRING" or version != VERSION:
            raise ValueError("it is no ring of this version")
        if (memory != size or not 1 <= self.slots <= 255 or self.first < SLOT_HEADS + SLOT_HEAD * self.slots
                or not 1 <= self.frame_bytes <= self.slot_bytes
                or self.first + self.slot_bytes * self.slots > size):
            raise ValueError("its slots do not lie within its memory")

    def fence(self):
        """Python has no fence: a lock that is taken and given back is the nearest thing."""
        with self.lock:
            pass

    def published(self):
        return struct.unpack_from("<Q", self.mem, NEWEST)[0] >> 8

    def closed(self):
        return struct.unpack_from("<I", self.mem, CLOSED)[0] != 0

    def newest(self):
        """Returns (pixels, count, seq, monotonic ns, wall ns) of the newest frame, None if there is no whole one."""
        for _ in range(TRIES):
            word = struct.unpack_from("<Q", self.mem, NEWEST)[0]
            slot = word & 0xFF
            if word >> 8 == 0 or slot >= self.slots:
                return None
            head = SLOT_HEADS + SLOT_HEAD * slot
            before = struct.unpack_from("<Q", self.mem, head)[0]
            if before % 2:
                continue
            self.fence()
            at = self.first + slot * self.slot_bytes
            pixels = self.mem[at:at + self.frame_bytes]  # a copy
            count, seq, mono, wall, _ = SLOT.unpack_from(self.mem, head + 8)
            self.fence()
            if struct.unpack_from("<Q", self.mem, head)[0] == before:
                return pixels, count, seq, mono, wall
            self.retried += 1
        return None


def connect(path):
    """Returns the descriptor that the writer's socket gives."""
    # A socket's address has room for 107 bytes, so the path goes through a descriptor.
    file = os.open(path, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(2)
            s.connect(f"/proc/self/fd/{file}")
            greeting, fds, _, _ = socket.recv_fds(s, 16, 1)
    finally:
        os.close(file)
    if len(greeting) != 16 or greeting[:8] != b"EYASRING" or struct.unpack_from("<I", greeting, 8)[0] != VERSION:
        raise ValueError("it is no ring of this version")
    if not fds:
        raise ValueError("there is no ring now")
    return fds[0]


def verify(ring):
    """Checks that each word of a frame is its number times an odd constant, as the writer of the test stamps it. Every
    64 frames it says how many it has checked and thrown away since."""
    last = checked = 0
    while True:
        over = ring.closed()  # before the count is looked at
        frame = ring.newest() if ring.published() > last else None
        if frame is None:
            if over:
                return 0
            time.sleep(0.0005)
            continue
        pixels, last, seq, _, _ = frame
        if pixels != struct.pack("<Q", seq * 0x9E3779B97F4A7C15 & (1 << 64) - 1) * (len(pixels) // 8):
            print(f"TORN: frame {seq}", file=sys.stderr)
            return 3
        checked += 1
        if checked % 64 == 0:
            print(64, ring.retried, flush=True)
            ring.retried = 0


def main(args):
    if len(args) == 1 or len(args) == 2 and args[1] == "verify" or len(args) == 3 and args[1] == "save":
        ring = Ring(args[0])
    else:
        print("usage: eyasring.py SOCKET [save FILE | verify]", file=sys.stderr)
        return 2
    if args[1:] == ["verify"]:
        return verify(ring)
    frame = ring.newest()
    if frame is None:
        raise ValueError("no whole frame now")
    pixels, count, seq, _, wall = frame
    if len(args) == 3:
        with open(args[2], "wb") as out:
            out.write(pixels)
        return 0
    print(f"{ring.format} {ring.width}x{ring.height}, {ring.planes} planes, {ring.slots} slots, "
          f"frame {seq}, publication {count}, captured {wall}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, ValueError) as err:
        print(f"eyasring: {err}", file=sys.stderr)
        sys.exit(1)
