#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: verbs, selection, exit codes, and what it says when something is wrong."""
import gzip
import json
import lzma
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import (BUILD, DEMO, KSCOPE, ROOT, check, equal, finish, kscope, lz4, read_folded, run,
                 scratch)

ELFS = os.path.join(DEMO, "64k")
VERBS = ["record", "convert", "report", "flame", "info", "alloc", "formats"]


def said(name, done, code, *words):
    """This exit code, and these words on stderr."""
    check(name, done.returncode == code and all(word in done.stderr for word in words),
          f"exit code {done.returncode}, stderr: {done.stderr}")


def test_help():
    for verb in VERBS:
        done = kscope(verb, "--help")
        check(f"help: {verb}", done.returncode == 0 and "Examples:" in done.stdout and
              f"kscope {verb}" in done.stdout and not done.stderr, done.stderr)
        equal(f"help: help {verb}", kscope("help", verb).stdout, done.stdout)
    said("no verb", kscope(), 2, "Usage")
    said("unknown verb", kscope("frobnicate"), 2, "frobnicate")
    said("unknown option", kscope("report", "--frobnicate", "x"), 2, "--frobnicate", "--help")
    said("a value is missing", kscope("report", "x", "--time"), 2, "--time")
    said("no input", kscope("report"), 2, "no input")
    said("formats of a file", kscope("formats", "x"), 2, "no input file")
    said("neither tree nor table", kscope("report", "x", "--tree", "--no-tree"), 2, "--no-tree")
    said("nothing to negate", kscope("flame", "x", "--negate"), 2, "--diff")
    check("version", re.match(r"kscope \d+\.\d+\.\d+$", kscope("--version").stdout))
    formats = json.loads(kscope("formats", "--json").stdout)
    names = [reader["name"] for reader in formats["readers"]]
    check("formats as JSON", "sel4-json" in names and "folded" in names, names)
    for name in names:
        check(f"formats lists {name}", f"  {name} " in kscope("formats").stdout)


def test_wrong_input(samples, folder):
    out = os.path.join(folder, "out.data")
    more = ["-b", ELFS, "-o", out]
    said("no such file", kscope("convert", "nowhere.json", *more), 3, "nowhere.json", "No such file")
    said("a folder as input", kscope("convert", folder, *more), 3, folder, "directory")
    said("unknown reader", kscope("convert", samples, "-f", "xyz", *more), 2, "xyz", "kscope formats")
    said("unknown writer", kscope("convert", samples, "-t", "xyz", *more), 2, "xyz", "kscope formats")
    said("unknown extension", kscope("convert", samples, "-o", "x.xyz"), 2, "x.xyz", "-t")
    said("no output", kscope("convert", samples), 2, "-o")
    said("no such build dir", kscope("convert", samples, "-b", "nowhere", "-o", out), 2, "nowhere",
         "No such file")
    said("a file as build dir", kscope("convert", samples, "-b", samples, "-o", out), 2,
         "not a directory")
    said("no such symfs", kscope("report", samples, "--symfs", "nowhere"), 2, "nowhere")
    said("no such kernel", kscope("report", samples, "--kernel", "nowhere"), 2, "nowhere")
    said("a broken --elf", kscope("report", samples, "--elf", "x"), 2, "PID=FILE")
    said("a broken --time", kscope("report", samples, "--time", "5,1"), 2, "START,END")
    said("a broken --cpu", kscope("report", samples, "--cpu", "1,x"), 2, "1,x")
    said("a broken --palette", kscope("flame", samples, "-b", ELFS, "-o", out, "--palette", "pink"),
         2, "pink", "by-binary")
    check("none of it left a file", not os.path.exists(out) and
          not [f for f in os.listdir(folder) if "kscope" in f], os.listdir(folder))


