#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Data of qperf, Zephyr, Managarm and U-Boot with a kernel's names: folded text against a model."""
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import finish, kscope, passes, skip

BASE = 0x43e00000
# U-Boot's trace has addresses in units of 16 bytes; functions may start anywhere.
FUNCTIONS = [('start', 0x0, 0x44), ('board_init', 0x44, 0x58), ('do_boot', 0x9c, 0x31),
             ('puts', 0xcd, 0x26), ('udelay', 0xf3, 0x70), ('memcpy', 0x163, 0x40)]
HIGH = 0xffffffff00000000  # added for the kernels of Managarm and qperf


def build(folder, base, name):
    source, obj, elf = (os.path.join(folder, name + it) for it in ('.s', '.o', '.elf'))
    with open(source, 'w', encoding='ascii') as asm:
        asm.write('.text\n')
        for function, _, size in FUNCTIONS:
            asm.write(f'.type {function}, @function\n{function}:\n.fill {size}, 1, 0x90\n'
                      f'.size {function}, {size}\n')
    subprocess.run(['clang', '--target=x86_64-unknown-none-elf', '-c', source, '-o', obj],
                   check=True)
    subprocess.run(['ld.lld', '-Ttext', hex(base), '-e', hex(base), obj, '-o', elf], check=True)
    return elf


def folded(path, elf, *options):
    done = kscope('convert', path, '--kernel', elf, '-t', 'folded', '-o', '-', *options)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
    return {tuple(line.rpartition(' ')[0].split(';')): int(line.rpartition(' ')[2])
            for line in done.stdout.splitlines()}


def some_stacks(base):
    """Yields (names root first, addresses leaf first); a caller's address is behind a call."""
    rng = random.Random(4)
    for _ in range(500):
        chosen = [rng.choice(FUNCTIONS) for _ in range(rng.randint(1, 9))]
        ips = [base + at + rng.randint(1, size) for _, at, size in chosen]
        ips[-1] = base + chosen[-1][1] + rng.randint(0, chosen[-1][2] - 1)
        yield tuple(it[0] for it in chosen), ips[::-1]


def counts(stacks):
    found = {}
    for stack, value in stacks:
        found[stack] = found.get(stack, 0) + value
    return {stack: value for stack, value in found.items() if value}


def write(folder, data):
    path = os.path.join(folder, 'data')
    with open(path, 'wb') as out:
        out.write(data)
    return path


def varint(value):
    """A number in the encoding of Rust's bincode."""
    if value < 251:
        return bytes([value])
    size = 2 if value < 1 << 16 else 4 if value < 1 << 32 else 8
    return bytes([{2: 251, 4: 252, 8: 253}[size]]) + value.to_bytes(size, 'little')


def qperf(folder):
    stacks = list(some_stacks(HIGH + BASE))
    data = b''.join(b''.join(map(varint, (i * 1000, ips[0], 1 << 40, 1 << 41, i % 4))) + b'\x01' +
                    varint(len(ips)) + b''.join(map(varint, ips))
                    for i, (_, ips) in enumerate(stacks))
    path, elf = write(folder, data), build(folder, HIGH + BASE, 'high')
    assert folded(path, elf) == counts((names, 1) for names, _ in stacks)
    assert folded(path, elf, '--cpu', '1') == counts((names, 1) for names, _ in stacks[1::4])


def zephyr(folder):
    stacks = list(some_stacks(BASE))
    words = [word for _, ips in stacks for word in (len(ips), *ips)]
    text = f'uart:~$ perf printbuf\r\nPerf buf length {len(words)}\r\n' + \
        ''.join(f'{word:016x}\r\n' for word in words)
    assert folded(write(folder, text.encode()), build(folder, BASE, 'low')) == \
        counts((names, 1) for names, _ in stacks)


def managarm(folder):
    stacks = list(some_stacks(HIGH + BASE))
    data = b''.join(struct.pack(f'<II{len(ips)}Q', len(ips), i % 3 == 0, *ips)
                    for i, (_, ips) in enumerate(stacks))
    path, elf = write(folder, data), build(folder, HIGH + BASE, 'high')
    wanted = counts((('cycles' if i % 3 else 'cycles-irqs-off',) + names, 1)
                    for i, (names, _) in enumerate(stacks))
    assert folded(path, elf) == wanted
    assert folded(path, elf, '-e', 'cycles-irqs-off') == \
        counts((names, 1) for names, _ in stacks[::3])


def uboot(folder):
    rng = random.Random(5)
    stack, records, spent, time = [], [], [], 1 << 29
    for _ in range(3000):
        step = rng.randint(0, 900000)
        if stack:
            spent.append((tuple(it[0] for it in stack), step * 1000))
        time += step
        leave = bool(stack) and (len(stack) > 14 or rng.random() < 0.5)
        name, at, size = stack.pop() if leave else rng.choice(FUNCTIONS)
        if not leave:
            stack.append((name, at, size))
        records.append(struct.pack('<3I', at // 16 * 16, 0x40, (0 if leave else 1 << 30) |
                                   time % (1 << 30)))
    data = struct.pack('<4I2Q', 1, 1, len(records), 0, BASE, 0) + b''.join(records)
    assert folded(write(folder, data), build(folder, BASE, 'low')) == counts(spent)


def main():
    missing = [tool for tool in ('clang', 'ld.lld') if not shutil.which(tool)]
    if missing:
        skip('siblings', f'no {" ".join(missing)}')
        finish()
    for test in (qperf, zephyr, managarm, uboot):
        with tempfile.TemporaryDirectory() as folder:
            passes(f'siblings.{test.__name__}', test, folder)
    finish()


if __name__ == '__main__':
    main()
