#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names in the data that attack the reader of the output: terminal escapes, line breaks, marks that change the
direction of writing, quotes and bytes that are not UTF-8, through every verb that prints names, as text and as JSON,
and in a terminal, where formats whose text is data must be safe, too."""
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden"))
import perfdata_make
from kit import BUILD, DEMO, KSCOPE, check, equal, finish, run, scratch

# Line separators, embeddings, overrides, isolates and marks
TURNS = "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
# Every kind of dangerous character, and characters that must stay unchanged.
EVIL = TURNS.encode() + (b"\x1b[31m \x9b31m \xc2\x9b31m \x7f \"quoted\" back\\slash new\nline \r\t "
        b"\xff \xc3( \xed\xa0\x80 \xc0\xaf \xf5\x80 \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")
AS_JSON = TURNS + ("\x1b[31m \ufffd31m \x9b31m \x7f \"quoted\" back\\slash new\nline \r\t "
           "\ufffd \ufffd( \ufffd\ufffd\ufffd \ufffd\ufffd \ufffd\ufffd \u00e9\u20ac\U0001f600")
CONTROL = re.compile(f"[\0-\x09\x0b-\x1f\x7f-\x9f{TURNS}]")
AS_TEXT = re.sub(f"[\0-\x1f\x7f-\x9f\ufffd{TURNS}]", "?", AS_JSON)


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


def in_terminal(*words):
    """The bytes that kscope sends to a terminal as stdout, without colors, and its exit code."""
    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    modes[1] &= ~termios.OPOST  # line ends stay as they are
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    with subprocess.Popen([KSCOPE, *words], stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=subprocess.PIPE, env=dict(os.environ, NO_COLOR="1")) as child:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the end
                break
            shown += data
        clean(f"terminal: {words[0]} {words[-1]}: stderr is safe", child.stderr.read())
    os.close(ours)
    return shown, child.returncode


def test_terminal(folder):
    """Formats whose text is data are made safe only for a terminal. Elsewhere they keep every byte."""
    path = os.path.join(folder, "terminal.dump")
    with open(path, "wb") as f:
        f.write(b"\n".join(events(evil).split(b"\n")[:-2]) + b"\n")
    for name, want in (("dump", "comm"), ("folded", "leaf"), ("svg", "leaf")):
        shown, code = in_terminal("convert", path, "-o", "-", "-t", name)
        text = clean(f"terminal: {name} is safe", shown.replace(b"\t", b" "))
        check(f"terminal: {name} is there", code == 0 and len(text) > 20 and
              f"{want} ??????" in text, f"exit code {code}: {text}")
        data = run(KSCOPE, "convert", path, "-o", "-", "-t", name, binary=True).stdout
        check(f"terminal: {name} has as many lines elsewhere", data.count(b"\n") == text.count("\n"),
              data)
        if name in ("dump", "folded"):
            check(f"terminal: {name} keeps its bytes elsewhere", TURNS.encode() in data and
                  b"\xc2\x9b31m" in data, data)
    for words in (["report", path], ["info", path]):
        shown, code = in_terminal(*words)
        text = clean(f"terminal: {words[0]} is safe", shown)
        check(f"terminal: {words[0]} is there", code == 0 and as_text("event") in text, text)


def test_folded_lines():
    """A folded stack is a line, whatever its names are."""
    done = run(KSCOPE, "convert", "-f", "dump", "-", "-o", "-", "-t", "folded",
               input=b'kscope-dump 1\nsource id=1 name="e" type=1 config=0x0\nsample task=7/7 source=1 '
               b'weight=9 : named "le;a\\u000af 99" "ro\\u000d\\u000aot"\n', binary=True)
    equal("folded: one line for a stack", done.stdout, b"pid 7;ro  ot;le:a f 99 1\n")


def test_perfdata(folder):
    """A task, a binary and an event of perf.data, and a function of an ELF file."""
    name = AS_JSON.replace("\ufffd", "")
    elf = os.path.join(folder, "hasher.elf")
    with open(os.path.join(DEMO, "64k", "hasher.elf"), "rb") as f:
        image = f.read()
    with open(elf, "wb") as f:
        f.write(image.replace(b"\0fill_block\0", b"\0f\x9b\x1b\xe2\x80\xae\xc2\x9bk\n\0"))
    nm = run("nm", os.path.join(DEMO, "64k", "hasher.elf")).stdout
    addr = next(int(line.split()[0], 16) for line in nm.splitlines() if line.endswith(" fill_block"))
    make = perfdata_make.File()
    data = make.file(make.comm(name) + make.mmap2(addr & ~0xffff, 0x10000, 0, elf) +
                     make.mmap2(0x7000000, 0x1000, 0, "/" + name) +
                     make.sample([perfdata_make.USER, addr], 10) +
                     make.sample([perfdata_make.USER, 0x7000010], 20), make.features([name]))
    path = os.path.join(folder, "hostile.data")
    with open(path, "wb") as f:
        f.write(data)
    shown = re.sub(f"[\0-\x1f\x7f-\x9f{TURNS}]", "?", name)
    for words, want in ((["info", path], [shown]), (["report", path, "-b", folder], [shown, "f????k?"])):
        done = run(KSCOPE, *words, binary=True)
        clean(f"perf.data: stderr of {words[0]} is safe", done.stderr)
        text = clean(f"perf.data: {words[0]} is safe", done.stdout)
        check(f"perf.data: {words[0]} has the names", all(part in text for part in want), text)


def test_print(folder):
    """record --print shows a command for a shell; an unsafe word is in a form that shells read."""
    word = "it's \x1b[31m\n\u202e\\"
    plugin = os.path.join(folder, "plugin.so")
    with open(plugin, "w", encoding="ascii"):
        pass
    done = run(KSCOPE, "record", "qemu", "--print", "--", "qemu-system-x86_64", "-append", word,
               binary=True, cwd=folder, env=dict(os.environ, KSCOPE_PLUGIN=plugin))
    text = clean("print: stdout is safe", done.stdout)
    equal("print: one line", text.count("\n"), 1)
    again = run("bash", "-c", f"printf '%s' {text.strip().split('-append ')[1]}", binary=True).stdout
    equal("print: a shell reads the word", again.decode(), word)
    plain = run(KSCOPE, "record", "qemu", "--print", "--", "qemu-system-x86_64", "-append", "it's \u00e9",
                cwd=folder, env=dict(os.environ, KSCOPE_PLUGIN=plugin)).stdout
    equal("print: other words as before", shlex.split(plain)[-1], "it's \u00e9")


def test_plugin():
    """The plugin's own messages."""
    done = run(os.path.join(BUILD, "tests", "qemu_host_901"), "/no such folder/\x1b[31m\n\u202ex",
               binary=True)
    text = clean("plugin: stderr is safe", done.stderr)
    check("plugin: the message is there", "cannot write /no such folder/\\x1b[31m\\x0a\\xe2\\x80\\xaex: " in text,
          text)


def main():
    test_events()
    test_folded()
    with scratch() as folder:
        test_alloc(folder)
        test_paths(folder)
        test_terminal(folder)
        test_perfdata(folder)
        test_print(folder)
    test_messages()
    test_folded_lines()
    test_plugin()
    finish()


if __name__ == "__main__":
    main()
