#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""seL4 samples whose stacks are known: perf, Perfetto and hotspot read them from our perf.data."""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import DEMO, KSCOPE, ROOT, TOOLS, check, equal, finish, kscope, read_folded, run, scratch

GENERATE = os.path.join(ROOT, "demo", "sel4", "generate.py")
FORMS = {"json": "samples.json", "json-last": "samples.json", "json2": "samples.json",
         "pb": "samples.pb", "serial": "samples.txt"}
ELF_OPTIONS = ["--elf", "1=hasher.elf", "--elf", "2=sorter.elf", "--elf", "52=echo.elf"]


def perf(*words):
    """Runs perf; its warnings are on stderr."""
    return run("perf", *words, env=dict(os.environ, PAGER="cat", PERF_PAGER="cat"))


def leaves(truth):
    """{(program, function): samples} of the last frames."""
    out = {}
    for stack, count in truth.items():
        frames = stack.split(";")
        out[frames[0], frames[-1]] = out.get((frames[0], frames[-1]), 0) + count
    return out


def test_report(name, data, truth):
    done = perf("report", "-i", data, "--stdio", "--no-children", "-g", "none", "-n",
                "--percent-limit", "0", "-F", "overhead,sample,comm,dso,sym")
    rows = {}
    for line in done.stdout.splitlines():
        match = re.match(r"\s+([\d.]+)%\s+(\d+)\s+(\S+)\s+(\S+)\s+\[\.\] (\S+)", line)
        if match:
            percent, samples, comm, dso, symbol = match.groups()
            rows[comm, symbol] = (int(samples), percent, dso)
    want = leaves(truth)
    total = sum(truth.values())
    equal(f"{name}: perf report counts", {key: row[0] for key, row in rows.items()}, want)
    equal(f"{name}: perf report percentages", {key: row[1] for key, row in rows.items()},
          {key: f"{100 * count / total:.2f}" for key, count in want.items()})
    check(f"{name}: perf report names the binaries", all(row[2] == key[0] for key, row in
                                                         rows.items()), rows)
    equal(f"{name}: perf report says nothing else", done.stderr, "")


def test_script(name, data, truth):
    """Compares the stacks that perf script prints, with the name of every frame."""
    done = perf("script", "-i", data, "-F", "comm,pid,time,event,period,ip,sym")
    stacks = {}
    for block in done.stdout.strip().split("\n\n"):
        head, *frames = block.splitlines()
        names = [frame.split(None, 1)[1] for frame in reversed(frames)]
        key = ";".join([head.split()[0]] + names)
        stacks[key] = stacks.get(key, 0) + 1
    equal(f"{name}: perf script stacks", stacks, truth)
    equal(f"{name}: perf script says nothing else", done.stderr, "")
    check(f"{name}: the event has its name and period", "1200000 cycles:" in done.stdout,
          done.stdout[:300])


def test_rest(name, data, truth, elfs):
    done = perf("annotate", "-i", data, "--stdio", "-s", "mix_round")
    check(f"{name}: perf annotate disassembles", "Disassembly of section .text" in done.stdout
          and re.search(r"^\s+[1-9][\d.]* .*:\s+[0-9a-f]+:", done.stdout, re.M), done.stdout[:400])
    equal(f"{name}: perf annotate says nothing else", done.stderr, "")
    done = perf("diff", data, data)
    check(f"{name}: perf diff", re.search(r"36\.00%\s+\+0\.00%.*mix_round", done.stdout),
          done.stdout[:400])
    equal(f"{name}: perf diff says nothing else", done.stderr, "")

    notes = {}
    for elf in sorted(os.listdir(elfs)):
        if elf.endswith(".elf"):
            path = os.path.realpath(os.path.join(elfs, elf))
            notes[path] = re.search(r"Build ID: (\w+)", run("readelf", "-n", path).stdout)[1]
    listed = dict(reversed(line.split(None, 1)) for line in
                  perf("buildid-list", "-i", data).stdout.splitlines())
    equal(f"{name}: perf buildid-list", listed, notes)
    header = perf("report", "-i", data, "--header-only").stdout
    for line in ("# arch : aarch64", "# nrcpus online : 1", "# os release : seL4",
                 "# event : name = cycles", "# sample duration"):
        check(f"{name}: header has '{line}'", line in header, header)