def test_missing_binaries(samples, folder):
    out = os.path.join(folder, "missing.data")
    done = kscope("convert", samples, "-o", out)
    said("binaries are missing", done, 1, "hasher.elf", "--build-dir")
    check("and the samples are there", json.loads(kscope("info", samples, "--json").stdout)
          ["samples"] == 10000 and os.path.exists(out))
    other = os.path.join(folder, "other")
    os.mkdir(other)
    shutil.copy(os.path.join(ELFS, "sorter.elf"), os.path.join(other, "hasher.elf"))
    done = kscope("convert", samples, "-b", other, "--elf", f"1={ELFS}/hasher.elf", "--pid", "1",
                  "--no-inline", "-t", "folded", "-o", "-")
    equal("--elf wins over a file of the same name in --build-dir",
          read_folded(done.stdout).get("hasher.elf;_start;fill_block"), 500)
    fake = os.path.join(folder, "fake")
    shutil.copytree(ELFS, fake)
    with open(os.path.join(fake, "echo.elf"), "w", encoding="ascii") as f:
        f.write("this is no ELF\n")
    done = kscope("convert", samples, "-b", fake, "--no-inline", "-t", "folded", "-o", "-")
    said("an ELF that is not one", done, 1, "echo.elf", "neither an ELF",
         "--elf 52=FILE")
    stacks = read_folded(done.stdout)
    equal("its samples keep addresses, the others their names",
          (sum(stacks.values()), sum(n for s, n in stacks.items() if "echo.elf+0x" in s),
           stacks["hasher.elf;_start;fill_block"]), (10000, 2000, 500))


