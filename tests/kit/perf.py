# SPDX-License-Identifier: GPL-2.0-or-later
"""Records a program with perf, and reads the samples as perf and as kscope print them.

perf 6.1 prints user addresses of call chains relative to the file (address - start of the map +
offset in the file), and those of samples without a chain unchanged. relative() does the same to
kscope's addresses, with the maps that kscope prints.
"""
import bisect
import os
import re
import shutil
import subprocess

from . import kscope, run

WORKLOAD = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void leaf(int n)
{
	for (int i = 0; i < n * 1000; i++)
		sink += i * i;
	sink++;
}
__attribute__((noinline)) void middle(int n) { leaf(n); sink++; }
__attribute__((noinline)) void outer(int n)
{
	for (int i = 0; i < n; i++)
		middle(50);
	sink++;
}
__attribute__((noinline)) void deep(int n, int work)
{
	char room[100];

	memset(room, n, sizeof(room));
	if (n)
		deep(n - 1, work);
	else
		outer(work);
	sink += room[n % 100];
}
static void *thread(void *arg) { deep(10, *(int *)arg); return NULL; }
static void threads(int work)
{
	pthread_t all[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&all[i], NULL, thread, &work);
	for (int i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
}
static void *nothing(void *arg) { return arg; }
static void dying_threads(int nr)
{
	pthread_attr_t detached;
	pthread_t thread;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < nr; i++)
		while (pthread_create(&thread, &detached, nothing, NULL))
			;
}
static void forks(int nr, char *self)
{
	for (int i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (!pid) {
			outer(10);
			if (i % 3 == 0)
				execl(self, self, "once", NULL);
			_exit(0);
		}
		if (i % 2)
			waitpid(pid, NULL, 0);
	}
	while (wait(NULL) > 0)
		;
}
static void system_calls(void)
{
	char *room = malloc(1 << 22);

	for (int i = 0; i < 60; i++) {
		int ends[2];

		memset(room, i, 1 << 22);
		if (pipe(ends) == 0) {
			for (int j = 0; j < 500; j++)
				if (write(ends[1], room, 512) < 0 || read(ends[0], room, 512) < 0)
					break;
			close(ends[0]);
			close(ends[1]);
		}
		free(room);
		room = malloc((1 << 22) + i);
	}
	free(room);
}
static void clocks(void)
{
	struct timespec now;

	for (int i = 0; i < 2000000; i++)
		sink += clock_gettime(CLOCK_MONOTONIC, &now);
}
int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "once"))
		outer(10);
	if (strchr(what, 'T'))
		threads(600);
	if (strchr(what, 'D'))
		dying_threads(1500);
	if (strchr(what, 'F'))
		forks(60, argv[0]);
	if (strchr(what, 'S'))
		system_calls();
	if (strchr(what, 'V'))
		clocks();
	deep(20, strchr(what, 'L') ? 1500 : 60);
	return 0;
}
"""


def build(folder, name="load", flags=("-O1", "-g", "-fno-omit-frame-pointer")):
    source = os.path.join(folder, name + ".c")
    with open(source, "w", encoding="ascii") as f:
        f.write(WORKLOAD)
    binary = os.path.join(folder, name)
    subprocess.run(["cc", *flags, source, "-o", binary, "-lpthread"], check=True)
    return binary


def record(path, options, *command):
    return run("perf", "record", "-q", *options, "-o", path, *command)


def why_not():
    """The reason why perf record cannot be tested here, or None."""
    if not shutil.which("perf"):
        return "perf is not installed"
    if record("/dev/null", ["-e", "cpu-clock"], "true").returncode:
        return "perf record does not work here"
    if not shutil.which("cc"):
        return "no C compiler"
    return None


class Sample:
    def __init__(self, comm, pid, tid, cpu, time, period, event):
        self.comm, self.pid, self.tid, self.cpu = comm, pid, tid, cpu
        self.time, self.period, self.event = time, period, event
        self.frames = []  # perf: (address, symbol, offset, dso); kscope: (address, context)
        self.one_line = False

    def key(self):
        return (self.time, self.pid, self.tid, self.cpu, self.event, self.period)


START = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?:\[(?P<cpu>\d+)\]\s+)?"
                   r"(?P<s>\d+)\.(?P<ns>\d{9}):\s+(?P<period>\d+)\s+(?P<event>\S+):(?P<rest>.*)$")
FRAME = re.compile(r"^\s*(?P<addr>[0-9a-f]+) (?P<sym>.*?)(?:\+0x(?P<off>[0-9a-f]+))? "
                   r"\((?P<dso>[^()]*(?:\([^()]*\))?)\)\s*$")


def frame_of(line):
    m = FRAME.match(line)
    if not m:
        raise ValueError("not a frame: " + line)
    return int(m["addr"], 16), m["sym"], int(m["off"] or "0", 16), m["dso"]


def perf_script(path, *more):
    done = run("perf", "script", "-i", path, "--ns", "--no-inline", *more)
    return done.stdout, done.stderr


def perf_samples(path, cpu=True):
    fields = "comm,pid,tid,%stime,event,period,ip,sym,symoff,dso" % ("cpu," if cpu else "")
    text, _ = perf_script(path, "-F", fields)
    samples = []
    for line in text.split("\n"):
        m = START.match(line)
        if m:
            samples.append(Sample(m["comm"], int(m["pid"]), int(m["tid"]),
                                  int(m["cpu"]) if m["cpu"] else None,
                                  int(m["s"]) * 10**9 + int(m["ns"]), int(m["period"]),
                                  m["event"]))
            if m["rest"].strip():
                samples[-1].one_line = True
                samples[-1].frames.append(frame_of(m["rest"]))
        elif line.strip():
            samples[-1].frames.append(frame_of(line))
    return samples


class Maps:
    """The maps of one process at a point of the recording: later maps hide earlier ones."""

    def __init__(self, other=None):
        self.all = list(other.all) if other else []

    def add(self, start, length, offset, path):
        end, kept = start + length, []
        for s, e, o, p in self.all:
            if e <= start or s >= end:
                kept.append((s, e, o, p))
                continue
            if s < start:
                kept.append((s, start, o, p))
            if e > end:
                kept.append((end, e, o + end - s, p))
        kept.append((start, end, offset, path))
        self.all = sorted(kept)

    def find(self, address):
        i = bisect.bisect_right(self.all, (address, 1 << 65, 0, "")) - 1
        if i >= 0 and self.all[i][0] <= address < self.all[i][1]:
            return self.all[i]
        return None


WORD = re.compile(r'(\S+?)=("(?:[^"\\]|\\.)*"|\S+)')


def signed(number):
    return number - (1 << 32) if number >= 1 << 31 else number


# The contexts that perf knows; 32 is the hypervisor.
CONTEXTS = ("user", "kernel", "marker-32")


class View:
    """The events of a recording as kscope dumps them, and the samples among them."""

    def __init__(self, path, *args):
        done = kscope("convert", path, "-t", "dump", "-o", "-", *args)
        self.code, self.stderr = done.returncode, done.stderr
        self.lines = done.stdout.split("\n")
        self.samples, self.maps, self.sources, self.comms = [], {}, {}, {}
        self.execed = []  # pids; the first is that of the program that perf started
        for line in self.lines:
            self.take(line)

    def take(self, line):
        kind, _, rest = line.partition(" ")
        head, _, chain = rest.partition(" :") if kind == "sample" else (rest, "", "")
        words = {k: v.strip('"') for k, v in WORD.findall(head)}
        pid, tid = (signed(int(n)) for n in words.get("task", "4294967295/4294967295").split("/"))
        if kind == "source":
            self.sources[words["id"]] = words.get("name")
        elif kind == "comm":
            self.comms[tid] = words["name"]
            if head.endswith(" exec"):
                self.execed.append(pid)
            # As in perf, maps stay after an exec until others hide them.
        elif kind == "fork":
            parent, parent_tid = (signed(int(n)) for n in words["parent"].split("/"))
            self.comms[tid] = self.comms.get(parent_tid)
            if pid != parent and not head.endswith(" fresh"):
                self.maps[pid] = Maps(self.maps.get(parent))
        elif kind == "map" and " kernel " not in head:
            start, offset, path = int(words["addr"], 16), int(words["offset"], 16), words["path"]
            # Memory without a file: perf does not change its addresses, and names anonymous memory
            # after the file in which a JIT compiler lists its symbols.
            if path.startswith(("//anon", "/dev/zero", "/anon_hugepage")):
                offset, path = start, "/tmp/perf-%d.map" % pid
            elif path.startswith(("[stack", "/SYSV", "[heap]")):
                offset = start
            self.maps.setdefault(pid, Maps()).add(start, int(words["len"], 16), offset, path)
        elif kind == "sample":
            self.take_sample(words, pid, tid, chain)

    def take_sample(self, words, pid, tid, chain):
        seconds, _, ns = words.get("time", "0.0").partition(".")
        sample = Sample(self.comms.get(tid), pid, tid,
                        int(words["cpu"]) if "cpu" in words else None,
                        int(seconds) * 10**9 + int(ns), int(words["weight"]),
                        self.sources[words["source"]])
        context = None
        for word in chain.split():
            if word.startswith("0x"):
                address = int(word, 16)
                here = self.maps.get(pid, Maps()).find(address) if context == "user" else None
                sample.frames.append((address, context, here))
            else:
                context = word
                if word not in CONTEXTS:
                    sample.frames.append((0, "none", None))
        self.samples.append(sample)

    def names(self, path, folder):
        """The names of the frames of each sample, leaf first.

        Folded text groups samples by task, so each sample gets its own task name first."""
        numbered, nr = [], 0
        for line in self.lines:
            if line.startswith("sample "):
                task = re.search(r" task=(\S+)", line)
                task = task.group(1) if task else "4294967295/4294967295"
                numbered.append('comm task=%s name="n%d"' % (task, nr))
                nr += 1
            numbered.append(line)
        text = os.path.join(folder, "numbered.dump")
        with open(text, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write("\n".join(numbered))
        done = kscope("convert", text, "-t", "folded", "-o", "-", "--no-inline")
        stacks = {}
        several = len({s.event for s in self.samples}) > 1
        for line in done.stdout.splitlines():
            words = line.rpartition(" ")[0].split(";")
            if several:
                words = words[1:]
            stacks[int(words[0][1:])] = words[:0:-1]
        return [stacks.get(i, []) for i in range(nr)]


def relative(frame, one_line):
    address, context, here = frame
    if here and not one_line:
        return address - here[0] + here[2]
    return address
