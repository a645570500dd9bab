"""Answers the tests and the benchmark of this package with what OpenCV makes of a picture.

Requests are lines on stdin, answers bytes on stdout:
    photo FORMAT WIDTH HEIGHT FILE          -> the picture in FILE, scaled, as raw bytes
    load FORMAT WIDTH HEIGHT SIDE, raw bytes -> levels, SIDE x SIDE x R G B, letterboxed, padded with 114
    time                                    -> a line: nanoseconds of processor time for one more pass over the loaded picture
"""
import sys
import time

import cv2
import numpy as np

CODES = {"nv12": cv2.COLOR_YUV2RGB_NV12, "i420": cv2.COLOR_YUV2RGB_I420, "yuyv": cv2.COLOR_YUV2RGB_YUY2}


def shape(fmt, w, h):
    return {"nv12": (h * 3 // 2, w), "i420": (h * 3 // 2, w), "yuyv": (h, w, 2), "bgr24": (h, w, 3)}[fmt]


def photo(fmt, w, h, path):
    bgr = cv2.resize(cv2.imread(path), (w, h), interpolation=cv2.INTER_AREA)
    if fmt == "bgr24":
        return bgr
    i420 = cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_I420).reshape(-1)
    y, u, v = np.split(i420, [w * h, w * h + w * h // 4])
    if fmt == "i420":
        return i420
    uv = np.stack([u, v], -1)
    if fmt == "nv12":
        return np.concatenate([y, uv.reshape(-1)])
    uv = np.repeat(uv.reshape(h // 2, w // 2, 2), 2, 0).reshape(h, w)
    return np.stack([y.reshape(h, w), uv], -1)


def picture(src, code, w, h, side):
    """As Ultralytics does it: the picture in the middle, the sizes rounded like theirs."""
    if code is not None:
        src = cv2.cvtColor(src, code)
    scale = min(side / w, side / h)
    nw, nh = round(w * scale), round(h * scale)
    if (nw, nh) != (w, h):
        src = cv2.resize(src, (nw, nh), interpolation=cv2.INTER_LINEAR)
    dw, dh = (side - nw) / 2, (side - nh) / 2
    return cv2.copyMakeBorder(src, round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1),
                              cv2.BORDER_CONSTANT, value=(114, 114, 114))


def main():
    cv2.setNumThreads(1)
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    for line in stdin:
        what, *args = line.decode().rstrip("\n").split(" ", 4)
        if what == "photo":
            stdout.write(np.ascontiguousarray(photo(args[0], int(args[1]), int(args[2]), args[3])).tobytes())
        elif what == "load":
            fmt, (w, h, side) = args[0], map(int, args[1:])
            code = CODES.get(fmt)
            dims = shape(fmt, w, h)
            src = np.frombuffer(stdin.read(int(np.prod(dims))), np.uint8).reshape(dims)
            levels = picture(src, code, w, h, side)
            stdout.write((levels if code is not None else levels[..., ::-1]).tobytes())
        else:
            start = time.thread_time_ns()
            cv2.dnn.blobFromImage(picture(src, code, w, h, side), 1 / 255, swapRB=code is None)
            stdout.write(b"%d\n" % (time.thread_time_ns() - start))
        stdout.flush()


main()
