#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Conversions to the same format: dump and folded text do not change, and perf.data made from a
dump is the same as that made from the original."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import DEMO, KSCOPE, ROOT, check, demo_samples, equal, finish, kscope, run, scratch

ELFS = os.path.join(DEMO, "4k")


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def pseudo(dump, folder):
    """[vdso] is not a file and keeps its name, even if perf's cache has a copy of it."""
    hex_id, path = re.search('build-id=([0-9a-f]+) path="(.*)"', dump).groups()
    cached = os.path.join(folder, ".debug", ".build-id", hex_id[:2], hex_id[2:])
    os.makedirs(cached)
    shutil.copy(os.path.join(ELFS, path), os.path.join(cached, "vdso"))
    text, data = os.path.join(folder, "vdso.dump"), os.path.join(folder, "vdso.data")
    write(text, dump.replace(path, "[vdso]"))
    home = {**os.environ, "HOME": folder}
    run(KSCOPE, "convert", text, "-o", data, env=home)
    back = run(KSCOPE, "convert", data, "-t", "dump", "-o", "-", env=home).stdout
    check("[vdso] stays [vdso]", f'build-id={hex_id} path="[vdso]"' in back, back[:2000])


def main():
    with scratch() as folder:
        samples, text = demo_samples(folder, ELFS), os.path.join(folder, "a.dump")
        direct, detour = os.path.join(folder, "a.data"), os.path.join(folder, "b.data")
        dump = kscope("convert", samples, "-b", ELFS, "-t", "dump", "-o", "-").stdout
        check("the dump has every sample", dump.count("\nsample ") == 10000)
        write(text, dump)
        equal("dump to dump", kscope("convert", text, "-t", "dump", "-o", "-").stdout == dump, True)
        kscope("convert", samples, "-b", ELFS, "-o", direct)
        kscope("convert", text, "-b", ELFS, "-o", detour)
        # kscope looks for the binaries of the JSON; the dump has their segments.
        scripts = [run("perf", "script", "-i", path, "-F", "comm,pid,tid,cpu,time,period,event,ip,sym")
                   for path in (direct, detour)]
        equal("perf.data by way of a dump: perf script prints the same",
              scripts[0].stdout == scripts[1].stdout and len(scripts[0].stdout) > 10000, True)

        pseudo(dump, folder)
        golden = os.path.join(ROOT, "tests", "golden", "dump", "expected.dump")
        with open(golden, encoding="utf-8") as f:
            want = f.read()
        equal("every kind of event", kscope("convert", golden, "-t", "dump", "-o", "-").stdout, want)

        # Without the description of a tracepoint's bytes perf reads the rest.
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
