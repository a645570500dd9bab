"""Answers BenchmarkMJPEG with what OpenCV takes for a JPEG.

Requests are lines on stdin, answers bytes on stdout:
    load SIZE SIDE, the JPEG -> nothing
    time                     -> a line: nanoseconds of processor time from the JPEG to the input
"""
import sys
import time

import cv2
import numpy as np


def tensor(jpg, side):
    src = cv2.imdecode(jpg, cv2.IMREAD_COLOR)
    h, w = src.shape[:2]
    scale = min(side / w, side / h)
    nw, nh = round(w * scale), round(h * scale)
    src = cv2.resize(src, (nw, nh), interpolation=cv2.INTER_LINEAR)
    dw, dh = (side - nw) / 2, (side - nh) / 2
    src = cv2.copyMakeBorder(src, round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1),
                             cv2.BORDER_CONSTANT, value=(114, 114, 114))
    return cv2.dnn.blobFromImage(src, 1 / 255, swapRB=True)


def main():
    cv2.setNumThreads(1)
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    for line in stdin:
        what, *args = line.decode().rstrip("\n").split()
        if what == "load":
            jpg, side = np.frombuffer(stdin.read(int(args[0])), np.uint8), int(args[1])
        else:
            start = time.thread_time_ns()
            tensor(jpg, side)
            stdout.write(b"%d\n" % (time.thread_time_ns() - start))
            stdout.flush()


main()
