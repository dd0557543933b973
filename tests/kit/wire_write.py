# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a recording as the QEMU plugin does, message by message; see wire/kscope.proto."""
import struct


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def varint(value):
    out = b''
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value) if value else b''


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack('<Q', value)


def content(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def words(field, values):
    return content(field, struct.pack('<%dQ' % len(values), *values))


def chunk(*fields, cpu=None, sequence=0, dropped=0, checked=False):
    message = b'\x0d' + b'KSCP'
    if cpu is not None:
        message += varint(2 << 3) + varint(cpu)
    message += number(3, sequence) + number(4, dropped) + b''.join(fields)
    if checked:
        message += varint(13 << 3 | 5) + struct.pack('<I', crc32c(message))
    return content(1, message)


def info(arch='x86_64', cpus=2, clock=0, period=1000000, version=1, user_mode=0, command='qemu',
         kernel='', start=0, producer='kscope-qemu, QEMU 7.2'):
    return content(5, number(1, version) + content(2, arch) + content(3, producer) +
                   number(4, cpus) + number(5, clock) + number(6, period) + number(7, user_mode) +
                   number(8, start) + content(9, command) + (content(10, kernel) if kernel else b''))


def look(time, pc, space=0x1000000, level=1, weight=1000000, registers=(), stack=b'', chain=(),
         idle=0, task=0, outer=(0, b''), place=0):
    return (number(1, time) + fixed(2, pc) + number(3, space) + number(4, level) +
            number(5, weight) + number(6, idle) + (words(7, registers) if registers else b'') +
            (content(8, stack) if stack else b'') + (words(9, chain) if chain else b'') +
            number(10, task) +
            (fixed(12, outer[0]) + content(13, outer[1]) if outer[1] else b'') + number(14, place))


def sample(*args, **kwargs):
    return content(6, look(*args, **kwargs))


def alloc(op, pointer, size, time, pc, **kwargs):
    return content(7, number(1, op) + content(2, 'kmalloc') + number(3, pointer) +
                   number(4, size) + content(5, look(time, pc, **kwargs)))


def end(*counts, **more):
    """Each count: cpu, samples, allocs, and how many records the target dropped."""
    return chunk(content(11, content(1, 'guest ended') + b''.join(
        content(2, number(1, cpu) + number(2, samples) + number(3, sum(dropped)) + number(6, allocs))
        for cpu, samples, allocs, *dropped in counts)), **more)


def round_(time, **more):
    return chunk(number(10, time), **more)
