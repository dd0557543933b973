#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""HTML reports in Chromium, used as a reader does: every tab, a range of time, cpu, task, search, zoom, comparison. The
numbers that the page shows are those of kscope report and kscope diff. With SHOTS=FOLDER, it takes pictures of all tabs at
three widths, dark and light, to look at."""
import collections
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, TOOLS, check, equal, exits, finish, kscope, no_problems, profiles, run, scratch
from kit.branches import Trace
from kit.html import Page

LARGE = [1400, 6000]  # a window in which all rows of a table are visible
SHOWN = ".panel-box:not([hidden])"
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
         "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
TABS = ["flame", "chart", "slices", "calltree", "functions", "function", "memory", "about"]
APP = "kscopePage.app"
SHOTS = os.environ.get("SHOTS")
# Where the handles of the selected time are, and where they have to be.
HANDLES = f"""(() => {{ const lanes = document.querySelector('.timeline-body').getBoundingClientRect(), names = 168;
  const middle = (one) => {{ const box = one.getBoundingClientRect(); return (box.left + box.right) / 2; }};
  return [[...document.querySelectorAll('.timeline-handle')].map(middle), {APP}.choice.range.map((at) =>
    lanes.left + names + (lanes.width - names) * at / {APP}.data.head.length)]; }})()"""
# Text whose contrast with what is behind it is less than WCAG's 4.5 (3 for large text).
CONTRAST = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => { const f = (x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = (element) => { for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour; } return [255, 255, 255]; };
  const poor = [];
  for (const element of document.querySelectorAll('body *')) {
    if (!element.checkVisibility() || !(element.offsetWidth > 1)) continue;
    if (element.closest('[disabled], [aria-hidden=true], .code-row')) continue;
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(style.color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5))
      poor.push(`${element.className || element.tagName} "${element.textContent.trim().slice(0, 20)}" ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)]; })()"""


def show(name, place, *steps):
    """What the page shows: see tools/report.mjs."""
    done = run("node", os.path.join(TOOLS, "report.mjs"), place, input=json.dumps(steps).encode())
    if not exits(f"{name}: the page opens", done, 0):
        finish()
    found = json.loads(done.stdout)
    for problem in ("errors", "requests", "dialogs"):
        equal(f"{name}: no {problem}", found[problem], [])
    return found


def read(name, js=None, of=None, table=False):
    return {"read": name, "js": js, "of": of, "table": table}


def rows_of(name):
    return read(name, of=SHOWN + " [role=grid]", table=True)


def shows(text, value):
    """Whether text is this value, rounded, with its unit."""
    found = re.fullmatch(r"([+−-]?)([\d,]+)(?:\.(\d+))?(?: (\S+))?(?: \S+)?", text)
    if not found:
        return False
    sign, whole, fraction, scale = found[1], found[2].replace(",", ""), found[3] or "", UNITS.get(found[4], 1)
    shown = float(f"{whole}.{fraction or 0}") * scale * (-1 if sign in ("-", "−") and sign else 1)
    return abs(shown - value) <= 0.5001 * scale / 10 ** len(fraction)


def percent(part, whole):
    return f"{100 * part / whole:.2f} %"


def same_percent(text, part, whole):
    """JavaScript may round a tie in the other direction."""
    found = re.fullmatch(r"([\d.]+) %", text)
    return bool(found) and abs(float(found[1]) - 100 * part / whole) < 0.00501


def report(odd, *options):
    """{(name, binary): (self, total, samples)} of the first event, and the sum."""
    event = odd.report(*options)["events"][0]
    return {(row["name"], row["binary"].rsplit("/", 1)[-1]): (row["self"], row["total"], row["samples"])
            for row in event["functions"]}, event["weight"]


