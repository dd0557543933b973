#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The sums of a stream that is still being written: in the end they are those of kscope report."""
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, HANGS, ROOT, check, equal, finish, kscope, run, scratch
from kit.inputs import unpacked
from kit.wire_write import chunk, end, info, round_, sample

LIVE = os.path.join(BUILD, "tests", "livetool")
BASE = 0xffffffff81000000
ENDED, FAILED = 3, 4


def key_of(row):
    return (row["name"], row.get("binary", ""), row["self"], row["total"], row["samples"])


def rows_of(found, kind):
    return sorted(key_of(row) for row in found.get(kind, ()))


def live_sums(data, step=0):
    """What live counts of a pipe into which the data comes in pieces."""
    process = subprocess.Popen([LIVE, "sums"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for at in range(0, len(data), step or max(len(data), 1)):
        process.stdin.write(data[at:at + (step or len(data))])
        process.stdin.flush()
    out, _ = process.communicate(timeout=HANGS)
    return json.loads(out)


def compare(name, live, path):
    report = json.loads(kscope("report", path, "--json", "--slide", "0").stdout)
    section = report["events"][0] if report["events"] else {}
    for key in "samples", "lost", "damaged":
        equal(f"{name}: {key}", live[key], report[key])
    equal(f"{name}: weight", live["weight"], sum(s["weight"] for s in report["events"]))
    for kind in "functions", "tasks", "cpus":
        equal(f"{name}: {kind}", rows_of(live, kind), rows_of(section, kind))


def recording(kernel):
    pieces = [chunk(info(cpus=3, kernel=kernel))]
    for n in range(8):
        for cpu in range(3):
            records = [sample((n + 1) * 10**9 + i * 1000 + cpu, BASE + 0x100 * (i % 4) + 8, idle=i % 10 == 0,
                              chain=[] if i % 10 == 0 else
                              [BASE + 0x100 * (i % 4) + 8, BASE + 0x100 * (i % 3) + 8],
                              space=0x1000 * (1 + i % 2)) for i in range(30)]
            pieces.append(chunk(*records, cpu=cpu, sequence=n, dropped=5 if n == cpu == 2 else 0))
        pieces.append(round_((n + 1) * 10**9 + 10**8))
    return b"".join(pieces + [end(*((cpu, 240, 0) for cpu in range(3)))])


def check_late_names(data):
    """The kernel's place is known only at the end; somebody looks at the first samples before."""
    process = subprocess.Popen([LIVE, "searching"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdin.write(data[:len(data) // 2])
    process.stdin.flush()
    seen = next(int(line) for line in process.stderr if int(line))
    out, _ = process.communicate(data[len(data) // 2:], timeout=HANGS)
    check("late names: somebody looked early", 0 < seen < 720, seen)
    equal("late names: all are there", {row["name"] for row in json.loads(out)["functions"]},
          {"[idle]", *(f"function_{i}" for i in range(4))})


def test_pieces(folder):
    kernel, path = (os.path.join(folder, name) for name in ("System.map", "x.kscope"))
    with open(kernel, "w", encoding="utf-8") as f:
        f.writelines(f"{BASE + 0x100 * i:016x} T function_{i}\n" for i in range(6))
    data = recording(kernel)
    for name, part in ("whole", data), ("cut", data[:len(data) // 2]), \
            ("damaged", data[:3000] + b"x" * 500 + data[3500:]):
        with open(path, "wb") as f:
            f.write(part)
        for step in 0, 1, 1000:
            found = live_sums(part, step)
            equal(f"{name} in pieces of {step}: it ended", found["state"], ENDED)
            equal(f"{name} in pieces of {step}: bytes", found["bytes"], len(part))
            compare(f"{name} in pieces of {step}", found, path)
    found = live_sums(data)
    equal("each cpu: samples, lost", [(cpu["samples"], cpu["lost"]) for cpu in found["by_cpu"]],
          [(240, 0), (240, 0), (240, 5)])
    check_late_names(data)
    done = run(LIVE, "glance", input=data, binary=True)
    equal("the status line", done.stdout.decode(),
          "720 samples, 5 lost, 0 damaged, %.2f %% function_1\n" % (100 * 8 / 30))


def test_goldens():
    """Recordings, good or bad."""
    folders = [folder for kind in ("wire-", "sel4-pb", "sel4-serial", "kpdata")
               for folder in sorted(glob.glob(os.path.join(ROOT, "tests", "golden", kind + "*")))]
    for folder in folders:
        if not os.path.isdir(folder) or os.path.exists(os.path.join(folder, "args")):
            continue
        with unpacked(folder) as place:
            path = glob.glob(os.path.join(place, "input*"))[0]
            report = kscope("report", path, "--json", "--slide", "0")
            with open(path, "rb") as f:
                found = live_sums(f.read())
            name = os.path.basename(folder)
            if report.returncode > 1:
                equal(f"{name}: it cannot be read", found["state"], FAILED)
                check(f"{name}: the same error", found["error"].split(":")[-1] in report.stderr,
                      (found["error"], report.stderr))
            elif len(json.loads(report.stdout)["events"]) < 2:
                compare(name, found, path)


def test_others():
    """What cannot be read while it is written does not block, and is counted."""
    found = live_sums(b"")
    check("an empty stream", found["state"] == FAILED and "empty" in found["error"], found)
    found = live_sums(b"\xff\xfe what is this" * 1000, 100)
    check("an unknown format", found["state"] == FAILED and "unknown format" in found["error"], found)
    for kind in "perfdata", "zstd":
        data = b"PERFILE2" if kind == "perfdata" else b"\x28\xb5\x2f\xfd"
        found = live_sums(data + bytes(100000), 5000)
        equal(f"{kind}: no live view", (found["state"], found["samples"], found["bytes"]),
              (ENDED, 0, len(data) + 100000))


with scratch() as folder:
    test_pieces(folder)
test_goldens()
test_others()
finish()
