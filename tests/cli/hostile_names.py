#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names in the data that attack the reader of the output: terminal escapes, line breaks, quotes and
bytes that are not UTF-8, through every verb that prints names, as text and as JSON."""
import json
import os
import re
import shutil
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import DEMO, KSCOPE, check, equal, finish, run, scratch

# Every kind of dangerous character, and characters that must stay unchanged.
EVIL = (b"\x1b[31m \x9b31m \xc2\x9b31m \x7f \"quoted\" back\\slash new\nline \r\t "
        b"\xff \xc3( \xed\xa0\x80 \xc0\xaf \xf5\x80 \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")
AS_JSON = ("\x1b[31m \ufffd31m \x9b31m \x7f \"quoted\" back\\slash new\nline \r\t "
           "\ufffd \ufffd( \ufffd\ufffd\ufffd \ufffd\ufffd \ufffd\ufffd \u00e9\u20ac\U0001f600")
CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f]")
AS_TEXT = re.sub("[\0-\x1f\x7f-\x9f\ufffd]", "?", AS_JSON)


def evil(field):
    return field.encode() + b" " + EVIL


def as_json(field):
    return f"{field} {AS_JSON}"


def as_text(field):
    return f"{field} {AS_TEXT}"


def harmless(field):
    return field.encode()


def clean(name, output):
    """Returns the output as text. Control characters, except line ends, and broken UTF-8 fail."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        check(name, False, error)
        return output.decode(errors="replace")
    check(name, not CONTROL.search(text), repr(text))
    return text


def text_of(name, words, data, want):
    """Runs a verb in text mode on data(names). It must print the fields in `want`."""
    done = run(KSCOPE, *words, input=data(evil), binary=True)
    text = clean(f"{name}: stdout is safe", done.stdout)
    clean(f"{name}: stderr is safe", done.stderr)
    missing = [field for field in want if as_text(field) not in text]
    check(f"{name}: the names are there", done.returncode in (0, 1) and not missing,
          f"exit code {done.returncode}, without {missing}: {text!r}")
    plain = run(KSCOPE, *words, input=data(harmless), binary=True)
    equal(f"{name}: no name breaks a line", text.count("\n"), plain.stdout.decode().count("\n"))
    equal(f"{name}: nor a line of a message", done.stderr.count(b"\n"), plain.stderr.count(b"\n"))


def json_of(name, words, data):
    done = run(KSCOPE, *words, "--json", input=data, binary=True)
    clean(f"{name}: stderr is safe", done.stderr)
    text = clean(f"{name}: stdout is safe", done.stdout)
    try:
        return json.loads(text)
    except ValueError as error:
        check(f"{name}: valid JSON", False, f"{error}: {text!r}")
        return None


def quoted(name):
    """A string of the dump format."""
    return b'"' + re.sub(rb'[\0-\x1f\x7f"\\]', lambda m: b"\\u%04x" % m[0][0], name) + b'"'


def events(name):
    """A dump with a hostile name in every field that holds a name."""
    def field(what):
        return quoted(name(what))
    return b"\n".join((
        b"kscope-dump 1",
        b"meta key=%s value=%s" % (field("key"), field("value")),
        b'meta key="arch" value=%s' % field("arch"),
        b"source id=1 name=%s type=1 config=0x0 unit=%s" % (field("event"), field("unit")),
        b"comm task=7/7 name=%s" % field("comm"),
        b"map task=7/7 addr=0x1000 len=0x1000 offset=0x0 prot=r-x path=%s" % field("path"),
        b"sample task=7/7 source=1 weight=9 : user 0x1010",
        b"sample task=7/7 source=1 weight=9 : named %s@%s %s" % (field("leaf"), field("binary"),
                                                               field("root")),
        b"nonsense " + name("word").replace(b"\n", b" "), b""))


def allocations(name):
    def alloc(what):
        return b'alloc %s by=%s ptr=0x10 size=8 at=0 : named %s %s' % (
            what, quoted(name("allocator")), quoted(name("leaf")), quoted(name("root")))
    other = b'alloc new by=%s ptr=0x20 size=8 at=0 : named %s' % (quoted(name("other")),
                                                                  quoted(name("site")))
    return b"\n".join((b"kscope-dump 1", alloc(b"new"), alloc(b"free"), alloc(b"free"), other, b""))


def folded(name):
    """A line is a stack, so names have neither line breaks nor semicolons."""
    line = b";".join(name(field) for field in ("task", "root", "leaf"))
    return re.sub(rb"[\r\n]", b"_", line) + b" 3\n"


def memtrace(name, *operations):
    """The reader accepts only printable names."""
    return b"".join(bytes([len(name)]) + name + struct.pack("<BQQBQ", op, ptr, 64, 1, 0xc0100018)
                    for op, ptr in operations)


def test_events():
    text_of("info", ["info", "-"], events, ["key", "value", "arch", "event", "comm", "path"])
    text_of("report", ["report", "-"], events, ["event", "unit", "leaf", "binary", "root", "comm"])
    for by, want in (("task", ["comm"]), ("binary", ["binary"])):
        text_of(f"report --by {by}", ["report", "-", "--no-tree", "--by", by], events, want)
    info = json_of("info --json", ["info", "-"], events(evil))
    if info:
        equal("info --json: facts", info["facts"], {as_json("key"): as_json("value"),
                                                    "arch": as_json("arch")})
        equal("info --json: names", [info["arch"], info["events"][0]["name"], info["tasks"][0]["comm"],
                                     info["binaries"][0]["path"]],
              [as_json(field) for field in ("arch", "event", "comm", "path")])
    report = json_of("report --json", ["report", "-"], events(evil))
    if report:
        event = report["events"][0]
        rows = {row["name"]: row["binary"] for row in event["functions"]}
        equal("report --json: names", [event["name"], event["tasks"][0]["name"]],
              [as_json("event"), as_json("comm")])
        equal("report --json: functions", rows[as_json("leaf")], as_json("binary"))
        check("report --json: binaries", as_json("binary") in
              [row["name"] for row in event["binaries"]], event["binaries"])