def same_rows(name, rows, functions, whole):
    """The rows of the table of functions are those of a report, in the order of their own numbers."""
    rows = [row for row in rows if len(row) == 7]
    wrong = []
    want = {name: row for name, row in functions.items() if row[1] or row[2]}
    for own, own_share, total, total_share, samples, function, binary in rows:
        row = want.pop((function, binary), None)
        if not row or not shows(own, row[0]) or not shows(total, row[1]) or samples != f"{row[2]:,}" or \
                not same_percent(own_share, row[0], whole) or not same_percent(total_share, row[1], whole):
            wrong.append((function[:40], binary, own, own_share, total, total_share, samples, row))
    no_problems(f"{name}: the numbers are those of report", wrong)
    equal(f"{name}: no row is missing", list(want), [])
    shares = [float(row[1].split(" ")[0]) for row in rows]
    check(f"{name}: the largest is on top", len(shares) > 1 and shares == sorted(shares, reverse=True), shares[:5])


# ---- samples ----


def convert(folder, name, source, *options):
    path = os.path.join(folder, f"{name}.html")
    exits(f"{name}: converts", kscope("convert", source, *options, "-o", path), 0)
    return path


def test_tabs(path):
    """By clicks and by keys; each shows itself, and the hash says which."""
    steps = []
    for tab in ("chart", "calltree", "functions", "function", "about", "flame"):
        steps += [{"click": f"#tab-{tab}"}, read(f"click {tab}", "[document.querySelector('.panel-box:not([hidden])').id, "
                                                 "document.querySelector('[role=tab][aria-selected=true]').id, location.hash]")]
    for key in "12345":
        steps += [{"key": key}, read(f"key {key}", f"{APP}.choice.tab")]
    steps += [{"key": "?"}, read("help", of="dialog[open]"), {"key": "Escape"}, read("closed", of="dialog[open]")]
    found = show("tabs", path, *steps)
    for tab in ("chart", "calltree", "functions", "function", "about", "flame"):
        want = [f"panel-{tab}", f"tab-{tab}", f"#tab={tab}" if tab != "flame" else "#"]
        got = found[f"click {tab}"]
        equal(f"tabs: a click shows {tab}", got[:2] + [got[2] or "#"], want)
    equal("tabs: keys", [found[f"key {key}"] for key in "12345"], ["flame", "chart", "calltree", "functions", "function"])
    check("tabs: ? shows the keys", len(found["help"]) == 1 and "search" in found["help"][0], found["help"])
    equal("tabs: Escape closes the keys", found["closed"], [])


def test_numbers(odd, path):
    steps = [{"window": LARGE}]
    for event in profiles.EVENTS:
        steps += [{"hash": f"tab=functions&event={event}"}, rows_of(event), read(f"sum {event}", of=".summary")]
    steps += [{"hash": "tab=functions"}, {"click": ".timeline-name >> nth=1"}, rows_of("cpu"),
              read("chip", of=".chip"), {"click": ".chip"}, rows_of("all"),
              {"click": f"{SHOWN} [role=columnheader] button >> nth=4"}, rows_of("by samples")]
    for pid, tid, _, _ in profiles.TASKS:
        steps += [{"hash": "tab=functions"}, read("chosen", f"{APP}.choose({{ task: [...{APP}.data.tasks.tid].findIndex((tid, i) => "
                                                  f"tid === {tid + 1} && {APP}.data.tasks.pid[i] === {pid + 1}) }})"), rows_of(f"{pid}/{tid}")]
    found = show("numbers", path, *steps)
    for event in profiles.EVENTS:
        functions, whole = report(odd, "--event", event)
        same_rows(event, found[event], functions, whole)
        check(f"{event}: the sum", shows(found[f"sum {event}"][0], whole), (found[f"sum {event}"], whole))
    same_rows("one cpu", found["cpu"], *report(odd, "--event", "cycles", "--cpu", "1"))
    equal("one cpu: the page says so", [chip.replace("\n", " ") for chip in found["chip"]], ["CPU 1 ×"])
    equal("all cpus again", found["all"], found["cycles"])
    counts = [int(row[4].replace(",", "")) for row in found["by samples"] if len(row) == 7]
    check("sorted by samples", counts == sorted(counts, reverse=True) and counts[0] > counts[-1], counts[:5])
    for pid, tid, comm, _ in profiles.TASKS:
        options = ("--event", "cycles", "--pid", str(pid), "--tid", str(tid))
        same_rows(f"{comm} {tid}", found[f"{pid}/{tid}"], *report(odd, *options))


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def test_range(odd, path):
    """Dragging in the timeline selects a range of time; everything follows."""
    found = show("range", path, {"window": LARGE}, {"hash": "tab=functions"}, read("start", f"{APP}.data.head.start"),
                 {"drag": ".timeline-body", "from": [0.4, 0.2], "to": [0.7, 0.2]}, rows_of("rows"),
                 read("range", f"{APP}.choice.range"), {"wait": f"location.hash.includes({APP}.choice.range.map(Math.round).join('-'))"}, read("hash", "location.hash"), read("chip", of=".chip"),
                 {"window": [2000, 900]}, read("handles", HANDLES), {"window": LARGE},
                 {"click": "#tab-flame"}, read("flame", f"{APP}.tree().total[0]"), {"click": "#tab-chart"},
                 {"key": "Escape"}, {"click": "#tab-functions"}, read("after", f"{APP}.choice.range"), rows_of("all"))
    begin, end = (round(at) for at in found["range"])
    start = int(found["start"])
    functions, whole = report(odd, "--event", "cycles", "--time", f"{seconds(start + begin)},{seconds(start + end)}")
    same_rows("range", found["rows"], functions, whole)
    check("range: it is a part", 0 < whole < report(odd, "--event", "cycles")[1], whole)
    equal("range: the flame graph has the same sum", found["flame"], whole)
    check("range: handles are where the range is, also in a larger window",
          all(abs(handle - edge) < 3 for handle, edge in zip(*found["handles"])), found["handles"])
    check("range: the link has it", f"time={begin}-{end}" in found["hash"], (found["hash"], found["range"]))
    check("range: the page says so", len(found["chip"]) == 1 and "time" in found["chip"][0], found["chip"])
    equal("range: Escape selects all again", found["after"], None)
    same_rows("range: all again", found["all"], *report(odd, "--event", "cycles"))


