#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""seL4 captures become samples.json and come back the same, except for what that format has no place for."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, check, demo_samples, equal, exits, finish, kscope, scratch
from kit.inputs import GOLDEN

HEAD = "kscope-dump 1\nsource id=1 name=\"cycles\" type=0 config=0x0\n"


def dump(path, *words):
    """Without gaps, which samples.json does not have."""
    done = kscope("convert", path, "-t", "dump", "-o", "-", *words)
    return [line for line in done.stdout.splitlines() if not line.startswith("lost ")]


def same(name, path, out, *words):
    done = kscope("convert", path, "-t", "sel4-json", "-o", out, *words)
    check(f"{name}: it is written", done.returncode < 2, done.stderr)
    want = dump(path, *words)
    equal(f"{name}: it comes back the same", dump(out, *words), want)
    check(f"{name}: it has samples", any(line.startswith("sample ") for line in want), want)
    with open(out, encoding="utf-8") as f:
        return json.load(f)


def written(text, out):
    exits("written", kscope("convert", "-", "-t", "sel4-json", "-o", out, input=(HEAD + text).encode()), 0)
    with open(out, encoding="utf-8") as f:
        return json.load(f)


def test_captures(out):
    for path in sorted(glob.glob(os.path.join(GOLDEN, "sel4-pb*", "input.pb")) +
                       glob.glob(os.path.join(GOLDEN, "sel4-json-wrap", "input.json")) +
                       glob.glob(os.path.join(GOLDEN, "sel4-json-pauses", "input.json"))):
        document = same(os.path.basename(os.path.dirname(path)), path, out)
        equal(f"{path.split('/')[-2]}: the mappings", document["elf_tcb_mappings"], {"a.elf": 1, "b.elf": 2})


def test_demo(folder, out):
    path = demo_samples(folder)
    document = same("the demo, with its binaries", path, out, "--build-dir", ELFS)
    with open(path, encoding="utf-8") as f:
        original = json.load(f)
    equal("the demo: the mappings", document["elf_tcb_mappings"], original["elf_tcb_mappings"])

    def numbers(sample):
        nr = int(sample["nr"])
        return [int(sample[key]) for key in ("ip", "pid", "time", "cpu", "period", "nr")] + sample["ips"][:nr]
    equal("the demo: every number", list(map(numbers, document["samples"])),
          list(map(numbers, original["samples"])))


def test_others(out):
    """Other inputs: only addresses remain, and the first binary of each process."""
    maps = "".join(f'map task={pid}/{pid} addr={addr:#x} len=0x1000 offset=0x0 prot={prot} {more}path="{path}"\n'
                   for pid, addr, prot, more, path in (
                       (7, 0x1000, "r--", "", "data"), (7, 0x2000, "r-x", "", "/bin/a"),
                       (7, 0x3000, "r-x", "", "/lib/b"), (7, 0x4000, "r-x", "kernel ", "vmlinux")))
    late = 'map task=8/8 addr=0x1000 len=0x1000 offset=0x0 prot=r-x path="/bin/late"\n'
    chain = "sample time=0.000000005 cpu=1 task=7/8 source=1 weight=3 : kernel 0x4001 0x4002 user 0x2001\n"
    got = written(maps + chain + late, out)
    equal("markers are left out", got["samples"], [
        {"ip": str(0x4001), "pid": 7, "time": "5", "cpu": 1, "period": "3", "nr": "2",
         "ips": [str(0x4002), str(0x2001)]}])
    equal("the binary of a process", got["elf_tcb_mappings"], {"/bin/a": 7})
    equal("a later one does not hide it", got["pd_mappings"], {"/bin/late": 8})
    got = written(chain + late, out)
    equal("mappings that only come later", got.get("elf_tcb_mappings"), {"/bin/late": 8})
    equal("no time, no cpu", written("sample task=7/8 source=1 weight=1 : user 0x1\n", out)["samples"],
          [{"ip": "1", "pid": 7, "time": "0", "cpu": 0, "period": "1", "nr": "0", "ips": []}])
    equal("no samples", written("", out), {"samples": []})
    exits("only names", kscope("convert", "-", "-t", "sel4-json", "-o", out, input=b"main;f 3\n"), 2,
          "needs addresses")


def main():
    with scratch() as folder:
        out = os.path.join(folder, "out.json")
        test_captures(out)
        test_demo(folder, out)
        test_others(out)
    finish()


if __name__ == "__main__":
    main()
