# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of uftrace and uftrace-*."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit.inputs import put
from kit.uftrace import ENTRY, EVENT, EXIT, LOST, calls, info, record

MAIN, WORK, LEAF, STUB = (0x555555554000 + n for n in (0x1100, 0x1200, 0x1300, 0x1010))
SYMBOLS = """# symbols: 5
# path name: /home/me/app
0000000000001010 P puts
0000000000001020 ? __dynsym_end
0000000000001100 T main
0000000000001200 t work
0000000000001300 T leaf(int, char)
0000000000001400 ? __sym_end
"""
MAP = """555555554000-555555556000 r-xp 00000000 00:00 0    /home/me/app build-id:0123456789abcdef
7ffff7d00000-7ffff7e00000 r-xp 00000000 00:00 0    /lib/libx.so
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0    [stack]
"""
TASKS = """SESS timestamp=0.000000900 pid=5 sid=00aabbccddeeff11 exename="/home/me/app"
TASK timestamp=0.000000950 tid=5 pid=5
"""
GOOD = {
    "info": info([5]),
    "task.txt": TASKS,
    "sid-00aabbccddeeff11.map": MAP,
    "app.sym": SYMBOLS,
    "5.dat": calls(MAIN, WORK, LEAF, None, LEAF, None, None, STUB, None, None),
}


def switch(tid, time):
    """A record of perf: a thread starts to run."""
    return struct.pack("<IHHIIQ", 14, 0, 24, tid, tid, time)


def name(pid, tid, comm, time):
    """A record of perf: a thread has a name."""
    return struct.pack("<IHHII8sIIQ", 3, 0, 40, pid, tid, comm.encode(), pid, tid, time)


def folder(test, without=(), args="", **files):
    """GOOD with other files; in their names, _ stands for a dot, and sid for the map."""
    all_files = {file: data for file, data in GOOD.items() if file not in without}
    for file, data in files.items():
        file = {"sid": "sid-00aabbccddeeff11.map"}.get(file, file.removeprefix("x").replace("_", "."))
        all_files[file] = data
    for file, data in all_files.items():
        put(test, f"input/{file}", data, args)