def test_transformations(path, page):
    """Hidden and focused functions, collapsed binaries and merged recursion change what the page adds up."""
    number = page.functions.name.index(page.strings.index("mix"))
    name, binary = page.function(number)
    event = page.events().index("cycles")
    has = {stack: number in set(page.path(stack)) for stack in set(page.rows.stack)}
    with_it = sum(weight for weight, stack, one in zip(page.rows.weight, page.rows.stack, page.rows.event)
                  if one == event and has[stack])
    whole = page.head["events"][event]["weight"]
    key = f"{name}@{binary}"
    found = show("transformations", path, {"hash": f"hide={key}"}, read("hidden", f"{APP}.tree().total[0]"),
                 read("chip", of=".chip"), {"hash": f"focus={key}"}, read("focus", f"{APP}.tree().total[0]"),
                 read("roots", f"[...{APP}.tree().parent.subarray(0, {APP}.tree().nr)].flatMap((parent, i) => i && !parent ? [{APP}.tree().function[i]] : [])"),
                 {"hash": f"collapse={binary}"}, read("collapsed", f"{APP}.tree().total[0]"),
                 read("frames", f"{APP}.tree().nr"), {"hash": "recursion=1"}, read("merged", f"{APP}.tree().total[0]"),
                 {"hash": "inverted=1"}, read("inverted", f"(({{ parent, total }}) => total.reduce((sum, x, i) => "
                                              f"i && !parent[i] ? sum + x : sum, 0))({APP}.inverted())"),
                 {"hash": ""}, read("plain", f"{APP}.tree().nr"))
    equal("hidden: what is left", found["hidden"], whole - with_it)
    check("hidden: the page says so", len(found["chip"]) == 1 and "mix" in found["chip"][0], found["chip"])
    equal("focus: only stacks with it", (found["focus"], found["roots"]), (with_it, [number]))
    equal("collapsed, merged, inverted: nothing is lost", [found[key] for key in ("collapsed", "merged", "inverted")], [whole] * 3)
    check("collapsed: fewer frames", found["frames"] < found["plain"], (found["frames"], found["plain"]))