def test_folded():
    data = json_of("folded: report --json", ["report", "-f", "folded", "-"], folded(evil))
    if data:
        names = {row["name"] for row in data["events"][0]["functions"]}
        equal("folded: functions", names, {as_json(field).replace("\n", "_").replace("\r", "_")
                                           for field in ("task", "root", "leaf")})
    done = run(KSCOPE, "report", "-f", "folded", "-", input=folded(evil), binary=True)
    clean("folded: report is safe", done.stdout)


def test_alloc(folder):
    text_of("alloc", ["alloc", "-"], allocations, ["allocator", "leaf", "root", "other", "site"])
    text_of("info of allocations", ["info", "-"], allocations, ["allocator"])
    data = json_of("alloc --json", ["alloc", "-"], allocations(evil))
    if data:
        heaps = data["allocators"]
        equal("alloc --json: allocators", [heap["name"] for heap in heaps],
              [as_json("allocator"), as_json("other")])
        equal("alloc --json: findings", [(row["what"], row["stack"]) for row in heaps[0]["findings"]],
              [("double free", [as_json("leaf"), as_json("root")])])
        equal("alloc --json: never freed", [row["stack"] for row in heaps[1]["never_freed"]],
              [[as_json("site")]])
    symbols = os.path.join(folder, "kallsyms")
    with open(symbols, "wb") as f:  # C0 controls end a name there
        f.write(b"00000000c0100000 T start\n00000000c0100010 T x\x9b31m\xc2\x9b\x7f\"\\\xff\n"
                b"00000000c0100020 T end\n")
    trace = memtrace(b'ma"l\\oc', (0, 0x1000), (0, 0x2000), (2, 0x1000), (2, 0x1000))
    words = ["alloc", "-f", "memtrace", "-", "--kernel", symbols]
    data = json_of("memtrace: alloc --json", words, trace)
    if data:
        heap = data["allocators"][0]
        equal("memtrace: names", (heap["name"], heap["never_freed"][0]["stack"],
                                  heap["findings"][0]["stack"]),
              ('ma"l\\oc', ["x\ufffd31m\x9b\x7f\"\\\ufffd"], ["x\ufffd31m\x9b\x7f\"\\\ufffd"]))
    done = run(KSCOPE, *words, input=trace, binary=True)
    text = clean("memtrace: alloc is safe", done.stdout)
    check("memtrace: the function is there", 'x?31m??"\\?' in text, text)
    check("memtrace: the double free is there", "\n  problems found\n             1  double free\n" in
          text, text)


def test_paths(folder):
    """The paths of inputs and binaries may be hostile, too."""
    place = os.path.join(folder, os.fsdecode(evil("folder")))
    os.mkdir(place)
    shutil.copy(os.path.join(DEMO, "64k", "hasher.elf"), place)
    path = os.path.join(place, os.fsdecode(evil("input")))
    with open(path, "wb") as f:
        f.write(b'kscope-dump 1\nmap task=1/1 whole path="hasher.elf"\nnonsense\n')
    for more, name in (["-v"], "paths: info"), (["--json"], "paths: info --json"):
        done = run(KSCOPE, "info", path, "-b", place, *more, binary=True)
        text = clean(f"{name}: stdout is safe", done.stdout)
        message = clean(f"{name}: stderr is safe", done.stderr)
        check(f"{name}: the message names the input", done.returncode == 1 and
              message.count("\n") == 2 and as_text("input") in message, message)
        if "--json" in more:
            data = json.loads(text)
            equal("paths: in JSON", (data["inputs"][0]["path"], data["binaries"][0]["file"]),
                  (f"{folder}/{as_json('folder')}/{as_json('input')}",
                   f"{folder}/{as_json('folder')}/hasher.elf"))
        else:
            check("paths: in text", f"{as_text('folder')}/{as_text('input')} (dump)\n" in text and
                  f"{as_text('folder')}/hasher.elf\n" in text, text)


def test_messages():
    """Warnings contain the names of missing binaries."""
    name = json.dumps(AS_JSON)
    data = ('{"elf_tcb_mappings": {%s: 1}, "samples": [{"pid": 1, "time": "0", "cpu": 0, "ip": "4096", '
            '"period": "10", "nr": "1", "ips": ["4096"]}]}' % name)
    done = run(KSCOPE, "info", "-f", "sel4-json", "-", input=data.encode(), binary=True)
    message = clean("messages: stderr is safe", done.stderr)
    clean("messages: stdout is safe", done.stdout)
    check("messages: a missing binary", "no usable binary" in message and
          AS_TEXT.split(" ", 1)[0] in message and message.count("\n") == 1, message)


def main():
    test_events()
    test_folded()
    with scratch() as folder:
        test_alloc(folder)
        test_paths(folder)
    test_messages()
    finish()


if __name__ == "__main__":
    main()
