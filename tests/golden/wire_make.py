# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of wire-*."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import inputs
from kit.wire_write import (Target, alloc, answer, chunk, content, counter, end, event, fixed, info, map_, number,
                            round_, sample, task, varint)


def put(name, data, args=''):
    inputs.put('wire-' + name, 'input.kscope', data, args)


PC = 0xffffffff81000000
HEAD = chunk(info())
TWO = [chunk(sample(100, PC), sample(300, PC + 0x10), cpu=0),
       chunk(sample(200, 0x401000, level=0), sample(400, PC + 0x20), cpu=1)]
put('two-cpus', HEAD + b''.join(TWO) + round_(500) + chunk(sample(600, PC), cpu=0, sequence=1) +
    end((0, 3, 0), (1, 2, 0)))
put('no-binaries', HEAD + chunk(sample(100, PC), cpu=0) + end((0, 1, 0)),
    '--kernel args --elf expected.code')
put('idle', HEAD + chunk(sample(100, 0, idle=1), sample(200, PC), sample(300, 0, idle=1), cpu=0) +
    end((0, 3, 0)))
put('chain', chunk(info(arch='riscv64', clock=2)) + chunk(
    sample(100, 0x80200000, chain=[0x80200000, 0x80200100, 0], task=7), cpu=0) + end((0, 1, 0)))
put('allocs', HEAD + chunk(alloc(0, 0xffff888000001000, 64, 100, PC),
                           alloc(2, 0xffff888000001000, 0, 200, PC + 0x40), cpu=0) +
    end((0, 0, 2)))
# Two processes, whose page tables in the kernel and in user mode differ in bit 12.
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
put('unknown-fields', HEAD + chunk(content(99, b'later'), sample(100, PC), number(98, 5), cpu=0) +
    end((0, 1, 0)))
put('many-dropped', HEAD + chunk(*[number(4, 1)] * 20, sample(100, PC), cpu=0) + end((0, 1, 0)))

put('no-end', HEAD + TWO[0])
put('cut', HEAD + TWO[0] + TWO[1][:-12])
put('cut-head', HEAD + TWO[0] + b'\x0a\xff')
put('garbage-inside', HEAD + TWO[0] + b'\x0a\x0a no chunk at all \x0a\x05' + TWO[1] +
    end((0, 2, 0), (1, 2, 0)))
put('garbage-long', HEAD + TWO[0] + b'\x0a\x80' * 40000 + TWO[1] + end((0, 2, 0), (1, 2, 0)))
put('no-info', TWO[0] + end((0, 2, 0)))
put('newer', chunk(info(version=6)) + TWO[0])
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

# Links: noise, chunks that come twice, late or never, connections that come back.
CHECKED = [chunk(info(version=4), checked=True)] + [
    chunk(sample(100 * n, PC + n), sample(100 * n + 50, PC + n), cpu=0, sequence=n, dropped=n == 1, checked=True)
    for n in range(4)]
CHECKED_END = end((0, 8, 0, 1), checked=True)
put('checked', b''.join(CHECKED) + CHECKED_END)
put('checked-wrong', b''.join(CHECKED[:2]) + CHECKED[2].replace(b'\x81', b'\x91', 1) +
    b''.join(CHECKED[3:]) + CHECKED_END)
put('checked-wrong-length', b''.join(CHECKED[:2]) + b'\x0a\xff\x01' + CHECKED[2][2:] +
    b''.join(CHECKED[3:]) + CHECKED_END)
put('checked-wrong-info', CHECKED[0].replace(b'QEMU', b'QEMO') + b''.join(CHECKED[1:]) + CHECKED_END)
put('checked-missing', b''.join(CHECKED[:2]) + chunk(sample(100, PC), cpu=0, sequence=1) +
    b''.join(CHECKED[3:]) + CHECKED_END)