def test_flame(odd, path):
    """Frames are where their sums put them; a click zooms, the arrow keys walk."""
    functions, whole = report(odd, "--event", "cycles")
    found = show("flame", path, {"hash": "direction=icicle&order=heavy"},
                 {"click": f"{SHOWN} canvas", "at": [0.02, 0.0], "offset": [0, 27]}, read("zoomed", f"{APP}.choice.zoom"),
                 read("crumbs", of=".crumbs"), read("status", of=f"{SHOWN} .drawing-status"),
                 {"key": "Backspace"}, read("out", f"{APP}.choice.zoom"), {"key": "Home"},
                 {"key": "ArrowDown"}, {"key": "ArrowDown"}, read("walked", of=f"{SHOWN} .drawing-status"),
                 {"hash": "search=mix"}, read("found", of=".drawing-found"), read("matches", of=".matches"))
    equal("flame: a click zooms", len(found["zoomed"]), 1)
    check("flame: the path of the zoom", len(found["crumbs"]) == 1 and found["crumbs"][0], found["crumbs"])
    text = found["status"][0]
    parts = re.fullmatch(r"(.*): total (.*) \(([\d.]+ %)\), self (.*)", text)
    check("flame: the frame has a share of the whole", parts and 0 < float(parts[3].split(" ")[0]) <= 100, text)
    equal("flame: Backspace zooms out", found["out"], [])
    check("flame: arrows walk", found["walked"][0] not in ("", text), found["walked"])
    names = {name for name in functions if "mix" in name[0]}
    check("search: the page says how many functions match", found["matches"][0].startswith(f"{len(names)} function"),
          (found["matches"], names))
    check("search: and their share", re.search(r"[\d.]+ %", found["found"][0]) and whole, found["found"])


def test_search(path, page):
    """The share of what matches; typing filters the table; Enter goes on; a bad expression is text."""
    event = page.events().index("cycles")
    matching = {number for number in range(page.functions.nr) if re.search("_a|mix", page.function(number)[0], re.I)}
    total = sum(weight for weight, stack, one in zip(page.rows.weight, page.rows.stack, page.rows.event)
                if one == event and matching & set(page.path(stack)))
    found = show("search", path, {"window": LARGE}, {"click": "#tab-functions"}, {"key": "/"},
                 {"type": "_a|mix", "into": "[type=search]"}, read("matches", of=".matches"), rows_of("rows"),
                 {"key": "Enter"}, read("first", f"{APP}.choice.function"), {"key": "Enter"}, read("second", f"{APP}.choice.function"),
                 {"type": "thread_main(", "into": "[type=search]"}, rows_of("text"), {"key": "Escape"}, {"key": "Escape"},
                 read("cleared", f"{APP}.choice.search"))
    whole = page.head["events"][event]["weight"]
    check("search: share of the samples", found["matches"][0].endswith(percent(total, whole)), (found["matches"], total, whole))
    shown = {row[5] for row in found["rows"] if len(row) == 7}
    check("search: the table has only matches", shown and shown <= {page.function(number)[0] for number in matching}, shown)
    check("search: Enter goes from match to match", found["first"] in matching and found["second"] in matching and
          found["first"] != found["second"], (found["first"], found["second"]))
    equal("search: text that is no expression", {row[5] for row in found["text"] if len(row) == 7}, {"thread_main(int)"})
    equal("search: Escape clears it", found["cleared"], "")


