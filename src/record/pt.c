// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/pt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "sym/sym.h"

#define DEVICE "/sys/bus/event_source/devices/intel_pt"
#define EMULATE "; use kscope record emulate instead"
#define SAMPLE_MAX "61440" /* bytes: the most that perf takes */
#define DATA_KB 260	   /* of locked memory for perf's other data */
#define CAP_BITS (UINT64_C(1) << 38 | UINT64_C(1) << 21) /* CAP_PERFMON, CAP_SYS_ADMIN */

/* ---- files of Linux ---- */

/* The contents of a small file; "" if it cannot be read. The caller frees it. */
static char *read_text(const char *root, const char *name)
{
	char *path = xasprintf("%s%s", root, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf text = { 0 };
	ssize_t got = 1;

	free(path);
	while (fd >= 0 && got > 0) {
		got = read(fd, buf_reserve(&text, 4096), 4096);
		text.len += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	buf_add(&text, "", 0);
	return text.data;
}

/* False if there is no such file. */
static bool read_number(const char *root, const char *name, int64_t *value)
{
	char *text = read_text(root, name);
	bool good = *text;

	*value = strtoll(text, NULL, 10);
	free(text);
	return good;
}

static bool is_readable(const char *root, const char *name)
{
	char *path = xasprintf("%s%s", root, name);
	bool good = access(path, R_OK) == 0;

	free(path);
	return good;
}

bool pt_is_privileged(void)
{
	char *text = read_text("", "/proc/self/status");
	const char *at = strstr(text, "\nCapEff:");
	bool all = geteuid() == 0 || (at && strtoull(at + 8, NULL, 16) & CAP_BITS);

	free(text);
	return all;
}

/* ---- can this machine do it? ---- */

/* Whether a line of /proc/cpuinfo that begins with `key` has this word. */
static bool cpu_has(const char *cpuinfo, const char *key, const char *word)
{
	const char *line = strstr(cpuinfo, key), *end = line ? strchr(line, '\n') : NULL;
	const char *at = line ? strstr(line, word) : NULL;

	return at && (!end || at < end);
}

static int no_device(const struct pt *pt, struct err *err)
{
	char *cpuinfo = read_text(pt->root, "/proc/cpuinfo");
	bool intel = cpu_has(cpuinfo, "vendor_id", "GenuineIntel");
	bool guest = cpu_has(cpuinfo, "flags", " hypervisor");

	free(cpuinfo);
	if (!intel)
		return err_set(err, ERR_INPUT,
			       "this is not an Intel processor, so it has no Intel PT" EMULATE);
	if (guest)
		return err_set(err, ERR_INPUT,
			       "this virtual machine has no Intel PT: the host has to pass it on, "
			       "with KVM by kvm_intel.pt_mode=1 on the host and -cpu host for "
			       "QEMU" EMULATE);
	return err_set(err, ERR_INPUT,
		       "this processor has no Intel PT, or the firmware or Linux has switched it "
		       "off: " DEVICE " is missing" EMULATE);
}

static bool is_by_cpu(const struct pt *pt)
{
	return pt->asked->all_cpus || pt->asked->cpus;
}

static int check_paranoid(const struct pt *pt, struct err *err)
{
	bool user = !strcmp(pt->level, "user");
	int64_t most = is_by_cpu(pt) ? 0 : user ? 2 : 1, paranoid;

	if (pt->privileged ||
	    !read_number(pt->root, "/proc/sys/kernel/perf_event_paranoid", &paranoid) ||
	    paranoid <= most)
		return 0;
	return err_set(err, ERR_INPUT,
		       "Linux does not let you trace %s: kernel.perf_event_paranoid is %" PRId64
		       "; run sudo sysctl kernel.perf_event_paranoid=%" PRId64
		       ", or kscope with sudo",
		       is_by_cpu(pt) ? "a whole CPU"
		       : user	     ? "a program"
				     : "the kernel",
		       paranoid, most);
}

/* Above perf_event_mlock_kb for each CPU, the buffers count as locked memory. */
static int check_buffer(const struct pt *pt, struct err *err)
{
	uint64_t need = pt->asked->buffer / 1024 + DATA_KB;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit limit = { 0 };
	int64_t free_kb;

	if (!pt->asked->buffer || pt->privileged ||
	    !read_number(pt->root, "/proc/sys/kernel/perf_event_mlock_kb", &free_kb) ||
	    (int64_t)need <= free_kb)
		return 0;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	    limit.rlim_cur / 1024 / (uint64_t)cpus >= need - (uint64_t)free_kb)
		return 0;
	return err_set(err, ERR_INPUT,
		       "Linux does not let you lock so much memory: kernel.perf_event_mlock_kb is "
		       "%" PRId64 "; run sudo sysctl kernel.perf_event_mlock_kb=%" PRIu64
		       ", or kscope with sudo, or use a smaller --buffer",
		       free_kb, need);
}

int pt_check_machine(const struct pt *pt, struct err *err)
{
	if (!is_readable(pt->root, DEVICE))
		return no_device(pt, err);
	return check_paranoid(pt, err) < 0 ? -1 : check_buffer(pt, err);
}

/* ---- options ---- */

static int check_target(const struct pt *pt, struct err *err)
{
	int ways = !!pt->asked->pid + pt->asked->all_cpus + !!pt->asked->cpus;

	if (ways > 1)
		return err_set(err, ERR_USAGE, "use only one of --pid, --all-cpus and --cpu");
	if (pt->asked->pid && pt->nr_words)
		return err_set(err, ERR_USAGE, "--pid traces a running process: omit %s",
			       pt->words[0]);
	if (!ways && !pt->nr_words)
		return err_set(err, ERR_USAGE,
			       "nothing to trace: use kscope record pt [OPTIONS] -- PROGRAM..., or "
			       "--pid PID");
	if (pt->duration && pt->nr_words)
		return err_set(err, ERR_USAGE,
			       "--duration is for --pid, --all-cpus and --cpu: %s runs to its end",
			       pt->words[0]);
	return 0;
}

int pt_check_options(const struct pt *pt, struct err *err)
{
	const struct pt_options *asked = pt->asked;

	if (asked->pid && asked->pid[strspn(asked->pid, "0123456789,")])
		return err_set(err, ERR_USAGE, "--pid expects process IDs, not '%s'", asked->pid);
	if (check_target(pt, err) < 0)
		return -1;
	if (asked->snapshot && asked->trigger)
		return err_set(err, ERR_USAGE, "--trigger and --snapshot cannot be used together");
	if (asked->filter && asked->trigger)
		return err_set(err, ERR_USAGE, "--trigger and --filter cannot be used together");
	if (asked->trigger && is_by_cpu(pt))
		return err_set(err, ERR_USAGE, "--trigger needs one process: use --pid");
	if (asked->buffer & (asked->buffer - 1))
		return err_set(err, ERR_USAGE, "--buffer expects a power of two");
	return 0;
}

/* ---- the address of a function ---- */

struct place { /* a file that is mapped as code */
	uint64_t start, end, offset;
	char path[PATH_MAX];
};

static bool next_map(char **at, struct place *place)
{
	while (**at) {
		char *line = *at, *newline = strchr(line, '\n');
		char prot[5] = "";
		int path = 0;

		*at = newline ? newline + 1 : line + strlen(line);
		if (newline)
			*newline = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n",
			   &place->start, &place->end, prot, &place->offset, &path) < 4 ||
		    prot[2] != 'x' || line[path] != '/')
			continue;
		snprintf(place->path, sizeof(place->path), "%s", line + path);
		return true;
	}
	return false;
}

