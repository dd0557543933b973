#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope view in Chromium: the page that the server sends works, follows a recording that grows, and pages of others cannot
read it. cli/view.py has the rules of the server."""
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, TOOLS, check, default_signals, equal, finish, run, scratch, wait_for

APP = "kscopePage.app"
HEAD = 'kscope-dump 1\nsource id=1 name="cycles"\n'


def samples(first, nr, name):
    return "".join(f'sample time={i / 1e6:.9f} cpu={i % 2} task=1/1 source=1 weight=5 : named "{name}" "main"\n'
                   for i in range(first, first + nr))


class View:
    def __init__(self, *words):
        self.child = subprocess.Popen([KSCOPE, "view", "--no-browser", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, text=True, preexec_fn=default_signals)
        self.url = self.child.stdout.readline().strip()

    def end(self, name):
        self.child.send_signal(signal.SIGINT)
        _, errors = self.child.communicate()
        equal(f"{name}: Ctrl+C ends it", self.child.returncode, 0)
        return errors


def driver(url):
    return subprocess.Popen(["node", os.path.join(TOOLS, "report.mjs"), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def shown(name, browser, steps, between=None):
    """What the page shows; `between` runs while it does the steps."""
    browser.stdin.write(json.dumps(steps))
    browser.stdin.close()
    browser.stdin = None
    if between:
        between()
    output, errors = browser.communicate()
    if not check(f"{name}: the page opens", browser.returncode == 0, errors):
        return None
    found = json.loads(output)
    equal(f"{name}: no errors", (found["errors"], found["requests"]), ([], []))
    return found


def test_page(path):
    view = View(path)
    check("page: an address on loopback", re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", view.url), view.url)
    found = shown("page", driver(view.url), [{"read": "sum", "js": f"{APP}.tree().total[0]"}, {"key": "4"},
                                             {"read": "tab", "js": f"{APP}.choice.tab"}])
    equal("page: it works", found and (found["sum"], found["tab"]), (1500, "functions"))
    test_others(view.url)
    view.end("page")


def test_others(url):
    """A page of another origin cannot read the report, even if it knows the address."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><p role=alert>x</p>")

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fetch = f"fetch('{url}').then((answer) => answer.text(), () => 'refused')"
    frame = f"""new Promise((done) => {{ const frame = document.createElement('iframe'); frame.src = '{url}';
        frame.onload = () => {{ try {{ done(frame.contentDocument ? frame.contentDocument.title : 'closed'); }}
        catch {{ done('closed'); }} }}; document.body.append(frame); }})"""
    done = run("node", os.path.join(TOOLS, "report.mjs"), f"http://127.0.0.1:{server.server_port}/",
               input=json.dumps([{"read": "fetched", "js": fetch}, {"read": "framed", "js": frame}]).encode())
    found = json.loads(done.stdout) if not done.returncode else {}
    equal("others: cannot read it", (found.get("fetched"), found.get("framed")), ("refused", "closed"))
    server.shutdown()


def test_live(folder):
    """The page shows what was appended, and keeps what the user selected."""
    path = os.path.join(folder, "grows.dump")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD + samples(0, 300, "early"))
    view = View("--watch", path)
    check("live: the address", view.url.endswith("/live"), view.url)
    browser = driver(view.url)

    def has_page():
        with urllib.request.urlopen(urllib.parse.urljoin(view.url, "state")) as answer:
            return json.load(answer)["version"] > 0

    def grow():
        wait_for(has_page)
        with open(path, "a", encoding="utf-8") as file:
            file.write(samples(300, 700, "late") + "sample time=0.5 cpu=0 ta")

    found = shown("live", browser, [
        {"wait": f"globalThis.kscopePage && {APP}.data.rows.nr >= 300"}, {"click": "#tab-functions"},
        {"type": "l", "into": "[type=search]"}, {"wait": f"{APP}.data.rows.nr === 1000"}, {"wait": "location.hash.includes('search=l')"},
        {"read": "names", "of": ".panel-box:not([hidden]) .name"}, {"read": "choice", "js": f"[{APP}.choice.tab, {APP}.choice.search]"},
        {"read": "sum", "js": f"{APP}.tree().total[0]"}, {"wait": "document.querySelector('.status').textContent.includes('Live')"}], grow)
    if found:
        equal("live: what was appended", (found["sum"], sorted(found["names"])), (5000, ["early", "late"]))
        equal("live: the selection stays", found["choice"], ["functions", "l"])
    errors = view.end("live")
    check("live: the cut end is no damage", "damage" not in errors, errors)


def main():
    with scratch() as folder:
        path = os.path.join(folder, "whole.dump")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + samples(0, 300, "early"))
        test_page(path)
        test_live(folder)
    finish()


if __name__ == "__main__":
    main()
