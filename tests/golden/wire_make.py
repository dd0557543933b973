#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of wire-* here, so that they can be read and remade. wire/kscope.proto has the
numbers."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def put(name, data, args=''):
    folder = os.path.join(HERE, 'wire-' + name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'input.kscope'), 'wb') as out:
        out.write(data)
    if args:
        with open(os.path.join(folder, 'args'), 'w', encoding='ascii') as out:
            out.write(args + '\n')


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


def chunk(*fields, cpu=None, sequence=0, dropped=0):
    message = b'\x0d' + b'KSCP'
    if cpu is not None:
        message += varint(2 << 3) + varint(cpu)
    message += number(3, sequence) + number(4, dropped) + b''.join(fields)
    return content(1, message)


def info(arch='x86_64', cpus=2, clock=0, period=1000000, version=1, user_mode=0, command='qemu'):
    return content(5, number(1, version) + content(2, arch) + content(3, 'kscope-qemu, QEMU 7.2') +
                   number(4, cpus) + number(5, clock) + number(6, period) + number(7, user_mode) +
                   content(9, command))


def look(time, pc, space=0x1000000, level=1, weight=1000000, registers=(), stack=b'', chain=(),
         idle=0, task=0):
    return (number(1, time) + fixed(2, pc) + number(3, space) + number(4, level) +
            number(5, weight) + number(6, idle) + (words(7, registers) if registers else b'') +
            (content(8, stack) if stack else b'') + (words(9, chain) if chain else b'') +
            number(10, task))


def sample(*args, **kwargs):
    return content(6, look(*args, **kwargs))


def alloc(op, pointer, size, time, pc, **kwargs):
    return content(7, number(1, op) + content(2, 'kmalloc') + number(3, pointer) +
                   number(4, size) + content(5, look(time, pc, **kwargs)))


def end(*counts):
    return chunk(content(11, content(1, 'guest ended') + b''.join(
        content(2, number(1, cpu) + number(2, samples) + number(6, allocs))
        for cpu, samples, allocs in counts)))


def round_(time):
    return chunk(number(10, time))


PC = 0xffffffff81000000
HEAD = chunk(info())
TWO = [chunk(sample(100, PC), sample(300, PC + 0x10), cpu=0),
       chunk(sample(200, 0x401000, level=0), sample(400, PC + 0x20), cpu=1)]
put('two-cpus', HEAD + b''.join(TWO) + round_(500) + chunk(sample(600, PC), cpu=0, sequence=1) +
    end((0, 3, 0), (1, 2, 0)))
put('idle', HEAD + chunk(sample(100, 0, idle=1), sample(200, PC), sample(300, 0, idle=1), cpu=0) +
    end((0, 3, 0)))
put('chain', chunk(info(arch='riscv64', clock=2)) + chunk(
    sample(100, 0x80200000, chain=[0x80200000, 0x80200100, 0], task=7), cpu=0) + end((0, 1, 0)))
put('allocs', HEAD + chunk(alloc(0, 0xffff888000001000, 64, 100, PC),
                           alloc(2, 0xffff888000001000, 0, 200, PC + 0x40), cpu=0) +
    end((0, 0, 2)))
# One process, whose tables in the kernel and in user mode differ in bit 12; another one.
put('isolation', HEAD + chunk(sample(100, PC, space=0x1000000), sample(110, PC, space=0x3000000),
                              sample(200, 0x401000, space=0x1001000, level=0),
                              sample(300, PC, space=0x1000000),
                              sample(400, 0x401000, space=0x3001000, level=0), cpu=0) +
    end((0, 5, 0)))
put('no-isolation', HEAD + chunk(sample(100, PC, space=0x1000000),
                                 sample(200, 0x401000, space=0x1001000, level=0),
                                 sample(300, 0x401000, space=0x1000000, level=0), cpu=0) +
    end((0, 3, 0)))
put('user-mode', chunk(info(arch='aarch64', cpus=1, user_mode=1)) + chunk(
    sample(100, 0x400000, level=0, space=0), cpu=0) + end((0, 1, 0)))
put('dropped', HEAD + chunk(sample(100, PC), cpu=0, dropped=12) + end((0, 1, 0)))
put('no-rounds', HEAD + TWO[1] + TWO[0] + end((0, 2, 0), (1, 2, 0)))
put('unknown-fields', HEAD + chunk(content(99, b'later'), sample(100, PC) , number(98, 5), cpu=0) +
    end((0, 1, 0)))
put('many-dropped', HEAD + chunk(*[number(4, 1)] * 20, sample(100, PC), cpu=0) + end((0, 1, 0)))

put('no-end', HEAD + TWO[0])
put('cut', HEAD + TWO[0] + TWO[1][:-12])
put('cut-head', HEAD + TWO[0] + b'\x0a\xff')
put('garbage-inside', HEAD + TWO[0] + b'\x0a\x0a no chunk at all \x0a\x05' + TWO[1] +
    end((0, 2, 0), (1, 2, 0)))
put('garbage-long', HEAD + TWO[0] + b'\x0a\x80' * 40000 + TWO[1] + end((0, 2, 0), (1, 2, 0)))
put('no-info', TWO[0] + end((0, 2, 0)))
put('newer', chunk(info(version=2)) + TWO[0])
put('hole', HEAD + TWO[0] + chunk(sample(500, PC), cpu=0, sequence=3) + end((0, 5, 0)))
put('bad-record', HEAD + chunk(sample(100, PC), content(6, b'\xff\xff'), number(6, 5),
                               sample(200, PC), cpu=0) + end((0, 4, 0)))
put('bad-chunk', HEAD + chunk(sample(100, PC), b'\x36\x05', cpu=0) + chunk(
    sample(200, PC), cpu=0, sequence=1) + end((0, 2, 0)))
put('bad-cpu', HEAD + chunk(sample(100, PC), cpu=1 << 40) + end((1 << 50, 1, 0)))
put('bad-info', content(1, b'\x0dKSCP' + content(5, b'\x08')) + TWO[0] + end((0, 2, 0)))
put('odd-values', HEAD + chunk(sample((1 << 64) - 1, (1 << 64) - 1, space=(1 << 64) - 1, level=9,
                                      weight=(1 << 64) - 1, registers=[1] * 64, stack=b'abc'),
                               sample(5, PC, registers=[1] * 70),
                               alloc(3, 1, 1, 1, 1), cpu=0) + end((0, 2, 1)))
put('empty-sample', HEAD + chunk(content(6, b''), cpu=0) + end((0, 1, 0)))
