# SPDX-License-Identifier: GPL-2.0-or-later
"""The instructions of an Intel PT trace, as kscope and libipt decode them.

Instructions are lists of addresses in hexadecimal, as bytes: so millions of them are compared fast.
"""
import os

from . import BUILD, KSCOPE, run

ORACLE = os.path.join(BUILD, "tests", "pt_oracle")


def why_no_oracle():
    """The reason why libipt cannot be asked, or None."""
    return None if os.path.exists(ORACLE) else "libipt is not installed"


def hexadecimal(addresses):
    return [b"%x" % address for address in addresses]


def by_kscope(path, *options, before=()):
    """{tid: instructions}, and how kscope ended."""
    done = run(*before, KSCOPE, "insn", path, "--addresses", *options, binary=True)
    return by_thread(done.stdout), done


UNKNOWN = b"?"  # the address of an instruction whose code kscope did not find


def by_thread(text):
    words = text.split()
    tids = words[::2]
    if len(set(tids)) == 1:
        return {int(tids[0]): words[1::2]}
    threads = {}
    for line in text.splitlines():
        tid, address, *more = line.split()
        threads.setdefault(tid, []).append(address)
        if more:  # NUMBER instructions, and why it does not know them
            threads[tid] += [UNKNOWN] * (int(more[0]) - 1)
    return {int(tid): addresses for tid, addresses in threads.items()}


def fill(got, want):
    """Takes addresses that kscope does not know from elsewhere. Returns how many."""
    unknown = [i for i, address in enumerate(got[:len(want)]) if address == UNKNOWN]
    for i in unknown:
        got[i] = want[i]
    return len(unknown)


EVENTS = (b"eos", b"end", b"overflow")  # that may stand alone, in a trace without times


class Queue:
    """What libipt says about a thread or a CPU.

    runs: instructions without a gap between them. syncs: the offsets at which libipt begins to
    decode, errors: [(offset, why)], overflows: how many there are."""

    def __init__(self, line):
        words = dict(word.split(b"=") for word in line.split()[1:])
        self.tid, self.cpu = int(words[b"tid"]), int(words[b"cpu"])
        self.runs, self.syncs, self.errors, self.overflows = [[]], [], [], 0

    def all(self):
        return [address for run_ in self.runs for address in run_]

    def take(self, line):
        word, *rest = line.split()
        if word == b"sync":
            self.syncs.append(int(rest[0], 16))
        elif word == b"overflow":
            self.overflows += 1
        elif word == b"error":
            at = max(i for i, part in enumerate(rest) if part == b"at")
            self.errors.append((int(rest[at + 1], 16), b" ".join(rest[:at]).decode()))
        if word in (b"sync", b"overflow", b"gap") and self.runs[-1]:
            self.runs.append([])


def by_libipt(path, *options):
    """[Queue]"""
    done = run(ORACLE, "--insns", *options, path, binary=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    queues = []
    for line in done.stdout.split(b"\n"):
        if line and b" " not in line and line not in EVENTS:
            queues[-1].runs[-1].append(line)
        elif line.startswith(b"queue"):
            queues.append(Queue(line))
        elif line:
            queues[-1].take(line)
    for queue in queues:
        queue.runs = [run_ for run_ in queue.runs if run_]
    return queues


def first_difference(got, want):
    """None: they are equal."""
    if got == want:
        return None
    same = common_start(got, want)
    return (f"{len(got)} instructions, not {len(want)}; number {same}: "
            f"{got[max(same - 3, 0):same + 3]}, not {want[max(same - 3, 0):same + 3]}")


def common_start(some, others):
    return next((i for i, (a, b) in enumerate(zip(some, others)) if a != b),
                min(len(some), len(others)))


def common_end(some, others):
    return common_start(some[::-1], others[::-1])


class Text:
    """Instructions, in which pieces can be found."""

    def __init__(self, addresses):
        self.numbers = {}
        self.text = self.bytes(addresses)

    def bytes(self, addresses):
        """Four bytes for each. The last one is 255, so that almost all that is found begins with an
        instruction."""
        numbers = self.numbers
        return b"".join((numbers.setdefault(address, len(numbers)) << 8 | 255).to_bytes(4, "big")
                        for address in addresses)

    def longest(self, piece):
        """How many instructions at the begin of a piece, as bytes, are somewhere in the text, one
        after the other."""
        low, high = 0, len(piece) // 4
        while low < high:
            middle = (low + high + 1) // 2
            if self.has(piece[:4 * middle]):
                low = middle
            else:
                high = middle - 1
        return low

    def has(self, piece):
        at = self.text.find(piece)
        while at % 4 and at >= 0:
            at = self.text.find(piece, at + 1)
        return at >= 0


def pieces(text, got):
    """Divides instructions into the fewest pieces that are in the text. Returns their lengths."""
    rest, lengths = text.bytes(got), []
    while rest:
        nr = text.longest(rest)
        lengths.append(nr)
        rest = rest[4 * max(nr, 1):]
    return lengths
