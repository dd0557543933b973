# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the Fuchsia trace format, written from its specification, and checks every record on the way.

    trace = fxt.read(data)
    trace.events, trace.switches, trace.counters, trace.processes, trace.threads, trace.counts

Raises Wrong if a size, a field that must be zero, a reference or the nesting of durations is wrong.
"""
import collections
import struct
from dataclasses import dataclass, field

MAGIC = 0x0016547846040010
METADATA, INITIALIZATION, STRING, THREAD, EVENT, OBJECT, SCHEDULING = 0, 1, 2, 3, 4, 7, 8
INSTANT, COUNTER, BEGIN, END = 0, 1, 2, 3
IDLE = -2**31


class Wrong(Exception):
    pass


Event = collections.namedtuple("Event", "type time pid tid category name args")
Counter = collections.namedtuple("Counter", "id time pid tid category name args")
Switch = collections.namedtuple("Switch", "time cpu state outgoing incoming args")


@dataclass
class Trace:
    ticks: int = 0
    provider: str = ""
    strings: dict = field(default_factory=dict)
    tasks: dict = field(default_factory=dict)  # of the thread table
    events: list = field(default_factory=list)
    switches: list = field(default_factory=list)
    counters: list = field(default_factory=list)
    processes: dict = field(default_factory=dict)  # {pid: name}
    threads: dict = field(default_factory=dict)  # {tid: (pid, name)}
    counts: dict = field(default_factory=collections.Counter)  # of records, by type


def bits(word, first, last):
    return word >> first & (1 << last - first + 1) - 1


def must(good, *why):
    if not good:
        raise Wrong(*why)


class Record:
    """The words of one record, which must all be used."""

    def __init__(self, trace, data, at):
        self.trace, self.data, self.at = trace, data, at
        self.head = struct.unpack_from("<Q", data, at)[0]
        self.type, self.words = bits(self.head, 0, 3), bits(self.head, 4, 15)
        must(self.words, f"a record of 0 words at {at}")
        self.end = at + 8 * self.words
        must(self.end <= len(data), f"cut short in a record at {at}")
        self.next = at + 8

    def zero(self, first, last):
        must(not bits(self.head, first, last), f"bits {first}..{last} at {self.at}: {self.head:#x}")

    def word(self):
        must(self.next + 8 <= self.end, f"too few words at {self.at}")
        self.next += 8
        return struct.unpack_from("<Q", self.data, self.next - 8)[0]

    def stream(self, size):
        padded = -(-size // 8) * 8
        must(self.next + padded <= self.end, f"a text of {size} bytes leaves the record at {self.at}")
        text, rest = (self.data[self.next:self.next + size],
                      self.data[self.next + size:self.next + padded])
        must(not any(rest), f"padding that is not 0 at {self.at}")
        self.next += padded
        return text.decode()  # raises if it is not UTF-8

    def string(self, ref):
        if ref >> 15:
            must(ref & 0x7fff <= 32000, f"a text of {ref & 0x7fff} bytes at {self.at}")
            return self.stream(ref & 0x7fff)
        must(not ref or ref in self.trace.strings, f"string {ref} at {self.at} is not defined")
        return self.trace.strings[ref] if ref else ""

    def thread(self, ref):
        if not ref:
            return self.word(), self.word()
        must(ref in self.trace.tasks, f"thread {ref} at {self.at} is not defined")
        return self.trace.tasks[ref]

    def argument(self):
        at = self.next
        head = self.word()
        kind, upper = bits(head, 0, 3), bits(head, 32, 63)
        name = self.string(bits(head, 16, 31))
        if kind == 1:
            value = upper - (upper >> 31 << 32)
        elif kind == 2:
            value = upper
        elif kind in (4, 8):
            must(not upper, f"the upper half of an argument at {at}")
            value = self.word()
            must(kind == 8 or value >> 32, f"a small number in 64 bits at {at}")
        elif kind == 6:
            must(upper < 65536, f"the upper half of an argument at {at}")
            value = self.string(upper)
        elif kind == 9:
            must(upper < 2, f"a truth value at {at}")
            value = bool(upper)
        else:
            raise Wrong(f"an argument of type {kind} at {at}")
        must(self.next - at == 8 * bits(head, 4, 15), f"the size of an argument at {at}")
        return name, value

    def arguments(self, number):
        args = [self.argument() for _ in range(number)]
        must(len(dict(args)) == number, f"two arguments of one name at {self.at}")
        return dict(args)


def metadata(trace, record):
    kind = bits(record.head, 16, 19)
    must(kind in (1, 2), f"metadata of type {kind} at {record.at}")
    provider = bits(record.head, 20, 51)
    if kind == 1:
        record.zero(60, 63)
        trace.provider = record.stream(bits(record.head, 52, 59))
        trace.counts[f"provider {provider}"] += 1
    else:
        record.zero(52, 63)
        must(trace.counts[f"provider {provider}"], f"section of an unknown provider at {record.at}")


def initialization(trace, record):
    record.zero(16, 63)
    trace.ticks = record.word()


def string(trace, record):
    index, size = bits(record.head, 16, 30), bits(record.head, 32, 46)
    for bit in (31, 47):
        record.zero(bit, bit)
    record.zero(48, 63)
    must(index and 0 < size <= 32000, f"string {index} of {size} bytes at {record.at}")
    trace.counts["strings replaced"] += index in trace.strings
    trace.strings[index] = record.stream(size)


def thread(trace, record):
    index = bits(record.head, 16, 23)
    record.zero(24, 63)
    must(index, f"thread 0 at {record.at}")
    trace.counts["threads replaced"] += index in trace.tasks
    trace.tasks[index] = record.word(), record.word()


def event(trace, record):
    kind = bits(record.head, 16, 19)
    must(kind in (INSTANT, COUNTER, BEGIN, END), f"an event of type {kind} at {record.at}")
    time = record.word()
    pid, tid = record.thread(bits(record.head, 24, 31))
    category = record.string(bits(record.head, 32, 47))
    name = record.string(bits(record.head, 48, 63))
    must(pid in trace.processes, f"process {pid} at {record.at} has no name")
    must(trace.threads.get(tid, [None])[0] == pid, f"thread {tid} at {record.at} has no name")
    args = record.arguments(bits(record.head, 20, 23))
    if kind == COUNTER:
        trace.counters.append(Counter(record.word(), time, pid, tid, category, name, args))
    else:
        trace.events.append(Event(kind, time, pid, tid, category, name, args))


def kernel_object(trace, record):
    kind = bits(record.head, 16, 23)
    record.zero(44, 63)
    koid = record.word()
    name = record.string(bits(record.head, 24, 39))
    args = record.arguments(bits(record.head, 40, 43))
    if kind == 1:
        must(trace.processes.setdefault(koid, name) == name, f"process {koid} has two names")
    else:
        must(kind == 2, f"an object of type {kind} at {record.at}")
        named = (args["process"], name)
        must(trace.threads.setdefault(koid, named) == named, f"thread {koid} has two names")


def scheduling(trace, record):
    must(bits(record.head, 60, 63) == 1, f"not a context switch at {record.at}")
    record.zero(40, 59)
    time, outgoing, incoming = record.word(), record.word(), record.word()
    args = record.arguments(bits(record.head, 16, 19))
    for koid, weight in ((outgoing, "outgoing_weight"), (incoming, "incoming_weight")):
        must(koid in trace.threads or args.get(weight) == IDLE, f"thread {koid} at {record.at}")
    trace.switches.append(Switch(time, bits(record.head, 20, 35), bits(record.head, 36, 39),
                                 outgoing, incoming, args))


READ = {METADATA: metadata, INITIALIZATION: initialization, STRING: string, THREAD: thread,
        EVENT: event, OBJECT: kernel_object, SCHEDULING: scheduling}


def read(data):
    trace = Trace()
    must(len(data) >= 8 and struct.unpack_from("<Q", data)[0] == MAGIC, "no magic number")
    at = 8
    while at < len(data):
        must(at + 8 <= len(data), f"cut short at {at}")
        record = Record(trace, data, at)
        must(record.type in READ, f"a record of type {record.type} at {at}")
        must(record.type == METADATA or trace.provider, f"a record before its provider at {at}")
        READ[record.type](trace, record)
        must(record.next == record.end, f"{record.end - record.next} bytes too many at {at}")
        trace.counts[record.type] += 1
        at = record.end
    return trace


Slice = collections.namedtuple("Slice", "pid tid begin end category name depth parent args")


def slices(trace):
    """The durations, in the order of their ends; a reader of the format sorts by time first."""
    open_slices, found = collections.defaultdict(list), []
    for one in sorted(trace.events, key=lambda one: one.time):
        stack = open_slices[one.pid, one.tid]
        if one.type == INSTANT:
            continue
        if one.type == BEGIN:
            stack.append(one)
            continue
        must(stack, f"an end without a begin: {one}")
        begin = stack.pop()
        must((begin.name, begin.category) == (one.name, one.category), f"{one} ends {begin}")
        found.append(Slice(one.pid, one.tid, begin.time, one.time, one.category, one.name, len(stack),
                           stack[-1].name if stack else None, begin.args | one.args))
    must(not any(open_slices.values()), "slices without an end")
    return found


def runs(trace):
    """[(cpu, tid, begin, end)]: when a thread ran on a cpu, in the order of their ends."""
    running, found = {}, []
    for one in sorted(trace.switches, key=lambda one: one.time):
        if one.args.get("outgoing_weight") != IDLE:
            tid, begin = running.pop(one.cpu, (None, 0))
            must(tid == one.outgoing, f"{one} ends a run of {tid}")
            found.append((one.cpu, tid, begin, one.time))
        if one.args.get("incoming_weight") != IDLE:
            must(one.cpu not in running, f"{one} while another thread runs")
            running[one.cpu] = one.incoming, one.time
    must(not running, "runs without an end")
    return found