def test_others(name, data, truth):
    total = sum(truth.values())
    done = run("node", os.path.join(TOOLS, "perfetto.mjs"), data,
               "select count(*) as n from perf_sample where callsite_id is not null")
    equal(f"{name}: Perfetto counts the samples", done.stdout.split(), ["n", str(total)])
    done = run(sys.executable, os.path.join(TOOLS, "perfparser.py"), data)
    got = json.loads(done.stdout) if done.stdout else {}
    tasks = {}
    for stack, count in truth.items():
        tasks[stack.split(";")[0]] = tasks.get(stack.split(";")[0], 0) + count
    equal(f"{name}: hotspot counts the samples", got.get("samples"), total)
    equal(f"{name}: hotspot counts them by event", got["events"]["cycles"],
          {"samples": total, "period": total * 1200000})
    equal(f"{name}: hotspot counts them by task",
          {task["comm"]: task["samples"] for task in got["tasks"]}, tasks)


def test_form(folder, form, pages):
    name = f"{form}, {pages} pages"
    elfs, work = os.path.join(DEMO, pages), os.path.join(folder, f"{form}-{pages}")
    made = run(sys.executable, GENERATE, elfs, work, "--form", form)
    if not check(f"{name}: samples are made", made.returncode == 0, made.stderr):
        return
    if form == "json2":  # its mapping file is in the folder of the binaries
        for elf in os.listdir(elfs):
            shutil.copy(os.path.join(elfs, elf), work)
        elfs = work
    truth = read_folded(os.path.join(work, "truth.folded"))
    source, data = os.path.join(work, FORMS[form]), os.path.join(work, "perf.data")
    more = ["--build-dir", elfs] + (ELF_OPTIONS if form == "serial" else [])

    done = kscope("convert", source, *more, "-o", data)
    equal(f"{name}: convert succeeds", done.returncode, 0)
    repaired = "the 32-bit clock wrapped 2 times; times are corrected" if form == "json2" else ""
    check(f"{name}: and says what it should", repaired in done.stderr and
          bool(done.stderr) == bool(repaired), done.stderr)
    done = kscope("convert", source, *more, "--no-inline", "-t", "folded", "-o", "-")
    equal(f"{name}: folded stacks", read_folded(done.stdout), truth)
    test_report(name, data, truth)
    test_script(name, data, truth)
    if form == "json":
        test_rest(name, data, truth, elfs)
        test_others(name, data, truth)
        again = os.path.join(work, "again.data")
        kscope("convert", source, *more, "-o", again)
        with open(data, "rb") as a, open(again, "rb") as b:
            check(f"{name}: the same bytes every time", a.read() == b.read())
        drop_in = os.path.join(work, "toperf")
        os.symlink(KSCOPE, drop_in)
        done = run(drop_in, "-s", source, "-b", elfs, "-o", again)
        with open(data, "rb") as a, open(again, "rb") as b:
            check(f"{name}: toperf as a drop-in", done.returncode == 0 and a.read() == b.read(),
                  done.stderr)


def test_long_names(folder):
    """A function and a binary of 200 characters each."""
    function = "a_function_with_a_name_of_two_hundred_characters_" + "x" * 151
    binary = "b" * 196 + ".elf"
    source, obj = os.path.join(folder, "long.c"), os.path.join(folder, "long.o")
    with open(source, "w", encoding="ascii") as f:
        f.write(f"void {function}(void) {{ for (;;) ; }}\n")
    run("clang", "--target=aarch64-none-elf", "-O1", "-c", source, "-o", obj)
    run("ld.lld", "-e", function, "--image-base=0x200000", obj, "-o", os.path.join(folder, binary))
    symbols = run("readelf", "-sW", os.path.join(folder, binary)).stdout
    address = int(re.search(rf"(\w+)\s+\d+ FUNC.*{function}", symbols)[1], 16)
    samples, data = os.path.join(folder, "long.json"), os.path.join(folder, "long.data")
    with open(samples, "w", encoding="ascii") as f:
        json.dump({"elf_tcb_mappings": {binary: 7},
                   "samples": [{"ip": address, "pid": 7, "time": 5, "period": 3}]}, f)
    equal("long names: convert", kscope("convert", samples, "-b", folder, "-o", data).returncode, 0)
    line = perf("script", "-i", data, "-F", "comm,ip,sym").stdout.split()
    equal("long names: perf has them whole", (line[0], line[-1]), (binary, function))


def main():
    with scratch() as folder:
        for form in FORMS:
            test_form(folder, form, "64k")
        test_form(folder, "json", "4k")
        test_long_names(folder)
    finish()


if __name__ == "__main__":
    main()
