#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope view: who gets the page and who does not, the browser, how it ends, and pages of files that grow."""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (HANGS, KSCOPE, ROOT, check, default_signals, equal, exits, finish, kscope, no_problems,
                 scratch, wait_for)
from kit.html import BLOCK, block

WRITER = "html"
FOLDED = "main;first_function 5\nmain;second_function 7\n"
DUMP = """kscope-dump 1
meta key="arch" value="x86_64"
source id=1 name="cycles" type=0 config=0x0
comm task=1/1 name="task"
"""
CUT = "in the middle of a line"
CUT_OFF = "the recording was cut off"
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "connection": "close",
}


def sample(nr, name):
    return f'sample time={nr / 1e9:.9f} cpu=0 task=1/1 source=1 weight=5 : named "main" "{name}"\n'


def write(path, text, mode="w"):
    with open(path, mode, encoding="utf-8") as file:
        file.write(text)


def large_stacks(nr, rng=random.Random(1)):
    """Stacks whose names do not compress."""
    return "".join(f"main;{rng.randbytes(1000).hex()} 1\n" for _ in range(nr))


def text_of(page):
    """The text of a page, and all strings in its data."""
    found = [page.decode()]
    for _, packing, text in BLOCK.findall(page):
        found.extend(block(packing, text)[0].get("strings", []))
    return "\n".join(found)


def split_answer(data):
    """(status, headers, body); None: no answer."""
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    match = re.fullmatch(r"HTTP/1\.1 (\d+) [A-Z].*", lines[0])
    return match and (int(match[1]), {name.lower(): value for name, value in
                                      (line.split(": ", 1) for line in lines[1:])}, body)


def read_all(sock):
    """All bytes until the server closes."""
    data = b""
    try:
        while piece := sock.recv(1 << 20):
            data += piece
    except ConnectionResetError:
        pass
    return data


class SlowReader(threading.Thread):
    """Gets the page of a view slowly, but without a pause that the server would not accept."""

    def __init__(self, view):
        super().__init__(daemon=True)
        self.hurry = threading.Event()
        self.sock = view.connect()
        self.sock.sendall(f"GET {view.page()} HTTP/1.1\r\n{view.host}\r\n\r\n".encode())
        self.data = self.sock.recv(1000)
        self.size = int(re.search(rb"Content-Length: (\d+)", self.data)[1])
        self.start()

    def run(self):
        while not self.hurry.wait(0.3):
            self.data += self.sock.recv(1 << 16)
        self.data += read_all(self.sock)

    def body(self):
        self.hurry.set()
        self.join()
        self.sock.close()
        return self.data.partition(b"\r\n\r\n")[2]


class View:
    """A running kscope view, without a browser unless `browser` is set."""

    def __init__(self, folder, *words, env=None, browser=False, stdin=subprocess.DEVNULL, url=True):
        self.temporary = os.path.join(folder, "tmp")
        os.makedirs(self.temporary, exist_ok=True)
        self.stderr = os.path.join(folder, "stderr")
        env = dict(env or os.environ, TMPDIR=self.temporary)
        with open(self.stderr, "wb") as errors:
            self.child = subprocess.Popen([KSCOPE, "view", *words, *([] if browser else ["--no-browser"])],
                                          cwd=folder, env=env, stdin=stdin, stdout=subprocess.PIPE,
                                          stderr=errors, text=True, preexec_fn=default_signals,
                                          start_new_session=True)
        self.url = self.child.stdout.readline().rstrip("\n") if url else ""
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/(live)?", self.url)
        self.port, self.token = (int(match[1]), match[2]) if match else (0, "")
        self.live = bool(match and match[3])
        self.host = f"Host: 127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.child.stdout.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANGS)

    def send(self, data):
        """The answer to these bytes."""
        with self.connect() as sock:
            sock.sendall(data)
            return split_answer(read_all(sock))

    def ask(self, target, *headers, method="GET", version="HTTP/1.1", host=True):
        lines = [f"{method} {target} {version}", *([self.host] if host else []), *headers, "", ""]
        return self.send("\r\n".join(lines).encode("latin-1"))

    def page(self):
        return f"/{self.token}/"

    def body(self):
        return text_of(self.ask(self.page())[2])

    def state(self):
        return json.loads(self.ask(self.page() + "state")[2])

    def said(self):
        with open(self.stderr, encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self, number=signal.SIGINT, group=False):
        """The exit code after a signal, to all its processes as from a terminal, or to the server."""
        if group:
            os.killpg(self.child.pid, number)
        else:
            self.child.send_signal(number)
        return self.child.wait(timeout=HANGS)


