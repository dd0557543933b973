# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of sel4-*, folded, folded-*, dump, dump-bad, not-known and empty."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit.inputs import put
from kit.sel4 import frame, message, text

MAPPINGS = {"a.elf": 1, "b.elf": 2}


def args(name, words):
    put(name, "args", words + "\n")


def sample(**more):
    return {"ip": "2097304", "pid": 1, "time": "100", "period": "1200000", "cpu": 0, "nr": "2",
            "ips": ["2097400", "2097500"] + ["0"] * 14, **more}


def document(samples, mappings=MAPPINGS):
    return json.dumps({"elf_tcb_mappings": mappings, "samples": samples}, indent=1) + "\n"


def make_json():
    three = [sample(time="100"), sample(pid=2, time="200", nr="0"), sample(time="300", nr=1)]
    put("sel4-json", "input.json", document(three))
    put("sel4-json-reordered", "input.json", json.dumps(
        {"samples": [dict(reversed(list(s.items()))) for s in three], "other": [{"x": [1, None]}],
         "elf_tcb_mappings": {"a.elf": "1", "b.elf": "0x2"}}))
    put("sel4-json-numbers", "input.json", json.dumps({"elf_tcb_mappings": MAPPINGS, "samples": [
        {"ip": 2097304, "pid": "1", "time": 100, "cpu": "3", "period": 7, "nr": 1, "ips": [2097400]},
        {"ip": "0x200098", "pid": 1, "time": "18446744073709551615", "nr": 99, "ips": ["1", 2]},
        {"pid": 1}]}))
    put("sel4-json-first-generation", "input.json", '{"elf_tcb_mappings": {"a.elf": 0}, "samples": ['
        '{"ip": 0, "pd": 0, "timestamp": 5, "cpu": 0, "period": 300}]}')
    old = {"ip": "2097236", "pid": 1, "time": "145672893", "period": "1200000",
           "ips": ["2098088", "2098000", "0", "2097000"], "cpu": 0}
    put("sel4-json-not-counted", "input.json", '{\n"pd_mappings": {\n"a.elf":  0,\n"b.elf":  1,\n},\n'
        f'"samples": [\n{json.dumps(old, indent=2)},{json.dumps({**old, "pid": 0})}]\n}}\n')
    put("sel4-json-no-zeros", "input.json", document([
        {key: value for key, value in sample(nr="0").items() if key not in ("nr", "cpu")}]))
    put("sel4-json-escaped-keys", "input.json", document([sample()]).replace('"samples"', '"s\\u0061mples"')
        .replace('"ip"', '"\\u0069p"').replace('"elf_', '"elf\\u005f'))
    args("sel4-json-escaped-keys", "-f sel4-json")
    put("sel4-json-null", "input.json", document([
        {**sample(), "cpu": None, "ips": None, "extra": None}, sample(ip=None)]))
    put("sel4-json-wrap", "input.json", document([sample(time=str(t)) for t in (
        4294967000, 4294967290, 100, 4294967295, 200, 3000000000, 50)]))
    put("sel4-json-ticks", "input.json", document([sample(time=str(t)) for t in (24000000, 36000000)]))
    args("sel4-json-ticks", "--tick-hz 24000000")
    put("sel4-json-stale", "input.json", document([sample(nr="1"), sample(nr="16")]))

    put("sel4-json-empty-list", "input.json", document([]))
    whole = document(three)
    put("sel4-json-cut-in-sample", "input.json", whole[:whole.index('"300"') + 2])
    put("sel4-json-cut-in-list", "input.json", whole[:whole.rindex("}", 0, whole.rindex("]")) + 1])
    put("sel4-json-cut-in-mappings", "input.json", whole[:30])
    put("sel4-json-wrong-types", "input.json", document([
        sample(time="100"), sample(ip=True), sample(ip={"x": 1}), sample(pid=-1), sample(pid=2 ** 40),
        sample(time="99999999999999999999999"), sample(nr=1.5), sample(ips=7), sample(ips=["x"]),
        sample(time="200")]))
    put("sel4-json-wrong-numbers", "input.json", document([
        sample(time="100"), sample(ip="-5"), sample(ip=2 ** 64 - 1), sample(ip="-18446744073709551615"),
        sample(time="-1"), sample(period=-1200000), sample(nr="-1"), sample(cpu=-1),
        sample(time="200", ip="-2147483648")]))
    put("sel4-json-wrong-callers", "input.json", document([
        sample(time="100"), sample(time="200", nr="3", ips=["2097400", "-5", "2097500"]),
        sample(time="300", nr="1", ips=["2097400", "-5"]), sample(time="400", nr=1, ips=[2 ** 64 - 1])]))
    put("sel4-json-wrong-samples", "input.json", document("none"))
    put("sel4-json-no-samples", "input.json", document([]).replace('"samples"', '"sample"'))
    put("sel4-json-wrong-mappings", "input.json", document(three, {"a.elf": "one"}))
    good = json.dumps(sample())
    put("sel4-json-garbage-inside", "input.json",
        f'{{"elf_tcb_mappings": {{"a.elf": 1}}, "samples": [{good}, {good[:40]} \x01\x02 ]]] {good}, '
        f'{good}]}}')
    put("sel4-json-unmapped-pid", "input.json", document([sample(pid=9), sample(pid=9), sample()]))
    put("sel4-json-deep", "input.json", '{"x": ' + "[" * 300 + "]" * 300 + "}")
    args("sel4-json-deep", "-f sel4-json")


