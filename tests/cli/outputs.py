#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Several outputs of one run: each is the same as if it were the only one. If one cannot be opened,
none is written."""
import gzip
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (ELFS, KSCOPE, ROOT, check, demo_samples, equal, exits, finish, kscope, run,
                 scratch)

# A sample through an interrupt, a call, a branch and an allocation: a dump shows these events, a
# flame graph the samples made from them.
RAW = """kscope-dump 1
source id=1 name="cycles" type=0 config=0x0
sample time=0.000000001 cpu=0 task=1/1 source=1 weight=5 split : kernel 0x1000 0x2000
call time=0.000000002 cpu=0 task=1/1 enter function=0x1000 caller=0x0 kernel
call time=0.000000009 cpu=0 task=1/1 leave function=0x1000 caller=0x0 kernel
branch time=0.000000010 cpu=0 task=1/1 begin to=0x3000 instructions=0 kernel
branch time=0.000000020 cpu=0 task=1/1 jump from=0x3004 to=0x4000 instructions=3 kernel
alloc time=0.000000030 cpu=0 task=1/1 new by="kmalloc" ptr=0x10 size=64 at=0 : kernel 0x5000
"""


def read(path):
    with open(path, "rb") as f:
        return f.read()


def convert(folder, data, more, names):
    """Converts to all files at once, and to each one alone; the results must be the same."""
    words = [word for name in names for word in ("-o", os.path.join(folder, name))]
    done = kscope("convert", data, *more, *words)
    check(f"{' '.join(names)}: done", done.returncode == 0, done.stderr)
    for name in names:
        alone = os.path.join(folder, "alone-" + name)
        kscope("convert", data, *more, "-o", alone)
        equal(f"{name}: as if it were the only output", read(os.path.join(folder, name)), read(alone))


with scratch() as folder:
    samples = demo_samples(folder)
    raw = os.path.join(folder, "raw.dump")
    with open(raw, "w", encoding="utf-8") as f:
        f.write(RAW)
    convert(folder, samples, ["-b", ELFS], ["a.data", "b.svg", "c.folded", "d.dump"])
    convert(folder, raw, [], ["e.svg", "f.dump", "g.folded"])
    check("a dump next to a flame graph has no samples that were made",
          read(os.path.join(folder, "f.dump")).count(b"sample") == 1)
    check("a flame graph next to a dump has them",
          read(os.path.join(folder, "g.folded")).count(b"\n") >= 4)

    # A record through an interrupt is one sample in a dump, and two stacks in a report.
    maestro = os.path.join(ROOT, "tests", "golden", "maestro", "input.bin")
    samples_of = lambda *words: json.loads(kscope("report", maestro, "--json", *words).stdout)
    for words in ([], ["--no-split"]):
        report = samples_of(*words)
        equal(f"a report counts each sample once {words}", report["samples"],
              sum(event["samples"] for event in report["events"]))
    report = samples_of("--comm", "nobody")
    equal("and what it leaves out, once", (report["samples"], report["unselected"]),
          (0, samples_of()["samples"]))

    # Formats.
    out = os.path.join(folder, "x")
    done = kscope("convert", raw, "-t", "folded", "-o", out, "-o", os.path.join(folder, "y.dump"))
    exits("-t belongs to the -o behind it", done, 0)
    equal("... and not to the next", read(os.path.join(folder, "y.dump")),
          read(os.path.join(folder, "f.dump")))
    equal("... which has its format", read(out), read(os.path.join(folder, "g.folded")))
    done = kscope("convert", raw, "-o", os.path.join(folder, "z.svg"), "-o", "-", "-t", "folded")
    equal("-t at the end belongs to the last -o", done.stdout.encode(), read(out))
    exits("an output without a format", kscope("convert", raw, "-o", out, "-o", "h.svg"), 2, "-t")
    exits("stdout twice", kscope("convert", raw, "-t", "dump", "-o", "-", "-t", "folded", "-o", "-"),
          2, "stdout")

    link = os.path.join(folder, "link.dump")
    os.symlink(raw, link)

    # All or none.
    names = [os.path.join(folder, name) for name in ("first.svg", "no/second.data", "third.folded")]
    done = kscope("convert", samples, "-b", ELFS, *(w for n in names for w in ("-o", n)))
    exits("an output that cannot be written", done, 4, "no/second.data")
    check("... takes the others along", not any(map(os.path.exists, names)))
    exits("an output that is an input", kscope("convert", raw, "-o", raw), 2, "is an input, too")
    equal("... is not touched", read(raw), RAW.encode())
    exits("a link to it", kscope("convert", raw, "-o", link), 2, "is an input, too")
    exits("a picture under another format's name", kscope("flame", raw, "-o", "x.folded"), 2, "SVG")

    # gzip.
    names = [os.path.join(folder, name) for name in ("h.svg.gz", "i.folded.gz", "j.dump.gz", "k.gz")]
    words = [word for name in names[:3] for word in ("-o", name)]
    done = kscope("convert", raw, *words, "-t", "folded", "-o", names[3])
    exits("names that end in .gz", done, 0)
    for name, plain in zip(names, ("e.svg", "g.folded", "f.dump", "g.folded")):
        equal(f"{name}: decompressed, it is {plain}", gzip.decompress(read(name)),
              read(os.path.join(folder, plain)))
    again = os.path.join(folder, "l.svg.gz")
    kscope("convert", raw, "-o", again)
    equal("compression is deterministic", read(again), read(names[0]))
    again = os.path.join(folder, "l.folded.zst")
    exits("a name that ends in .zst", kscope("convert", raw, "-o", again), 0)
    equal("... decompressed, it is g.folded", run("zstd", "-dc", again, binary=True).stdout,
          read(os.path.join(folder, "g.folded")))
    again = os.path.join(folder, "l.svg.gz")
    done = kscope("flame", raw, "-o", again)
    exits("flame compresses", done, 0)
    equal("... its picture", gzip.decompress(read(again))[:5], b"<?xml")
    big = os.path.join(folder, "big.dump")
    with open(big, "w", encoding="utf-8") as f:
        f.write(RAW + "".join(f"call time={t // 10**9}.{t % 10**9:09} cpu=0 task=1/1 enter function="
                              f"{(t * 0x9e3779b97f4a7c15) % 2**64:#x} caller=0x0 kernel\n"
                              for t in range(100, 40000)))
    kscope("convert", big, "-o", os.path.join(folder, "m.dump"), "-o", os.path.join(folder, "m.dump.gz"))
    kscope("convert", big, "-o", os.path.join(folder, "m.dump.zst"))
    equal("an output larger than the buffers, in zstd",
          run("zstd", "-dc", os.path.join(folder, "m.dump.zst"), binary=True).stdout,
          read(os.path.join(folder, "m.dump")))
    equal("an output larger than the buffers", gzip.decompress(read(os.path.join(folder, "m.dump.gz"))),
          read(os.path.join(folder, "m.dump")))
    done = subprocess.run(["sh", "-c", f"ulimit -f 8; exec {KSCOPE} convert {big} -o {folder}/n.dump.gz"],
                          capture_output=True, text=True, check=False)
    exits("a compressed output that does not fit", done, 4, "n.dump.gz", "ulimit")
    check("... is absent", not [name for name in os.listdir(folder) if "n.dump" in name or "tmp" in name])
    names = [os.path.join(folder, name) for name in ("o.folded.gz", "o.data.gz")]
    done = kscope("convert", samples, "-b", ELFS, *(w for n in names for w in ("-o", n)))
    exits("perf.data cannot be compressed", done, 2, "o.data.gz", "without .gz")
    check("... and takes the others along", not any(map(os.path.exists, names)))
    pipe = os.path.join(folder, "pipe.dump.gz")
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        exits("a pipe whose name ends in .gz", kscope("convert", raw, "-o", pipe), 0)
        equal("... is compressed, too", gzip.decompress(reader.stdout.read()),
              read(os.path.join(folder, "f.dump")))

    exits("flame has one picture", kscope("flame", raw, "-o", "a.svg", "-o", "b.svg"), 2, "one")
finish()