put('checked-cut', b''.join(CHECKED[:4]) + CHECKED[4][:-3])
# The last bytes of a sample look like a checksum.
put('not-checked', HEAD + chunk(sample(100, PC, stack=b'm1234'), cpu=0) + end((0, 1, 0)))

ROW = [chunk(sample(100 * n + 100, PC + n), cpu=0, sequence=n) for n in range(70)]
put('twice', HEAD + ROW[0] + ROW[1] + ROW[1] + ROW[2] + ROW[0] + end((0, 3, 0)) + end((0, 3, 0)))
put('reordered', HEAD + ROW[0] + ROW[2] + ROW[1] + ROW[1] + ROW[3] + end((0, 4, 0)))
put('twice-much-later', HEAD + b''.join(ROW) + ROW[1] + end((0, 70, 0)))
put('sequence-far-ahead', HEAD + ROW[0] + chunk(sample(200, PC + 1), cpu=0, sequence=1 << 20) +
    ROW[2] + ROW[3] + ROW[2] + end((0, 4, 0)))
put('wrong-length', HEAD + ROW[0] + b'\x0a\xff\x7f' + ROW[1][2:] + ROW[2] + ROW[3] + end((0, 4, 0)))
put('many-cpus-lost', HEAD + end(*[(cpu, 3, 0) for cpu in range(12)]))

SAME = chunk(info(start=7))
put('connected-again', SAME + ROW[0] + ROW[1][:-9] + SAME + ROW[3] + end((0, 4, 0)))
put('connected-again-in-head', SAME + ROW[0] + ROW[1][:4] + SAME + ROW[3] + end((0, 4, 0)))
OTHER = chunk(info(start=8))
put('started-over', SAME + ROW[0] + ROW[1] + round_(150) + chunk(sample(900, 0x401000, level=0), cpu=1) +
    ROW[2][:20] + OTHER + ROW[0] + ROW[2] + chunk(sample(50, 0x401000, level=0), cpu=1) + round_(300) +
    end((0, 3, 0), (1, 1, 0)))
put('started-over-later-clock', SAME + ROW[0] + OTHER + chunk(sample(5000, PC), cpu=0) + end((0, 1, 0)))
put('started-over-no-start', HEAD + ROW[0] + ROW[1] + HEAD + ROW[2] + HEAD + ROW[0] + ROW[1] +
    end((0, 2, 0)))
put('started-over-other-arch', HEAD + ROW[0] + chunk(info(arch='riscv64')) + ROW[0] + end((0, 1, 0)))
put('board-no-end', chunk(info(producer='my kernel 1.0')) + ROW[0])

# The plugin wrote this for the first steps of a RISC-V machine: reset code, a jump to RAM, a loop.
TRACE = bytes.fromhex(
    'c6020000c50403c1804000030c04c10006030c04c4a19c06c500c1d0bfffff0f20071c04c4cb79c5028180a0808080'
    '80808001c10000010404c100020e38040fc10f020208040fc005')
MACHINE = chunk(info(arch='riscv64', cpus=1) + content(5, number(12, 1)))


def traced(data, sequence=0, time=1000):
    return chunk(number(12, time), content(9, data), cpu=0, sequence=sequence)


put('trace', MACHINE + traced(TRACE) + end((0, 0, 0)))
put('trace-goes-on', MACHINE + traced(TRACE[:-8]) + traced(TRACE[-8:], 1, 0) + end((0, 0, 0)))
put('trace-cut', MACHINE + traced(TRACE)[:-20])
put('trace-hole', MACHINE + traced(TRACE[:40]) + traced(TRACE[60:], 2, 0) +
    traced(TRACE, 3, 5000) + end((0, 0, 0)))
put('trace-garbage', MACHINE + traced(TRACE[:50] + b'\xff' * 20 + TRACE[50:]) +
    traced(TRACE, 1, 5000) + end((0, 0, 0)))
