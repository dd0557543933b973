#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Maestro's data through the drop-in, flame graphs, folded text and the allocation report, against
a model of each: kernels of 32 and 64 bits with Rust names, and known stacks.
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, finish, passes, skip, svg

# Mangled name, name shown, size; None: an assembler label without a size.
FUNCTIONS = [
    ('_ZN6kernel4main17h0123456789abcdefE', 'kernel::main', 0x100),
    ('_ZN6kernel6memory6malloc5alloc17h1123456789abcdefE', 'kernel::memory::malloc::alloc', 0x80),
    ('_ZN6kernel4file3vfs4open17h2123456789abcdefE', 'kernel::file::vfs::open', 0x60),
    ('_ZN6kernel5event4fire17h3123456789abcdefE', 'kernel::event::fire', 0x40),
    ('isr_32', 'isr_32', None),
    ('_ZN6kernel4time5timer4tick17h4123456789abcdefE', 'kernel::time::timer::tick', 0x50),
    ('_RNvNtCs1234_6kernel5sched4idle', 'kernel::sched::idle', 0x70),
]
BASES = {'i686': 0xc0200000, 'x86_64': 0xffffffff80200000}
OUTSIDE = 0x08048123  # a program's address


class Kernel:
    def __init__(self, arch, folder):
        self.path = os.path.join(folder, f'kernel-{arch}')
        self.base = BASES[arch]
        source = os.path.join(folder, f'{arch}.s')
        self.at = {}
        offset = 0
        with open(source, 'w') as asm:
            asm.write('.text\n')
            for mangled, shown, size in FUNCTIONS:
                asm.write(f'.globl "{mangled}"\n"{mangled}":\n.fill {size or 0x40}, 1, 0x90\n')
                if size:
                    asm.write(f'.type "{mangled}", @function\n.size "{mangled}", {size}\n')
                self.at[shown] = self.base + offset
                offset += size or 0x40
        obj = os.path.join(folder, f'{arch}.o')
        subprocess.run(['clang', f'--target={arch}-unknown-none-elf', '-c', source, '-o', obj],
                       check=True)
        subprocess.run(['ld.lld', '-m', 'elf_i386' if arch == 'i686' else 'elf_x86_64',
                        '-Ttext', hex(self.base), '-e', hex(self.base), obj, '-o', self.path],
                       check=True)

    def chain(self, *names):
        """Addresses in the functions of these names; numbers are not changed."""
        return [self.at[it] + 5 if isinstance(it, str) else it for it in names]


def record(ips):
    return struct.pack(f'<B{len(ips)}Q', len(ips), *ips)


def trace(name, op, ptr, size, ips):
    return (struct.pack('B', len(name)) + name.encode() + struct.pack('<BQQ', op, ptr, size) +
            record(ips))


def split(names):
    """The stacks of a record, root first, split as pass/split is documented."""
    stacks, ended = [], True
    for i, it in enumerate(names):
        label = it == 'isr_32' and i > 0
        if not isinstance(it, str) or ended and label and not (stacks and names[i - 1] == it):
            ended = True
        elif label:
            stacks[-1].append(it)
            ended = True
        elif ended:
            stacks.append([it])
            ended = False
        else:
            stacks[-1].append(it)
    return [tuple(reversed(it)) for it in stacks or [['[unknown]']]]


def original_total(names):
    """The number of stacks that Maestro's own aggregator counts: runs of sized symbols."""
    runs, inside = 0, False
    for it in names:
        named = isinstance(it, str) and it != 'isr_32'
        runs += named and not inside
        inside = named
    return runs


def svg_stacks(path):
    root = ElementTree.parse(path).getroot()
    frames = svg.frames(root)
    assert not any(hidden for _, _, hidden in frames), 'frames were left out'
    return {path: own for path, own, _ in frames if own}, root