def test_function(odd, path, page):
    """The page of a function: its numbers, callers, callees, source and instructions."""
    functions, whole = report(odd, "--event", "cycles")
    event = page.events().index("cycles")
    self_of = collections.Counter()
    for stack, place, weight, one in zip(page.rows.stack, page.rows.place, page.rows.weight, page.rows.event):
        if one == event and place:
            self_of[page.stacks.function[stack], page.places.file[place], page.places.line[place]] += weight
    number = page.functions.name.index(page.strings.index("mix"))
    name, binary = page.function(number)
    want = functions[name, binary.rsplit("/", 1)[-1]]
    found = show("function", path, {"window": LARGE}, {"hash": f"tab=function&fn={name}@{binary}"},
                 {"wait": "document.querySelector('.code-row')"}, read("facts", of=f"{SHOWN} dl.facts dd"),
                 read("tables", f"[...document.querySelectorAll('{SHOWN} .columns .panel')].slice(0, 2).map((panel) => "
                      "[...panel.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim())))"),
                 read("lines", "[...document.querySelectorAll('[aria-label=Source] .code-row')].map((row) => "
                      "[row.dataset.line, row.querySelector('.code-value').innerText])"),
                 read("insns", of="[aria-label=Instructions] .code-text"),
                 {"click": f"{SHOWN} .columns button.link"}, read("other", f"{APP}.choice.function"))
    check("function: its numbers", found["facts"][0].startswith("") and shows(found["facts"][0].split(" (")[0], want[0]) and
          shows(found["facts"][1].split(" (")[0], want[1]) and found["facts"][2] == f"{want[2]:,}", (found["facts"], want))
    callers, callees = found["tables"]
    for title, rows in (("callers", callers), ("callees", callees)):
        shares = sum(float(row[1].split(" ")[0]) for row in rows)
        check(f"function: {title} are all of it", rows and abs(shares - 100) < 0.01 * len(rows) + 0.01, rows)
    own = {f"{file}:{line}": weight for (function, file, line), weight in self_of.items() if function == number}
    shown = {line: text for line, text in found["lines"] if text}
    check("function: source lines with samples", shown and set(shown) <= set(own), (shown, list(own)[:5]))
    wrong = [(line, text, own[line]) for line, text in shown.items()
             if abs(float(text.split(" ")[0]) - 100 * own[line] / want[0]) > 0.051]
    no_problems("function: their shares", wrong)
    check("function: there are instructions, or a note", found["insns"] is not None)
    check("function: a caller opens its page", found["other"] not in (None, number), found["other"])


def test_tree(path, page):
    """The rows of the call tree's first level, and of what is below the largest."""
    event = page.events().index("cycles")
    totals, below = collections.Counter(), collections.Counter()
    for stack, weight, one in zip(page.rows.stack, page.rows.weight, page.rows.event):
        names = [page.function(function)[0] for function in page.path(stack)][::-1]
        if one != event:
            continue
        totals[names[0]] += weight
        below[tuple(names[:2])] += weight
    whole = page.head["events"][event]["weight"]
    found = show("call tree", path, {"window": LARGE}, {"click": "#tab-calltree"},
                 read("levels", f"[...document.querySelectorAll('{SHOWN} [role=treegrid] .body [role=row]')].map((row) => "
                      "[row.getAttribute('aria-level'), [...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.innerText.trim())])"))
    first = [cells for level, cells in found["levels"] if level == "1"]
    equal("call tree: the largest first", [cells[1] for cells in first],
          [percent(total, whole) for _, total in totals.most_common()])
    check("call tree: their names", all(shows(cells[0], totals[re.sub(r"^[▸▾\s]+|\s+inlined$", "", cells[3])]) for cells in first),
          first[:3])


def test_links(path):
    """A link shows the same again, and a bad one shows everything."""
    hash_text = "tab=functions&event=instructions&search=a&sort=-name&theme=dark&colours=category"
    found = show("links", path, {"hash": hash_text}, read("first", f"JSON.stringify({APP}.choice)"), {"key": "3"}, {"key": "i"},
                 read("changed", "location.hash"),
                 {"hash": "tab=x&time=9-1&cpu=q&zoom=a&event=none&task=q&fn=none&hide=&sort=bogus&search=("},
                 read("bad", f"[document.querySelectorAll('[role=alert]').length, {APP}.tree().total[0] > 0]"))
    choice = json.loads(found["first"])
    equal("links: the choice", [choice[key] for key in ("tab", "event", "search", "sort", "theme", "colours")],
          ["functions", 1, "a", "-name", "dark", "category"])
    check("links: keys change the link", "tab=calltree" in found["changed"] and "inverted=1" in found["changed"], found["changed"])
    equal("links: a bad one harms nothing", found["bad"], [0, True])


