# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of maestro, maestro-*, memtrace and memtrace-*."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import inputs

PC, CALLER, ROOT = 0xc0100010, 0xc0100080, 0xc0100800


def stack(*ips, n=None):
    return struct.pack(f'<B{len(ips)}Q', len(ips) if n is None else n, *ips)


def trace(name, op, ptr, size, *ips, n=None):
    return bytes([len(name)]) + name + struct.pack('<BQQ', op, ptr, size) + stack(*ips, n=n)


def put(name, data, args=''):
    inputs.put(name, 'input.bin', data, args)


GOOD = stack(PC, CALLER, ROOT) * 3
NEW = trace(b'malloc', 0, 0xc0d01000, 64, PC, CALLER)
FREE = trace(b'malloc', 2, 0xc0d01000, 0, ROOT)

put('maestro', GOOD + stack(PC) + stack(*range(PC, PC + 64)))
put('maestro-64-bit', (stack(0xffffffff80100010, 0xffffffff80100080) + stack(0x401000)) * 2)
put('maestro-one-record', stack(PC, CALLER))
# The walk continued past the root: zeros, words that are not addresses, and values of markers.
put('maestro-garbage-tail', GOOD + stack(PC, CALLER, 0, 0) + stack(PC, 0x1122334455667788, CALLER) +
    stack(PC, 0xffffffffffffff80, CALLER) + GOOD)
put('maestro-cut-in-count', GOOD + b'\x03')
put('maestro-cut-in-frame', GOOD + stack(PC, CALLER, ROOT)[:-3])
put('maestro-cut-in-first-frame', GOOD + stack(PC, CALLER)[:5])
put('maestro-no-frames', GOOD + stack() + GOOD + GOOD, '-f maestro')
put('maestro-too-many-frames', GOOD + b'\xc8' + GOOD + GOOD, '-f maestro')
put('maestro-impossible-address', GOOD + stack(0x1234567890abcdef) + GOOD + GOOD, '-f maestro')
put('maestro-lying-count', GOOD + stack(PC, CALLER, n=7) + GOOD * 3, '-f maestro')
put('maestro-damage-to-the-end', GOOD + b'\xff' * 100, '-f maestro')
put('maestro-many-places', (GOOD * 2 + b'\0') * 12)
put('maestro-text', b'This is no profile at all, and naming the format does not make it one.\n' * 3,
    '-f maestro')
put('maestro-nothing', b'', '-f maestro')

put('memtrace', NEW + trace(b'buddy', 0, 0x200000, 4, PC, CALLER, ROOT) +
    trace(b'malloc', 1, 0xc0d01000, 128, ROOT) + FREE + trace(b'slab', 0, 0x10, 8))
put('memtrace-folded', NEW + trace(b'buddy', 0, 0x200000, 4, PC) +
    trace(b'malloc', 0, 0xc0d02000, 36, PC, CALLER), '-t folded')
put('memtrace-folded-count', NEW + FREE + NEW + trace(b'malloc', 0, 0xc0d02000, 36, PC, CALLER),
    '-t folded --value count')
put('memtrace-wrongs', NEW + FREE + FREE + trace(b'malloc', 2, 0x77, 0, PC) + NEW + NEW,
    '-t folded')
put('memtrace-unknown-operation', NEW + trace(b'malloc', 3, 1, 1, PC) + FREE)
put('memtrace-too-many-frames', NEW + trace(b'malloc', 0, 1, 1, PC, n=65) + FREE)
put('memtrace-impossible-size', NEW + trace(b'malloc', 0, 1, 1 << 60, PC) + FREE)
put('memtrace-no-name', NEW + b'\0' + FREE)
put('memtrace-name-of-garbage', NEW + trace(b'mal\x01oc', 0, 1, 1, PC) + FREE)
put('memtrace-starts-in-the-middle', NEW[9:] + NEW + FREE, '-f memtrace')
put('memtrace-lost-bytes', NEW + trace(b'malloc', 0, 0xc0d03000, 5, PC, CALLER)[:-6] + NEW + FREE)
put('memtrace-cut', NEW + FREE[:-2])
put('memtrace-cut-in-name', NEW + FREE[:4])
put('memtrace-lying-frames', NEW + trace(b'malloc', 0, 0xc0d03000, 5, PC, n=3) + FREE * 3)
put('memtrace-nothing', b'', '-f memtrace')
put('memtrace-other-allocator', trace(b'slab', 0, 0xc0200000, 64, PC) +
    trace(b'slab', 0, 0xc0201000, 32, PC, PC + 0x10) +
    trace(b'vm_area', 0, 0xc0300000, 100, PC + 0x20) +
    trace(b'slab', 2, 0xc0200000, 0, PC)[:-5] + trace(b'slab', 2, 0xc0201000, 0, PC) +
    trace(b'slab', 1, 0xc0200000, 99, PC) + trace(b'vm_area', 2, 0xc0300000, 0, PC + 0x20))
