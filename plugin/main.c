// SPDX-License-Identifier: GPL-2.0-or-later
/* kscope-qemu.so: the entry point and the callbacks of QEMU. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "args.h"
#include "control.h"
#include "pt.h"
#include "range.h"
#include "regs.h"
#include "sample.h"
#include "stream.h"
#include "trace.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_install(uint64_t id, const api_info *info, int argc, char **argv);

static uint64_t plugin_id;

static void on_translate(struct qemu_plugin_tb *tb)
{
	regs_translate(tb);
	range_translate(tb);
	sample_translate(tb);
	trace_translate(tb);
	alloc_translate(tb);
	regs_translate_run(tb);
}

/* Since 10.0 the callback for blocks alone slows guests down by up to 10 %. */
static bool wants_blocks(void)
{
	return args.trace || args.n_hooks || args.n_from || args.n_to || sample_wants_blocks() ||
	       regs_wants_blocks();
}

/* Called again when vCPUs exist, which may give a reason, and still before the first block. */
static void hook_blocks(void)
{
	static _Atomic bool hooked;

	if (wants_blocks() && !atomic_exchange(&hooked, true))
		api_hook(plugin_id, &(struct api_hooks){ .translate = on_translate });
}

static void on_cpu_init(unsigned cpu)
{
	hook_blocks();
	regs_cpu_init(cpu);
	if (args_wants_cpu(cpu))
		stream_track(cpu);
	sample_cpu_init(cpu);
	trace_cpu_init(cpu);
	alloc_cpu_init(cpu);
}

static void on_cpu_exit(unsigned cpu)
{
	sample_cpu_exit(cpu);
	trace_cpu_exit(cpu);
}

static void on_cpu_idle(unsigned cpu)
{
	sample_cpu_idle(cpu);
	trace_cpu_idle(cpu);
}

static void on_cpu_resume(unsigned cpu)
{
	sample_cpu_resume(cpu);
	trace_cpu_resume(cpu);
}

/* The step after a system call has a time, so the trace need not resume here. */
static void on_syscall(unsigned cpu, const struct api_syscall *call)
{
	sample_syscall(cpu, call->returns);
	if (!call->returns)
		trace_cpu_idle(cpu);
}

static void on_exit_of_qemu(void)
{
	control_close();
	sample_close();
	trace_close();
	stream_close("guest ended");
}

/* The command line, words separated by spaces, or NULL. The caller frees it. */
static char *command_line(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t size = 65536;
	char *text = malloc(size);
	ssize_t have = fd >= 0 && text ? read(fd, text, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (have <= 0) {
		free(text);
		return NULL;
	}
	text[have] = 0;
	for (ssize_t i = 0; i + 1 < have; i++)
		if (!text[i])
			text[i] = ' ';
	return text;
}

static int open_stream(void)
{
	struct timespec now;
	char producer[96];
	char *command = command_line();
	struct wire_info info = {
		.arch = api.arch,
		.producer = producer,
		.command = command,
		.kernel = args.kernel,
		.elf = args.elf,
		.n_elf = args.n_elf,
		.cpus = api.cpus,
		.clock = args.clock,
		.period = args.trace ? 0 : args.period,
		.user_mode = api.user_mode,
		.trace = args.trace,
	};
	/*
	 * All clocks but the host's stop while the guest waits. And a lost sample does not matter, but
	 * a lost allocation makes the sums wrong.
	 */
	bool patient = args.clock != WIRE_CLOCK_HOST || args.n_hooks;
	int result;

	clock_gettime(CLOCK_REALTIME, &now);
	info.start = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	snprintf(producer, sizeof(producer), "kscope-qemu " KSCOPE_VERSION ", QEMU %s",
		 api.version[0] ? api.version : "of unknown version");
	result = stream_open(args.out, &info, args.trace, args.maestro,
			     (struct stream_clock){ sample_now, sample_round, patient,
						    args.clock != WIRE_CLOCK_INSTRUCTIONS });
	free(command);
	return result;
}

int qemu_plugin_install(uint64_t id, const api_info *info, int argc, char **argv)
{
	struct api_hooks hooks = {
		.cpu_init = on_cpu_init,
		.cpu_exit = on_cpu_exit,
		.cpu_idle = on_cpu_idle,
		.cpu_resume = on_cpu_resume,
		.flush = alloc_flush,
		.exit = on_exit_of_qemu,
	};

	if (api_open(info) || args_parse(argc, argv))
		return -1;
	if (args.pt)
		return pt_open(id);
	regs_open();
	sample_open();
	if ((args.trace && trace_open()) || alloc_open() || open_stream() || control_open())
		return -1;
	if (api.user_mode)
		hooks.syscall = on_syscall;
	plugin_id = id;
	api_hook(id, &hooks);
	hook_blocks();
	return 0;
}