def main():
    facts = ["exename:/home/me/app", "cmdline:uftrace record app", "osinfo:lines=2",
             "osinfo:kernel=Linux 6.1.0", "osinfo:hostname=here"]
    dat = GOOD["5.dat"]
    folder("uftrace")
    folder("uftrace-threads", info=info([5, 6, 7], facts),
           task_txt=TASKS + "TASK timestamp=0.000001015 tid=6 pid=5\n"
           "FORK timestamp=0.000001035 pid=7 ppid=5\n"
           'SESS timestamp=0.000001070 pid=7 sid=1122 exename="/bin/other"\n',
           x6_dat=calls(WORK, LEAF, None, None, time=1020),
           # The child goes on inside of what its parent called.
           x7_dat=record(EXIT, 1040, 2, LEAF) + calls(LEAF, None, time=1050, depth=2)
           + record(EXIT, 1075, 0, 0x400100),
           **{"perf-cpu0_dat": switch(5, 1030) + name(5, 6, "worker", 1036),
              "perf-cpu1_dat": name(9, 9, "nobody", 1001) + name(5, 6, "later", 1046),
              "sid-1122_map": "000000400000-000000401000 r-xp 00000000 00:00 0 /bin/other\n",
              "other_sym": "000000000100 000000000010 T main\n"})
    # Arguments of known and unknown size, events with data, and records that were lost.
    folder("uftrace-arguments", x5_dat=record(ENTRY, 1000, 0, MAIN, b"\5\0hello")
           + record(ENTRY, 1010, 1, WORK, b"\1\2\3\4\5\6\7\0" * 5)
           + record(EVENT, 1015, 2, 100001, b"\x10\0" + bytes(22))
           + record(EXIT, 1020, 1, WORK, bytes(8)) + record(LOST, 1030, 0, 12)
           + record(ENTRY, 1040, 2, LEAF) + record(EXIT, 1050, 2, LEAF, b"\0\0\0\0"))
    # A longjmp() leaves out exits; after LOST, the depth says what is still open.
    folder("uftrace-missing-exits", x5_dat=calls(MAIN, WORK, WORK, LEAF)
           + record(ENTRY, 1100, 1, STUB) + record(EXIT, 1110, 1, STUB) + record(EXIT, 1120, 0, MAIN)
           + record(EXIT, 1130, 3, LEAF) + record(ENTRY, 1140, 1, LEAF) + record(EXIT, 1150, 4, LEAF))
    folder("uftrace-library", task_txt=TASKS + "DLOP timestamp=0.000001005 tid=5 sid=00aabbccddeeff11 "
           'base=7ffff6000000 libname="/lib/plug.so"\n',
           plug_so_sym="# symbols: 1\n# path name: /lib/plug.so\n0000000000000500 T plug\n"
           "0000000000000600 ? __sym_end\n",
           x5_dat=calls(MAIN, 0x7ffff6000500, None, None))
    # As QEMU's plugin does it: no map, a task for each privilege level, depths from 1 on.
    tasks = "".join(f'SESS timestamp=0.0 pid={n} sid=0 exename="cpu0 {level}"\nTASK timestamp=0.0 tid={n} '
                    f"pid={n}\n" for n, level in [(100, "Ring0"), (103, "Ring3")])
    kernel = 0xffffffff80001000
    folder("uftrace-qemu", without=GOOD, info=info([100, 103], features=0x1263), task_txt=tasks,
           **{"sid-0_map": "# map stack on highest address possible, to prevent uftrace\n"
                           "# from considering any kernel address\n"
                           "ffffffffffff-ffffffffffff rw-p 00000000 00:00 0 [stack]\n",
              "x100_dat": calls(kernel, kernel + 0x100, None, None, depth=1),
              "x103_dat": calls(0x400100, None, time=2000, depth=1)})
    # With the symbols that QEMU's script makes: maps overlap, and the first one counts.
    head = "ffffffffffff-ffffffffffff rw-p 00000000 00:00 0 [stack]\n"
    folder("uftrace-qemu-symbols", without=GOOD, info=info([100, 103], features=0x1263), task_txt=tasks,
           args="-t folded --samples",
           **{"sid-0_map": head + "000000000000-000000400200 r--p 00000000 00:00 0 /x/user.elf\n"
                           "000000000000-ffff80002000 r--p 00000000 00:00 0 /x/kernel.elf\n",
              "user_elf_sym": "000000400100 000000000040 T user_main\n",
              "kernel_elf_sym": "ffff80001000 000000000080 T start\nffff80001100 000000000010 T main\n",
              "x100_dat": calls(kernel, kernel + 0x104, None, None, depth=1),
              "x103_dat": calls(0x400104, None, time=2000, depth=1)})
    # Damage
    folder("uftrace-cut", x5_dat=dat[:-7])
    folder("uftrace-wrong-magic", x5_dat=dat[:48] + b"\xff" * 24 + dat[48:])
    folder("uftrace-wrong-magic-to-the-end", x5_dat=dat[:48] + b"\0" * 100)
    folder("uftrace-only-garbage", x5_dat=b"no records, but text of any length\n" * 10)
    folder("uftrace-no-info", without=["info"])
    folder("uftrace-cut-info", info=GOOD["info"][:30])
    folder("uftrace-cut-lines", info=GOOD["info"][:50])
    folder("uftrace-other-version", info=info([5], version=9))
    folder("uftrace-big-endian", info=info([5], endian=2))
    folder("uftrace-lying-count", info=info([5, 6, "x", 7], count=70000))
    folder("uftrace-perf-cut", **{"perf-cpu0_dat": name(5, 5, "new", 1001) + switch(5, 1002)[:-1]})
    folder("uftrace-no-task-file", without=["task.txt"])
    folder("uftrace-no-map", without=["sid-00aabbccddeeff11.map"])
    folder("uftrace-bad-lines", task_txt="TASK timestamp=now tid=5\n" + TASKS + "NEWS from=uftrace\n"
           "SESS timestamp=0.000000900 pid=5 sid=../../etc/x exename=\"\n",
           sid="555555556000-555555554000 r-xp 0 0:0 0 /backwards\nzzz\n" + MAP,
           app_sym=SYMBOLS + "what is this\n")


if __name__ == "__main__":
    main()
