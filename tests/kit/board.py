# SPDX-License-Identifier: GPL-2.0-or-later
"""A simulated board: it listens, it connects, or it is at the other end of a serial line (a pty). It
plays a script for each connection, in a thread. Steps of a script:

    bytes            are sent
    an Event         is waited for: board.heard("START"), or one that the test sets
    CLOSE            closes the link in an orderly way; the next script has the next connection
    RESET            resets it

At the end of a script, the link stays open until the other side closes it. Recorder is a kscope that
records the board."""
import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

from . import HANGS, KSCOPE, kscope, sel4, wait_for
from .streams import read_dump

CLOSE, RESET = object(), object()
# termios2 has the speed as a number; Python has no name for it.
TCGETS2, TERMIOS2 = 0x802c542a, struct.Struct("4I20B2I")


class Board:
    """What all links have in common. A link defines connect(), and how to read and write."""

    def __init__(self, *scripts, greeting=b"", answers=None):
        self.scripts = scripts
        self.greeting = greeting  # comes before the answer to any command
        self.answers = answers or {}  # {the start of a command: the answer}
        self.packets = []  # as received, one for each read
        self.sent = b""
        self.connections = 0
        self.events = {}
        self.lock = threading.Lock()
        self.over = False
        self.thread = threading.Thread(target=self.play, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *what):
        self.over = True
        self.thread.join(HANGS)
        self.close()

    def heard(self, command):
        """An Event that is set as soon as the board gets this command."""
        return self.events.setdefault(command, threading.Event())

    def play(self):
        for script in self.scripts:
            link = self.connect()
            if link is None:
                return
            self.connections += 1
            self.send(link, self.greeting)
            listener = threading.Thread(target=self.listen, args=(link,), daemon=True)
            listener.start()
            last = self.play_one(link, script)
            link.alive = False
            listener.join(HANGS)  # nobody uses the fd any more
            link.close(last is RESET)

    def play_one(self, link, script):
        """Returns the step that ended the link; None: the other side or the test did."""
        for step in script:
            if self.over or not link.alive:
                return None
            if step is CLOSE or step is RESET:
                return step
            if isinstance(step, bytes):
                self.send(link, step)
            else:
                self.await_event(link, step)
        while not self.over and link.alive:
            time.sleep(0.02)
        return None

    def await_event(self, link, event):
        while not event.wait(0.05) and not self.over and link.alive:
            pass

    def send(self, link, data):
        while data and link.alive and not self.over:
            with self.lock:
                if not select.select([], [link.fd], [], 0.1)[1]:
                    continue
                try:
                    size = os.write(link.fd, data[:4096])
                except BlockingIOError:
                    continue
                except OSError:
                    link.alive = False
                    return
                self.sent += data[:size]
                data = data[size:]

    def listen(self, link):
        """Collects the commands. The real board takes each packet for one command."""
        text = b""
        while link.alive and not self.over:
            try:
                if not select.select([link.fd], [], [], 0.05)[0]:
                    continue
                packet = os.read(link.fd, 4096)
            except (OSError, ValueError):
                packet = b""
            if not packet:
                link.alive = False
                return
            self.packets.append(packet)
            text += packet
            for command, answer in self.answers.items():
                if packet.startswith(command):
                    self.send(link, answer)
            for command, event in list(self.events.items()):
                if command.encode() in text:
                    event.set()

    def connect(self):
        raise NotImplementedError

    def close(self):
        pass


class Link:
    """One connection."""

    def __init__(self, fd, sock=None):
        self.fd, self.sock = fd, sock
        self.alive = True
        os.set_blocking(fd, False)

    def close(self, reset):
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Server(Board):
    """A board that listens. `stays`: it also does after its last script; else connections are refused."""

    def __init__(self, *scripts, stays=True, family=socket.AF_INET, **more):
        super().__init__(*scripts, **more)
        self.socket = socket.socket(family)
        self.socket.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.socket.listen(4)
        self.socket.settimeout(0.05)
        self.stays = stays
        self.port = self.socket.getsockname()[1]
        self.address = f"[::1]:{self.port}" if family == socket.AF_INET6 else f"127.0.0.1:{self.port}"

    def connect(self):
        while not self.over:
            try:
                sock, _ = self.socket.accept()
            except socket.timeout:
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self.stays and self.connections + 1 == len(self.scripts):
                self.socket.close()
            return Link(sock.fileno(), sock)
        return None

    def close(self):
        self.socket.close()