def run(*args, cwd=None, code=0):
    done = subprocess.run(args, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == code, (args, done.returncode, done.stderr.decode())
    return done


def folded(path, kernel, *options):
    text = run(KSCOPE, 'convert', path, '--kernel', kernel.path, '-t', 'folded', '-o', '-',
               *options).stdout.decode()
    return {tuple(line.rpartition(' ')[0].split(';')): int(line.rpartition(' ')[2])
            for line in text.splitlines()}


def total(stacks):
    counts = {}
    for stack, value in stacks:
        counts[stack] = counts.get(stack, 0) + value
    return {stack: value for stack, value in counts.items() if value}


MAIN, ALLOC, OPEN, FIRE, ISR, TICK, IDLE = (it[1] for it in FUNCTIONS)
RECORDS = [
    [MAIN],
    [ALLOC, OPEN, MAIN],
    [IDLE, MAIN],
    [TICK, FIRE, ISR, OPEN, MAIN],           # an interrupt while a file was opened
    [TICK, FIRE, 0x1234, IDLE, MAIN],        # through code without a symbol
    [TICK, ISR, ISR, FIRE, ISR, MAIN, 0, 0], # two interrupts, and zeros at the end
    [ISR],                                   # the pc is in assembly
    [ISR, MAIN],
    [OUTSIDE],
    [OUTSIDE, OUTSIDE + 64, 0],
    [OUTSIDE, MAIN],
    [MAIN] * 64,
    [ALLOC, 0xfffffffffffff000 + 17, MAIN],  # garbage that looks like a marker
]


def cpu(kernel, folder):
    rng = random.Random(1)
    names = RECORDS + [rng.choice(RECORDS) for _ in range(2000)]
    path = os.path.join(folder, 'raw-data')
    with open(path, 'wb') as out:
        for it in names:
            out.write(record(kernel.chain(*it)))
    wanted = total((stack, 1) for it in names for stack in split(it))
    run(KSCOPE, 'kern-profile', 'raw-data', kernel.path, cwd=folder)
    got, root = svg_stacks(os.path.join(folder, 'cpu.svg'))
    assert got == wanted, (got, wanted)
    assert f'{sum(wanted.values()):,} samples' in ''.join(root.itertext())
    assert folded(path, kernel, '-f', 'maestro') == wanted
    assert folded(path, kernel) == wanted, 'not recognised'
    # The original does not count records without a function and those whose pc is in assembly.
    more = sum(it[0] == ISR and (len(it) == 1 or it[1] == ISR) or
               not any(isinstance(frame, str) for frame in it) for it in names)
    assert sum(wanted.values()) == sum(map(original_total, names)) + more
    whole = folded(path, kernel, '--no-split')
    assert sum(whole.values()) == len(names)


class Model:
    """A simple model of what kscope alloc computes for one allocator."""

    def __init__(self):
        self.blocks, self.freed = {}, set()
        self.sites, self.allocs, self.bytes = {}, {}, {}
        self.live = self.peak = self.double = self.unknown = self.frees = self.resizes = 0
        self.at_peak, self.series = {}, []

    def charge(self, site, bytes_):
        self.sites[site] = self.sites.get(site, 0) + bytes_
        self.live += bytes_

    def step(self, op, ptr, size, site):
        if op == 0:
            self.blocks[ptr] = (size, site)
            self.freed.discard(ptr)
            self.charge(site, size)
            self.allocs[site] = self.allocs.get(site, 0) + 1
            self.bytes[site] = self.bytes.get(site, 0) + size
        elif op == 1:
            old, first = self.blocks[ptr]
            self.blocks[ptr] = (size, first)
            self.charge(first, size - old)
            self.bytes[first] += max(0, size - old)
            self.resizes += 1
        else:
            self.frees += 1
            if ptr in self.blocks:
                old, first = self.blocks.pop(ptr)
                self.charge(first, -old)
                self.freed.add(ptr)
            elif ptr in self.freed:
                self.double += 1
            else:
                self.unknown += 1
        self.series.append(self.live)
        if self.live > self.peak:
            self.peak, self.at_peak = self.live, dict(self.sites)


def some_allocations(kernel, seed, nr, page=1):
    """The model, and the events [(op, ptr, size, stack)], of one allocator."""
    rng = random.Random(seed)
    stacks = [(ALLOC, OPEN, MAIN), (ALLOC, FIRE, MAIN), (ALLOC, IDLE), (ALLOC, MAIN)]
    model, events = Model(), []
    for i in range(nr):
        stack = rng.choice(stacks)
        live = sorted(model.blocks)
        kind = rng.random()
        free = [ptr for ptr in range(0x1000, 0x9000, 0x40) if ptr not in model.blocks]
        if kind < 0.5 and free or not live:
            event = (0, rng.choice(free), rng.randint(1, 500), stack)
        elif kind < 0.65:
            event = (1, rng.choice(live), rng.randint(1, 900), stack)
        else:
            event = (2, rng.choice(live), 0, stack)
        events.append(event)
        model.step(event[0], event[1], event[2] * page, tuple(reversed(stack)))
    for ptr in sorted(model.blocks)[::2]:
        events.append((2, ptr, 0, stacks[0]))
        model.step(2, ptr, 0, tuple(reversed(stacks[0])))
    return model, events


def mem(kernel, folder):
    path = os.path.join(folder, 'memtrace')
    books = {}
    mixed = []
    for name, page, seed in (('malloc', 1, 1), ('buddy', 4096, 2)):
        books[name], events = some_allocations(kernel, seed, 3000, page)
        mixed += [(i + seed / 10, name, it) for i, it in enumerate(events)]
    with open(path, 'wb') as out:
        for _, name, (op, ptr, size, stack) in sorted(mixed):
            out.write(trace(name, op, ptr, size, kernel.chain(*stack)))
    run(KSCOPE, 'kern-profile', '--alloc', 'memtrace', kernel.path, cwd=folder)
    for name, model in books.items():
        got, root = svg_stacks(os.path.join(folder, f'mem-{name}.svg'))
        assert got == total(model.sites.items()), name
        assert 'bytes' in ''.join(root.itertext())
    for value, field in (('live', 'sites'), ('total', 'bytes'), ('count', 'allocs'),
                         ('peak', 'at_peak')):
        wanted = total(((name,) + stack, number) for name, model in books.items()
                       for stack, number in getattr(model, field).items())
        assert folded(path, kernel, '--value', value) == wanted, value
    report = json.loads(run(KSCOPE, 'alloc', path, '--kernel', kernel.path, '--json',
                          '--live-over-time', '64').stdout)
    for heap in report['allocators']:
        model = books[heap['name']]
        assert heap['allocs'] == sum(model.allocs.values())
        assert heap['frees'] == model.frees and heap['resizes'] == model.resizes
        assert heap['live_bytes'] == model.live and heap['live_blocks'] == len(model.blocks)
        assert heap['peak_bytes'] == model.peak and heap['total_bytes'] == sum(model.bytes.values())
        assert max(heap['live_over_time']) == model.peak
        leaks = total((tuple(reversed(it['stack'])), it['bytes']) for it in heap['never_freed'])
        assert leaks == total(model.sites.items())
        assert not heap['findings'] and not heap['guesses']
    assert {it['name'] for it in report['allocators']} == set(books)


def wrongs(kernel, folder):
    path = os.path.join(folder, 'wrongs')
    stack = kernel.chain(ALLOC, OPEN, MAIN)
    events = [(0, 0x1000, 64), (2, 0x1000, 0), (2, 0x1000, 0),    # freed twice
              (2, 0x5000, 0),                                     # never allocated
              (0, 0x2000, 100), (0, 0x2000, 7),                   # a free was missed
              (1, 0x7000, 10)]                                    # resize of an unknown pointer
    data = [trace('malloc', op, ptr, size, stack) for op, ptr, size in events]
    with open(path, 'wb') as out:
        out.write(b''.join(data))
    heap = json.loads(run(KSCOPE, 'alloc', path, '--kernel', kernel.path,
                          '--json').stdout)['allocators'][0]
    assert (heap['double_frees'], heap['unknown_frees'], heap['overlaps'],
            heap['unknown_resizes']) == (1, 1, 1, 1), heap
    wanted = [(2, 0x1000, 'double free'), (3, 0x5000, 'free of unknown pointer'),
              (5, 0x2000, 'new block over a live one'), (6, 0x7000, 'resize of unknown pointer')]
    assert [(it['offset'], it['ptr'], it['what']) for it in heap['findings']] == \
        [(sum(map(len, data[:nr])), ptr, what) for nr, ptr, what in wanted]
    assert heap['findings'][0]['stack'] == [ALLOC, OPEN, MAIN]
    assert heap['live_bytes'] == 17 and heap['peak_bytes'] == 100
    text = run(KSCOPE, 'alloc', path, '--kernel', kernel.path).stdout.decode()
    assert 'double free 0x1000 by ' + ' <- '.join((ALLOC, OPEN, MAIN)) in text, text
    done = run(KSCOPE, 'convert', path, '-t', 'folded', '-o', '-')
    assert b'malloc: double free 0x1000, the first of 4 problems' in done.stderr, done.stderr


def moved(kernel, folder):
    """A resize moves the block: the free has a pointer that no event announced."""
    path = os.path.join(folder, 'moved')
    stack, other = kernel.chain(ALLOC, OPEN, MAIN), kernel.chain(ALLOC, MAIN)
    events = [(0, 0x1000, 64, stack), (1, 0x1000, 128, stack), (2, 0x3000, 0, other),
              (0, 0x1000, 32, other), (1, 0x1000, 99, other), (0, 0x1000, 11, stack),
              (2, 0x1000, 0, stack)]
    with open(path, 'wb') as out:
        for op, ptr, size, ips in events:
            out.write(trace('malloc', op, ptr, size, ips))
    heap = json.loads(run(KSCOPE, 'alloc', path, '--kernel', kernel.path,
                          '--json').stdout)['allocators'][0]
    assert heap['guesses'] == 1 and not heap['findings'], heap
    assert heap['live_bytes'] == 99 and heap['peak_bytes'] == 128, heap
    assert heap['never_freed'] == [{'bytes': 99, 'blocks': 1, 'stack': [ALLOC, MAIN]}], heap


def names_stay_in_the_folder(kernel, folder):
    path = os.path.join(folder, 'evil')
    inner = os.path.join(folder, 'inner')
    os.mkdir(inner)
    with open(path, 'wb') as out:
        for name in ('../../evil', 'a' * 64, 'x/y'):
            out.write(trace(name, 0, 1, 1, kernel.chain(MAIN)))
    run(KSCOPE, 'kern-profile', '--alloc', path, kernel.path, cwd=inner)
    assert set(os.listdir(inner)) == {'mem-' + 'a' * 64 + '.svg', 'mem-.._.._evil.svg',
                                      'mem-x_y.svg'}, os.listdir(inner)
    shutil.rmtree(inner)


def damage_costs_little(kernel, folder):
    """Bytes that the serial line lost damage the records that they are in, and no others."""
    rng = random.Random(9)
    good = [trace('malloc', 0, 0x1000 + 64 * i, 16, kernel.chain(ALLOC, OPEN, MAIN))
            for i in range(1000)]
    hit = sorted(rng.sample(range(1, 999), 20))
    for i in hit:
        at = rng.randrange(len(good[i]))
        good[i] = good[i][:at] + good[i][at + rng.randint(1, 5):]
    path = os.path.join(folder, 'line')
    with open(path, 'wb') as out:
        out.write(b''.join(good)[3:])
    done = run(KSCOPE, 'alloc', path, '-f', 'memtrace', '--json', code=1)
    heap = json.loads(done.stdout)['allocators'][0]
    assert 999 - 2 * len(hit) <= heap['allocs'] <= 999, heap['allocs']
    raw = [record(kernel.chain(ALLOC, OPEN, MAIN)) for _ in range(1000)]
    path = os.path.join(folder, 'cut')
    with open(path, 'wb') as out:
        out.write(b''.join(raw[:500]) + b'\xff\xff\xff' + b''.join(raw[500:])[:-3])
    done = run(KSCOPE, 'convert', path, '--kernel', kernel.path, '-t', 'folded', '-o', '-', code=1)
    assert done.stdout.decode().splitlines() == \
        [';'.join((OPEN, ALLOC)) + ' 1', ';'.join((MAIN, OPEN, ALLOC)) + ' 999'], done.stdout


def usage(kernel, folder):
    link = os.path.join(folder, 'kern-profile')
    os.symlink(KSCOPE, link)
    assert b'Usage: kern-profile [--alloc] PROFILE ELF' in run(link, '--help').stdout
    assert run(link, '--version').stdout.startswith(b'kern-profile (kscope ')
    run(link, code=2)
    run(link, 'one', code=2)
    run(link, '--unknown', 'a', 'b', code=2)
    done = run(link, 'nowhere', kernel.path, code=3)
    assert b'nowhere' in done.stderr
    done = run(link, kernel.path, os.devnull, code=3)
    done = run(link, kernel.path, 'nowhere', code=3)
    assert b'nowhere' in done.stderr
    os.unlink(link)


def main():
    missing = [tool for tool in ('clang', 'ld.lld') if not shutil.which(tool)]
    if missing:
        skip('maestro_svg', f'no {" ".join(missing)}')
        finish()
    with tempfile.TemporaryDirectory() as top:
        for arch in BASES:
            kernel = Kernel(arch, top)
            for test in (cpu, mem, wrongs, moved, names_stay_in_the_folder, damage_costs_little,
                         usage):
                with tempfile.TemporaryDirectory() as folder:
                    passes(f'maestro_svg.{test.__name__}.{arch}', test, kernel, folder)
    finish()


if __name__ == '__main__':
    main()