# Where samples were taken: after the second block, and at the end. Sample 2 has no place in the trace.
PLACED = TRACE[:20] + b'\xc8\x01' + TRACE[20:] + b'\xc8\x03'
CHECKS = [sample(10, 0x100c, space=0, level=3, place=1),
          sample(11, 0x80000000, space=0, level=3, place=2),
          sample(12, 0x80000050, space=0x8000000000080001, level=3, place=3)]


def continued(data, sequence):
    return chunk(content(9, data), cpu=0, sequence=sequence)


put('trace-check', MACHINE + chunk(*CHECKS[:2], cpu=0) +
    chunk(CHECKS[2], number(12, 1000), content(9, PLACED), cpu=0, sequence=1) + end((0, 3, 0)))
put('trace-check-missing', MACHINE + chunk(CHECKS[1], cpu=0) + traced(PLACED, 1) + end((0, 1, 0)))
put('trace-check-misplaced', MACHINE + chunk(CHECKS[0], cpu=0) +
    traced(TRACE[:7] + b'\xc8\x01' + TRACE[7:], 1) + end((0, 1, 0)))
# The chunk after the missing one has only samples, but the trace cannot continue either.
put('trace-check-hole', MACHINE + chunk(CHECKS[0], cpu=0) + traced(PLACED[:22], 1) +
    chunk(CHECKS[2], cpu=0, sequence=3) + continued(PLACED[22:], 4) + end((0, 3, 0)))
# No trace may be older than a round before it: the second cpu's comes a second late.
put('trace-late', chunk(info(arch='riscv64', cpus=2) + content(5, number(12, 1))) +
    traced(TRACE, time=2000000000) + round_(3000000000) +
    chunk(number(12, 1000000000), content(9, TRACE), cpu=1) + end((0, 0, 0), (1, 0, 0)))
put('trace-started-over', MACHINE + traced(TRACE) + chunk(info(arch='riscv64', cpus=1, start=5)) +
    traced(TRACE) + end((0, 0, 0)))
put('trace-broken', MACHINE + traced(TRACE[:40])[:-4] + MACHINE + traced(TRACE[40:], 1, 0) + traced(TRACE, 2, 5000) +
    end((0, 0, 0)))
put('trace-two-beginnings', MACHINE + traced(TRACE[:60] + TRACE) + end((0, 0, 0)))


# Moves of the stack pointer, in a stream of version 2.
def signed(value):
    return varint((value << 1 ^ value >> 63) & (1 << 64) - 1)


def state(mask, *values):
    return bytes([0xc5, mask]) + b''.join(values)


class Blocks:
    """Definitions of blocks of 4 instructions and 16 bytes, the last one of 2."""

    def __init__(self):
        self.end = 0

    def new(self, start, flow, flags=0, target=None, moves=()):
        about = bytes([flow | (flags | (4 if moves else 0)) << 4])
        place = signed(start - self.end) + about + varint(4) + varint(16) + varint(2)
        self.end = start + 16
        if target:
            place += signed(target - self.end)
        return b'\xc1' + place + b''.join(signed(move) for move in moves)


BLOCKS = Blocks()
ON, CALL, RETURN, ENTER, LEAVE = 0, 4, 6, 7, 8
UNKNOWN = 1
MOVES = b''.join([
    b'\xc6\x02\x00\x00', state(5, signed(0x9000), varint(1)),
    BLOCKS.new(0x1000, ON, moves=[-0x20]),
    BLOCKS.new(0x1010, CALL, target=0x2000, moves=[-0x18]),  # -0x38 with the block before
    BLOCKS.new(0x2000, RETURN, moves=[8]),
    BLOCKS.new(0x1020, CALL, target=0x3000, moves=[-8]),
    BLOCKS.new(0x3000, RETURN, moves=[UNKNOWN]),
    state(0), BLOCKS.new(0x1030, ON, flags=2, moves=[-0x10, 8]),  # replaces sp
    state(1, signed(0x3000)), BLOCKS.new(0x1040, ENTER),  # a system call that keeps it
    state(0), BLOCKS.new(0x4000, ENTER, moves=[UNKNOWN]),  # and one that does not
    state(17, signed(-0x100), signed(0x100)), BLOCKS.new(0x5000, LEAVE, moves=[UNKNOWN]),
    state(1, signed(0x100)), BLOCKS.new(0x4010, ON, moves=[-8]),
    b'\xc2\x02\xc3\x02', state(17, signed(-0x200), signed(0)), b'\xc0\x08',  # a trap, left early
    state(1, signed(0x200)), b'\xc0\x09',
    state(1, signed(-8)), BLOCKS.new(0x4020, ON, flags=2, moves=[UNKNOWN, UNKNOWN]),
    b'\xc3\x03', signed(0x10), state(17, signed(-0x100), signed(0x80)), b'\xc0\x08\xc7\x04',
])
put('trace-moves', chunk(info(cpus=1, version=2) + content(5, number(12, 1))) + traced(MOVES) +
    end((0, 0, 0)))

