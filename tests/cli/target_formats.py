#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record tcp and netconn with a real sampler at the other end, which speaks as seL4's board does."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kscope, scratch, wait_for
from kit.board import Recorder
from kit.streams import Sample
from kit.target_formats import MAPPINGS, NAMES, NO_LIMIT, Target, as_sel4, kernel, step, take

# The names that MAPPINGS tells; netconn's file has one pid for each.
BINARIES = {"echo.elf", "hasher.elf", "sorter.elf"}


def start(name="sel4"):
    return [*kernel(), f"tell format {name}", "tell prof_btdepth 127", "connect", "await running"]


def has_taken(target, times=1):
    """Waits until the kernel has got `status`, which comes after its samples."""
    return wait_for(lambda: target.told.count("status: ") >= times or target.process.poll() is not None)


def test_record():
    """All at once: the greeting, MAPPINGS, START, samples, STOP, REFRESH, the rest."""
    samples = take(400, seed=21, first=2 << 32)
    steps = [*start(), *map(step, samples[:300]), "tell flush", *map(step, samples[300:]), "tell status", "await done",
             "await gone"]
    with scratch() as folder, Target(folder, *steps) as target:
        recorder = Recorder(folder, "tcp", target.address, "-o", "out.dump", "--keep", "raw", *NAMES)
        has_taken(target)
        recorder.interrupt().end()
        exits("record tcp", recorder, 0, "400 samples", "0 lost")
        equal("record tcp: the samples", sorted(recorder.samples()[0]), sorted(map(as_sel4, samples)))
        check("record tcp: the mappings", MAPPINGS in recorder.bytes("raw"), recorder.bytes("raw")[:200])
        equal("record tcp: the target ends", target.end(), 0)


def test_broken_link():
    """The link breaks in a message. kscope connects again; the target has kept that message."""
    samples = take(200, seed=22, first=2 << 32)
    steps = [*start(), *map(step, samples[:100]), "budget 333", "tell flush", "serve", "disconnect",
             f"budget {NO_LIMIT}", "connect", *map(step, samples[100:]), "tell status", "await done", "await gone"]
    with scratch() as folder, Target(folder, *steps) as target:
        recorder = Recorder(folder, "tcp", target.address, "-o", "out.dump", "--keep", "raw", *NAMES)
        has_taken(target)
        recorder.interrupt().end()
        check("a broken link: it ends", recorder.returncode < 2, recorder.stderr)
        equal("a broken link: no sample is lost", sorted(recorder.samples()[0]), sorted(map(as_sel4, samples)))
        equal("a broken link: it is greeted twice", recorder.bytes("raw").count(b"100 SEL4 PROFILING CLIENT\n"), 2)


def test_selected():
    """The recorder selects the format: it is greeted then."""
    samples = take(50, seed=23, first=2 << 32)
    steps = [*start("kscope"), *map(step, samples), "tell status", "await done", "await gone"]
    with scratch() as folder, Target(folder, *steps) as target:
        recorder = Recorder(folder, "tcp", target.address, "--start-with", r"format sel4\nMAPPINGS\nSTART\n",
                            "--stop-with", r"STOP\n", "-o", "out.dump", "--keep", "raw", *NAMES)
        has_taken(target)
        recorder.interrupt().end()
        exits("the recorder selects the format", recorder, 0, "50 samples")
        equal("the recorder selects the format: the samples", sorted(recorder.samples()[0]),
              sorted(map(as_sel4, samples)))


def json_samples(path):
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    return document, [Sample(int(s["time"]), s["cpu"], s["pid"], int(s["period"]),
                             (int(s["ip"]), *map(int, s["ips"][:int(s["nr"])]))) for s in document["samples"]]


def test_netconn():
    """Three rounds, as a script types them."""
    rounds = [take(100, seed=24 + nth, first=(2 + nth) << 32) for nth in range(3)]
    steps = start()
    for samples in rounds:
        steps += ["await running", *map(step, samples), "await done", "tell status"]
    with scratch() as folder, Target(folder, *steps, "await gone") as target:
        typed = "connect\n" + "start\nstop\n" * len(rounds) + "exit\n"
        done = kscope("netconn", "--ip", "127.0.0.1", "--port", target.port, input=typed.encode(), cwd=folder)
        exits("netconn", done, 0)
        equal("netconn: no complaints", done.stderr, "")
        document, samples = json_samples(os.path.join(folder, "samples.json"))
        equal("netconn: the samples of all rounds", sorted(samples), sorted(as_sel4(s) for r in rounds for s in r))
        equal("netconn: the binaries", set(document["elf_tcb_mappings"]), BINARIES)
        check("netconn: what the target says", "stopped: 100 samples" in done.stdout and
              "stopped: 300 samples" in done.stdout, done.stdout)
        check("netconn: the target has sent all", target.end() == 0 and target.told.count("dropped 0") == 12,
              target.told)
        check("netconn: the target counts each round", target.told.count("status: stopped, format sel4") == 3,
              target.told)


def main():
    test_record()
    test_broken_link()
    test_selected()
    test_netconn()
    finish()


if __name__ == "__main__":
    main()
