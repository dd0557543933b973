#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""There and back: dump and folded text come out as they went in, and perf.data is the same by way
of a dump."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import DEMO, ROOT, check, equal, finish, kscope, run, scratch

ELFS = os.path.join(DEMO, "4k")


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    with scratch() as folder:
        run(sys.executable, os.path.join(ROOT, "demo", "sel4", "generate.py"), ELFS, folder)
        samples, text = os.path.join(folder, "samples.json"), os.path.join(folder, "a.dump")
        direct, detour = os.path.join(folder, "a.data"), os.path.join(folder, "b.data")
        dump = kscope("convert", samples, "-b", ELFS, "-t", "dump", "-o", "-").stdout
        check("the dump has every sample", dump.count("\nsample ") == 10000)
        write(text, dump)
        equal("dump to dump", kscope("convert", text, "-t", "dump", "-o", "-").stdout == dump, True)
        kscope("convert", samples, "-b", ELFS, "-o", direct)
        kscope("convert", text, "-b", ELFS, "-o", detour)
        # The image's file is found on the way from the JSON; the dump already has the segments.
        scripts = [run("perf", "script", "-i", path, "-F", "comm,pid,tid,cpu,time,period,event,ip,sym")
                   for path in (direct, detour)]
        equal("perf.data by way of a dump: perf script prints the same",
              scripts[0].stdout == scripts[1].stdout and len(scripts[0].stdout) > 10000, True)

        golden = os.path.join(ROOT, "tests", "golden", "dump", "expected.dump")
        with open(golden, encoding="utf-8") as f:
            want = f.read()
        equal("every kind of event", kscope("convert", golden, "-t", "dump", "-o", "-").stdout, want)

        # What describes the bytes of tracepoints is missing: perf still reads the rest.
        write(text, 'kscope-dump 1\nsource id=1 name="sched:sched_switch" type=2 config=0x174 raw\n'
              'aux kind="intel_pt" offset=0x0 len=0x2 data=0203\n'
              "sample task=7/7 source=1 weight=1 raw=0badcafe : user 0x1010\n")
        said = kscope("convert", text, "-o", direct).stderr
        equal("a trace that is left out", said,
              "kscope: warning: 2 bytes of hardware trace are not in the output\n")
        equal("a tracepoint that perf cannot read the bytes of",
              run("perf", "script", "-i", direct, "-F", "tid,event").stdout.split(),
              ["7", "sched:sched_switch:"])

        folded = "a;b 2\na;b;c 3\nb::x<int, 2>;f(char const*) 1\n"
        path = os.path.join(folder, "a.folded")
        write(path, folded)
        equal("folded to folded", kscope("convert", path, "-t", "folded", "-o", "-").stdout, folded)
        write(text, kscope("convert", path, "-t", "dump", "-o", "-").stdout)
        equal("folded to dump to folded", kscope("convert", text, "-t", "folded", "-o", "-").stdout,
              folded)
    finish()


if __name__ == "__main__":
    main()