# Version 5: samplers inside a kernel describe events, tasks and binaries, again and again.
KERNEL, USER = 0xffff000000080000, 0x400000
EVENTS = [event(0, 'timer', 1, 0, unit='ns', frequency=1000), event(1, 'cycles', 0, 0, 100000)]
TASKS = [task(1, 'init'), task(2, 'worker', process=1), task(7, 'shell')]
MAPS = [map_('kernel.elf'), map_('/bin/shell.elf', 7, USER, 0x10000, 0x1000, build_id=bytes(range(20))),
        map_('init.elf', 1, 0x10000, 0x1000)]
ALL = EVENTS + TASKS + MAPS


def at(time, task_=1, pc=KERNEL, frames=(0, 0x100, -0x500), **more):
    """A sample in the kernel; frames are relative to it."""
    return sample(time, pc, space=0, task=task_, weight=10, frames=[pc + distance for distance in frames], **more)


def described(name, *steps, args='', **more):
    """Each step: a function that puts something into the stream, or samples."""
    target = Target(**more)
    for step in steps:
        if callable(step):
            step(target)
        else:
            target.take(*step)
    put('described' + name, target.end(), args)


def describe(*fields, **more):
    return lambda target: target.put(*fields, cpu=None, **more)


described('', describe(*ALL), [at(100), at(150, 7), at(200, 2, event=1), at(250, 0)],
          lambda target: target.take(at(120, 2, event=1), cpu=1), describe(number(10, 300)), describe(*ALL), [at(400)])
described('-user-frames', describe(*ALL),
          [sample(100, KERNEL, space=0, task=7, frames=[KERNEL, KERNEL + 64, USER + 4, USER + 64], user_frames=2),
           sample(200, USER, level=0, space=0, task=7, frames=[USER, USER + 8], user_frames=1),
           sample(300, KERNEL, space=0, task=7, frames=[KERNEL, USER], user_frames=1),
           sample(400, KERNEL, space=0, task=7, frames=[KERNEL, USER], user_frames=2),
           sample(500, KERNEL, space=0, task=7, frames=[KERNEL, USER], user_frames=1 << 40),
           sample(600, KERNEL, space=0, task=7, frames=[KERNEL, 0, USER, 0, 0], user_frames=3),
           sample(700, KERNEL, space=0, task=7, user_frames=5)])
described('-later', [at(100), at(150, 7), at(200, 2, event=1)], describe(*ALL), [at(400)])
described('-never', [at(100), at(150, 7, event=3), at(200, 0, event=1)])
described('-renamed', describe(*ALL), [at(100, 7)], describe(task(7, 'bash', time=150), task(1, 'init', time=0)),
          [at(200, 7)], describe(task(7, 'shell', time=120), task(7, 'bash', time=150)), [at(300, 7), at(400, 7)])
described('-event-changed', describe(*ALL), [at(100, event=1)], describe(event(1, 'branches', 0, 4, 5000)),
          [at(200, event=1)], describe(*EVENTS), [at(300, event=1)])
