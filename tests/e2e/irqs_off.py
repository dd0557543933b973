#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
kscope calls --irqs-off on traces of a guest that switches interrupts off in several ways, each for a known number
of instructions (tests/styles/masked.c). irqs_off.py [WORD...]: only guests whose name has one of the words.
"""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, guests, kscope, perfetto, scratch, skip, styles, wire_trace

ARCHS = [*styles.LARGE, *styles.MICRO]
ROUNDS, SPIN = 3, 0x10000  # as in tests/styles/common.h
# {where interrupts went off: (instructions, where they went on)}; see tests/styles/masked.S
EXACT = {"masked_begin": (2 * SPIN + 6, "masked_end"), "masked_restore": (2 * SPIN + 2, "masked_restore")}
HIDDEN = ["riscv64", "riscv64-m", "cortex-m3", "cortex-m4"]  # Debian's QEMU does not show the mask of these


def build(arch, *flags, name=""):
    style = "masked-cortex" if arch in styles.MICRO else "masked"
    return styles.build(arch, style, *flags, name=name)


def trace(guest, which, recording):
    return guests.record(guest, recording, ["--trace", *guest.start], which, guests.ICOUNT)


def calls(guest, recording, *words):
    done = kscope("calls", recording, "--kernel", guest.kernel, *words)
    return done.stdout + done.stderr


def irqs_off(guest, recording, *words):
    return json.loads(calls(guest, recording, "--json", "-n", "0", *words))["interrupts_off"]


def ways(stretches):
    """{where interrupts went off: [(instructions, where they went on), in order]}"""
    found = collections.defaultdict(list)
    for stretch in sorted(stretches, key=lambda row: row["begin"]):
        found[stretch["off_in"]].append((stretch["instructions"], stretch["on_in"]))
    return found


def test_exact(name, arch, whole):
    got = ways(whole["longest"])
    for function, want in EXACT.items():
        equal(f"{name}: {function}", got[function], [want] * ROUNDS)
    if arch not in styles.MICRO:  # a trap does not end a stretch
        equal(f"{name}: masked_trap", [(count > 20, on) for count, on in got["masked_trap"]],
              [(True, "masked_trap")] * ROUNDS)
    if arch != "x86_64":  # waiting for an interrupt does: no instruction before it, one after it
        equal(f"{name}: masked_wait", sorted(got["masked_wait"]),
              [(0, "masked_wait")] * ROUNDS + [(1, "masked_wait")] * ROUNDS)
    stacks = {";".join(row["stack"][-3:]) for row in whole["longest"] if row["off_in"] in EXACT}
    equal(f"{name}: stacks", stacks, {f"guest_main;style_run;{function}" for function in EXACT})


def test_others(name, whole):
    """Between two ticks of the timer, interrupts are on for a while."""
    known = [row for row in whole["longest"] if not row["began_before"] and not row["goes_on"]]
    longest = max((row["instructions"] for row in known if row["off_in"] not in EXACT), default=0)
    check(f"{name}: all other stretches are short", 0 < longest < 1000, longest)
    equal(f"{name}: the sums", (whole["count"], whole["time"]),
          (len(whole["longest"]), sum(row["time"] for row in whole["longest"])))


def test_text(name, guest, recording):
    # After style_run(), interrupts are off until QEMU stops, which takes its time on a busy host.
    lines = calls(guest, recording, "--irqs-off", "--instructions", "-n", "1", "--end", "style_run").splitlines()
    check(f"{name}: the summary", any(
        line.startswith("interrupts off: ") and
        line.endswith(f"{2 * SPIN + 6} instructions, cpu 0, from masked_begin to masked_end")
        for line in lines), lines)
    check(f"{name}: the table", any(line.split()[2:3] == [str(2 * SPIN + 6)] and
                                    line.split()[-2:] == ["masked_begin", "masked_end"]
                                    for line in lines), lines)


def test_parts(name, guest, recording, whole):
    """The middle of a stretch cuts it, and the parts add up."""
    row = next(row for row in whole["longest"] if row["off_in"] == "masked_restore")
    middle = f"{(row['begin'] + row['time'] // 2) / 1e9:.9f}"
    parts = [irqs_off(guest, recording, "--time", span) for span in [f",{middle}", f"{middle},"]]
    sums = {key: sum(row[key] for part in parts for row in part["longest"])
            for key in ["time", "instructions"]}
    equal(f"{name}: parts add up", sums, {key: sum(row[key] for row in whole["longest"]) for key in sums})
    cut = [(row["began_before"], row["goes_on"]) for part in parts for row in part["longest"]
           if row["off_in"] == "masked_restore" and (row["began_before"] or row["goes_on"])]
    equal(f"{name}: the stretch is cut", cut, [(False, True), (True, False)])


def test_timeline(name, guest, recording, whole):
    for end in ["pftrace", "fxt"]:
        out = f"{recording}.{end}"
        kscope("convert", recording, "--kernel", guest.kernel, "-o", out)
        rows = perfetto.query(out, """
            select s.name off_in, s.dur time, extract_arg(s.arg_set_id, 'kscope.instructions') instructions
              from slice s where s.category = 'interrupts off' order by s.ts""" if end == "pftrace" else """
            select s.name off_in, s.dur time, extract_arg(s.arg_set_id, 'instructions') instructions
              from slice s join thread_track t on s.track_id = t.id join thread using (utid)
             where thread.name = 'cpu 0: interrupts off' order by s.ts""")[0]
        got = [(row["off_in"], int(row["time"]), int(row["instructions"])) for row in rows]
        want = [(row["off_in"], row["time"], row["instructions"])
                for row in sorted(whole["longest"], key=lambda row: row["begin"])]
        equal(f"{name}: slices in .{end}", got, want)


def test_dump(name, guest, recording, whole):
    dump = recording + ".dump"
    kscope("convert", recording, "--kernel", guest.kernel, "-o", dump)
    equal(f"{name}: the dump has the same", irqs_off(guest, dump), whole)


def test_guest(folder, which, arch):
    guest, name = build(arch), f"{which} {arch}"
    recording = os.path.join(folder, f"{arch}.kscope")
    done = trace(guest, which, recording)
    if not check(f"{name}: runs to its end", done.ended and guests.END in done.serial,
                 done.serial + done.errors):
        return
    whole = irqs_off(guest, recording)
    test_exact(name, arch, whole)
    test_others(name, whole)
    test_text(name, guest, recording)
    test_parts(name, guest, recording, whole)
    agree, wrong = wire_trace.masks(wire_trace.decode(recording))
    check(f"{name}: what instructions do to interrupts is what the registers say",
          not wrong and (agree > 0 or (which == "debian" and arch in HIDDEN)), (agree, wrong[:5]))
    if which == "backports":
        test_dump(name, guest, recording, whole)
    if which == "backports" and arch == "x86_64":
        test_timeline(name, guest, recording, whole)


def test_never_on(folder, which, arch):
    """A kernel that never switches them on: one stretch, or none if that is not known."""
    guest, name = build(arch, "-DNEVER_ON", name=f"never-on-{arch}"), f"{which} {arch} never on"
    recording = os.path.join(folder, "never.kscope")
    trace(guest, which, recording)
    got = json.loads(calls(guest, recording, "--json"))
    rows = [(row["began_before"], got["instructions"] - row["instructions"] <= 1)
            for row in got["interrupts_off"]["longest"]]  # the last instruction of x86 waits
    known = not (which == "debian" and arch in HIDDEN)
    equal(f"{name}: one stretch", rows, [(True, True)] if known else [])


def main():
    if guests.missing():
        skip("irqs_off", guests.missing())
        finish()
    words = sys.argv[1:]
    with scratch() as folder:
        for which in ["debian", "backports"]:
            for arch in ARCHS:
                if not words or any(word in f"{which}-{arch}" for word in words):
                    test_guest(folder, which, arch)
            for arch in ["x86_64", "aarch64", "riscv64"]:
                if not words or any(word in f"{which}-{arch}" for word in words):
                    test_never_on(folder, which, arch)
    finish()


if __name__ == "__main__":
    main()