def make_broken_json():
    """One of five samples is wrong: kscope must read the other four."""
    five = [json.dumps(sample(time=str(100 * i))) for i in range(1, 6)]
    head, tail = '{"elf_tcb_mappings": {"a.elf": 1}, "samples": [', "]}\n"

    def broken(name, second):
        put(f"sel4-json-{name}", "input.json", head + ", ".join([five[0], second] + five[2:]) + tail)

    broken("no-brace", five[1][:-1])
    broken("no-bracket", five[1].replace("]", ""))
    broken("open-string", '"garbage')
    broken("bracket-too-many", five[1] + "]")
    broken("without-ip", five[1].replace('"ip"', '"IP"'))
    broken("connected-twice", "{\"samples\": [" + five[1])
    put("sel4-json-twice", "input.json", 2 * (head + ", ".join(five[:2]) + tail))
    put("sel4-json-more-behind", "input.json", head + five[0] + tail + "trailing words\n")
    put("sel4-json-byte-order-mark", "input.json", b"\xef\xbb\xbf" + (head + five[0] + tail).encode())
    put("sel4-json-mark-and-late-mapping", "input.json", b"\xef\xbb\xbf" + (
        f'{{"samples": [{five[0]}], "elf_tcb_mappings": {{"a.elf": 1}}}}').encode())
    put("sel4-json-names", "input.json", '{"elf_tcb_mappings": {"\\ud83d\\ude00\\u00e9\\ud800.elf": 1}, '
        f'"samples": [{five[0]}]}}')
    put("sel4-json-pauses", "input.json", document([sample(time=str(t * 3 * 10 ** 9 % 2 ** 32), cpu=c)
                                                    for t in range(6) for c in (0, 1)]))


def make_protobuf():
    hello = b"100 SEL4 PROFILING CLIENT\n200 OK (Ready to go)\na.elf: 1\nb.elf: 2\n"
    deep = message(time=2 ** 35, ips=[0x10000000 + i * 4 for i in range(16)])
    deepest = message(ip=2 ** 63, pid=2 ** 31, time=2 ** 62, cpu=2 ** 31, period=2 ** 63,
                      ips=[2 ** 63 + i for i in range(16)])
    few = [frame(message(time=t)) for t in (100, 200, 300)]
    put("sel4-pb", "input.pb", hello + few[0] + b"400 ERROR\n" + few[1] + few[2])
    put("sel4-elf-no-pid", "input.pb", hello + few[0] + b"400 ERROR\n" + few[1] + few[2],
        "--elf 3=b.elf --elf app.elf")
    assert len(deep) > 99 and len(deepest) > 199
    put("sel4-pb-long-frames", "input.pb", hello + few[0] + frame(deep) + few[1] + frame(deepest) +
        few[2])
    put("sel4-pb-garbage", "input.pb", hello + few[0] + b"\xff\xfe12junk" + few[1] + few[2])
    old = b"\x08\x98\x81\x80\x01\x10\x01\x18\x64\x28\x80\x9fI\x32\x07\xf8\x81\x80\x01\x00\x00\x00"
    put("sel4-pb-not-counted", "input.pb", hello + frame(old) + frame(old.replace(b"\x18\x64", b"\x18\x65")))
    put("sel4-pb-cut", "input.pb", hello + few[0] + few[1][:-5])
    make_links(hello, few)