described('-map-replaced', describe(*ALL), [at(100, 7)],
          describe(map_('/bin/other.elf', 7, USER, 0x8000, time=150), map_('/lib/driver.ko', 0, KERNEL + 0x100000, 0x1000)),
          [at(200, 7)], describe(*MAPS))
described('-counters', describe(*ALL), lambda target: target.put(counter(100, 1, 100000), counter(101, 0, 5)),
          lambda target: target.put(counter(100, 1, 7), at(120), counter(220, 1, 12), cpu=1, samples=1),
          describe(counter(300, 1, 9)), lambda target: target.put(counter(200, 1, 250000), counter(201, 6, 1)))
described('-answers', describe(*ALL, answer('started')), [at(100)],
          describe(answer('error: no event "\x1b[31mcycels"'), answer('')))
described('-event-name', describe(EVENTS[0]), [at(100)], args='--event-name ticks')
described('-event-names', describe(*EVENTS), [at(100), at(200, event=1)], args='--event-name ticks')
described('-kernel-moved', describe(*EVENTS, map_('/boot/kernel', 0, KERNEL + 0x200000, 0x100000, 0x10000)), [at(100)])
described('-started-over', describe(*ALL), [at(100)],
          lambda target: setattr(target, 'data', target.data + Target(start=2).describe(
              event(0, 'timer', 1, 0), task(1, 'first', time=5)).take(at(10), at(20, 7)).data))
described('-other-machine', describe(*ALL), [at(100), at(200, 7)], arch='riscv64', args='--elf 3=none.elf')

# Damage, and lies.
described('-wrong-ids', describe(event(4096, 'large'), event(1 << 40, 'huge'), task(0, 'none'), task(1 << 32, 'huge'),
                                 task(1, 'bad', process=(1 << 32) - 1), map_('x', (1 << 32) - 1), map_('')),
          [at(100, 1 << 32), at(200, (1 << 32) - 1), at(300, event=4096), at(400, 1)])
described('-wrong-frames', describe(*ALL),
          [content(6, number(1, 100) + fixed(2, KERNEL) + number(4, 1) + content(16, b'\x00\x80')),
           content(6, number(1, 200) + fixed(2, KERNEL) + number(4, 1) + content(16, b'\x00' + b'\xff' * 11)),
           sample(300, KERNEL, space=0, frames=[KERNEL, (1 << 64) - 512, (1 << 64) - 1, KERNEL + 4]),
           sample(400, KERNEL, space=0, frames=[KERNEL + 8, 1 << 63, 0, KERNEL]),
           sample(500, (1 << 64) - 128, space=0, frames=[(1 << 64) - 128])])
described('-many-frames', describe(*ALL), [sample(100, KERNEL, space=0, task=7, frames=[
    KERNEL if n % 2 else KERNEL + 4 for n in range(4090)] + [USER + n for n in range(10)], user_frames=8)])
described('-wrong-messages', describe(content(14, b'\x08'), content(15, b'\xff'), number(16, 5), content(17, b'\x10')),
          lambda target: target.put(content(17, b'\x08\xff'), at(100), samples=1))
described('-twice', describe(*ALL), Target.again, [at(100)], [at(200)], Target.again, describe(*ALL))
described('-lost', describe(*ALL), Target.lose, [at(100)], describe(*ALL), [at(200, 7)])
put('described-lost-info', Target().describe(*ALL).take(at(100), at(150, 7)).end()[len(Target().data):])
put('described-cut', Target().describe(*ALL).take(at(100), at(150, 7)).data[:-30])
put('described-in-version-4', chunk(info(arch='aarch64', version=4), checked=True) + chunk(*ALL, checked=True, sequence=1) +
    chunk(at(100), cpu=0, checked=True) + end((0, 1, 0), checked=True))
put('described-not-checked', chunk(info(arch='aarch64', version=5)) + chunk(*ALL, sequence=1) + chunk(at(100), cpu=0) +
    end((0, 1, 0)))
