#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What kscope reads: packed files, stdin, several inputs, and the binaries that belong to them."""
import gzip
import json
import lzma
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (ELFS, KSCOPE, check, demo_samples, equal, exits, finish, kscope, read_folded, run,
                 scratch)
from kit.pack import lz4


def test_missing_binaries(samples, folder):
    out = os.path.join(folder, "missing.data")
    done = kscope("convert", samples, "-o", out)
    exits("binaries are missing", done, 1, "hasher.elf", "--build-dir")
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
    exits("an ELF that is not one", done, 1, "echo.elf", "neither an ELF",
          "--elf 52=FILE")
    stacks = read_folded(done.stdout)
    equal("its samples keep addresses, the others their names",
          (sum(stacks.values()), sum(n for s, n in stacks.items() if "echo.elf+0x" in s),
           stacks["hasher.elf;_start;fill_block"]), (10000, 2000, 500))


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
        exits(f"packed with {packer} and cut", done, 1, "cut short")
        check(f"packed with {packer} and cut: what came before is kept",
              0 < sum(read_folded(done.stdout).values()) < 10000)


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
    only = [[line for line in text.splitlines() if line.startswith("sample")]
            for text in (one, two)]
    equal("two inputs merge by time", only[1], only[0])
    with open(half[1], "w", encoding="utf-8") as f:
        json.dump({"elf_tcb_mappings": {"sorter.elf": 1}, "samples": data["samples"][:2]}, f)
    exits("a pid that is two things cannot be merged",
          kscope("convert", *half, "-b", ELFS, "-t", "dump", "-o", "-"), 3, "pid 1", "separately")


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_missing_binaries(samples, folder)
        test_input_forms(samples, folder)
        test_merge(samples, folder)
    finish()


if __name__ == "__main__":
    main()
