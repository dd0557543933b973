# SPDX-License-Identifier: GPL-2.0-or-later
"""Decodes traces as wire/README.md specifies them, independently of src/read."""
from .wire_read import fields, varint

CALL, CALL_ANY, RETURN, ENTER, LEAVE = 4, 5, 6, 7, 8
USER = 0
HAS_TARGET = (1, 2, 4)
MAYBE, STATE, MOVES, MASKS = 1, 2, 4, 8
SAME, ON, OFF, DEPENDS = range(4)  # whether interrupts are on
UNKNOWN = 1
STACK = 256


class Block:
    def __init__(self, start, about, count, size):
        self.start, self.end, self.count = start, start + size, count
        self.flow, self.flags = about & 15, about >> 4
        self.next = [None, None]
        self.inside = self.last = SAME  # what its instructions do to interrupts
        self.inside_at = 0
        self.moves = [0]  # of the stack pointer; two if the block replaces it: before and after

    def move(self):
        """None: unknown."""
        return None if self.flags & STATE or self.moves[0] == UNKNOWN else self.moves[0]


class Cpu:
    """The state of one cpu's decoder."""

    def __init__(self):
        self.total = self.skip = self.shift = 0
        self.places = []  # of samples: the number, and where the cpu was
        self.sp, self.followed = 0, None  # the last one in the trace, and the one by the moves
        self.agree, self.contradict = 0, []
        self.level, self.masks = USER, {}  # of each level: ON or OFF, if it is known
        self.masks_agree, self.masks_contradict = 0, []
        self.cur = None
        self.forget()
        self.clear()

    def forget(self):
        self.blocks, self.last_end = [], 0
        self.calls, self.depth = [None] * STACK, 0

    def clear(self):
        """Forgets what applied to the block that was just entered."""
        self.ran, self.trap, self.left, self.begins, self.moved = None, False, False, False, False
        self.read, self.interrupted = False, None
        self.told = self.trapped = self.state_mask = self.next_level = None

    def feed(self, data):
        self.data, self.at = data, 0
        while self.at < len(data):
            self.code(self.byte())

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value, self.at = varint(self.data, self.at)
        return value

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def code(self, code):
        if code < 0xc0:
            self.steps(code * 64 if code < 0x80 else code & 63)
        elif code == 0xc0:
            self.go(self.blocks[self.number()])
        elif code == 0xc1:
            self.go(self.define())
        elif code == 0xc2:
            self.ran = self.number()
        elif code == 0xc3:
            self.trap, about = True, self.byte()
            self.trapped = (about >> 1 & 3, about >> 3)  # the interrupted level, and its mask
            if about & 1:
                self.signed()
        elif code == 0xc4:
            self.number()
        elif code == 0xc5:
            self.state(self.byte())
        elif code == 0xc6:
            self.begin(self.byte())
        elif code == 0xc7:
            self.leave(self.number())
            self.cur = None
        elif code == 0xc8:
            self.sample(self.number())
        elif code == 0xc9:
            self.left = True
        elif code == 0xca:
            self.told = self.byte()
        else:
            raise ValueError(f"no such code: {code:#x}")

    def sample(self, place):
        if self.cur is None or self.begins or self.trap or self.left or self.ran is not None:
            raise ValueError(f"sample {place} is not between two steps")
        self.places.append((place, self.cur.start + self.shift))

    def steps(self, count):
        for first in range(0, count, 8):
            bits = self.byte()
            for place in range(min(8, count - first)):
                self.step(bits >> place & 1)

    def define(self):
        start = self.last_end + self.signed()
        block = Block(start, self.byte(), self.number(), self.number())
        self.number()  # the size of the last instruction
        if block.flow in HAS_TARGET:
            self.signed()
        if block.flags & MOVES:
            block.moves = [self.signed() for _ in range(2 if block.flags & STATE else 1)]
        if block.flags & MASKS:
            about = self.byte()
            block.inside, block.last = about & 3, about >> 2
            block.inside_at = self.number() if block.inside else 0
        self.blocks.append(block)
        self.last_end = block.end
        return block

    def state(self, mask):
        if mask & 1:
            self.sp += self.signed()
        if mask & 2:
            self.number()
        self.next_level = self.number() if mask & 4 else self.level
        self.state_mask = mask >> 5
        self.moved, self.read = bool(mask & 8), True
        if self.moved:
            self.shift = self.signed()
        distance = self.signed() if mask & 16 else None
        self.interrupted = None if distance == 0 else self.sp + (distance or 0)

    def begin(self, flags):
        self.skip, total = self.number(), self.number()
        if total != self.total:
            raise ValueError(f"{self.total} instructions were decoded, the trace counts {total}")
        if flags & 2:
            self.forget()
        if not flags & 1:
            self.masks = {}
        self.level = USER
        self.begins, self.shift, self.sp = True, 0, 0
        if not flags & 1:
            self.followed = None

    def leave(self, ran):
        known = ran == self.cur.count and not self.skip and not self.left
        move = self.cur.move() if known else None
        if self.followed is not None and ran:
            self.followed = None if move is None else self.followed + move
        self.follow_masks(ran)
        self.total += ran - self.skip
        self.skip = 0

    def set_mask(self, level, mask):
        if mask in (ON, OFF):
            self.masks[level] = mask
        elif mask == DEPENDS:
            self.masks.pop(level, None)

    def compare_masks(self, level, said):
        """Compares the mask that follows from the instructions with the one in the trace."""
        if level == USER or said not in (ON, OFF) or level not in self.masks:
            return
        if self.masks[level] == said:
            self.masks_agree += 1
        else:
            self.masks_contradict.append(f"{self.cur.start:#x}: {self.masks[level]}, not {said}")

    def follow_masks(self, ran):
        cur = self.cur
        if cur.inside and self.skip < cur.inside_at <= ran:
            self.set_mask(self.level, cur.inside)
        if ran == cur.count:
            last = DEPENDS if self.trap and cur.flow == LEAVE else cur.last
            if self.told is not None:
                last = self.told
            elif last == DEPENDS and not self.trap:
                last = ON
            self.set_mask(self.level, last)
        if self.trap:
            self.compare_masks(*self.trapped)
            self.set_mask(*self.trapped)

    def take_state(self):
        """Takes over the level and the mask of a state."""
        if not self.read:
            return
        flow = self.cur.flow if self.cur else None
        if not self.trap and not self.left and flow not in (None, ENTER, LEAVE):
            self.compare_masks(self.next_level, self.state_mask)
        self.level = self.next_level
        self.set_mask(self.level, self.state_mask)

    def compare(self, cur):
        """Compares the stack pointer by the moves with the one in the trace."""
        if not self.read:
            return
        sp = self.interrupted if cur and (self.trap or cur.flow == ENTER) else self.sp
        if None not in (sp, self.followed):
            if (sp - self.followed) % (1 << 32):
                self.contradict.append(f"{cur.start:#x}: {self.followed:#x}, not {sp:#x}")
            else:
                self.agree += 1
        self.followed = self.sp

    def call_stack(self):
        """Updates the stack of calls. Returns the call that a return belongs to, if it is known."""
        cur = self.cur
        if cur.flow in (CALL, CALL_ANY):
            self.calls[self.depth % STACK] = cur
            self.depth += 1
        elif cur.flow == RETURN:
            self.depth -= 1
            call, self.calls[self.depth % STACK] = self.calls[self.depth % STACK], None
            return call
        return None

    def was_taken(self, to):
        return not (self.cur.flags & MAYBE and to.start == self.cur.end)

    def step(self, bit):
        cur = self.cur
        if cur.flow == RETURN and not bit:
            to = self.calls[(self.depth - 1) % STACK].next[1]
        else:
            to = cur.next[bit]
        self.leave(cur.count)
        self.told = None
        if self.was_taken(to):
            self.call_stack()
        self.cur = to

    def learn(self, to):
        cur, call = self.cur, self.call_stack()
        if self.moved or to.flags & STATE:
            return
        if cur.flow in (CALL, CALL_ANY):
            cur.next[0] = to
        elif cur.flow == RETURN:
            (call if call and call.end == to.start else cur).next[1] = to
        else:
            cur.next = [to, cur.next[0]]

    def go(self, to):
        if not self.begins:
            self.leave(self.cur.count if self.ran is None else self.ran)
            if self.ran is None and not self.trap and not self.left and self.was_taken(to):
                self.learn(to)
        self.compare(self.cur)
        self.take_state()
        self.cur = to
        self.clear()