static bool find_in_map(const struct place *place, const char *function, uint64_t *address)
{
	struct err none = { 0 };
	struct symfile *file = symfile_open(place->path, NULL, &none);
	const struct sym_segment *segments;
	uint64_t vaddr, at;
	bool found = false;
	size_t nr = 0;

	if (!file)
		return false;
	segments = symfile_segments(file, &nr);
	if (!symfile_find(file, function, &vaddr))
		nr = 0;
	for (size_t i = 0; i < nr && !found; i++) {
		if (vaddr - segments[i].vaddr >= segments[i].memsz)
			continue;
		at = vaddr - segments[i].vaddr + segments[i].offset - place->offset;
		found = at < place->end - place->start;
		*address = place->start + at;
	}
	symfile_close(file);
	return found;
}

static int find_in_process(const struct pt *pt, uint64_t *address, struct err *err)
{
	char *name = xasprintf("/proc/%s/maps", pt->asked->pid);
	char *text = read_text(pt->root, name), *at = text;
	bool found = false, any = false;
	struct place place;

	while (!found && next_map(&at, &place)) {
		any = true;
		found = find_in_map(&place, pt->asked->trigger, address);
	}
	free(text);
	free(name);
	if (!any)
		return err_set(err, ERR_INPUT, "--pid %s: cannot read the maps of this process",
			       pt->asked->pid);
	return found ? 0
		     : err_set(err, ERR_INPUT, "--trigger %s: no such function in process %s",
			       pt->asked->trigger, pt->asked->pid);
}

/* Like execvp(). The caller frees it. */
static char *find_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return xstrdup(name);
	while (path && *path) {
		size_t len = strcspn(path, ":");
		char *file = xasprintf("%.*s/%s", (int)len, path, name);

		if (access(file, X_OK) == 0)
			return file;
		free(file);
		path += len + (path[len] == ':');
	}
	return NULL;
}

