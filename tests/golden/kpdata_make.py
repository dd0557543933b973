# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of kpdata-*, kpoprofile-* and kphistogram-*."""
import os
import random
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit.inputs import put
from kit.kpdata import (K, KERNEL, MAP, NO_PID, PROCESS, TIMER_1MS, U, USER, chain, histogram_row,
                        kernel, leb128, mapping, oprofile, process, record, start, twice, user)

CASES = {}


def case(function):
    CASES[function.__name__.replace("_", "-")] = function
    return function


def blocks(version, leaf=lambda pcs: pcs):
    """Two cores with two blocks each: times are in order in a block, but not in the file."""
    out = b""
    for block in range(2):
        for cpu in (1, 0):
            for i in range(3):
                time = 10000 + 3000 * block + 1000 * i + cpu
                pcs = leaf(chain(K if cpu else U, 1 + i))
                out += (kernel(version, time, cpu, pcs, pid=5) if cpu
                        else user(version, time, 5, cpu, pcs))
    return out


@case
def kpdata_v1():
    return start() + blocks(1, twice)


@case
def kpdata_v2():
    return start() + blocks(2, twice)


@case
def kpdata_v3():
    return start() + blocks(3)


@case
def kpdata_v3_leaf_twice():
    return start() + blocks(3, twice)


@case
def kpdata_leaf_recursion():
    """Two equal addresses are kept, in a file that does not store the leaf twice."""
    return start() + blocks(3) + user(3, 30000, 5, 0, [U + 4, U + 4, U + 0x42])


@case
def kpdata_user_only():
    return start() + b"".join(user(2, 10000 + i, 5, 0, chain(U)) for i in range(3))


@case
def kpdata_kernel_task():
    return start() + kernel(3, 10000, 0, chain(K)) + kernel(3, 10001, 0, chain(K), pid=5)


@case
def kpdata_sources():
    """Timer, PMU, fixed counters, opaque pointers, and values that are none of these."""
    infos = [TIMER_1MS, 1 << 60 | 250, 2 << 60 | 0x3C, 2 << 60 | 0x412E, 2 << 60 | 0x1B0,
             2 << 60 | 1 << 16 | 0, 2 << 60 | 1 << 16 | 1, 2 << 60 | 1 << 16 | 2,
             2 << 60 | 1 << 16 | 3, 0x7F0012345678, 0x7F0012349999, 0, 1 << 60, 2 << 60 | 1 << 20]
    return start() + b"".join(user(2, 10000 + i, 5, 0, chain(U), info=info)
                              for i, info in enumerate(infos + infos[:2]))


@case
def kpdata_many_sources():
    return start() + b"".join(user(3, 10000 + i, 5, 0, [U + 4], info=0x7F0000001000 + 64 * i)
                              for i in range(66))


@case
def kpdata_fork_exec():
    """A fork has its parent's path and no maps; an exec maps another file over the first map."""
    return (start(5, "/bin/ash") + user(3, 3000, 5, 0, chain(U)) +
            process(4000, 6, "/bin/ash") + user(3, 4500, 6, 0, chain(U)) +
            mapping(5000, 6, 0x400000, 0x2000, 0, "/bin/ls") +
            mapping(5001, 6, 0x7F0000000000, 0x1000, 0, "/lib/libc.so") +
            user(3, 5500, 6, 0, chain(U)) + user(3, 5600, 5, 0, chain(U)))


@case
def kpdata_no_maps():
    """Processes that started before the recording."""
    return (start() + user(3, 10000, 5, 0, chain(U)) + user(3, 10001, 7, 0, chain(U)) +
            user(3, 10002, 8, 0, chain(U)) + user(3, 10003, 8, 0, chain(U)))


@case
def kpdata_elf_no_pid():
    return kpdata_no_maps()


@case
def kpdata_cut():
    return (start() + blocks(3))[:-11]


@case
def kpdata_one_record():
    """The second record is cut."""
    return (process(10**9, 7, "/bin/foo") +
            mapping(10**9 + 1, 7, 0x401000, 0x1000, 0x1000, "/bin/foo")[:10])


@case
def kpdata_cut_header():
    return start() + blocks(3) + b"\x01"


@case
def kpdata_garbage_inside():
    rng = random.Random(1)
    garbage = bytes(rng.randrange(256) for _ in range(1000))
    return start() + blocks(3) + garbage + user(3, 40000, 5, 0, chain(U)) * 3


@case
def kpdata_garbage_first():
    return b"\xff" * 100 + start() + blocks(3)


@case
def kpdata_garbage_only():
    return bytes(range(256)) * 4


