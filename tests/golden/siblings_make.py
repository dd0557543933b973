# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of qperf-*, zephyr, zephyr-*, managarm, managarm-*, uboot-trace and
uboot-trace-*."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import inputs


def put(name, data, args=''):
    inputs.put(name, 'input.bin' if isinstance(data, bytes) else 'input.txt', data, args)


# ---- qperf ----

PC, SP, FP, CALLER = 0xffffffc080200010, 0xffffffc080300fc0, 0xffffffc080300ff0, 0xffffffc080200100


def varint(value):
    if value < 251:
        return bytes([value])
    for tag, kind, bits in ((251, '<H', 16), (252, '<I', 32), (253, '<Q', 64)):
        if value < 1 << bits:
            return bytes([tag]) + struct.pack(kind, value)
    raise ValueError


def trace(*ips):
    return varint(len(ips)) + b''.join(map(varint, ips))


def v3(time, cpu, *ips, pc=None):
    return (b''.join(map(varint, (time, ips[0] if pc is None else pc, SP, FP, cpu))) + b'\x01' +
            trace(*ips))


def v2(time, *ips):
    return varint(time) + trace(*ips)


THREE = [v3(1000000 * i, i % 2, PC, CALLER) for i in range(1, 7)]
put('qperf-3', b''.join(THREE))
put('qperf-3-low-addresses', b''.join(v3(i * 10, 0, 0x80200000 + i, 0x80200100) for i in range(5)))
put('qperf-2', b''.join(v2(1000000 * i, PC, CALLER) for i in range(1, 12)))
put('qperf-1', trace(PC, CALLER) * 12)
inputs.put('qperf-summary', 'samples.bin', b''.join(THREE), 'samples.bin')
inputs.put('qperf-summary', 'samples.summary.txt', 'qperf_format_version = 3\nfrequency_hz = 99\n'
           'dropped_samples = 7\narch = riscv64\nno equals sign\nfrequency_hz\n')
put('qperf-cut', b''.join(THREE)[:-4])
put('qperf-two-pcs', b''.join(THREE[:3]) + v3(9, 0, PC, CALLER, pc=PC + 4) + b''.join(THREE[3:]),
    '-f qperf')
put('qperf-garbage', b''.join(THREE[:3]) + b'\xff' * 9 + b''.join(THREE[3:]), '-f qperf')
put('qperf-lying-depth', b''.join(THREE[:3]) + v3(9, 0, PC)[:-10] + varint(28000) + varint(PC) +
    b''.join(THREE[3:]))
put('qperf-no-frames', b''.join(THREE[:3]) + b''.join(map(varint, (1, PC, SP, FP, 0))) + b'\x01\0' +
    b''.join(THREE[3:]), '-f qperf')
put('qperf-holes-in-chain', b''.join(THREE) + v3(9000000, 0, PC, 0, (1 << 64) - 1, CALLER))

# ---- Zephyr ----


def words(*numbers, length=None):
    return (f'Perf buf length {len(numbers) if length is None else length}\n' +
            ''.join(f'{number:016x}\n' for number in numbers))


DUMP = (4, 0x1056b2, 0x108192, 0x10052f, 0, 1, 0x100400)
put('zephyr', words(*DUMP))
put('zephyr-console', '\033[1;32muart:~$ \033[mperf record 2000 99\r\nEnabled perf\r\n'
    '[00:00:02.010,000] <inf> app: still here\r\n\033[31mPerf done!\033[m\r\n'
    '\033[1;32muart:~$ \033[mperf printbuf\r\n' +
    words(*DUMP).replace('\n', '\r\n').replace('0000000000000001\r\n',
                                               '<wrn> app: in between\r\n0000000000000001\r\n') +
    '\033[1;32muart:~$ \033[m' + words(*DUMP[5:]).replace('\n', '\r\n') +
    'Perf buf length 0\r\nuart:~$ ')