class Clock(Cpu):
    """Only follows the time: skips the steps, and counts how often the time is before a round."""

    def __init__(self):
        super().__init__()
        self.time = self.round = self.late = 0
        self.times = []

    def feed_from(self, data, time, round_):
        self.time, self.round = time or self.time, round_
        self.feed(data)

    def code(self, code):
        if code < 0xc0:
            self.at += code * 8 if code < 0x80 else ((code & 63) + 7) // 8
        elif code == 0xc0:
            self.number()
        elif code == 0xc1:
            self.define()
        elif code == 0xc4:
            self.time += self.number()
            self.late += self.time < self.round
            self.times.append(self.time)
        elif code == 0xc6:
            self.byte(), self.number(), self.number()
        elif code == 0xc7:
            self.number()
        elif code != 0xc8:
            super().code(code)
        else:
            self.number()


def clocks(path):
    """{cpu: its clock at the end}, and how many rounds the recording has."""
    with open(path, "rb") as f:
        data = f.read()
    cpus, last, count = {}, 0, 0
    for _, chunk in fields(data):
        got = dict(fields(chunk))
        if 9 in got:
            cpus.setdefault(got.get(2), Clock()).feed_from(got[9], got.get(12), last)
        if 10 in got:
            last, count = max(last, got[10]), count + 1
    return cpus, count