def descendants(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- requests ----


def test_page(folder):
    want = kscope("convert", "in.folded", "-t", WRITER, "-o", "-", cwd=folder, binary=True).stdout
    with View(folder, "in.folded") as view:
        check("the address", view.port and not view.live, view.url)
        check("how to end it", says(view, "kscope: press Ctrl+C to end\n"), view.said())
        status, headers, body = view.ask(view.page())
        equal("the page", (status, body), (200, want))
        equal("its headers", headers, dict(HEADERS, **{"content-length": str(len(want))}))
        equal("HEAD", view.ask(view.page(), method="HEAD"), (200, headers, b""))
        for version in ("HTTP/1.0", "HTTP/1.1"):
            equal(f"{version}", view.ask(view.page(), version=version)[::2], (200, want))
        for name in ("localhost", "LocalHost"):
            equal(f"as {name}", view.ask(view.page(), f"Host: {name}:{view.port}", host=False)[0], 200)
        equal("spaces around a value", view.ask(view.page(), f"hOST:\t 127.0.0.1:{view.port} \t", host=False)[0], 200)
        for origin in ("127.0.0.1", "localhost"):
            equal(f"the origin {origin}", view.ask(view.page(), f"Origin: http://{origin}:{view.port}")[0], 200)
        for name, *lines in (("a typed address", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"),
                             ("a script of the page", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"),
                             ("a link of another site", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
                              "Sec-Fetch-Dest: document"),
                             ("an older browser's", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")):
            equal(name, view.ask(view.page(), *lines)[0], 200)
        with view.connect() as sock:  # one byte at a time
            for byte in f"GET {view.page()} HTTP/1.1\r\n{view.host}\r\n\r\n".encode():
                sock.sendall(bytes([byte]))
            equal("a request in pieces", split_answer(read_all(sock))[::2], (200, want))
        token = view.token
    with View(folder, "in.folded") as view:
        check("another token each time", view.token != token)


def test_refusals(folder):
    with View(folder, "in.folded") as view:
        page, token, port = view.page(), view.token, view.port
        wrong = ("0" if token[0] != "0" else "1") + token[1:]
        last = token[:-1] + ("0" if token[-1] != "0" else "1")
        for target in ("/", "//", f"/{wrong}/", f"/{last}/", f"/{token.upper()}/" if token.upper() != token else "/A/",
                       f"/{token}", f"/{token[:-1]}/", f"/{token}0/", f"//{token}/", f"/{token}//", f"/{token}/index.html",
                       f"/{token}/../x", f"/{token}/..", f"/{token}/./", f"/{token}/%2e", f"/{token}/%2e%2e/etc/passwd",
                       f"/x/../{token}/", f"/%2f{token}/", f"/{token}/?", f"/{token}/?a=b", f"/{token}/#x", f"/{token}/\\..",
                       f"/{token}/live", f"/{token}/state", f"http://127.0.0.1:{port}/{token}/", f"http://evil/{token}/",
                       "/favicon.ico", "*", token, "/etc/passwd", "/" + 32 * "*" + "/", "/" + "a" * 4000):
            status, headers, body = view.ask(target)
            equal(f"404: {target[:60]}", (status, headers["content-length"], body), (404, "0", b""))
        hint = view.ask("/")
        equal("the same answer to a wrong token as to none", view.ask(f"/{wrong}/"), hint)
        equal("... and to a file beside the page", view.ask(page + "x"), hint)

        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1:{port}0", "localhost",
                     f"127.0.0.2:{port}", f"127.1:{port}", f"localhost.evil.example:{port}", f"0.0.0.0:{port}", f"[::1]:{port}",
                     f"127.0.0.1:{port}, evil", f"x@127.0.0.1:{port}", f"http://127.0.0.1:{port}", "", f"127.0.0.1:0{port}"):
            equal(f"403: the host {host!r}", view.ask(page, f"Host: {host}", host=False)[::2], (403, b""))
        equal("403: no host", [view.ask(page, version=f"HTTP/1.{minor}", host=False)[0] for minor in (0, 1)], [403, 403])
        for origin in ("null", "http://evil.example", f"https://127.0.0.1:{port}", "http://127.0.0.1", f"http://127.0.0.1:{port + 1}",
                       f"http://127.0.0.1:{port}/", f"http://localhost:{port}.evil", f"127.0.0.1:{port}", "", "*"):
            equal(f"403: the origin {origin!r}", view.ask(page, f"Origin: {origin}")[::2], (403, b""))
        for name, *lines in (("an image on another site", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"),
                             ("a script on another site", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"),
                             ("a frame on another site", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"),
                             ("another port of this machine", "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"),
                             ("another site, no mode", "Sec-Fetch-Site: cross-site"),
                             ("an unknown site", "Sec-Fetch-Site: x")):
            equal(f"403: {name}", view.ask(page, *lines)[::2], (403, b""))
        equal("a wrong host learns nothing about the token", view.ask(f"/{wrong}/", "Host: evil", host=False),
              view.ask(page, "Host: evil", host=False))

        for method in ("POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "get", "X"):
            status, headers, body = view.ask(page, method=method)
            equal(f"405: {method}", (status, headers["allow"], body), (405, "GET, HEAD", b""))
        post = f"POST {page} HTTP/1.1\r\n{view.host}\r\nContent-Length: 300000\r\n\r\n".encode()
        equal("405: POST with a body", view.send(post + 300000 * b"x")[0], 405)

        good = f"GET {page} HTTP/1.1\r\n{view.host}\r\n"
        for name, text in (("bare newlines", good.replace("\r", "") + "\n"), ("no version", f"GET {page}\r\n\r\n"),
                           ("HTTP/0.9", f"GET {page} HTTP/0.9\r\n{view.host}\r\n\r\n"),
                           ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
                           ("two spaces", good.replace("GET ", "GET  ") + "\r\n"),
                           ("a tab", good.replace("GET ", "GET\t") + "\r\n"),
                           ("a space at the end", good.replace("/1.1", "/1.1 ") + "\r\n"),
                           ("an empty first line", "\r\n" + good + "\r\n"),
                           ("no colon", good + "Header\r\n\r\n"), ("no name", good + ": x\r\n\r\n"),
                           ("a space before the colon", good + "A : x\r\n\r\n"),
                           ("a folded line", good + "A: x\r\n y\r\n\r\n"),
                           ("a NUL", good + "A: \0\r\n\r\n"), ("a bare CR", good + "A: \r x\r\n\r\n"),
                           ("a NUL in the path", f"GET {page}\0 HTTP/1.1\r\n{view.host}\r\n\r\n"),
                           ("a byte beyond ASCII in the path", f"GET {page}\xff HTTP/1.1\r\n{view.host}\r\n\r\n"),
                           ("two hosts", good + "Host: evil.example\r\n\r\n"), ("the same host twice", good + view.host + "\r\n\r\n"),
                           ("two origins", good + "Origin: null\r\nOrigin: null\r\n\r\n"),
                           ("TLS", "\x16\x03\x01\x02\0\x01\0\n\n"), ("nothing", "\r\n\r\n")):
            answer = view.send(text.encode("latin-1"))
            equal(f"400: {name}", answer and answer[::2], (400, b""))
        equal("431: a large head", view.send(good.encode() + b"A: " + 9000 * b"x")[0], 431)
        equal("431: no end", view.send(100000 * b"x")[0], 431)
        room = 8192 - len(good) - len("A: \r\n\r\n")
        equal("the largest head", view.send(f"{good}A: {room * 'x'}\r\n\r\n".encode())[0], 200)
        equal("431: one byte more", view.send(f"{good}A: {room * 'x'}x\r\n\r\n".encode())[0], 431)
        equal("a second request on a connection has no answer", view.send(2 * (good + "\r\n").encode()), view.ask(page))
        equal("HEAD is refused, too", [view.ask("/", method="HEAD")[0], view.ask(page, "Origin: null", method="HEAD")[0]], [404, 403])


def listening(port):
    """The addresses on which somebody listens on a port."""
    found = []
    for table in ("tcp", "tcp6"):
        if not os.path.exists(f"/proc/net/{table}"):
            continue
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A" and int(address.rpartition(":")[2], 16) == port:
                    found.append(int.to_bytes(int(address.split(":")[0], 16), 4 if table == "tcp" else 16, sys.byteorder))
    return found


def test_port(folder):
    with View(folder, "in.folded") as view:
        equal("listens on 127.0.0.1 only", listening(view.port), [bytes([127, 0, 0, 1])])
        done = kscope("view", "in.folded", "--no-browser", "--port", view.port, cwd=folder)
        exits("a port in use", done, 2, f"port {view.port} of 127.0.0.1", "another program uses it")
        port = view.port
        equal("ends", view.end(), 0)
    with View(folder, "in.folded", "--port", str(port)) as view:
        equal("--port", (view.port, view.ask(view.page())[0]), (port, 200))
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        done = kscope("view", "in.folded", "--no-browser", "--port", other.getsockname()[1], cwd=folder)
        exits("a port that another program has on all addresses", done, 2, "another program uses it")
    for wrong in ("0", "65536", "-1", "x"):
        exits(f"--port {wrong}", kscope("view", "in.folded", "--port", wrong, cwd=folder), 2, "port")


# ---- connections ----


def test_slow(folder):
    with View(folder, "in.folded") as view:
        begun = time.monotonic()
        with view.connect() as silent, view.connect() as slow, view.connect() as drip:
            slow.sendall(f"GET {view.page()} HTTP/1.1\r\n".encode())
            equal("slow clients do not block another", view.ask(view.page())[0], 200)
            answers = {}

            def drop(sock):
                """A byte now and then does not give a client more time."""
                try:
                    while "drip" not in answers:
                        sock.sendall(b"G")
                        time.sleep(0.5)
                except OSError:
                    pass

            dripper = threading.Thread(target=drop, args=(drip,))
            dripper.start()
            answers["drip"] = split_answer(read_all(drip))
            took = time.monotonic() - begun
            dripper.join()
            check("a slow client has its time", took >= 9.9, took)
            equal("a slow client is refused", answers["drip"] and answers["drip"][0], 408)
            equal("... another, too", split_answer(read_all(slow))[0], 408)
            equal("a silent one is closed", read_all(silent), b"")
        equal("it still answers", view.ask(view.page())[0], 200)


def test_many(folder):
    with View(folder, "in.folded") as view:
        first = view.connect()
        first.sendall(b"GET ")
        wait_for(lambda: view.ask(view.page())[0] == 200)
        others = []
        for nr in range(150):
            others.append(view.connect())
            if nr % 10 == 0:
                equal(f"with {nr + 1} idle connections", view.ask(view.page())[0], 200)
        answer = read_all(first)  # on a slow machine, its time was up before
        check("the oldest one is closed", not answer or split_answer(answer)[0] == 408, answer)
        pid = view.child.pid
        check("the number of connections is bounded", len(os.listdir(f"/proc/{pid}/fd")) < 64 + 16, os.listdir(f"/proc/{pid}/fd"))
        for sock in [first, *others]:
            sock.close()
        equal("it still answers", view.ask(view.page())[0], 200)
        check("closed connections leave nothing", wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) < 16), os.listdir(f"/proc/{pid}/fd"))


def most_memory(pid):
    """KiB that were resident, at most."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1])


def test_large(folder):
    with open(os.path.join(folder, "large.folded"), "w", encoding="ascii") as file:
        file.write(large_stacks(30000))
    with View(folder, "large.folded") as view:
        request = f"GET {view.page()} HTTP/1.1\r\n{view.host}\r\n\r\n".encode()
        before = most_memory(view.child.pid)
        slow = SlowReader(view)
        check("a large page", slow.size > 25 << 20, slow.size)
        for nr in range(3):  # these close in the middle
            with view.connect() as rude:
                rude.sendall(request)
                rude.recv(1000 * nr + 1)
        equal("others do not wait for it", len(view.ask(view.page())[2]), slow.size)
        equal("it arrives in full", len(slow.body()), slow.size)
        check("it needs no memory", most_memory(view.child.pid) - before < 8 << 10, most_memory(view.child.pid))
        equal("clients that close do no harm", view.end(), 0)


# ---- the program ----


def test_ends(folder):
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        with View(folder, "in.folded") as view:
            equal(f"{name}: no file has a name", os.listdir(view.temporary), [])
            says(view, "\n")
            with view.connect():  # somebody is connected
                equal(f"{name}: the exit code", view.end(getattr(signal, name)), 0)
            equal(f"{name}: nothing is left", os.listdir(view.temporary), [])
            equal(f"{name}: no further message", view.said(), "kscope: press Ctrl+C to end\n")
            equal(f"{name}: the port is free", listening(view.port), [])
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    with View(folder, "fifo", url=False) as view:
        check("a conversion runs in a child", wait_for(lambda: descendants(view.child.pid)))
        child = descendants(view.child.pid)[0]
        equal("a signal during the conversion", view.end(signal.SIGTERM), -signal.SIGTERM)
        check("... ends the conversion", wait_for(lambda: not is_alive(child)))
        equal("... nothing is left", os.listdir(view.temporary), [])


def test_inputs(folder):
    exits("no input", kscope("view"), 2, "no input")
    for more in ([], ["--no-browser"]):
        done = kscope("view", "nothing.folded", *more, cwd=folder)
        exits(f"a missing input {more}", done, 3, "nothing.folded", "No such file")
        equal("... no address", done.stdout, "")
    exits("no recording", kscope("view", "/dev/null"), 3, "the input is empty")
    for name in ("report.html", "REPORT.HTML", "report.htm", "report.html.gz"):
        exits(f"{name}", kscope("view", name, cwd=folder), 2, f"{name} is a page", "open it in a browser")
    exits("--split", kscope("view", "in.folded", "--split", "1", cwd=folder), 2, "--split", "one page")
    exits("an option of no writer", kscope("view", "in.folded", "--no-such", cwd=folder), 2, "--no-such")
    exits("--watch of stdin", kscope("view", "-", "--watch", input=b""), 2, "--watch", "not a file")
    exits("--watch of a pipe", kscope("view", "fifo", "--watch", cwd=folder), 2, "--watch", "not a file")
    with open(os.path.join(folder, "in.folded"), "rb") as stdin, View(folder, "-", stdin=stdin) as view:
        check("stdin", "first_function" in view.body())
    with View(folder, "in.folded", "other.folded", "--samples") as view:
        body = view.body()
        check("two inputs and an option of the writer", all(word in body for word in ("first_function", "third_function")) and
              "effect" not in view.said(), view.said())
    write(os.path.join(folder, "cut.dump"), DUMP + sample(1, "first_function") + "sample time=0.0")
    with View(folder, "cut.dump") as view:
        check("a damaged input: the page", "first_function" in view.body())
        check("... a warning", CUT in view.said(), view.said())
        equal("... the exit code", view.end(), 1)
    with View(folder, "in.folded", "-q") as view:
        equal("--quiet", (view.ask(view.page())[0], view.said(), view.end()), (200, "", 0))
    with open("/dev/full", "wb") as full:
        done = subprocess.run([KSCOPE, "view", "in.folded", "--no-browser"], cwd=folder, stdout=full, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=HANGS, check=False, text=True)
    exits("an address that nobody sees", done, 4, "stdout")
    done = kscope("view", "in.folded", "--no-browser", cwd=folder, env=dict(os.environ, TMPDIR="/nowhere"))
    exits("no place for the page", done, 4, "/nowhere")


# ---- the browser ----


def browser_env(folder, **more):
    """An environment without a display and without a browser but those in `folder`/bin."""
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "PATH")}
    return dict(env, PATH=os.path.join(folder, "bin"), SEEN=os.path.join(folder, "seen"), **more)


def stand_in(folder, name, more=""):
    path = os.path.join(folder, "bin", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, f'#!/bin/sh\necho noise; echo noise >&2\nprintf "%s\\n" "$@" >"$SEEN.new"\n/bin/mv "$SEEN.new" "$SEEN"\n{more}\n')
    os.chmod(path, 0o755)
    return path


def seen(folder):
    path = os.path.join(folder, "seen")
    if not wait_for(lambda: os.path.exists(path)):
        return None
    with open(path, encoding="utf-8") as file:
        words = file.read().splitlines()
    os.unlink(path)
    return words


def says(view, *words):
    return wait_for(lambda: all(word in view.said() for word in words))


def test_browser(folder):
    stand_in(folder, "xdg-open")
    own = stand_in(folder, "my browser")
    plain = stand_in(folder, "plain")
    for name, more in (("xdg-open, X11", {"DISPLAY": ":0"}), ("xdg-open, Wayland", {"WAYLAND_DISPLAY": "wayland-0"}),
                       ("$BROWSER in the path", {"BROWSER": "plain"}), ("$BROWSER with a path", {"BROWSER": plain, "DISPLAY": ":0"})):
        with View(folder, "in.folded", env=browser_env(folder, **more), browser=True) as view:
            equal(f"{name}: it gets the address", seen(folder), [view.url])
            equal(f"{name}: its noise is not seen", view.said(), "kscope: press Ctrl+C to end\n")
            equal(f"{name}: ends", view.end(), 0)
    with View(folder, "in.folded", env=browser_env(folder, BROWSER="plain --new  --x=*"), browser=True) as view:
        equal("$BROWSER with options", seen(folder), ["--new", "--x=*", view.url])
    with View(folder, "in.folded", env=browser_env(folder, BROWSER="plain $(touch evil); touch evil; :"), browser=True) as view:
        equal("$BROWSER is no script", seen(folder), ["$(touch", "evil);", "touch", "evil;", ":", view.url])
        check("... nothing else runs", not os.path.exists(os.path.join(folder, "evil")))
    with View(folder, "in.folded", env=browser_env(folder, DISPLAY=":0", BROWSER="plain")) as view:
        equal("--no-browser: the page", view.ask(view.page())[0], 200)
        check("--no-browser: no browser", not os.path.exists(os.path.join(folder, "seen")))
    for name, words, more in (("no display", ["no display", "open the address above"], {}),
                              ("no such $BROWSER", ["no such program", "$BROWSER"], {"BROWSER": "nothing"}),
                              ("an empty $BROWSER", ["no display"], {"BROWSER": ""})):
        with View(folder, "in.folded", env=browser_env(folder, **more), browser=True) as view:
            check(f"{name}: it says so", says(view, "cannot start a browser", *words), view.said())
            equal(f"{name}: it goes on", (view.ask(view.page())[0], view.end()), (200, 0))
    stand_in(folder, "xdg-open", "exit 3")
    with View(folder, "in.folded", env=browser_env(folder, DISPLAY=":0"), browser=True) as view:
        equal("xdg-open fails: it had the address", seen(folder), [view.url])
        check("xdg-open fails: it says so", says(view, "xdg-open failed", "open the address above"), view.said())
        equal("xdg-open fails: it goes on", view.ask(view.page())[0], 200)
    write(os.path.join(folder, "bin", "xdg-open"),
          '#!/bin/sh\necho $$ >"$SEEN.new"; /bin/mv "$SEEN.new" "$SEEN"; exec /bin/sleep 1000\n')
    with View(folder, "in.folded", env=browser_env(folder, DISPLAY=":0"), browser=True) as view:
        pid = int(seen(folder)[0])
        check("a browser that stays", wait_for(lambda: name_of(pid) == "sleep"))
        check("... Ctrl+C in the terminal is not for it", os.getsid(pid) == pid)
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        no_problems("... it has nothing of ours open", [link for link in links if link != "/dev/null"])
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            text = file.read()
        equal("... it blocks no signals", int(re.search(r"SigBlk:\s*(\w+)", text)[1], 16), 0)
        equal("... it does not keep us", view.end(), 0)
        check("... it goes on", is_alive(pid))
        os.kill(pid, signal.SIGKILL)
    os.unlink(os.path.join(folder, "bin", "xdg-open"))
    with View(folder, "in.folded", env=browser_env(folder, DISPLAY=":0"), browser=True) as view:
        check("no xdg-open: it says so", says(view, "xdg-open is not installed", "open the address above"), view.said())
    check("the stand-in with a space exists", os.path.exists(own))


# ---- growing files ----


def test_watch(folder):
    path = os.path.join(folder, "grows.dump")
    with View(folder, "grows.dump", "--watch") as view:
        check("the address of a page that may change", view.live, view.url)
        check("a file that is not there", says(view, "waiting for grows.dump"), view.said())
        status, headers, body = view.ask(f"/{view.token}/live")
        check("a page that waits", status == 200 and b"Waiting for grows.dump" in body and b"refresh" in body, body)
        equal("the state before", view.state(), {"version": 0, "bytes": 0, "growing": False, "error": None})
        status, headers, body = view.ask(f"/{view.token}/state")
        equal("the headers of the state", headers, dict(HEADERS, **{"content-type": "application/json", "content-length": str(len(body))}))
        equal("HEAD of the state", view.ask(f"/{view.token}/state", method="HEAD"), (200, headers, b""))
        for name in ("state/", "live/", "State", "state?", "x"):
            equal(f"404: {name}", view.ask(f"/{view.token}/{name}")[0], 404)
        equal("403 for the state", [view.ask(f"/{view.token}/state", "Origin: null")[0],
                                    view.ask(f"/{view.token}/state", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors")[0]], [403, 403])
        equal("404 for the state of a wrong token", view.ask(f"/{32 * '0'}/state")[0], 404)
        write(path, "")
        time.sleep(0.6)
        equal("an empty file", view.state()["version"], 0)
        write(path, "ksco", "a")
        check("a file that is too short: it is seen", wait_for(lambda: view.state()["bytes"] == 4))
        write(path, DUMP[4:] + sample(1, "first_function"), "a")
        check("a page", wait_for(lambda: view.state()["version"] > 0 and "first_function" in view.body()), view.said())
        equal("the same at both addresses", view.ask(f"/{view.token}/live"), view.ask(view.page()))
        equal("one message about it", view.said().count("waiting"), 1)
        before, said, names = view.state()["version"], view.said(), []
        for nr in range(2, 6):  # each time, the end is cut
            names.append(f"function_{nr}")
            write(path, sample(nr, names[-1]) + f"sample time=0.00000{nr}", "a")
            check(f"{nr}: it grows", wait_for(lambda: view.state()["growing"]))
            check(f"{nr}: the new page has the new sample",
                  wait_for(lambda name=names[-1]: name in view.body()), view.said())
            now = view.state()
            check(f"{nr}: the version rises", now["version"] > before, now)
            equal(f"{nr}: the size", now["bytes"], os.path.getsize(path))
            before = now["version"]
            write(path, "1 cpu=0 task=1/1 source=1 weight=5 : named \"main\" \"rest\"\n", "a")
            check(f"{nr}: a change in between", wait_for(lambda least=before: view.state()["version"] > least))
            before = view.state()["version"]
        equal("no error", view.state()["error"], None)
        equal("no warning for cut ends", view.said(), said)
        check("it ends growing", wait_for(lambda: not view.state()["growing"]))
        equal("the version stays", view.state()["version"], before)
        equal("no file has a name", os.listdir(view.temporary), [])
        equal("ends", view.end(), 0)
        equal("nothing is left", os.listdir(view.temporary), [])


def test_watch_recording(folder):
    """What kscope record -o X.kscope has written so far."""
    with open(os.path.join(ROOT, "tests", "golden", "wire-described-many-frames", "input.kscope"), "rb") as file:
        data = file.read()
    path, at = os.path.join(folder, "grows.kscope"), len(data) // 2
    with open(path, "wb") as file:
        file.write(data[:at])
    want = kscope("convert", os.path.basename(path), "-t", WRITER, "-o", "-", cwd=folder).stderr
    with View(folder, "grows.kscope", "--watch") as view:
        check("a recording", wait_for(lambda: view.state()["version"] == 1), view.said())
        check("its first warnings", CUT_OFF in want and says(view, want), view.said())
        said = view.said()
        for nr in range(2, 5):
            with open(path, "ab") as file:
                file.write(data[at:at + 777])
            at += 777
            check(f"{nr}: a piece more", wait_for(lambda least=nr: view.state()["version"] >= least))
        with open(path, "ab") as file:
            file.write(data[at:])
        want = kscope("convert", os.path.basename(path), "-t", WRITER, "-o", "-", cwd=folder, binary=True).stdout
        check("the whole recording", wait_for(lambda: view.ask(view.page())[2] == want))
        equal("no more warnings", (view.said(), view.state()["error"], view.end()), (said, None, 0))


def test_watch_errors(folder):
    path = os.path.join(folder, "turns.folded")
    write(path, FOLDED + large_stacks(10000))  # more than sockets buffer
    with View(folder, "turns.folded", "--watch") as view:
        check("a page", wait_for(lambda: "first_function" in view.body() and view.state()["version"] == 1))
        old = SlowReader(view)  # it has begun to get the first page, and goes on later
        with open(path + ".new", "wb") as file:
            file.write(20000 * b"\0\1\2\3 no recording\n")
        os.rename(path + ".new", path)
        check("an error is in the state", wait_for(lambda: view.state()["error"]))
        check("... and on stderr", "unknown format" in view.state()["error"] and says(view, "unknown format"), view.said())
        check("the page stays", "first_function" in view.body())
        equal("the version stays", view.state()["version"], 1)
        with open(path, "ab") as file:
            file.write(b"more")
        changed = os.path.getsize(path)
        check("the same error again", wait_for(lambda: view.state()["bytes"] == changed))
        time.sleep(3)
        equal("... once", view.said().count("unknown format"), 1)
        write(path + ".new", FOLDED.replace("first_function", "fourth_function"))
        os.rename(path + ".new", path)
        check("a good file again", wait_for(lambda: "fourth_function" in view.body()))
        equal("... no error", (view.state()["error"], view.state()["version"]), (None, 2))
        body = old.body()
        check("a connection keeps its page", len(body) == old.size > 10 << 20 and "first_function" in text_of(body), len(body))
        os.unlink(path)
        check("a file that is gone", wait_for(lambda: view.state()["bytes"] == 0))
        equal("... the page stays", ("fourth_function" in view.body(), view.state()["version"], view.end()), (True, 2, 0))
    with View(folder, "in.folded", "missing <b>.folded", "--watch") as view:
        check("one of two files is missing", says(view, "waiting for missing <b>.folded"), view.said())
        check("a name is text in the page", "missing &lt;b&gt;.folded" in view.body(), view.body())
        write(os.path.join(folder, "missing <b>.folded"), FOLDED)
        check("two files", wait_for(lambda: view.state()["version"] == 1))
    write(os.path.join(folder, "short.bin"), "no recording\x01")
    with View(folder, "short.bin", "--watch") as view:
        check("a short file", says(view, "waiting for short.bin"), view.said())
        check("... that stays as it is: the error", wait_for(lambda: "unknown format" in (view.state()["error"] or "")))
        check("... in the page", "unknown format" in view.body(), view.body())
        equal("... the exit code", view.end(), 3)
    done = kscope("view", "in.folded", "--watch", "--no-browser", "--no-such", cwd=folder)
    exits("a mistake of the user", done, 2, "--no-such")
    done = kscope("view", "in.folded", "--watch", "--no-browser", "-f", "nothing", cwd=folder)
    exits("a mistake that only the conversion finds", done, 2, "unknown input format 'nothing'")


def test_watch_ends(folder):
    """A conversion that takes its time ends with the program."""
    with open(os.path.join(folder, "long.folded"), "w", encoding="ascii") as file:
        for nr in range(200000):
            file.write(f"main;{nr}_{'x' * 200};{nr} 1\n")
    for name, group in (("SIGINT", False), ("SIGINT", True), ("SIGKILL", False)):
        with View(folder, "long.folded", "--watch") as view:
            check(f"{name}: a conversion runs", wait_for(lambda v=view: descendants(v.child.pid) or v.state()["version"]))
            children = descendants(view.child.pid)
            equal(f"{name}: it answers meanwhile", view.ask(view.page())[0], 200)
            number = getattr(signal, name)
            equal(f"{name}: the exit code", view.end(number, group), -number if name == "SIGKILL" else 0)
            check(f"{name}: no error", "error" not in view.said(), view.said())
            check(f"{name}: the conversion ends, too", wait_for(lambda pids=children: not any(map(is_alive, pids))))
            equal(f"{name}: nothing is left", os.listdir(view.temporary), [])
            equal(f"{name}: the port is free", listening(view.port), [])


def main():
    with scratch() as folder:
        write(os.path.join(folder, "in.folded"), FOLDED)
        write(os.path.join(folder, "other.folded"), "main;third_function 3\n")
        for test in (test_page, test_refusals, test_port, test_slow, test_many, test_large, test_ends, test_inputs,
                     test_browser, test_watch, test_watch_recording, test_watch_errors, test_watch_ends):
            test(folder)
            shutil.rmtree(os.path.join(folder, "tmp"), ignore_errors=True)
    finish()


if __name__ == "__main__":
    main()
