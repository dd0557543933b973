#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record gdb: how it talks to stubs, good and bad. The target goes on, whatever happens."""
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, check, equal, exits, finish, kscope, scratch, wait_for
from kit.gdb_stub import PC, SP, STACK_END, Stub
from kit.wire_read import Stream


def record(stub, out, *options, duration="0.4"):
    return kscope("record", "gdb", stub.address, "-o", out, "--duration", duration, *options)


def stream(path):
    return Stream(path) if os.path.exists(path) else None


def went_well(name, stub, done, out):
    """The recording is whole, and the target goes on."""
    got = stream(out)
    exits(name, done, 0)
    check(f"{name}: samples", got and len(got.samples) > 0 and not got.faults(),
          done.stderr if not got else got.faults())
    check(f"{name}: the target goes on", stub.detached and stub.running and not stub.problem,
          stub.problem)
    return got


def test_good(folder):
    out = os.path.join(folder, "good.kscope")
    with Stub(threads=["1", "2", "3"]) as stub:
        done = record(stub, out)
    got = went_well("three cpus", stub, done, out)
    first = got.of_cpu(0)[0]
    equal("registers by DWARF's numbers", (first.pc, first.registers[7], first.registers[6],
                                           first.registers[16], len(first.registers)),
          (PC + 1, SP, SP + 0x20, PC + 1, 17))
    equal("the stack, up to the end of memory", first.stack,
          bytes((SP + i) & 0xFF for i in range(STACK_END - SP)))
    equal("address space and level", (first.space, first.level), (0x1234000, 1))
    equal("the other cpus", [{s.pc for s in got.of_cpu(cpu)} for cpu in (1, 2)], [{PC + 2}, {PC + 3}])
    equal("code", [(c[4], len(c[5])) for c in got.codes], [(PC & ~0xFFF, 64)])
    equal("info", (got.info[1], got.info[2], got.info[4]), (3, b"x86_64", 3))
    ran = sum(s.weight for s in got.of_cpu(0))
    check("weights are the time that the target ran", ran == got.of_cpu(0)[-1].time -
          (got.of_cpu(0)[0].time - got.of_cpu(0)[0].weight), ran)
    check("all cpus in one stop", stub.stops == stub.interrupts == len(got.of_cpu(0)), stub.stops)
    check("the share of stops", "the target was stopped" in done.stderr, done.stderr)


STRANGE = {
    "one byte at a time": {"split": True},
    "runs": {"rle": True},
    "notifications and noise": {"notes": True},
    "with acknowledgements": {"no_acks": False},
    "wrong checksums": {"no_acks": False, "wrong_sums": True},
    "packets that the stub wants again": {"no_acks": False, "naks": True},
    "no list of threads": {"threads": []},
    "threads of several processes": {"threads": ["p1.1", "p1.2"]},
    "threads in one answer": {"answers": {"qfThreadInfo": "m1,2", "qsThreadInfo": "l"},
                              "threads": ["1", "2"]},
    "a system call for the debugger": {"calls_files": True},
    "no vCont": {"answers": {"vCont": ""}},
    "an absurd PacketSize": {"answers": {"qSupported": "PacketSize=ffffffffffff;qXfer:features:read+"}},
}


def test_strange(name, folder):
    out = os.path.join(folder, "strange.kscope")
    with Stub(**STRANGE[name]) as stub:
        done = record(stub, out)
    went_well(name, stub, done, out)
    if "several" in name:
        check("a process is detached by its number", "D;1" in stub.requests, stub.requests[-3:])


REFUSED = [
    ("a stub that never answers", ["no answer", "one at a time"], {"silent": True, "released": False}),
    ("no target.xml", ["--kernel"], {"files": {}}),
    ("an unknown architecture", ["unknown architecture sparc", "x86, Arm and RISC-V"],
     {"files": {"target.xml": "<architecture>sparc</architecture><reg name='g0' bitsize='32'/>"}}),
    ("files that include themselves", ["unknown architecture", "x86"],
     {"files": {"target.xml": "<reg name='x' bitsize='8'/>" + "<xi:include href='target.xml'/>" * 9}}),
    ("garbage", ["not a gdb stub"], {"garbage": True, "released": False}),
    ("a packet without an end", ["not a gdb stub"], {"endless": True, "silent": True,
                                                     "released": False}),
    ("a stub that closes the connection", ["closed the connection"],
     {"close_after": 3, "released": False}),
    ("wrong checksums without an end", ["not a gdb stub"],
     {"no_acks": False, "answers": {"qSupported": "*" * 50}}),
    ("a target that does not stop", ["does not stop"], {"ignores_stop": True, "released": False}),
]


def test_refused(case, folder):
    name, words, faults = case
    released = faults.get("released", True)
    with Stub(**{key: value for key, value in faults.items() if key != "released"}) as stub:
        done = record(stub, os.path.join(folder, "out.kscope"), duration="60")
    exits(name, done, 3, stub.address, *words)
    check(f"{name}: no file", not os.listdir(folder), os.listdir(folder))
    if released:
        check(f"{name}: the target goes on", stub.detached, stub.requests[-3:])


