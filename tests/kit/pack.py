# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs data in forms that Python's library does not have."""
import struct


def lz4(data):
    """The form that kernels are packed in, in blocks that consist of literals."""
    out = bytearray(b"\x02\x21\x4c\x18")
    for at in range(0, len(data), 1 << 20):
        block = data[at:at + (1 << 20)]
        rest = len(block) - 15
        packed = b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + block
        out += struct.pack("<I", len(packed)) + packed
    return bytes(out)
