// SPDX-License-Identifier: GPL-2.0-or-later
/* pt_test: what record pt says on machines that cannot record Intel PT, and its command line on one that can. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "record/line.h"
#include "record/pt.h"
#include "test.h"

#define INTEL "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme"
#define DEVICE "/sys/bus/event_source/devices/intel_pt"

static char root[] = "/tmp/kscope-pt-XXXXXX";

/* Writes a file below the root; NULL: removes it. */
static void put(const char *name, const char *text)
{
	char *path = xasprintf("%s%s", root, name);
	int fd;

	if (!text) {
		unlink(path);
		free(path);
		return;
	}
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
	free(path);
}

static struct pt a_program(const struct pt_options *asked)
{
	static const char *const words[] = { "ls", "-l" };

	return (struct pt){ .asked = asked,
			    .level = "user",
			    .out = "perf.data",
			    .words = words,
			    .nr_words = 2,
			    .root = root };
}

/* The machine is refused, with all these words. */
static void refused(const char *name, const struct pt *pt, const char *first, const char *second)
{
	struct err err = { 0 };
	int ret = pt_check_machine(pt, &err);
	bool good = ret < 0 && err.code == ERR_INPUT && strstr(err.msg, first) &&
		    strstr(err.msg, second);

	check(name, good);
	if (!good)
		printf("  %d: %s\n", ret, err.msg);
}

static void accepted(const char *name, const struct pt *pt)
{
	struct err err = { 0 };

	check(name, pt_check_machine(pt, &err) == 0 && !err.code);
}

static void test_processors(void)
{
	struct pt_options asked = { 0 };
	struct pt pt = a_program(&asked);

	put("/proc/cpuinfo", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu hypervisor\n");
	refused("AMD", &pt, "not an Intel processor", "kscope record emulate");
	put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
	refused("Arm", &pt, "not an Intel processor", "kscope record emulate");
	put("/proc/cpuinfo", INTEL " hypervisor\n");
	refused("a virtual machine", &pt, "kvm_intel.pt_mode=1", "kscope record emulate");
	put("/proc/cpuinfo", INTEL "\nprocessor\t: 1\nflags\t\t: hypervisor\n");
	refused("Intel without PT", &pt, DEVICE, "kscope record emulate");
	put(DEVICE "/type", "8\n");
	accepted("Intel with PT", &pt);
}

static void test_limits(void)
{
	struct pt_options asked = { 0 };
	struct pt pt = a_program(&asked);
	struct rlimit none = { 0, 0 };

	put("/proc/sys/kernel/perf_event_paranoid", "2\n");
	accepted("a program, paranoid 2", &pt);
	put("/proc/sys/kernel/perf_event_paranoid", "3\n");
	refused("a program, paranoid 3", &pt, "is 3", "perf_event_paranoid=2");
	pt.privileged = true;
	accepted("a program, paranoid 3, as root", &pt);
	pt.privileged = false;
	put("/proc/sys/kernel/perf_event_paranoid", "2\n");
	pt.level = "all";
	refused("the kernel, paranoid 2", &pt, "the kernel", "perf_event_paranoid=1");
	asked.all_cpus = true;
	refused("all CPUs, paranoid 2", &pt, "a whole CPU", "perf_event_paranoid=0");
	put("/proc/sys/kernel/perf_event_paranoid", "-1\n");
	accepted("all CPUs, paranoid -1", &pt);
	put("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	setrlimit(RLIMIT_MEMLOCK, &none);
	asked.buffer = 256 << 10;
	accepted("a small buffer", &pt);
	asked.buffer = 4 << 20;
	refused("a large buffer", &pt, "is 516", "perf_event_mlock_kb=4356");
}

static void line_is(const char *name, const struct pt *pt, const char *want)
{
	struct err err = { 0 };
	char **line = pt_line(pt, &err);
	struct buf text = { 0 };
	bool good;

	if (line)
		line_quote(&text, (const char *const *)line);
	good = line && !strcmp(text.data, want);
	check(name, good);
	if (!good)
		printf("  %s %s\n", text.data ? text.data : "", err.msg);
	pt_free_line(line);
	buf_release(&text);
}

static void test_lines(void)
{
	struct pt_options asked = { 0 };
	struct pt pt = a_program(&asked);

	line_is("without cycles", &pt, "perf record -e intel_pt//u -o perf.data -- ls -l");
	put(DEVICE "/caps/psb_cyc", "1\n");
	line_is("with cycles", &pt, "perf record -e intel_pt/cyc/u -o perf.data -- ls -l");
	pt.level = "kernel";
	line_is("the kernel", &pt, "perf record -e intel_pt/cyc/k -o perf.data -- ls -l");
	put("/proc/kcore", "");
	line_is("the kernel, with kcore", &pt,
		"perf record -e intel_pt/cyc/k --kcore -o perf.data -- ls -l");
	put("/proc/kcore", NULL);
	put(DEVICE "/caps/psb_cyc", "0\n");
}

int main(void)
{
	char *command;

	if (!mkdtemp(root))
		abort();
	test_processors();
	test_limits();
	test_lines();
	command = xasprintf("rm -rf %s", root);
	if (system(command) != 0)
		abort();
	free(command);
	return test_result();
}