put('zephyr-cut', words(*DUMP)[:-20])
put('zephyr-lost-line', words(3, 0x1000, 0x2000, 2, 0x1000, 0x3000, 1, 0x4000, length=9))
put('zephyr-next-dump-too-early', words(*DUMP[:3], length=7) + words(*DUMP))
put('zephyr-lying-count', words(200, 0x1000, 0x2000, 2, 0x1000, 0x3000, length=6),
    '-f zephyr')
put('zephyr-no-count', words(1, 0x5000, 0, 0x1000, 2, 0x1000, 0x3000))
put('zephyr-nothing', 'uart:~$ perf printbuf\nPerf buf length 0\n', '-f zephyr')

# ---- Managarm ----

KERNEL = 0xffffffff80100010


def sample(*ips, flags=0, n=None):
    return struct.pack(f'<II{len(ips)}Q', len(ips) if n is None else n, flags, *ips)


SOME = sample(KERNEL, KERNEL + 0x70, flags=1) + sample(0x401000) + sample(KERNEL)
put('managarm', SOME)
put('managarm-first-generation', struct.pack('<20Q', *range(KERNEL, KERNEL + 20)))
put('managarm-first-generation-cut', struct.pack('<20Q', *range(KERNEL, KERNEL + 20))[:-3])
put('managarm-cut', SOME + SOME[:-5])
put('managarm-other-stream', SOME + b'heap-trace: 17 bytes' + SOME, '-f managarm')
put('managarm-lying-count', SOME + sample(KERNEL, n=9) + SOME * 2, '-f managarm')
put('managarm-no-frames', SOME + sample() + SOME, '-f managarm')
put('managarm-impossible-address', SOME + sample(KERNEL, 0x1234567890abcdef) + SOME, '-f managarm')

# ---- U-Boot ----

ENTRY, EXIT, TEXT_BASE = 1 << 30, 0, 2 << 30
BASE = 0x43e00000
CALLS = [(0x100, 0, ENTRY | 5), (0x120, 0x100, ENTRY | 7), (0x120, 0x100, EXIT | 9),
         (0x100, 0, EXIT | 10)]


def calls(*records, order='<', count=None):
    count = len(records) if count is None else count
    return (struct.pack(order + '4I2Q', 1, 1, count, 0, BASE, 0) +
            b''.join(struct.pack(order + '3I', *it) for it in records))


def old(*records, count=None):
    return (struct.pack('<2I', 1, len(records) if count is None else count) +
            b''.join(struct.pack('<3I', *it) for it in records))


def functions(*records):
    return (struct.pack('<4I2Q', 0, 0xdeadbeef, len(records), 0x55, 1, 2) +
            b''.join(struct.pack('<2I', *it) for it in records))


put('uboot-trace', calls(*CALLS))
put('uboot-trace-big-endian', calls(*CALLS, order='>'))
put('uboot-trace-old', old((BASE * 4 & 0xffffffff, 0, TEXT_BASE), *CALLS))
put('uboot-trace-functions-first', functions((0x100, 3), (0x120, 1)) + calls(*CALLS))
put('uboot-trace-whole-buffer', calls(*CALLS) + b'\0' * 60 + b'\x5a' * 33)
put('uboot-trace-two-chunks', calls(*CALLS) + b'\x11' * 12 + calls(*CALLS[1:3]))
put('uboot-trace-wrap', calls((0x100, 0, ENTRY | (1 << 30) - 3), (0x100, 0, EXIT | 2)))
put('uboot-trace-caller-from-elsewhere',
    calls((0x100, 0xfffff000, ENTRY | 5), (0x100, 0x20, EXIT | 6)))
put('uboot-trace-cut', calls(*CALLS)[:-5])
put('uboot-trace-lying-count', calls(*CALLS, count=1000000))
put('uboot-trace-unknown-kind', calls(CALLS[0], (1, 2, 3 << 30 | 6), CALLS[3]), '-f uboot-trace')
put('uboot-trace-functions-only', functions((0x100, 3)), '-f uboot-trace')
put('uboot-trace-empty', calls(), '-f uboot-trace')