@case
def kpdata_garbage_text():
    return b"this is not a profile, and neither is the rest of it\n" * 3


@case
def kpdata_lying_n():
    return (start() + user(3, 10000, 5, 0, chain(U)) +
            user(3, 10001, 5, 0, chain(U), n=65535) + user(3, 10002, 5, 0, chain(U)) +
            kernel(3, 10003, 0, chain(K), pid=5, n=2) + kernel(3, 10004, 0, chain(K), pid=5) * 2)


@case
def kpdata_no_addresses():
    return (start() + user(3, 10000, 5, 0, []) + kernel(3, 10001, 0, [], pid=5) +
            blocks(3))


@case
def kpdata_huge_size():
    """A size larger than a record can be, and one larger than the rest of the file."""
    return (start() + blocks(3) + b"\x02" + leb128(1 << 62) + blocks(3) +
            b"\x02" + leb128(500000) + user(3, 50000, 5, 0, chain(U)) * 3)


@case
def kpdata_short_bodies():
    out = start() + blocks(3)
    for kind in (KERNEL, USER, MAP, PROCESS):
        out += record(kind, b"\1" * 11) + user(3, 50000 + kind, 5, 0, chain(U)) * 3
    return out


@case
def kpdata_bad_paths():
    path = struct.pack("<QI", 20000, 9)
    place = struct.pack("<QQQQI", 20000, 0x1000, 0, 0, 9)
    more = user(3, 30000, 5, 0, chain(U)) * 3
    return (start() + more + record(PROCESS, path + b"/bin/x") + more +
            record(PROCESS, path + b"\0\0\0") + more + record(PROCESS, path + b"a\0b\0") + more +
            process(20000, NO_PID, "/bin/x") + more + record(MAP, place + b"/bin/x\0") + more +
            mapping(20000, 9, 0xFFFFFFFFFFFFF000, 0x2000, 0, "/bin/x") + more)


@case
def kpdata_broken_off():
    """After an overflow, a block begins in the middle of a record of another."""
    whole = user(3, 15000, 5, 0, chain(U, 9))
    return start() + blocks(3) + whole[:40] + user(3, 20000, 5, 1, chain(U, 9)) * 4


@case
def kpdata_much_damage():
    more = user(3, 30000, 5, 0, chain(U)) * 3
    return start() + (more + b"\xff" * 7) * 12 + more


@case
def kpdata_other_version():
    """The version of most traces wins; traces of another version are damage."""
    return start() + blocks(3) + kernel(1, 40000, 0, chain(K)) + blocks(3)


@case
def kpdata_marker_addresses():
    return start() + kernel(3, 10000, 0, [K, 2**64 - 128, 2**64 - 1, 0], pid=5)


@case
def kpoprofile_good():
    return b"".join(oprofile(i % 2, 1000 * i, chain(K if i % 3 else U, 1 if i % 3 == 0 else i % 16))
                    for i in range(20)) + oprofile(1, 30000, [])


@case
def kpoprofile_by_hand():
    return oprofile(0, 1000, chain(K)) + struct.pack("<QQ", U, 2000 & ~15) + oprofile(0, 3000, [K])


@case
def kpoprofile_damaged():
    good = oprofile(1, 1000, chain(K))
    return good + b"\1\2\3" + good + struct.pack("<QQ", 5, 7) + good + good[:-9]


@case
def kpoprofile_lying_n():
    good = oprofile(1, 1000, chain(K))
    return good + struct.pack("<QQ", 0xEE01 << 48 | 17, 5) + good * 2


def histogram(rows):
    return b"".join(histogram_row(0xFFFFFFFFC2000000 + 8 * i, name, ticks)
                    for i, (name, ticks) in enumerate(rows))


@case
def kphistogram_good():
    return histogram([("Total", 1000), ("User", 300), ("_start", 0), ("_start", 100), ("", 20),
                      ("a_function_with_a_name_longer_than_29", 500), ("two words", 80)])


@case
def kphistogram_lost():
    return histogram([("Total", 1000), ("User", 300), ("_start", 100)])


@case
def kphistogram_damaged():
    rows = histogram([("Total", 1000), ("User", 300), ("_start", 100), ("spin", 600), ("idle", 0)])
    return rows[:128] + b"garbage\n" + rows[128:200] + b"X" + rows[201:-20]


ARGS = {"kpdata-garbage-only": "-f kpdata", "kpdata-garbage-text": "-f kpdata",
        "kpdata-elf-no-pid": "--elf app.elf"}


def main():
    for name, make in CASES.items():
        put(name, "input.bin", make(), ARGS.get(name, ""))


if __name__ == "__main__":
    main()
