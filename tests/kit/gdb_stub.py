# SPDX-License-Identifier: GPL-2.0-or-later
"""A gdb stub for tests, whose target does nothing. Faults are arguments.

    with Stub(threads=["1", "2"], rle=True) as stub:
        kscope("record", "gdb", stub.address, ...)
    stub.running, stub.detached, stub.requests

The target has x86-64's registers; thread N runs at PC + N in the kernel.
"""
import random
import re
import socket
import threading

PC, SP = 0xFFFFFFFF81000100, 0xFFFFC90000001F00
STACK_END = (SP & ~0xFFF) + 0x1000  # memory ends there
NAMES = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
CORE = ("<feature name='org.gnu.gdb.i386.core'>" +
        "".join(f"<reg name='{name}' bitsize='64'/>" for name in NAMES) +
        "<reg name='eflags' bitsize='32'/><reg name='cs' bitsize='32'/></feature>")
SYSTEM = "<reg name='cr3' bitsize='64' regnum='60'/><reg name='efer' bitsize='64'/>"
FILES = {
    "target.xml": "<target><architecture>i386:x86-64</architecture><xi:include href='core.xml'/>"
                  "<xi:include href='system.xml'/></target>",
    "core.xml": CORE,
    "system.xml": SYSTEM,
}
SPECIAL = {60: 0x1234567, 61: 0x500}  # by p: cr3, efer


def packet(text):
    data = text.encode("latin1") if isinstance(text, str) else text
    return b"$%b#%02x" % (data, sum(data) & 255)


def escape(text):
    return re.sub(r"[#$}*]", lambda found: "}" + chr(ord(found[0]) ^ 0x20), text)


def run_length(text):
    """Encodes runs of 4 to 8 equal characters."""
    def short(found):
        run = found[0]
        # These numbers would be the characters #, $, + and -.
        return run if len(run) in (7, 8) else f"{run[0]}*{chr(len(run) - 1 + 29)}"
    return re.sub(r"([0-9a-f])\1{3,7}", short, text)