def make_links(hello, few):
    """Connections that broke, anywhere, and came back; samples that came twice."""
    late = [frame(message(time=t)) for t in (2 ** 40, 2 ** 40 + 500)]
    put("sel4-pb-connected-again", "input.pb", hello + few[0] + few[1][:30] + hello + few[2])
    put("sel4-pb-connected-twice", "input.pb", hello + few[0] + hello + hello + few[1])
    put("sel4-pb-connected-clock", "input.pb", hello + b"".join(late) + hello + few[0] + few[1] + hello +
        late[0] + late[1])
    # The broken sample takes in the beginning of the greeting as addresses.
    whole = frame(message(ips=[5] * 16))
    put("sel4-pb-connected-inside", "input.pb", b"".join(
        hello + frame(message(time=1000 * cut)) + whole[:-cut] for cut in (1, 2, 3, 4, 15)) + hello + few[0])
    put("sel4-pb-twice", "input.pb", hello + few[0] + few[0] + few[1] + few[0] + frame(message(time=100, cpu=1)) +
        few[0] + frame(message(time=0)) + frame(message(time=0)))


def make_serial():
    def dump(s):
        return text(**{**s, "ip": int(s["ip"])})
    options = "--elf 1=a.elf --elf 2=b.elf"
    one, two = dump(sample()), dump(sample(pid=2, time="200", nr="1"))
    put("sel4-serial", "input.txt", "Booting\r\n" + one.replace("\n", "\r\n") + "other output\n" + two)
    put("sel4-serial-damaged", "input.txt", one + two.replace('"200"', '"2?0"') + two[:60] + "\n" +
        one.replace('"100"', '"300"') + two[:50])
    put("sel4-serial-twice", "input.txt", one + one + two + one)
    put("sel4-serial-negative", "input.txt", dump(sample(nr="1", ips=["-8589934592"] + ["0"] * 15)))
    put("sel4-serial-wrong-numbers", "input.txt", one + "".join(
        one.replace(*words) for words in (('"100"', '"-1"'), ('"pid": 1', '"pid": 4294967297'),
                                          ('"1200000"', '"-5"'), ('"200098"', '"fffffffffffffffb"'))) + two)
    noisy = one.replace('{\n', 'noise {\n', 1).replace('\t"cpu"', 'MON|INFO: 12 things\n\t"cpu"')
    noisy = noisy.replace('\t\t"2097500"', "[    1.234567] other noise\n\t\t\"2097500\"")
    put("sel4-serial-noise", "input.txt", noisy + "}\n\x1b[32m" + two.replace("\n", "\x1b[0m\n") +
        "[ 1.5] " + two.replace('"200"', '"300"').replace("\n", "\n[ 1.5] ").rstrip("[ 1.5]") + "\n" + one.replace("\n]", "]"))
    braces = 'client {state} = "up" [ok "1"]\nset {a} {b\n'
    put("sel4-serial-braces", "input.txt", braces + one.replace("\n", "\n" + braces) + two)
    put("sel4-serial-one-line", "input.txt", " ".join(one.split()) + "\n" + " ".join(two.split()) + "\n")
    put("sel4-serial-missing", "input.txt", "".join(
        "".join(line + "\n" for line in one.splitlines() if f'"{key}"' not in line)
        for key in ("ip", "time", "cpu", "2097400")) + two[2:])
    for name in ("sel4-serial", "sel4-serial-wrong-numbers", "sel4-serial-damaged", "sel4-serial-negative", "sel4-serial-noise",
                 "sel4-serial-braces", "sel4-serial-one-line", "sel4-serial-missing",
                 "sel4-serial-twice"):
        args(name, options)