def test_looks(path, folder):
    """At three widths, dark and light: no text with a poor contrast, nothing sticks out."""
    steps, names = [], []
    for width, height in ((360, 740), (1400, 900), (3840, 2160)):
        for theme in ("light", "dark"):
            for tab in ("flame", "chart", "calltree", "functions", "function", "about"):
                name = f"{tab} {width} {theme}"
                names.append(name)
                steps += [{"window": [width, height]}, {"theme": theme}, {"hash": f"tab={tab}"}, read(name, CONTRAST),
                          read(f"{name} width", "document.documentElement.scrollWidth - innerWidth")]
                if SHOTS:
                    steps.append({"shot": os.path.join(SHOTS, f"{name}.png".replace(" ", "-"))})
    steps += [{"window": [1400, 900]}, {"media": "print"}, read("printed tabs", "getComputedStyle(document.querySelector('.tabs')).display"),
              {"print": os.path.join(folder, "page.pdf")}]
    found = show("looks", path, *steps)
    no_problems("looks: text can be read", [(name, found[name][:3]) for name in names if found[name]])
    no_problems("looks: no page is wider than the window", [(name, found[f"{name} width"]) for name in names if found[f"{name} width"] > 0])
    equal("looks: paper has no tabs", found["printed tabs"], "none")
    with open(os.path.join(folder, "page.pdf"), "rb") as file:
        check("looks: it prints", len(file.read()) > 5000)


def test_roles(path):
    found = show("roles", path, read("unnamed", """[...document.querySelectorAll('button, select, input, canvas, [role=slider]')]
        .filter((one) => one.checkVisibility() && !(one.getAttribute('aria-label') || one.title || one.innerText?.trim()
          || one.getAttribute('aria-hidden') || one.closest('[role=img], [aria-label]'))).map((one) => one.outerHTML.slice(0, 80))"""),
                 read("tabs", "[...document.querySelectorAll('[role=tab]')].every((tab) => "
                      "document.getElementById(tab.getAttribute('aria-controls')).getAttribute('role') === 'tabpanel')"),
                 read("lang", "document.documentElement.lang"))
    equal("roles: every control has a name", found["unnamed"], [])
    equal("roles: tabs control their panels", (found["tabs"], found["lang"]), (True, "en"))


def test_hostile(path):
    """A name that would be a script is text; see also html_data.py."""
    found = show("hostile", path, {"window": LARGE}, {"click": "#tab-functions"},
                 read("names", of=f"{SHOWN} .name"), read("elements", "document.querySelectorAll('img, iframe, b, object').length"),
                 {"click": "#tab-about"}, read("again", "document.querySelectorAll('img, iframe, object').length"))
    check("hostile: the names are text", {profiles.NAMES["odd_quotes"], profiles.NAMES["odd_separators"]} <= set(found["names"]),
          found["names"][:50])
    equal("hostile: no element is made of them", (found["elements"], found["again"]), (0, 0))


def test_damage(path, folder):
    """The page reports what it cannot show, and shows the rest."""
    with open(path, encoding="utf-8") as file:
        html = file.read()
    for name, old, new, words in (
            ("no-rows", 'id="data-rows"', 'id="data-gone"', "data-rows"),
            ("packing", 'id="data-core" data-packing="gzip"', 'id="data-core" data-packing="lzma"', "lzma"),
            ("cut", re.search('id="data-core" data-packing="gzip">[^<]{900}', html)[0],
             re.search('id="data-core" data-packing="gzip">[^<]{600}', html)[0], "damaged")):
        broken = os.path.join(folder, f"{name}.html")
        with open(broken, "w", encoding="utf-8") as file:
            file.write(html.replace(old, new, 1))
        done = run("node", os.path.join(TOOLS, "report.mjs"), broken,
                   input=json.dumps([read("alert", of="[role=alert]")]).encode())
        alert = json.loads(done.stdout)["alert"] if not done.returncode else [done.stderr]
        check(f"damage: {name}: the page says so", len(alert) == 1 and words in alert[0], alert)


def test_odd(folder):
    odd = profiles.odd(folder)
    path = convert(folder, "odd", odd.path, *odd.options)
    page = Page(path)
    test_tabs(path)
    test_numbers(odd, path)
    test_range(odd, path)
    test_transformations(path, page)
    test_flame(odd, path)
    test_search(path, page)
    test_function(odd, path, page)
    test_tree(path, page)
    test_links(path)
    test_looks(path, folder)
    test_roles(path)
    test_hostile(path)
    test_damage(path, folder)