def rounds(path):
    """How many rounds the recording has, and how many times in a trace are older than one before."""
    cpus, count = clocks(path)
    return count, sum(cpu.late for cpu in cpus.values())


def time_parts(path, count):
    """Options that split a trace by time into `count` parts of about as many blocks each.

    Parts of the same length could be empty: a busy host can stop QEMU for longer than the guest works.
    """
    cpus, _ = clocks(path)
    times = sorted(time for cpu in cpus.values() for time in cpu.times)
    edges = [f"{times[len(times) * nth // count] / 1e9:.9f}" for nth in range(1, count)]
    return [["--time", f"{start},{end}"] for start, end in zip(["", *edges], [*edges, ""])]


def decode(path):
    """{cpu: its decoder at the end}, and {cpu: instructions} as recorded."""
    with open(path, "rb") as f:
        data = f.read()
    cpus, recorded = {}, {}
    for _, chunk in fields(data):
        got = dict(fields(chunk))
        if 9 in got:
            cpus.setdefault(got.get(2), Cpu()).feed(got[9])
        for number, value in fields(got.get(11, b"")):
            if number == 2:
                count = dict(fields(value))
                recorded[count.get(1, 0)] = count.get(4, 0)
    return cpus, recorded


def instructions(decoded):
    """{cpu: instructions} counted block by block, and {cpu: instructions} as recorded."""
    cpus, recorded = decoded
    return {cpu: state.total for cpu, state in cpus.items()}, recorded


def moves(decoded):
    """How often the moves agree with the next stack pointer, and where they do not."""
    cpus = decoded[0].values()
    return sum(cpu.agree for cpu in cpus), [text for cpu in cpus for text in cpu.contradict]


def masks(decoded):
    """The same for what the instructions do to interrupts."""
    cpus = decoded[0].values()
    return (sum(cpu.masks_agree for cpu in cpus),
            [text for cpu in cpus for text in cpu.masks_contradict])
