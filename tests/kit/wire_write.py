# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a recording as the QEMU plugin and samplers do, message by message; see wire/kscope.proto."""
import struct


def crc_step(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc


CRC = [crc_step(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
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


def zigzag(value):
    return varint((value << 1 ^ value >> 63) & (1 << 64) - 1)


def deltas(field, first, values):
    """Each value minus the one before it, as 64-bit numbers."""
    steps = [(after - before + (1 << 63)) % (1 << 64) - (1 << 63)
             for before, after in zip([first] + values, values)]
    return content(field, b''.join(map(zigzag, steps)))


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
                   number(8, start) + (content(9, command) if command else b'') + (content(10, kernel) if kernel else b''))


def look(time, pc, space=0x1000000, level=1, weight=1000000, registers=(), stack=b'', chain=(),
         idle=0, task=0, outer=(0, b''), place=0, event=0, frames=(), user_frames=0, link=0,
         interrupted=()):
    return (number(1, time) + fixed(2, pc) + number(3, space) + number(4, level) +
            number(5, weight) + number(6, idle) + (words(7, registers) if registers else b'') +
            (content(8, stack) if stack else b'') + (words(9, chain) if chain else b'') +
            number(10, task) +
            (fixed(12, outer[0]) + content(13, outer[1]) if outer[1] else b'') + number(14, place) +
            number(15, event) + (deltas(16, pc, list(frames)) if frames else b'') +
            number(17, user_frames) + (fixed(18, link) if link else b'') +
            b''.join(content(19, number(1, frame) + (fixed(2, word) if word else b''))
                     for frame, word in interrupted))


def sample(*args, **kwargs):
    return content(6, look(*args, **kwargs))


def alloc(op, pointer, size, time, pc, **kwargs):
    return content(7, number(1, op) + content(2, 'kmalloc') + number(3, pointer) +
                   number(4, size) + content(5, look(time, pc, **kwargs)))


def end(*counts, chunks=None, **more):
    """Each count: cpu, samples, allocs, and how many records the target dropped. chunks: {cpu: number}."""
    return chunk(content(11, content(1, 'guest ended') + b''.join(
        content(2, number(1, cpu) + number(2, samples) + number(3, sum(dropped)) +
                number(5, (chunks or {}).get(cpu, 0)) + number(6, allocs))
        for cpu, samples, allocs, *dropped in counts)), **more)


def round_(time, **more):
    return chunk(number(10, time), **more)


def event(ident, name, type=0, config=0, period=0, unit='', frequency=0):
    return content(14, number(1, ident) + content(2, name) + number(3, type) + number(4, config) +
                   number(5, period) + (content(6, unit) if unit else b'') + number(7, frequency))


def task(ident, name, process=0, time=0):
    return content(15, number(1, ident) + number(2, process) + content(3, name) + number(4, time))


def map_(path, process=0, address=0, size=0, offset=0, build_id=b'', time=0):
    return content(16, number(1, time) + number(2, process) + number(3, address) + number(4, size) +
                   number(5, offset) + content(6, path) + (content(7, build_id) if build_id else b''))


def counter(time, ident, value):
    return content(17, number(1, time) + number(2, ident) + number(3, value))


def answer(text):
    return content(18, text)


class Target:
    """A stream of version 5: counts its chunks, and ends with the right totals."""

    def __init__(self, arch='aarch64', start=1, **more):
        self.sequences, self.samples = {None: 1}, {}
        self.data = self.last = chunk(info(arch=arch, version=5, period=0, start=start, command='', clock=1,
                                           producer='my kernel 1.0', **more), checked=True)

    def put(self, *fields, cpu=0, samples=0, **more):
        """A chunk of a cpu, or of none; `samples` of its fields are samples."""
        more['sequence'] = self.sequences.setdefault(cpu, 0)
        self.sequences[cpu] += 1
        if cpu is not None:
            self.samples[cpu] = self.samples.get(cpu, 0) + samples
        self.last = chunk(*fields, cpu=cpu, checked=True, **more)
        self.data += self.last
        return self

    def again(self):
        """The last chunk comes twice."""
        self.data += self.last
        return self

    def lose(self):
        """The last chunk does not come."""
        self.data = self.data[:-len(self.last)]
        return self

    def describe(self, *fields):
        return self.put(*fields, cpu=None)

    def take(self, *fields, cpu=0):
        """Samples of a cpu."""
        return self.put(*fields, cpu=cpu, samples=len(fields))

    def end(self):
        return self.data + end(*[(cpu, samples, 0) for cpu, samples in self.samples.items()],
                               chunks=self.sequences, sequence=self.sequences[None], checked=True)