class Client(Board):
    """A board that connects to kscope record listen. It reserves the port, without listening on it."""

    def __init__(self, *scripts, **more):
        super().__init__(*scripts, **more)
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", 0))
        self.port = self.reserved.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def connect(self):
        while not self.over:
            sock = socket.socket()
            try:
                sock.connect(("127.0.0.1", self.port))
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return Link(sock.fileno(), sock)
            except OSError:
                sock.close()
                time.sleep(0.02)
        return None

    def close(self):
        self.reserved.close()


class Serial(Board):
    """A board on a serial line, which is a symbolic link to a pty. What it sends before kscope has
    opened the line is lost, as on a real one: so it waits. CLOSE removes the device; the next script has
    another one."""

    def __init__(self, path, *scripts, **more):
        super().__init__(*scripts, **more)
        self.path = path
        self.slave = None
        self.link = None
        self.speed = 0  # while kscope has it open
        self.plug_in()

    def plug_in(self):
        master, self.slave = pty.openpty()
        self.link = PtyLink(master, self.slave, self.path)
        os.symlink(os.ttyname(self.slave), self.path + ".new")
        os.rename(self.path + ".new", self.path)

    def is_raw(self):
        mode = termios.tcgetattr(self.slave)
        return not mode[3] & (termios.ECHO | termios.ICANON) and not mode[1] & termios.OPOST

    def connect(self):
        if self.connections:
            self.plug_in()
        while not self.is_raw():
            if self.over:
                return None
            time.sleep(0.02)
        modes = fcntl.ioctl(self.slave, TCGETS2, bytes(TERMIOS2.size))
        self.speed = TERMIOS2.unpack(modes)[-1]
        return self.link

    def close(self):
        self.link.close(False)


class PtyLink(Link):
    def __init__(self, master, slave, path):
        super().__init__(master)
        self.slave, self.path = slave, path

    def close(self, reset):
        if self.fd < 0:
            return
        if os.path.lexists(self.path):
            os.unlink(self.path)
        os.close(self.fd)
        os.close(self.slave)
        self.fd = -1


def sel4_profiler(generation=2):
    """What a board with the profiler says by itself: arguments of a Board."""
    mappings = b"hasher.elf: 1\nhasher.elf: 2\n" if generation == 1 else sel4.ERROR
    return {"greeting": sel4.GREETING,
            "answers": {b"MAPPINGS": mappings, b"HELLO": b"200 OK (Ready to go)\n"}}


class Recorder:
    """A kscope that records, in a folder. Its messages go to a file, so that a test can wait for one."""

    count = 0

    def __init__(self, folder, *words, verb="record", **more):
        Recorder.count += 1
        self.folder = folder
        self.log = os.path.join(folder, f"messages-{Recorder.count}")
        more.setdefault("stdin", subprocess.DEVNULL)
        with open(self.log, "wb") as log:
            more.setdefault("stderr", log)
            self.process = subprocess.Popen([KSCOPE, verb, *map(str, words)], cwd=folder,
                                            stdout=subprocess.DEVNULL, **more)
        self.returncode = None

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def stderr(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def waits_for(self, condition):
        """Waits until the condition is true, or kscope has ended."""
        return wait_for(lambda: condition() or self.process.poll() is not None)

    def said(self, text):
        """Waits for a message."""
        return self.waits_for(lambda: text in self.stderr)

    def has(self, name, size):
        """Waits until a file has this many bytes."""
        return self.waits_for(lambda: os.path.exists(self.path(name)) and
                              os.path.getsize(self.path(name)) >= size)

    def interrupt(self, which=signal.SIGINT):
        self.process.send_signal(which)
        return self

    def end(self):
        """Waits for the end. self has the exit code and the messages, as exits() wants them."""
        try:
            self.returncode = self.process.wait(HANGS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.returncode = self.process.wait()
        return self

    def bytes(self, name):
        if not os.path.exists(self.path(name)):
            return b""
        with open(self.path(name), "rb") as f:
            return f.read()

    def samples(self, name="out.dump"):
        """The samples of a dump, and the number that it says are lost."""
        if not os.path.exists(self.path(name)):
            return [], 0
        return read_dump(self.bytes(name).decode())

    def converted(self, raw, *words):
        """The samples that kscope convert reads from the raw stream, and its result."""
        done = kscope("convert", self.path(raw), "-o", "-", "-t", "dump", *words)
        return read_dump(done.stdout)[0], done