static int find_in_program(const struct pt *pt, uint64_t *address, struct err *err)
{
	char *path = find_program(pt->words[0]);
	struct symfile *file = path ? symfile_open(path, NULL, err) : NULL;

	if (!path)
		err_set(err, ERR_INPUT, "%s: not found in $PATH", pt->words[0]);
	if (file && symfile_is_relocatable(file))
		err_set(err, ERR_INPUT,
			"--trigger %s: the address is not known before %s runs, because it is "
			"position-independent; start it first and use --pid",
			pt->asked->trigger, path);
	else if (file && !symfile_find(file, pt->asked->trigger, address))
		err_set(err, ERR_INPUT, "--trigger %s: no such function in %s", pt->asked->trigger,
			path);
	symfile_close(file);
	free(path);
	return err->code ? -1 : 0;
}

static int find_trigger(const struct pt *pt, uint64_t *address, struct err *err)
{
	const char *text = pt->asked->trigger;

	if (!strncmp(text, "0x", 2) && text_hex(text + 2, strlen(text + 2), address))
		return 0;
	return pt->asked->pid ? find_in_process(pt, address, err)
			      : find_in_program(pt, address, err);
}

/* ---- the command line of perf ---- */

struct line {
	char **words;
	size_t nr, cap;
};

static void add(struct line *line, char *word)
{
	GROW(line->words, line->nr + 2, line->cap);
	line->words[line->nr++] = word;
	line->words[line->nr] = NULL;
}

static void add_pair(struct line *line, const char *option, const char *value)
{
	add(line, xstrdup(option));
	add(line, xstrdup(value));
}

/* Cycles give exact times between packets, if the processor has them. */
static char *event_text(const struct pt *pt)
{
	int64_t cycles = 0;

	read_number(pt->root, DEVICE "/caps/psb_cyc", &cycles);
	return xasprintf("intel_pt/%s/%s", cycles ? "cyc" : "",
			 !strcmp(pt->level, "user")	? "u"
			 : !strcmp(pt->level, "kernel") ? "k"
							: "");
}

/*
 * perf can attach the latest trace to the samples of another event: a breakpoint at the trigger. A breakpoint is a
 * sample each time it is reached.
 */
static int add_event(struct line *line, const struct pt *pt, struct err *err)
{
	char *event = event_text(pt);
	uint64_t address;

	if (!pt->asked->trigger) {
		add_pair(line, "-e", event);
	} else if (find_trigger(pt, &address, err) == 0) {
		add(line, xstrdup("-e"));
		add(line, xasprintf("{%s,mem:0x%" PRIx64 ":x:u}", event, address));
		add(line, xstrdup("--aux-sample=" SAMPLE_MAX));
	}
	free(event);
	if (pt->asked->filter)
		add_pair(line, "--filter", pt->asked->filter);
	return err->code ? -1 : 0;
}

static void add_target(struct line *line, const struct pt *pt)
{
	if (pt->asked->pid)
		add_pair(line, "-p", pt->asked->pid);
	if (pt->asked->all_cpus)
		add(line, xstrdup("-a"));
	if (pt->asked->cpus)
		add_pair(line, "-C", pt->asked->cpus);
	if (!pt->nr_words && !pt->duration)
		return;
	add(line, xstrdup("--"));
	for (size_t i = 0; i < pt->nr_words; i++)
		add(line, xstrdup(pt->words[i]));
	if (pt->duration)
		add(line, xstrdup("sleep"));
	if (pt->duration)
		add(line, xasprintf("%" PRIu64 ".%09" PRIu64, pt->duration / 1000000000,
				    pt->duration % 1000000000));
}

char **pt_line(const struct pt *pt, struct err *err)
{
	struct line line = { 0 };

	add_pair(&line, "perf", "record");
	if (add_event(&line, pt, err) < 0) {
		pt_free_line(line.words);
		return NULL;
	}
	if (pt->asked->snapshot)
		add(&line, xstrdup("--snapshot=e"));
	if (pt->asked->buffer)
		add(&line, xasprintf("-m,%" PRIu64 "K", pt->asked->buffer / 1024));
	/* To decode the kernel's trace, perf needs its code as it was patched at run time. */
	if (strcmp(pt->level, "user") != 0 && is_readable(pt->root, "/proc/kcore"))
		add(&line, xstrdup("--kcore"));
	add_pair(&line, "-o", pt->out);
	add_target(&line, pt);
	return line.words;
}

void pt_free_line(char **line)
{
	for (size_t i = 0; line && line[i]; i++)
		free(line[i]);
	free(line);
}

int pt_run(const struct pt *pt, char **line, struct err *err)
{
	if (pt->asked->snapshot)
		log_say("kill -USR2 %ld takes a snapshot; the last one is taken at the end",
			(long)getpid());
	if (!pt->nr_words && !pt->duration)
		log_say("Ctrl-C ends the recording");
	log_say("next: kscope report %s", pt->out);
	execvp(line[0], line);
	if (errno == ENOENT)
		return err_set(err, ERR_INPUT,
			       "perf is not installed: it is in linux-perf (Debian), linux-tools "
			       "(Ubuntu) or perf (Fedora)");
	return err_set(err, ERR_INPUT, "perf: %s", strerror(errno));
}