def make_others():
    put("folded", "input.folded", "a;b;c 3\na;b 2\nmain loop;f(int, char) 1\n\n# comment\na;b;c 4\n")
    put("folded-comments", "input.folded", "# before, after\n#\n## a;b 5\n# Samples: 12\n# a;b 5\n"
        "#1 worker;main 4\n#2 worker;main 6\n\\#3 worker 2\n\\\\# 3\n#comment 7\n#!/bin/sh\na;b 1\n")
    put("folded-pairs", "input.folded", "# before, after\na;b 5 7\na;thread 3 2 0\na;c 0 1.5\n")
    put("folded-windows", "input.folded", b"\xef\xbb\xbfa;b 1\r\nc 2\r\n")
    put("folded-too-much", "input.folded", "b 18446744073709551615\nb 1\nc 2\n")
    put("folded-bad", "input.folded", "a;b;c 3\nno number here\na;b x\na;b 12.5\n;; 1\na 0\nlast 2")
    put("dump", "input.dump", DUMP)
    put("dump-bad", "input.dump", "kscope-dump 1\nnonsense\nsample weight=1\nmap addr=1 path=\"x\n"
        "sample weight=1 : user 0x10 kernel zz\ncomm task=1/1\n"
        "branch jump guest=65536 instructions=1 kernel\ncheck cpu=1\ncheck weight=1 : user 0x10\nsample weight=2 : user 0x10\n"
        "mask half instructions=1 kernel\nmask off instructions=1\nmask off=1 kernel\n"
        "note half value=1 kernel\nnote ptwrite value=1\nnote ptwrite=1 kernel\nnote ptwrite at=x kernel\n")
    put("not-known", "input.bin", bytes(range(256)))
    put("empty", "input.bin", b"")


DUMP = """kscope-dump 1
# every kind of event, and names that need quoting
meta key="arch" value="riscv64"
source id=1 name="cycles" type=0 config=0x0 period=1000
source id=2 type=4 config=0x11 freq=99
source id=3 name="sched:sched_switch" type=2 config=0x174 period=1 raw
aux kind="tracing_data" offset=0x0 len=0x3 data=170844
comm time=0.000000001 task=7/8 name="say \\"hi\\" \\\\ \\u0001" exec
fork time=0.000000002 task=9/9 parent=7/8
map time=0.000000003 task=7/7 addr=0x1000 len=0x2000 offset=0x0 prot=r-x path="/x/y z"
map task=7/7 addr=0xffffffff80000000 len=0x1000 offset=0x0 prot=r-x kernel linked build-id=00ff path="k"
sample time=1.500000000 cpu=3 task=7/8 source=1 weight=1000 : kernel 0xffffffff80000010 user 0x1010 0x1020
sample time=2.000000000 source=2 weight=5 count=5 : named "leaf"@"lib" "root"
sample source=2 weight=1 : user 0x99 marker-100 0x98
sample time=2.500000000 task=7/8 source=3 weight=1 pc=0xffffffff80000014 in=kernel raw=0badcafe : user 0x1010
sample time=2.600000000 task=7/8 source=3 weight=1 no-chain raw=00 : user 0x1010
branch time=2.700000000 cpu=1 task=7/8 call from=0xffffffff80000010 to=0xffffffff80000020 next=0xffffffff80000014 instructions=4 kernel
branch time=2.700000000 cpu=1 task=7/8 leave from=0xffffffff80000030 to=0x5000 sp=0x9000 left=0x4000 taken=0x9000 space=0x10000000003000 guest=1 instructions=2 kernel
branch time=2.700000000 task=7/8 enter from=0x5000 next=0x5002 by-thread instructions=2 cycles=11 kernel
branch time=2.700000000 task=7/8 end from=0x5000 over by-thread instructions=2 user
mask time=2.700000000 cpu=1 task=7/8 off instructions=3 kernel
mask time=2.800000000 cpu=1 task=7/8 on instructions=4 kernel
mask time=2.900000000 cpu=1 task=7/8 unknown instructions=0 user
note time=2.910000000 cpu=1 task=7/8 ptwrite value=0xffffffffffffffff at=0x5004 instructions=2 cycles=7 user
note time=2.920000000 cpu=1 task=7/8 mwait value=0x100000021 at=0xffffffff80000010 instructions=0 kernel
note time=2.930000000 task=7/8 pwre value=0x2180 instructions=0 kernel
note task=7/8 pwrx value=0x132 instructions=0 kernel
note time=2.950000000 cpu=1 task=0/0 exstop value=0x0 instructions=0 kernel
note time=2.960000000 cpu=1 task=7/8 cbr value=0x14 instructions=3 user
check time=2.700000000 cpu=1 task=7/8 : kernel 0xffffffff80000020 0xffffffff80000014 user 0x1010
lost time=3.000000000 cpu=1 count=4 bytes=0
lost count=0 bytes=17 damage
exit time=4.000000000 task=9/9
"""


if __name__ == "__main__":
    make_json()
    make_broken_json()
    make_protobuf()
    make_serial()
    make_others()