class Stub:
    def __init__(self, threads=("1",), files=None, no_acks=True, features="", answers=None,
                 split=False, rle=False, notes=False, wrong_sums=False, naks=False, silent=False,
                 stall_after=None, close_after=None, garbage=False, endless=False,
                 ignores_stop=False, exits_after=None, calls_files=False, one_at_a_time=False):
        self.files = FILES if files is None else files
        self.threads, self.no_acks, self.features = list(threads), no_acks, features
        self.answers = answers or {}
        self.split, self.rle, self.notes = split, rle, notes
        self.wrong_sums, self.naks, self.silent = wrong_sums, naks, silent
        self.stall_after, self.close_after = stall_after, close_after
        self.garbage, self.endless, self.ignores_stop = garbage, endless, ignores_stop
        self.exits_after, self.calls_files, self.one_at_a_time = exits_after, calls_files, one_at_a_time
        self.requests, self.replies, self.stops, self.interrupts = [], 0, 0, 0
        self.running, self.detached, self.acks, self.current = False, False, True, "1"
        self.last, self.seen, self.problem = b"", set(), None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.peer = None
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        # The guard of a kscope that was killed may still be at work.
        self.thread.join(60)
        if self.peer:
            self.peer.close()

    # Bytes

    def serve(self):
        try:
            self.peer = self.listener.accept()[0]
            self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.endless:
                self.peer.sendall(b"$" + b"a" * (8 << 20))
            self.loop()
        except OSError as error:
            self.problem = error
        finally:
            if self.peer:
                self.peer.close()

    def loop(self):
        data = b""
        while True:
            more = self.peer.recv(65536)
            if not more:
                return
            if self.silent:
                continue
            if self.garbage:
                self.peer.sendall(random.Random(len(more)).randbytes(1000))
                continue
            data += more
            while data:
                if data[:1] == b"$":
                    found = re.match(rb"\$([^#]*)#(..)", data, re.S)
                    if not found:
                        break
                    data = b"" if self.one_at_a_time else data[found.end():]
                    if not self.request(found[1], int(found[2], 16)):
                        return
                else:
                    byte, data = data[:1], data[1:]
                    if byte == b"\x03":
                        self.interrupt()
                    elif byte == b"-":
                        self.peer.sendall(self.last)

    def send(self, text):
        """Answers; with faults."""
        self.replies += 1
        if self.stall_after is not None and self.replies > self.stall_after:
            return True
        data = packet(run_length(text) if self.rle else text)
        self.last = data
        if self.close_after is not None and self.replies > self.close_after:
            self.peer.sendall(data[:len(data) // 2])
            return False
        if self.notes:
            data = b"noise\0\xff" + b"%Stop:T0506:0*'#00" + b"%Note:1#b7" + data
        if self.wrong_sums and self.replies % 3 == 0:
            data = data[:-2] + (b"00" if data[-2:] != b"00" else b"01")
        if self.split:
            for i in range(len(data)):
                self.peer.sendall(data[i:i + 1])
        else:
            self.peer.sendall(data)
        return True

    # Requests

    def request(self, data, given):
        text = data.decode("latin1")
        if sum(data) & 255 != given:
            self.problem = f"a wrong checksum: {text}"
        if self.naks and text not in self.seen:
            self.seen.add(text)
            self.peer.sendall(b"-")
            return True
        self.requests.append(text)
        if self.acks:
            self.peer.sendall(b"+")
        if text in ("vCont;c", "c"):
            self.go_on()
            return True
        if text[0] == "F":
            return True  # the target goes on
        if self.running:
            self.problem = f"a request to a running target: {text}"
        answer = self.answer(text)
        if text[0] == "D" and answer == "OK":
            self.detached = self.running = True
        return self.send(answer)

    def go_on(self):
        self.running = True
        if self.exits_after is not None and self.stops >= self.exits_after:
            self.running = False
            self.send("W07")
        elif self.calls_files:
            self.calls_files = False
            self.send("Fwrite,1,1000/5")

    def interrupt(self):
        self.interrupts += 1
        if self.ignores_stop:
            return
        if not self.running:
            self.problem = "an interrupt of a stopped target"
        self.stops += 1
        self.running = False
        self.send(f"T02thread:{self.threads[0] if self.threads else '1'};")

    def answer(self, text):
        word = re.match(r"[A-Za-z?]+", text)[0]
        if word in self.answers:
            return self.answers[word]
        if text.startswith("qSupported"):
            no_acks = "QStartNoAckMode+;" if self.no_acks else ""
            xml = "qXfer:features:read+;" if self.files else ""
            return f"PacketSize=1000;{no_acks}{xml}{self.features}"
        if text == "QStartNoAckMode":
            self.acks = False
            return "OK"
        if text.startswith("qXfer:features:read:"):
            return self.read_file(*re.match(r"qXfer:features:read:(.*):(\w+),(\w+)", text).groups())
        if text == "qfThreadInfo":
            self.listed = 0
        if text in ("qfThreadInfo", "qsThreadInfo"):
            if not self.threads:
                return ""
            self.listed += 1
            return f"m{self.threads[self.listed - 1]}" if self.listed <= len(self.threads) else "l"
        if text == "vCont?":
            return "vCont;c;C;s;S"
        if text.startswith("Hg"):
            self.current = text[2:]
            return "OK" if self.current in self.threads else "E01"
        if text == "g":
            return self.registers()
        if text[0] == "p":
            return SPECIAL[int(text[1:], 16)].to_bytes(8, "little").hex()
        if text[0] == "m":
            return self.memory(*(int(number, 16) for number in text[1:].split(",")))
        if text[0] == "D":
            return "OK"
        return ""

    def read_file(self, name, offset, size):
        text = self.files.get(name, "")
        part = text[int(offset, 16):int(offset, 16) + int(size, 16)]
        if not text:
            return "E00"
        last = int(offset, 16) + len(part) >= len(text)
        return ("l" if last else "m") + escape(part)

    def registers(self):
        number = int(self.current.rpartition(".")[2] or "1", 16)
        values = {"rip": PC + number, "rsp": SP, "rbp": SP + 0x20}
        core = b"".join(values.get(name, 0).to_bytes(8, "little") for name in NAMES)
        return (core + (0x202).to_bytes(4, "little") + (0x10).to_bytes(4, "little")).hex()

    @staticmethod
    def memory(address, size):
        inside = SP & ~0xFFF <= address and address + size <= STACK_END
        if not inside and address != PC & ~0xFFF:
            return "E14"
        return bytes((address + i) & 0xFF for i in range(size)).hex()