def test_many(folder):
    """If samples are summed up over times, a range has whole ones, and its sum is that of report."""
    source = os.path.join(folder, "many.dump")
    with open(source, "w", encoding="utf-8") as file:
        file.write('kscope-dump 1\nsource id=1 name="cycles"\n')
        for i in range(1100000):
            file.write(f'sample time={i // 10**6}.{i % 10**6:06}000 cpu=0 task=1/1 source=1 weight={1 + i % 3} : named "a" "b"\n')
    path = convert(folder, "many", source)
    found = show("many", path, {"hash": "time=100000100-700000100"}, read("range", f"{APP}.choice.range"),
                 read("head", f"{APP}.data.head"), read("sum", f"{APP}.tree().total[0]"),
                 {"drag": ".timeline-body", "from": [0.5, 0.2], "to": [0.6, 0.2]}, read("dragged", f"{APP}.choice.range"),
                 {"click": "#tab-about"}, read("about", of=f"{SHOWN}"))
    quantum, start = found["head"]["quantum"], int(found["head"]["start"])
    begin, end = found["range"]
    check("many: whole quanta", quantum > 1 and begin <= 100000100 < begin + quantum and end - quantum < 700000100 <= end and
          not begin % quantum and not end % quantum and not found["dragged"][0] % quantum, (found["range"], quantum))
    done = kscope("report", source, "--json", "--time", f"{seconds(start + begin)},{seconds(start + end)}")
    equal("many: the sum", found["sum"], json.loads(done.stdout)["events"][0]["weight"])
    check("many: the page says it", "summed up" in found["about"][0].lower(), found["about"][0][-600:])


# ---- calls, allocations, comparisons ----


def test_calls(folder):
    """Search, the next match, its details, and the distance of two points."""
    trace = Trace(["main", "work", "leaf"])
    trace.begin(0, 0, 5, "main")
    for i in range(20):
        at = 100000 * i
        trace.call(at + 1000, 0, 5, "main", "work")
        trace.call(at + 2000, 0, 5, "work", "leaf")
        trace.leave(at + 2000 + 1000 * (i + 1), 0, 5, "leaf", "work")
        trace.leave(at + 60000, 0, 5, "work", "main")
    trace.end(2000000, 0, 5, "main")
    source = os.path.join(folder, "calls.dump")
    with open(source, "w", encoding="utf-8") as file:
        file.write(trace.text())
    path = convert(folder, "calls", source)
    found = show("calls", path, {"click": "#tab-slices"}, {"wait": "document.querySelector('#panel-slices canvas')"},
                 {"type": "^leaf", "into": "[type=search]"}, read("found", of=f"{SHOWN} .drawing-found"), {"key": "Enter"},
                 read("first", of=".slice-details"), {"key": "Enter"}, read("second", of=".slice-details"),
                 {"click": ".slice-title button >> text=Previous call"}, read("back", of=".slice-details"),
                 {"click": f"{SHOWN} canvas"}, {"key": "m"}, {"drag": f"{SHOWN} canvas", "from": [0.3, 0.5], "to": [0.6, 0.5]},
                 read("status", of=".status"))
    equal("calls: the search counts calls", found["found"], ["Found: 20 calls"])
    text = found["first"][0]
    check("calls: the details of the first", "leaf" in text and "1.000 µs" in text and "work" in text, text)
    check("calls: and of the next", "2.000 µs" in found["second"][0], found["second"])
    equal("calls: the previous call is the first", found["back"], found["first"])
    option = re.search(r"[\d.]+,\+\d+ns", text)
    if check("calls: the time as --time has it", option, text):
        done = kscope("calls", source, "--time", option[0], "--json", "--limit", "0")
        row = next(row for row in json.loads(done.stdout)["functions"] if row["name"] == "leaf")
        equal("calls: kscope calls finds just that call", (row["count"], row["total_time"]), (1, 1000))
    measured = re.search(r"Measured: (\S+ \S+)", found["status"][0])
    check("calls: a distance is measured", measured and not shows(measured[1], 0), found["status"])