def test_addresses():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    exits("nobody listens", kscope("record", "gdb", f"127.0.0.1:{port}"), 3, "cannot connect")
    exits("no socket", kscope("record", "gdb", "/nonexistent/gdb.sock"), 3, "cannot connect")
    exits("no address", kscope("record", "gdb"), 2, "no address")
    exits("not an address", kscope("record", "gdb", "localhost"), 2, "HOST:PORT")


KEPT = [
    ("the target ends", {"exits_after": 5}, 0, ["the target has ended (exit code 0x07)"]),
    ("the connection breaks", {"close_after": 200}, 1, ["lost the connection to the stub"]),
    ("the stub stalls", {"stall_after": 200}, 1, ["no longer answers"]),
]


def test_kept(case, folder):
    """What came before a fault is kept."""
    name, faults, code, words = case
    out = os.path.join(folder, "kept.kscope")
    with Stub(**faults) as stub:
        done = record(stub, out, duration="100")
    exits(name, done, code, *words)
    got = stream(out)
    check(f"{name}: what came before is kept", got and got.samples and not got.faults(), got and got.faults())


def test_default_registers(folder):
    """Without target.xml, the kernel's ELF header tells the registers."""
    out, kernel = os.path.join(folder, "default.kscope"), os.path.join(folder, "kernel.elf")
    with open(kernel, "wb") as f:
        f.write(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\x3e\0\x01\0\0\0" + bytes(40))
    with Stub(files={}) as stub:
        record(stub, out, "-k", kernel)
    got = stream(out)
    check("registers by the kernel's architecture",
          got and got.samples and got.samples[0].pc == PC + 1 and stub.detached, stub.requests[-5:])


def test_window(folder):
    """A stub that forgets what came with the request before is asked one request at a time."""
    out = os.path.join(folder, "window.kscope")
    with Stub(threads=["1", "2"], one_at_a_time=True) as stub:
        done = record(stub, out, duration="1")
    went_well("a stub that takes one request at a time", stub, done, out)


def test_signals(folder):
    """However kscope ends, the target goes on."""
    out = os.path.join(folder, "signal.kscope")
    for name, number in [("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM),
                         ("SIGKILL", signal.SIGKILL)]:
        for moment in range(3):
            with Stub(threads=["1", "2"]) as stub:
                process = subprocess.Popen([KSCOPE, "record", "gdb", stub.address, "-o", out, "-F", "1000",
                                            "--max-stop", "90"], stderr=subprocess.PIPE,
                                           stdin=subprocess.DEVNULL)
                wait_for(lambda: stub.stops > 3 * moment)
                process.send_signal(number)
                process.communicate()
                good = wait_for(lambda: stub.detached)
            check(f"{name}, {moment}: the target goes on", good and stub.running, stub.requests[-3:])
            check(f"{name}, {moment}: no interrupt while it is stopped", not stub.problem, stub.problem)


def test_killed_while_stopped(folder):
    """SIGKILL while the stub owes an answer."""
    with Stub(stall_after=100) as stub:
        process = subprocess.Popen([KSCOPE, "record", "gdb", stub.address, "-o",
                                    os.path.join(folder, "x.kscope")], stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL)
        wait_for(lambda: stub.replies > 100)
        process.kill()
        process.wait()
        good = wait_for(lambda: stub.detached)
    check("SIGKILL while an answer is missing: the target goes on", good, stub.requests[-3:])


def test_no_detach(folder):
    """A stub that cannot detach: the target goes on."""
    out = os.path.join(folder, "stays.kscope")
    with Stub(answers={"D": ""}) as stub:
        done = record(stub, out)
    exits("a stub that cannot detach", done, 0)
    check("a stub that cannot detach: the target goes on", stub.running and not stub.problem, stub.problem)
    with Stub(answers={"D": "E01"}) as stub:
        process = subprocess.Popen([KSCOPE, "record", "gdb", stub.address, "-o", out], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        wait_for(lambda: stub.stops > 1)
        process.kill()
        process.wait()
        good = wait_for(lambda: "D" in stub.requests and stub.running)
    check("SIGKILL and a stub that cannot detach: the target goes on", good, stub.requests[-3:])


def in_folder(test, *case):
    with scratch() as folder:
        test(*case, folder)


def main():
    cases = [(test,) for test in (test_good, test_default_registers, test_signals, test_killed_while_stopped,
                                  test_window, test_no_detach)]
    cases += [(test, case) for test, table in ((test_strange, STRANGE), (test_refused, REFUSED), (test_kept, KEPT))
              for case in table]
    test_addresses()  # before others take the free port
    # Most of them wait until kscope has lost its patience.
    with ThreadPoolExecutor(len(cases)) as pool:
        for done in [pool.submit(in_folder, *case) for case in cases]:
            done.result()
    finish()


if __name__ == "__main__":
    main()
