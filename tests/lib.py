# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests in Python share: running programs, and saying how it went."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
KSCOPE = os.environ.get("KSCOPE", os.path.join(BUILD, "kscope"))
TOOLS = os.path.join(ROOT, "tests", "tools")
DEMO = os.path.join(BUILD, "demo")
# Seconds that nothing takes, however slow and busy the machine is: what does hangs.
HANGS = 500

_failed = []


def check(name, good, why=""):
    """One result. Returns whether it is good."""
    if good:
        print(f"ok {name}", flush=True)
    else:
        _failed.append(name)
        why = str(why).replace("\n", " | ")[:600]
        print(f"not ok {name}: {why}", flush=True)
    return bool(good)


def equal(name, got, want):
    return check(name, got == want, f"got {got!r}, want {want!r}")


def finish():
    sys.exit(1 if _failed else 0)


def run(*command, **more):
    """Runs a program; stdout and stderr as text, unless binary=True."""
    binary = more.pop("binary", False)
    more.setdefault("timeout", HANGS)
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False, **more)
    if not binary:
        done.stdout = done.stdout.decode(errors="surrogateescape")
        done.stderr = done.stderr.decode(errors="surrogateescape")
    return done


def wait_for(condition):
    """Until it holds; False if it never does."""
    end = time.monotonic() + HANGS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def kscope(*words, **more):
    return run(KSCOPE, *words, **more)


def scratch():
    """A folder that goes away with the test.

    In memory if there is room: what a recording loses must not hang on a disk that others use."""
    memory = "/dev/shm"
    roomy = os.path.isdir(memory) and shutil.disk_usage(memory).free > 4 << 30
    return tempfile.TemporaryDirectory(prefix="kscope-test-", dir=memory if roomy else None)


def read_folded(path_or_text):
    """{stack: count}"""
    text = path_or_text
    if "\n" not in text:
        with open(text, encoding="utf-8") as f:
            text = f.read()
    stacks = {}
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        stacks[stack] = stacks.get(stack, 0) + int(count)
    return stacks


def svg_numbers(text):
    """The numbers that a flame graph keeps of its frames, five bits a character."""
    value = shift = 0
    for char in text:
        digit = ord(char) - 63
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            yield value
            value = shift = 0


def lz4(data):
    """Packed as kernels are, in blocks of nothing but literals."""
    out = bytearray(b"\x02\x21\x4c\x18")
    for at in range(0, len(data), 1 << 20):
        block = data[at:at + (1 << 20)]
        rest = len(block) - 15
        packed = b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + block
        out += struct.pack("<I", len(packed)) + packed
    return bytes(out)