def test_memory(folder):
    source = os.path.join(ROOT, "tests/golden/firefox-allocs/input.dump")
    path = convert(folder, "allocs", source)
    page = Page(path)
    allocated, freed = collections.Counter(), collections.Counter()
    for stack, size in zip(page.allocs.stack, page.allocs.size):
        (allocated if size > 0 else freed)[page.function(page.stacks.function[stack])[0]] += abs(size)
    found = show("memory", path, {"window": LARGE}, {"click": "#tab-memory"}, {"wait": f"document.querySelector('{SHOWN} [role=gridcell]')"},
                 rows_of("rows"), read("legend", of=f"{SHOWN} .legend"))
    rows = {row[-1]: row for row in found["rows"] if len(row) == 6}
    equal("memory: functions", set(rows), set(allocated) | set(freed))
    no_problems("memory: allocated, freed and kept", [(name, row, allocated[name], freed[name]) for name, row in rows.items()
                if not (shows(row[0], allocated[name]) and shows(row[1], freed[name]) and
                        shows(row[2], allocated[name] - freed[name]))])
    check("memory: there is a peak", "Peak" in found["legend"][0], found["legend"])


def test_diff(folder):
    """The shares before and after are those of kscope diff."""
    runs = []
    for name, work in (("old", 30), ("new", 60)):
        path = os.path.join(folder, f"{name}.dump")
        with open(path, "w", encoding="utf-8") as file:
            file.write('kscope-dump 1\nsource id=1 name="cycles"\n')
            for i in range(400):
                leaf = "work" if i % 100 < work else "wait" if i % 2 else f"only_{name}"
                file.write(f'sample time=0.{i:06} cpu=0 task=1/1 source=1 weight=10 : named "{leaf}" "{"a" if i % 3 else "b"}" "main"\n')
        runs.append(path)
    page = os.path.join(folder, "diff.html")
    done = kscope("diff", *runs, "-o", page)
    check("diff: writes a page", done.returncode in (0, 5) and os.path.exists(page), done.stderr)
    events = json.loads(kscope("diff", *runs, "--json", "--limit", "0").stdout)["events"]
    want = {row["name"]: row for row in events[0]["rows"]}
    found = show("diff", page, {"window": LARGE}, {"click": "#tab-functions"}, rows_of("rows"), {"click": "#tab-flame"},
                 read("before", f"[{APP}.tree().beforeTotal[0], {APP}.tree().total[0]]"), {"click": "#tab-calltree"},
                 read("title", "document.title"), {"hash": "tab=function&fn=work"}, read("facts", of=f"{SHOWN} dl.facts dd"))
    rows = {row[5]: row for row in found["rows"] if len(row) == 7}
    wrong = []
    for name in want:
        before, after = (want[name][side]["self_percent"] for side in ("before", "after"))
        row = rows.get(name)
        if not row or abs(float(row[0].split(" ")[0]) - before) > 0.0051 or abs(float(row[1].split(" ")[0]) - after) > 0.0051 \
                or not shows(row[2].replace(" pp", ""), after - before):
            wrong.append((name, row, before, after))
    no_problems("diff: the shares are those of kscope diff", wrong)
    check("diff: what is only on one side", {"only_old", "only_new"} <= set(rows), list(rows))
    equal("diff: both flame graphs are complete", found["before"], [4000, 4000])
    equal("diff: both recordings are named", found["title"], "old.dump → new.dump - kscope")
    check("diff: the page of a function shows both", "→" in found["facts"][0], found["facts"])
    for name, words, message in (
            ("another format", (*runs, "-o", "x.svg"), "the page is HTML"), ("no format", (*runs, "-o", "x.txt"), "the page is HTML"),
            ("stdout, which has the table", (*runs, "-o", "-"), "the page cannot go to stdout"),
            ("a stream, which it would have to read twice", ("-", runs[1], "-o", "x.html"), "reads each input twice")):
        done = kscope("diff", *words)
        check(f"diff: refuses {name}", done.returncode == 2 and message in done.stderr and not done.stdout, done.stderr)


def main():
    with scratch() as folder:
        test_odd(folder)
        test_many(folder)
        test_calls(folder)
        test_memory(folder)
        test_diff(folder)
    finish()


if __name__ == "__main__":
    main()
