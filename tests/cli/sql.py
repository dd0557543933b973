#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope sql: what it prints, what it refuses, and databases that are damaged or do not fit."""
import json
import os
import pty
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, ROOT, check, equal, exits, finish, kscope, no_problems, run, scratch, skip

NAME = 'evil \033[31m;\007 "x",\twide é'
QUOTED = json.dumps(NAME, ensure_ascii=False).replace(r"\t", r"\u0009")[1:-1]
DUMP = f"""kscope-dump 1
meta key="arch" value="x86_64"
source id=1 name="cycles" type=0 config=0x0
comm task=1/1 name="{QUOTED}"
sample time=0.000000001 cpu=0 task=1/1 source=1 weight=5 : named "main" "{QUOTED}"
sample time=0.000000002 cpu=1 task=1/1 source=1 weight=7 : named "leaf" "main"
"""
PATH = "run.db"


def test_formats(folder):
    def asked(*options, sql="SELECT id, name FROM functions ORDER BY id"):
        return kscope("sql", PATH, sql, *options, cwd=folder).stdout

    name, plain = NAME, re.sub("[\033\007\t]", "?", NAME)
    equal("a table", asked(), f"id  name\n 1  {plain}\n 2  main\n 3  leaf\n")
    equal("--csv", asked("--csv"), 'id,name\n1,"' + name.replace('"', '""') + '"\n2,main\n3,leaf\n')
    equal("--tsv", asked("--tsv"), "id\tname\n1\t" + name.replace("\t", "\\t") + "\n2\tmain\n3\tleaf\n")
    equal("--json", json.loads(asked("--json")), [{"id": n + 1, "name": text} for n, text in enumerate([name, "main", "leaf"])])
    values = "SELECT NULL AS n, 1.5 AS r, -3 AS i, x'00ff' AS b, '' AS e, 1e-7 AS s, 2.0 AS w"
    equal("values in JSON", json.loads(asked("--json", sql=values)),
          [{"n": None, "r": 1.5, "i": -3, "b": "00ff", "e": "", "s": 1e-7, "w": 2.0}])
    reals = [1e-30, -2.5e-21, 5e-324, 1.7976931348623157e308, 2 ** -60, 0.1 + 0.2, 0.0, 123456789.125]
    found = json.loads(asked("--json", sql="SELECT " + ", ".join(f"{real!r} AS r{n}" for n, real in enumerate(reals))))
    equal("numbers in JSON, however small", list(found[0].values()), reals)
    equal("values in CSV", asked("--csv", sql=values), "n,r,i,b,e,s,w\n,1.5,-3,00ff,,1e-07,2.0\n")
    equal("an empty value alone in CSV is no empty line", asked("--csv", sql="SELECT NULL AS a UNION ALL SELECT 5"), 'a\n""\n5\n')
    equal("blobs", asked("--tsv", sql="SELECT x'00017f80ff' AS b"), "b\n00017f80ff\n")
    for path in (PATH, "in.dump"):
        done = kscope("sql", path, "SELECT 1 AS a, 2 AS b, 3 AS a", "--json", cwd=folder)
        exits("two columns of one name in JSON", done, 2, "two columns", "AS")
        equal("... nothing is printed", done.stdout, "")
    equal("... elsewhere", asked("--csv", sql="SELECT 1 AS a, 2 AS a"), "a,a\n1,2\n")
    equal("several statements", asked(sql="SELECT 1 AS a; -- note\n;; SELECT 2 AS b;"), "a\n1\n\nb\n2\n")
    equal("no losses are 0, not unknown", asked("--csv", sql="SELECT * FROM lost"), "samples,bytes,places,damaged_places\n0,0,0,0\n")
    equal("no rows", asked(sql="SELECT id, name FROM tasks WHERE 0"), "id  name\n")
    rows = asked("--tsv", sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i FROM n")
    equal("many rows", rows, "".join(f"{row}\n" for row in ["i", *range(1, 5001)]))
    table = asked(sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i, i FROM n")
    equal("many rows of a table", table.split(), ["i", "i"] + [str(n) for n in range(1, 5001) for _ in "ab"])


def on_terminal(folder, *words):
    """What the program writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([KSCOPE, *words], cwd=folder, stdout=theirs, stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # the end, on Linux
            pass
        process.wait()
    os.close(ours)
    return shown.decode()


def test_terminal(folder):
    for options in ([], ["--csv"], ["--tsv"], ["--json"]):
        shown = on_terminal(folder, "sql", PATH, "SELECT name FROM functions", *options)
        check(" ".join(["a terminal gets no escapes", *options]),
              "leaf" in shown and not re.search("[\033\007]", shown), repr(shown))


def test_refusals(folder):
    for what, sql, *words in (
            ("no SQL", "selec", "SQL, byte 1", "syntax error"),
            ("no such column", "SELECT 1; SELECT nope FROM samples", "SQL, byte 18: no such column: nope"),
            ("an open string", "SELECT 'x", "SQL, byte 8", "unrecognized token"),
            ("an overflow", "SELECT sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)", "integer overflow"),
            ("INSERT", "INSERT INTO facts VALUES(9, 'a', 'b')", "only read"),
            ("DELETE", "DELETE FROM samples", "only read"),
            ("UPDATE", "UPDATE samples SET weight = 1", "only read"),
            ("DROP", "DROP TABLE samples", "only read"),
            ("CREATE", "CREATE TABLE x(a)", "only read"),
            ("a temporary table", "CREATE TEMP TABLE x(a)", "only read"),
            ("ATTACH", "ATTACH 'other.db' AS o", "only read"),
            ("VACUUM INTO", "VACUUM INTO 'other.db'", "only read"),
            ("a pragma that writes", "PRAGMA journal_mode = WAL", "only read"),
            ("another", "PRAGMA writable_schema = 1", "only read"),
            ("a number of the file", "PRAGMA user_version = 7", "only read"),
            ("an extension", "SELECT load_extension('x')", "load_extension"),
            ("a file", "SELECT writefile('other.db', 'x')", "writefile")):
        before = read(os.path.join(folder, PATH))
        for path in (PATH, "in.dump"):
            exits(f"refuses {what}: {path}", kscope("sql", path, sql, cwd=folder), 2, "SQL", *words)
        check(f"refuses {what}: nothing changed", read(os.path.join(folder, PATH)) == before and
              sorted(os.listdir(folder)) == sorted(["in.dump", PATH]))
    exits("a mistake is found before the input is read",
          kscope("sql", "/no/such/file", "SELECT nope FROM samples"), 2, "no such column")
    exits("--schema with a statement", kscope("sql", PATH, "SELECT 1", "--schema", cwd=folder), 2, "--schema")
    exits("no input", kscope("sql"), 2, "no input")
    exits("a missing input", kscope("sql", "nothing.db", cwd=folder), 3, "nothing.db", "No such file")
    exits("a missing recording", kscope("sql", "nothing.data", "SELECT 1", cwd=folder), 3, "nothing.data")
    exits("no recording", kscope("sql", "/dev/null", "SELECT 1"), 3)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def test_schema(folder):
    with open(os.path.join(ROOT, "src", "write", "sqlite.sql"), encoding="utf-8") as file:
        source = file.read()
    shown = kscope("sql", "in.dump", cwd=folder).stdout
    equal("without a statement: the schema", shown, source.split("\n\n", 1)[1])
    equal("--schema", kscope("sql", "in.dump", "--schema", cwd=folder).stdout, shown)
    stored = kscope("sql", PATH, cwd=folder).stdout
    equal("the schema in a database has its comments", stored, shown.split("\n\n", 1)[1].rstrip("\n") + "\n")


def test_inputs(folder):
    with open(os.path.join(folder, "in.dump"), "rb") as stdin:
        done = kscope("sql", "-", "SELECT sum(weight) FROM samples", "--tsv", stdin=stdin)
    equal("stdin", done.stdout, "sum(weight)\n12\n")
    equal("two inputs", kscope("sql", "in.dump", "in.dump", "SELECT count(*) AS n FROM samples", "--tsv", cwd=folder).stdout,
          "n\n4\n")
    equal("a selection", kscope("sql", "in.dump", "SELECT weight FROM samples", "--tsv", "--cpu", "1", cwd=folder).stdout,
          "weight\n7\n")
    for words in ((PATH, PATH), (PATH, "in.dump"), ("in.dump", PATH)):
        exits(f"two inputs: {words}", kscope("sql", *words, "SELECT 1", cwd=folder), 2, "only input")
    exits("a selection of a database", kscope("sql", PATH, "SELECT 1", "--cpu", "1", "-v", cwd=folder), 0,
          "--cpu has no effect on a database")
    equal("a text in double quotes", kscope("sql", PATH, 'SELECT "x y" AS t', "--tsv", cwd=folder).stdout, "t\nx y\n")
    done = kscope("sql", PATH, "PRAGMA integrity_check; PRAGMA foreign_key_check", "--tsv", cwd=folder)
    equal("pragmas that only read", done.stdout, "integrity_check\nok\n\ntable\trowid\tparent\tfkid\n")


def test_damage(folder):
    """Any damage to a database is an error or a wrong answer, but no crash."""
    whole, path = read(os.path.join(folder, PATH)), os.path.join(folder, "bad.db")
    rng, problems, refused = random.Random(5), [], 0
    sql = ("SELECT * FROM function_totals; SELECT * FROM folded; SELECT * FROM samples_named; "
           "SELECT * FROM call_durations; PRAGMA integrity_check")
    for n in range(120):
        data = bytearray(whole)
        if n % 4 == 0:
            del data[rng.randrange(len(data)):]
        for _ in range(rng.choice([1, 10, 1000])):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        with open(path, "wb") as file:
            file.write(data)
        for words in ([sql], []):
            done = kscope("sql", path, *words)
            refused += done.returncode == 3
            if done.returncode not in (0, 2, 3):
                problems.append(f"{n} {words}: {done.returncode}: {done.stderr[-300:]}")
    no_problems("damaged databases", problems)
    check("... some of them are refused", refused > 20, refused)
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(whole[:len(whole) // 2])
    exits("half a database", kscope("sql", path, "SELECT * FROM samples"), 3, "database")
    os.unlink(path)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE x(a)")
    db.commit()
    db.close()
    for words in (["SELECT * FROM x"], []):
        exits("another program's database", kscope("sql", path, *words), 3, "kscope did not write")
    shutil.copy(os.path.join(folder, PATH), path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    for words in (["SELECT * FROM samples"], []):
        exits("a database with a write-ahead log", kscope("sql", path, *words), 3, "write-ahead log", "journal_mode = DELETE")
    os.unlink(path)


def test_limits(folder):
    lines = [DUMP] + [f'sample time=0.{n + 10:09} cpu=0 task=1/1 source=1 weight=5 : named "f{n % 2000}" "main"\n'
                      for n in range(60000)]
    source, path = os.path.join(folder, "many.dump"), os.path.join(folder, "many.db")
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(lines)
    done = run("sh", "-c", f"ulimit -f 1024; exec {KSCOPE} convert {source} -o {path}")
    exits("a limit on files", done, 4, path, "ulimit")
    check("... leaves nothing behind", not [name for name in os.listdir(folder) if name.endswith(".tmp") or name == "many.db"])
    done = run("sh", "-c", f"ulimit -f 1024; exec {KSCOPE} convert {source} -t sqlite -o - | cat")
    check("... on a temporary file", "temporary file" in done.stderr and not done.stdout.strip("\0"), done.stderr)
    done = run("sh", "-c", f"ulimit -f 1024; exec {KSCOPE} sql {source} 'SELECT 1'")
    exits("... of kscope sql", done, 4, "ulimit")
    exits("a database", kscope("convert", "-q", source, "-o", path), 0)
    exits("a full disk", kscope("convert", source, "-t", "sqlite", "-o", "/dev/full"), 4, "/dev/full", "No space")
    exits("no such folder", kscope("convert", source, "-o", f"{folder}/no/x.db"), 4, "No such file")
    sort = "SELECT a.id, b.id FROM functions a, functions b, functions c ORDER BY random()"
    done = run("env", "TMPDIR=/no/such/folder", KSCOPE, "sql", path, sort)
    exits("no folder for the temporary file of an answer", done, 4, "a temporary file in /no/such/folder: No such file")
    for huge in ("randomblob(900000000)", "zeroblob(900000000) || 'x'", "hex(zeroblob(90000000))"):
        exits(f"a value with a bound: {huge}", kscope("sql", path, f"SELECT length({huge})"), 2, "too big")
    many = ", ".join(["hex(zeroblob(66000000))"] * 9)
    exits("many large values", kscope("sql", path, f"SELECT count(*) FROM (SELECT {many} ORDER BY random())"), 4, "out of memory")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([KSCOPE, "sql", source, "SELECT * FROM samples"], stdout=full, stderr=subprocess.PIPE, check=False)
    equal("a full disk behind an answer", done.returncode, 4)
    equal("a database does not go to a terminal", on_terminal(folder, "convert", source, "-t", "sqlite", "-o", "-"), "")
    for name in ("many.dump", "many.db"):
        if os.path.exists(os.path.join(folder, name)):
            os.unlink(os.path.join(folder, name))


def test_leftovers(folder):
    """SQLite would apply the changes in a file beside the output to the new database."""
    path = os.path.join(folder, "left.db")
    for mode, end in (("wal", "-wal"), ("delete", "-journal")):
        other = sqlite3.connect(os.path.join(folder, "other.db"), isolation_level=None)
        for sql in (f"PRAGMA journal_mode = {mode}", "CREATE TABLE x(a)", "BEGIN", "INSERT INTO x VALUES(1)"):
            other.execute(sql)
        if mode == "wal":
            other.execute("COMMIT")
        for part in ("", end):
            shutil.copy(os.path.join(folder, "other.db" + part), path + part)
        other.close()
        before = read(path)
        exits(f"a file {end} beside the output", kscope("convert", "in.dump", "-o", path, cwd=folder), 4, f"left.db{end}", "remove")
        check(f"a file {end}: the output stays as it was", read(path) == before)
        exits(f"a file {end} beside the target of a link", kscope("convert", "in.dump", "-o", link_to(path), cwd=folder), 4,
              f"left.db{end}")
        exits("... but a compressed database", kscope("convert", "in.dump", "-o", path + ".gz", cwd=folder), 0)
        with open(path + end, "wb"):
            pass
        exits(f"an empty file {end}", kscope("convert", "in.dump", "-o", path, cwd=folder), 0)
        db = sqlite3.connect(path)
        equal(f"an empty file {end}: SQLite reads the database", db.execute("SELECT count(*) FROM samples").fetchall(), [(2,)])
        db.close()
        for name in os.listdir(folder):
            if name.startswith(("left.db", "other.db", "link.db")):
                os.unlink(os.path.join(folder, name))


def link_to(path):
    link = os.path.join(os.path.dirname(path), "link.db")
    if not os.path.islink(link):
        os.symlink(path, link)
    return link


def test_interrupt(folder):
    """A statement that would not end."""
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with subprocess.Popen([KSCOPE, "sql", "in.dump", sql], cwd=folder, stdout=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            pass
        process.send_signal(signal.SIGINT)
        equal("Ctrl-C ends it", process.wait(), -signal.SIGINT)


def test_numbers(folder):
    path = os.path.join(folder, "numbers.dump")
    with open(path, "w", encoding="utf-8") as file:
        file.write('kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0\n'
                   f'sample task=1/1 source=1 weight={2**64 - 1} : user {2**64 - 2**40:#x}\n')
    done = kscope("sql", path, "SELECT weight, time, cpu, address FROM samples_named", "--tsv")
    exits("a weight of 64 bits", done, 0, "2^63-1")
    equal("... is the largest number; an address keeps its bits", done.stdout,
          f"weight\ttime\tcpu\taddress\n{2**63 - 1}\t\t\t0xffffff0000000000\n")
    os.unlink(path)


def test_page(folder):
    """The man page has all tables, views and columns, and its examples work."""
    with open(os.path.join(ROOT, "man", "kscope-sql.1"), encoding="utf-8") as file:
        page = file.read()
    described = {name: re.findall(r"\\fB(\w+)\\fR(?= \(|[,.])", text) for name, text in
                 re.findall(r"^\.TP\n\.B (\w+)\n(.*?)(?=^\.TP|^\.SH|^\.PP)", page, re.M | re.S) if "Columns:" in text}
    db = sqlite3.connect(os.path.join(folder, PATH))
    names = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    have = {name: [column[0] for column in db.execute(f"SELECT * FROM {name} LIMIT 0").description] for name in names}
    equal("the man page describes all tables, views and columns", described, have)
    examples = re.findall(r"^kscope sql \S+ (\\\(aq.*?\\\(aq.*?)\n\.RE", page, re.M | re.S)
    check("the man page has examples", len(examples) > 6, examples)
    for text in examples:
        words = shlex.split(text.replace("\\(aq", "'").replace("\\-", "-"))
        exits(f"example: {words[0][:60]}...", kscope("sql", PATH, *words, cwd=folder), 0)


def main():
    if "libsqlite3" in kscope("sql", "/dev/null", "select 1").stderr:
        skip("kscope sql", "it was built without libsqlite3")
        finish()
    with scratch() as folder:
        with open(os.path.join(folder, "in.dump"), "w", encoding="utf-8") as file:
            file.write(DUMP)
        exits("converts", kscope("convert", "in.dump", "-o", PATH, cwd=folder), 0)
        for test in (test_formats, test_terminal, test_refusals, test_schema, test_inputs, test_damage, test_limits,
                     test_leftovers, test_interrupt, test_numbers, test_page):
            test(folder)
    finish()


if __name__ == "__main__":
    main()
