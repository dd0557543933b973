# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds PTWRITE and power packets to the Intel PT trace of a perf.data, where a processor could have written them, and
finds them again in what perf and kscope say.

QEMU has no PTWRITE, and no program of a user changes power states. So the packets are put between those of a recording,
with values that are all different."""
import collections
import re
import struct

from . import ptdamage, run

PTW_ON, POWER_ON, CYC_ON = 1 << 12, 1 << 4, 1 << 1  # in perf's attribute: without POWER_ON, perf ignores these packets
USUAL_RATIO = 21  # of the emulator

# value: as in the packet; at: the address of the code, or None if the packets do not tell it.
Note = collections.namedtuple("Note", "name value at")


def ptw(value, ip):
    small = value < 1 << 32
    return struct.pack("<BBI" if small else "<BBQ", 2, (0x12 if small else 0x32) | ip << 7, value)


def mwait(value):
    return struct.pack("<BBQ", 2, 0xc2, value)


def pwre(value):
    return struct.pack("<BBH", 2, 0x22, value)


def pwrx(value):
    return struct.pack("<BBIB", 2, 0xa2, value, 0)


def exstop(ip):
    return bytes([2, 0x62 | ip << 7])


def cbr(ratio):
    return bytes([2, 3, ratio, 0])


class Injection:
    """What is put into the trace of one thread. ahead: {address: that of the next instruction}; ratios: also CBR
    packets, and no CYC packets, whose time they would change. `vague` has the values of which perf knows the time only roughly:
    it does not look at the clock between two conditional branches that were not taken."""

    def __init__(self, ahead, ratios):
        self.ahead, self.ratios, self.nr, self.notes, self.vague = ahead, ratios, 0, [], set()

    def fresh(self):
        self.nr += 1
        return self.nr

    def note(self, name, value, at, packet):
        self.notes.append(Note(name, value, at))
        return packet

    def write(self, value, at=None):
        packet = self.note("ptwrite", value, at, ptw(value, at is not None))
        return packet + (ptdamage.ip_packet("fup", at) if at is not None else b"")

    def sleep(self, at):
        """As SDM describes it: MWAIT, PWRE and EXSTOP have one FUP packet."""
        hints = self.fresh() % 256 | 1 << 32
        state = self.fresh() % 256 << 8
        return (self.note("mwait", hints, at, mwait(hints)) + self.note("pwre", state, None, pwre(state)) +
                self.note("exstop", 0, at, exstop(True)) + ptdamage.ip_packet("fup", at))

    def frequency(self):
        """perf tells it with the next event."""
        out = b""
        for ratio in (8 + self.fresh() % 8, USUAL_RATIO):
            out += self.note("cbr", ratio, None, cbr(ratio)) + self.write(self.fresh())
        return out

    def after_tip(self, ip, goes_on):
        """goes_on: the instruction there was executed."""
        after = self.ahead.get(ip) if goes_on else None
        forms = [lambda: self.write(self.fresh(), ip), lambda: self.write(self.fresh()),
                 lambda: self.sleep(ip),
                 lambda: self.note("exstop", 0, ip, exstop(True)) + ptdamage.ip_packet("fup", ip),
                 lambda: self.write(1 << 63 | self.fresh()),
                 self.frequency if self.ratios else lambda: b"",
                 lambda: self.write(1 << 40 | self.fresh(), ip) + self.write(self.fresh(), after)]
        forms = forms if after and after >> 16 == ip >> 16 else forms[:-1]
        return forms[self.fresh() % len(forms)]()

    def off(self):
        state, wake = self.fresh() % 16 << 12, self.fresh() % 4096
        return (self.note("pwre", state, None, pwre(state)) + self.note("exstop", 0, None, exstop(False)) +
                self.note("pwrx", wake, None, pwrx(wake)))


def _after(packet, following, injection):
    if packet.name == "tip" and packet.ip:
        return injection.after_tip(packet.ip, following not in ("fup", "psb"))
    if packet.name == "tip.pgd":
        return injection.off()
    if packet.name == "tnt" and injection.fresh() % 7 == 0:
        injection.vague.add(injection.fresh())
        return injection.write(injection.nr)
    return b""


def _with_following(data):
    """[(packet, the name of the next one that has not only a time)]"""
    found, following = [], ""
    for packet in reversed(list(ptdamage.packets(data))):
        found.append((packet, following))
        following = following if packet.name in ptdamage.TIMING else packet.name
    return found[::-1]


def _inject(data, injection, blank):
    out, header = b"", False
    for packet, following in _with_following(data):
        if packet.name == "cyc" and injection.ratios:
            continue
        header = packet.name == "psb" or (header and packet.name != "psbend")
        more = b"" if header else _after(packet, following, injection)
        out += data[packet.at:packet.end] + (bytes(len(more)) if blank else more)
    return ptdamage.pad(out)


def inject(path, out, ahead, ratios=False, blank=False):
    """Returns {tid: Injection}. blank: puts PAD packets in their places: where kscope divides a trace into pieces depends
    on its length."""
    file = ptdamage.File(path)
    attrs, = struct.unpack_from("<Q", file.head, 24)
    head = bytearray(file.head)
    config, = struct.unpack_from("<Q", head, attrs + 8)
    config |= PTW_ON | POWER_ON
    struct.pack_into("<Q", head, attrs + 8, config & ~CYC_ON if ratios else config)
    file.head = bytes(head)
    injections = {}
    for tid in sorted({r.tid for r in file.records if isinstance(r, ptdamage.Part)}):
        first, *more = file.queue(tid)
        injections[tid] = injection = Injection(ahead, ratios)
        first.data = _inject(ptdamage.joined([first, *more]), injection, blank)
        for part in more:
            part.data = b""
    file.write(out)
    return injections


# What perf prints, by the name of the event.
_PERF = {"ptwrite": r"IP: (?P<ip>[01]) payload: (?P<value>0x[0-9a-f]+)(?: .*)?",  # maybe as text, too
         "mwait": r"hints: (?P<value>(?:0x)?[0-9a-f]+) extensions: (?P<upper>(?:0x)?[0-9a-f]+)",
         "pwre": r"hw: \d+ cstate: \d+ sub-cstate: \d+", "exstop": r"IP: (?P<ip>[01])",
         "pwrx": r"deepest cstate: (?P<value>\d+) last cstate: (?P<last>\d+) "
                 r"wake reason: (?P<reason>(?:0x)?[0-9a-f]+)",
         "cbr": r"cbr: +(?P<value>\d+) freq: .*?\( *\d+%\)"}


def by_perf(path):
    """({tid: [(time, Note, least)]}, complaints). The value of PWRE is None: perf 6.1 prints 0 if there was no MWAIT. Where
    tracing begins again, perf estimates the time by instructions, and does not fall behind that: `least`."""
    done = run("perf", "script", "-i", path, "--itrace=wpbe", "--ns", "-F", "tid,time,event,synth,ip,flags")
    threads, errors, least = collections.defaultdict(list), done.stderr.splitlines(), collections.Counter()
    for line in done.stdout.splitlines():
        head = re.match(r"\s*(\d+)\s+(\d+)\.(\d{9}):\s+(\w+):u?:?\s+(.*)", line)
        if not head:
            errors.append(line)
            continue
        tid, seconds, ns, name, rest = head.groups()
        tid, time = int(tid), int(seconds) * 10**9 + int(ns)
        if name == "branches" and rest.startswith("tr strt"):
            least[tid] = time
        if name in ("psb", "branches"):
            continue
        match = re.search(_PERF[name] + r"\s+(?P<at>[0-9a-f]+)\s*$", rest)
        if not match:
            errors.append(line)
            continue
        threads[tid].append((time, _perf_note(name, match.groupdict()), least[tid]))
    for tid, notes in threads.items():
        first = next(i for i, (_, note, _) in enumerate(notes) if note.name == "cbr")
        threads[tid] = notes[:first] + notes[first + 1:]  # no change, but the first one
    return threads, errors


def _perf_note(name, words):
    known = name == "mwait" or words.get("ip") == "1"
    value = None if name == "pwre" else int(words.get("value") or "0", 0)
    if name == "mwait":
        value |= int(words["upper"], 16) << 32
    elif name == "pwrx":
        value |= int(words["last"]) << 4 | int(words["reason"], 16) << 8
    return Note(name, value, int(words["at"], 16) if known else None)


# The bits of the value that the arguments of an instant are: (name, shift)
ARGS = {"ptwrite": [("value", 0)], "mwait": [("hints", 0), ("extensions", 32)],
        "pwre": [("cstate", 12), ("sub_cstate", 8), ("hw", 7)],
        "pwrx": [("last_cstate", 4), ("deepest_cstate", 0), ("wake_reason", 8)], "exstop": [],
        "cbr": [("ratio", 0)]}


def from_args(name, args):
    """The note that has these arguments, which are numbers, or text for the address."""
    value = sum((args[arg] % (1 << 64)) << shift for arg, shift in ARGS[name])
    return Note(name, value, int(args["address"], 16) if "address" in args else None)