def test_output(samples, folder):
    said("a full disk", kscope("convert", samples, "-b", ELFS, "-t", "perfdata", "-o", "/dev/full"), 4,
         "/dev/full", "No space")
    path = os.path.join(folder, "limited.data")
    done = run("sh", "-c", f"ulimit -f 8; exec {KSCOPE} convert {samples} -b {ELFS} -o {path}")
    said("a limit on files", done, 4, path, "ulimit")
    check("leaves nothing behind", not [name for name in os.listdir(folder) if "limited" in name])
    for verb in ("report", "info"):
        with open("/dev/full", "w", encoding="ascii") as full:
            import subprocess
            done = subprocess.run([KSCOPE, verb, samples, "-b", ELFS], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        equal(f"a full disk behind {verb}", done.returncode, 4)
    said("no such folder", kscope("convert", samples, "-b", ELFS, "-o", f"{folder}/no/x.data"), 4,
         "no/x.data", "No such file")
    done = kscope("convert", samples, "-b", ELFS, "-t", "perfdata", "-o", "-", binary=True)
    path = os.path.join(folder, "direct.data")
    kscope("convert", samples, "-b", ELFS, "-o", path)
    with open(path, "rb") as f:
        check("perf.data on stdout is the same", done.stdout == f.read())


def test_input_forms(samples, folder):
    want = kscope("convert", samples, "-b", ELFS, "-t", "folded", "-o", "-").stdout
    with open(samples, "rb") as f:
        data = f.read()
    done = run(KSCOPE, "convert", "-", "-b", ELFS, "-t", "folded", "-o", "-", input=data)
    equal("from stdin", done.stdout, want)
    forms = {"zstd": run("zstd", "-c", samples, binary=True).stdout, "gzip": gzip.compress(data),
             "xz": lzma.compress(data), "lzma": lzma.compress(data, lzma.FORMAT_ALONE),
             "lz4": lz4(data)}
    for packer, content in forms.items():
        packed = os.path.join(folder, f"samples.json.{packer}")
        with open(packed, "wb") as f:
            f.write(content)
        done = kscope("convert", packed, "-b", ELFS, "-t", "folded", "-o", "-")
        equal(f"packed with {packer}", (done.stdout, done.stderr), (want, ""))
        with open(packed, "r+b") as f:
            f.truncate(os.path.getsize(packed) // 2)
        done = kscope("convert", packed, "-b", ELFS, "-t", "folded", "-o", "-")
        said(f"packed with {packer} and cut", done, 1, "cut short")
        check(f"packed with {packer} and cut: what came before is kept",
              0 < sum(read_folded(done.stdout).values()) < 10000)


def count(*words):
    return json.loads(kscope("info", *words, "--json").stdout)


def test_selection(samples):
    more = [samples, "-b", ELFS]
    equal("select by pid", count(*more, "--pid", "1")["samples"], 5000)
    equal("select by pids", count(*more, "--pid", "1-2")["samples"], 8000)
    equal("select by tid", count(*more, "--tid", "52")["samples"], 2000)
    equal("select by name", count(*more, "--comm", "sorter.elf")["samples"], 3000)
    equal("select by two names", count(*more, "--comm", "sorter.elf", "--comm", "echo.elf")
          ["samples"], 5000)
    equal("select by cpu", count(*more, "--cpu", "1")["samples"], 0)
    equal("select by event", count(*more, "--event", "cycles")["samples"], 10000)
    equal("select by another event", count(*more, "--event", "instructions")["samples"], 0)
    # The generator's first sample is at 99088495 ns, the others 10048 ns apart.
    equal("select by time", count(*more, "--time", "0.099088495,0.099178927")["samples"], 10)
    equal("select from a time", count(*more, "--time", "0.099088496,")["samples"], 9999)
    equal("select up to a time", count(*more, "--time", ",0.099088495")["samples"], 1)
    equal("name the event", count(*more, "--event-name", "inst_retired")["events"][0]["name"],
          "inst_retired")


def test_merge(samples, folder):
    half = []
    with open(samples, encoding="utf-8") as f:
        data = json.load(f)
    for i in range(2):
        half.append(os.path.join(folder, f"half{i}.json"))
        with open(half[-1], "w", encoding="utf-8") as f:
            json.dump({"elf_tcb_mappings": data["elf_tcb_mappings"],
                       "samples": data["samples"][i::2]}, f)
    one = kscope("convert", samples, "-b", ELFS, "-t", "dump", "-o", "-").stdout
    two = kscope("convert", *half, "-b", ELFS, "-t", "dump", "-o", "-").stdout
    only = [[line for line in text.splitlines() if line.startswith("sample")] for text in (one, two)]
    equal("two inputs merge by time", only[1], only[0])
    with open(half[1], "w", encoding="utf-8") as f:
        json.dump({"elf_tcb_mappings": {"sorter.elf": 1}, "samples": data["samples"][:2]}, f)
    said("a pid that is two things cannot be merged",
         kscope("convert", *half, "-b", ELFS, "-t", "dump", "-o", "-"), 3, "pid 1", "separately")


def test_report(samples, truth):
    done = kscope("report", samples, "-b", ELFS, "--json", "--no-inline")
    event = json.loads(done.stdout)["events"][0]
    total = {}
    self_ = {}
    for stack, n in truth.items():
        frames = stack.split(";")
        self_[frames[0], frames[-1]] = self_.get((frames[0], frames[-1]), 0) + n
        for frame in set(frames[1:]):
            total[frames[0], frame] = total.get((frames[0], frame), 0) + n
    got = {(row["binary"], row["name"]): row for row in event["functions"]}
    equal("report: self", {key: row["samples"] for key, row in got.items() if row["samples"]}, self_)
    equal("report: total", {key: row["total"] // 1200000 for key, row in got.items()}, total)
    equal("report: tasks", {row["name"]: row["samples"] for row in event["tasks"]},
          {"hasher.elf": 5000, "sorter.elf": 3000, "echo.elf": 2000})
    equal("report: binaries", {row["name"]: row["samples"] for row in event["binaries"]},
          {"hasher.elf": 5000, "sorter.elf": 3000, "echo.elf": 2000})
    equal("report: cpus", [row["name"] for row in event["cpus"]], ["cpu 0"])
    text = kscope("report", samples, "-b", ELFS, "--no-inline").stdout
    check("report: a table", re.search(r" 36\.00% +36\.00% +3600  mix_round +hasher\.elf", text), text)
    check("report: a call tree", re.search(r"^ +45\.00%     hash_block  \[self 9\.00%\]$", text, re.M),
          text)
    check("report: no colours in a pipe", "\033" not in text)
    nasty = run(KSCOPE, "report", "-", input=b"evil\x1b[2J\xff;\xc3\xa9 3\n")
    check("report: nothing that a terminal obeys", "\033" not in nasty.stdout and
          "evil?[2J" in nasty.stdout, nasty.stdout)
    events = (b'kscope-dump 1\nmeta key="a\\u001bb" value="\\u001bc"\nsource id=1 name="\\u001b[2J" type=0 '
              b'config=0x0\nnonsense\x1b[2J\nsample source=1 weight=1 : user 0x10\n')
    for verb in ("report", "info"):
        nasty = run(KSCOPE, verb, "-", input=events)
        check(f"{verb}: not in names of events and facts nor in messages", nasty.returncode == 1 and
              "\033" not in nasty.stdout + nasty.stderr, (nasty.stdout, nasty.stderr))
    nasty = run(KSCOPE, "report", "-", "--json", input=b"evil\x1b[2J\xff;\xc3\xa9 3\n", binary=True)
    names = [row["name"] for row in json.loads(nasty.stdout.decode())["events"][0]["functions"]]
    equal("report: valid JSON whatever the names", names, ["\u00e9", "evil\x1b[2J\ufffd"])
    orders = [run(KSCOPE, "report", "-", "--tree", input=text).stdout
              for text in (b"b;x 1\na;z 1\na;y 1\n", b"a;y 1\nb;x 1\na;z 1\n")]
    check("report: what is equal stands in the order of names, not of the data",
          orders[0] == orders[1] and re.search(r" a\n.* y .*\n.* z .*\n.* b\n", orders[0]), orders)
    text = kscope("report", samples, "-b", ELFS, "--by", "task", "--no-tree").stdout
    check("report: by task", re.search(r" 30\.00% .* sorter\.elf \(pid 2\)", text), text)
    text = kscope("report", samples, "-b", ELFS, "--inverted", "--tree", "--no-inline").stdout
    check("report: callers", re.search(r"^ +36\.00% mix_round\n +36\.00%   hash_block", text, re.M),
          text)
    text = kscope("report", samples, "-b", ELFS, "--limit", "3", "--no-tree").stdout
    check("report: a limit", "more rows" in text and len(text.splitlines()) == 8, text)
    text = kscope("convert", samples, "-b", ELFS, "--lines", "-t", "folded", "-o", "-").stdout
    check("lines", re.search(r"mix_round hasher\.c:\d+", text), text[:300])
    text = kscope("convert", samples, "-b", ELFS, "--root", "none", "--no-inline", "-t", "folded", "-o",
                  "-").stdout
    equal("no root frame", read_folded(text)["_start;fill_block"], 500)
    text = kscope("convert", samples, "-b", ELFS, "--root", "pid", "--no-inline", "-t", "folded", "-o",
                  "-").stdout
    equal("pid as the root frame", read_folded(text)["hasher.elf 1;_start;fill_block"], 500)
    text = kscope("convert", samples, "-b", ELFS, "--weight", "--no-inline", "-t", "folded", "-o",
                  "-").stdout
    equal("weights", read_folded(text)["hasher.elf;_start;fill_block"], 500 * 1200000)


def test_many_tasks():
    """Tasks that share callers, or all, or nothing; as many of them as a host runs in a week."""
    lines = ['kscope-dump 1', 'source id=1 name="cycles" type=0 config=0x0']
    truth = {}
    for pid in range(1, 100001):
        root = f"root{pid % 50000}" if pid % 3 else "main"
        for leaf in ("a", "b"):
            lines.append(f'sample task={pid}/{pid} source=1 weight=1 : named "{leaf}" "{root}"')
            truth[f"pid {pid};{root};{leaf}"] = 1
    text = run(KSCOPE, "convert", "-", "-t", "folded", "-o", "-", input="\n".join(lines).encode()).stdout
    check("many tasks: each has its own stacks", read_folded(text) == truth, text[:300])


def test_flame(samples, folder):
    svg = os.path.join(folder, "flame.svg")
    kscope("flame", samples, "-b", ELFS, "-o", svg, "--title", "A <title> & more")
    with open(svg, encoding="utf-8") as f:
        text = f.read()
    check("flame: total and title", "share of 10,000 samples" in text and
          "A &lt;title&gt; &amp; more" in text, text[:600])
    before, after = os.path.join(folder, "before.folded"), os.path.join(folder, "after.folded")
    for path, stacks in ((before, "a;b 90\na;c 10\n"), (after, "a;b 50\na;c 50\n")):
        with open(path, "w", encoding="ascii") as f:
            f.write(stacks)
    equal("flame: differential", kscope("flame", after, "--diff", before, "-o", svg).returncode, 0)
    with open(svg, encoding="utf-8") as f:
        text = f.read()
    check("flame: it tells the change", "40.00" in text or "+40" in text or "differ" in text.lower(),
          text[:600])
    for name, kinds in (("f_[k]", 1), ("f_[i]", 0)):
        with open(before, "w", encoding="ascii") as f:
            f.write(f"main;{name} 1\n")
        text = kscope("flame", before, "--palette", "kernel-user", "-o", "-").stdout
        equal(f"flame: {name} in the legend", text.count(">kernel<"), kinds)
    check("report: samples of nobody knows what", kscope("report", before).stdout.startswith(
        "1 samples; shares are of samples\n"))
    check("flame: upside down by another name", "<title>Icicle graph</title>" in
          kscope("flame", before, "--icicle", "-o", "-").stdout)
    with open(before, "w", encoding="ascii") as f:
        f.write('kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0\n'
                'sample source=1 weight=0 : named "f"\n')
    check("report: samples that stand for nothing are counted", " 100.00%  100.00%          1  f\n" in
          kscope("report", before).stdout, kscope("report", before).stdout)
    said("flame: no such file to compare with", kscope("flame", after, "--diff", "nowhere", "-o", svg),
         3, "nowhere")


def test_toperf(samples, folder):
    link = os.path.join(folder, "toperf")
    os.symlink(os.path.abspath(KSCOPE), link)
    done = run(link, "--samples-path", samples, "--build-dir", ELFS, cwd=folder)
    check("toperf: perf.data here by default", done.returncode == 0 and
          os.path.exists(os.path.join(folder, "perf.data")), done.stderr)
    done = run(link, f"-s={samples}", f"-b={ELFS}", "-o=short.data", cwd=folder)
    check("toperf: values after an equals sign", done.returncode == 0 and
          os.path.exists(os.path.join(folder, "short.data")), done.stderr)
    done = run(link, "--samples-path", samples, "--build-dir", ELFS, "-p", cwd=folder)
    equal("toperf: the summary has every sample", done.stdout.count("\nsample "), 10000)
    said("toperf: needs its arguments", run(link, "-s", samples), 2, "--build-dir")
    check("toperf: help", "--print-summary" in run(link, "--help").stdout)
    said("toperf: no such folder", run(link, "-s", samples, "-b", "nowhere", cwd=folder), 2, "nowhere")


def main():
    with scratch() as folder:
        generate = os.path.join(ROOT, "demo", "sel4", "generate.py")
        run(sys.executable, generate, ELFS, folder)
        samples = os.path.join(folder, "samples.json")
        truth = read_folded(os.path.join(folder, "truth.folded"))
        test_help()
        test_wrong_input(samples, folder)
        test_missing_binaries(samples, folder)
        test_output(samples, folder)
        test_input_forms(samples, folder)
        test_selection(samples)
        test_merge(samples, folder)
        test_report(samples, truth)
        test_many_tasks()
        test_flame(samples, folder)
        test_toperf(samples, folder)
    finish()


if __name__ == "__main__":
    main()
