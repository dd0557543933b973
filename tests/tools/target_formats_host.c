// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target_formats_host [tcp] <SCRIPT: runs the sampler of target/ in a kernel that is made up by a script. The stream goes
 * to stdout; with `tcp` to a host that connects to the port whose number is printed first. The clock is the script's.
 *
 *	task ID PROCESS SINCE NAME		there is a task
 *	map PROCESS ADDRESS SIZE OFFSET SINCE PATH
 *	changed					the sampler hears of them
 *	time NS					the clock
 *	sample CPU EVENT WEIGHT TASK k|u FRAME... [/ USER_FRAME...]
 *	alloc CPU				the allocator gives 64 bytes
 *	say COMMAND				the host sends a line
 *	tell COMMAND				the kernel does; the answer goes to stderr
 *	connect					the host connects; with tcp: wait until it does
 *	disconnect				tcp: the kernel closes the connection
 *	budget BYTES				what the link takes from now on
 *	serve					as long as there is something to do
 *	await running|done|gone			tcp: serve until the profiler is started, or done, or the host is gone
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "target/kscope.h"

#define ROWS 64
#define NAME 256
#define CPUS 4
#define MEMORY (256 << 10)
/* Where the made-up stacks are: a frame has two words. */
#define STACK 0x1000
#define FRAME (2 * sizeof(uintptr_t))

struct stack {
	uintptr_t frames[KSCOPE_DEPTH + 1];
	unsigned nr;
};

static struct kscope k;
static uint64_t memory[MEMORY / 8], now = 1000000;
static struct kscope_task tasks[ROWS];
static struct kscope_map maps[ROWS];
static char names[2 * ROWS][NAME];
static size_t nr_tasks, nr_maps, nr_names;
static struct stack kernel, user; /* of the sample that is being taken */
static size_t budget = SIZE_MAX;
static int listener = -1, host = -1;
static char said[4 * KSCOPE_LINE];
static size_t said_at;

static void fail(const char *what, const char *line)
{
	fprintf(stderr, "target_formats_host: %s: %s\n", what, line);
	exit(2);
}

/* ---- the port ---- */

static uint64_t port_time(void *data)
{
	(void)data;
	return now;
}

/* The user's stack is behind the kernel's. */
static uintptr_t stack_of(bool is_user)
{
	return STACK + (is_user ? (KSCOPE_DEPTH + 2) * FRAME : 0);
}

static bool port_read(void *data, const struct kscope_at *at, void *to, uintptr_t from, size_t size)
{
	const struct stack *stack = at->user ? &user : &kernel;
	uintptr_t base = stack_of(at->user), nth = (from - base) / FRAME + 1;
	uintptr_t frame[2] = { from + FRAME, nth < stack->nr ? stack->frames[nth] : 0 };

	(void)data;
	if (from < base || nth >= stack->nr || size != sizeof(frame))
		return false;
	memcpy(to, frame, size);
	return true;
}

static bool port_user(void *data, const struct kscope_at *at, struct kscope_at *to)
{
	(void)data;
	(void)at;
	to->pc = user.frames[0];
	to->fp = stack_of(true);
	return user.nr > 0;
}

static void port_timer(void *data, uint64_t ns)
{
	(void)data;
	(void)ns;
}

static bool port_task(void *data, size_t i, struct kscope_task *task)
{
	(void)data;
	if (i < nr_tasks)
		*task = tasks[i];
	return i < nr_tasks;
}

static bool port_map(void *data, size_t i, struct kscope_map *map)
{
	(void)data;
	if (i < nr_maps)
		*map = maps[i];
	return i < nr_maps;
}

static void lose_host(void)
{
	close(host);
	host = -1;
}

static size_t port_send(void *data, const void *bytes, size_t size)
{
	ssize_t took;

	(void)data;
	if (size > budget)
		size = budget;
	if (listener < 0)
		took = (ssize_t)fwrite(bytes, 1, size, stdout);
	else
		took = host < 0 ? 0 : send(host, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (took < 0 && errno != EAGAIN)
		lose_host();
	if (took < 0)
		return 0;
	budget -= budget == SIZE_MAX ? 0 : (size_t)took;
	return (size_t)took;
}

static int port_receive(void *data)
{
	uint8_t byte;
	ssize_t got;

	(void)data;
	if (said[said_at])
		return said[said_at++];
	got = host < 0 ? -1 : recv(host, &byte, 1, MSG_DONTWAIT);
	if (got == 0)
		lose_host();
	return got > 0 ? byte : -1;
}

static const struct kscope_event events[] = {
	{ "cycles", KSCOPE_HARDWARE, 0, 0x3c },
	{ "instructions", KSCOPE_HARDWARE, 1, 0xc0 },
	{ "cache-misses", KSCOPE_HARDWARE, 3, 0x412e },
	{ 0 },
};

static unsigned pmu_init(void)
{
	return 4;
}

static bool pmu_takes(unsigned counter, const struct kscope_event *event)
{
	(void)counter;
	(void)event;
	return true;
}

static uint64_t period_max(unsigned counter)
{
	(void)counter;
	return UINT32_MAX;
}

static const struct kscope_pmu pmu = {
	.name = "made up",
	.events = events,
	.init = pmu_init,
	.takes = pmu_takes,
	.period_max = period_max,
};

static const struct kscope_port port = {
	.arch = "x86_64",
	.name = "made up",
	.cpus = CPUS,
	.time = port_time,
	.read = port_read,
	.timer = port_timer,
	.user = port_user,
	.task = port_task,
	.map = port_map,
	.send = port_send,
	.receive = port_receive,
	.pmu = &pmu,
};

/* ---- the script ---- */

static const char *keep_name(const char *name)
{
	if (nr_names == 2 * ROWS)
		fail("too many names", name);
	snprintf(names[nr_names], NAME, "%s", name);
	return names[nr_names++];
}

static void do_task(char *line)
{
	struct kscope_task *task = &tasks[nr_tasks++];
	int at = 0;

	if (nr_tasks == ROWS || sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu64 " %n", &task->id,
				       &task->process, &task->since, &at) != 3)
		fail("task", line);
	task->name = keep_name(line + at);
}

static void do_map(char *line)
{
	struct kscope_map *map = &maps[nr_maps++];
	int at = 0;

	if (nr_maps == ROWS ||
	    sscanf(line, "%" SCNu32 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNu64 " %n",
		   &map->process, &map->address, &map->size, &map->offset, &map->since, &at) != 5)
		fail("map", line);
	map->path = keep_name(line + at);
}

static void do_changed(char *line)
{
	(void)line;
	kscope_changed(&k);
}

static void do_time(char *line)
{
	now = strtoull(line, NULL, 10);
}

static void read_frames(char *word)
{
	struct stack *stack = &kernel;

	kernel.nr = user.nr = 0;
	for (; word; word = strtok(NULL, " ")) {
		if (*word == '/')
			stack = &user;
		else if (stack->nr > KSCOPE_DEPTH)
			fail("too many frames", word);
		else
			stack->frames[stack->nr++] = strtoull(word, NULL, 16);
	}
}

static void do_sample(char *line)
{
	struct kscope_at at = { 0 };
	unsigned cpu, event;
	uint64_t weight;
	int first = 0;
	char mode;

	if (sscanf(line, "%u %u %" SCNu64 " %" SCNu32 " %c %n", &cpu, &event, &weight, &at.task,
		   &mode, &first) != 5)
		fail("sample", line);
	read_frames(strtok(line + first, " "));
	at.user = mode == 'u';
	if (at.user)
		user = kernel;
	at.pc = kernel.frames[0];
	at.fp = stack_of(at.user);
	kscope_sample(&k, cpu, event, weight, &at);
}

static void do_alloc(char *line)
{
	struct kscope_at at = { .task = 1, .pc = 0x1234 };

	read_frames(NULL);
	kscope_alloc(&k, (unsigned)atoi(line), KSCOPE_NEW, "kmalloc", 0x5000, 64, &at);
}

static void serve(void)
{
	while (kscope_serve(&k))
		;
}

static void do_serve(char *line)
{
	(void)line;
	/* Twice: it also stops for a moment where a message is left out. */
	serve();
	serve();
}

static void do_say(char *line)
{
	snprintf(said, sizeof(said), "%s\n", line);
	said_at = 0;
	serve();
}

static void do_tell(char *line)
{
	char answer[1024];
	bool good = kscope_command(&k, line, answer, sizeof(answer));

	fprintf(stderr, "%s: %s%s\n", line, good ? "" : "refused: ", answer);
}

static void do_connect(char *line)
{
	int on = 1;

	(void)line;
	if (listener >= 0) {
		host = accept(listener, NULL, NULL);
		if (host < 0)
			fail("accept", strerror(errno));
		setsockopt(host, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	kscope_connected(&k);
}

static void do_disconnect(char *line)
{
	(void)line;
	lose_host();
}

static void do_budget(char *line)
{
	budget = strtoull(line, NULL, 10);
}

static bool has_come(const char *what)
{
	if (!strcmp(what, "running"))
		return k.running;
	return strcmp(what, "done") ? host < 0 : !k.running && kscope_is_done(&k);
}

static void do_await(char *line)
{
	for (;;) {
		bool busy = kscope_serve(&k);
		struct pollfd fd = { .fd = host, .events = POLLIN };

		if (has_come(line))
			return;
		if (host < 0)
			fail("the host is gone", line);
		if (!busy)
			poll(&fd, 1, 20);
	}
}

static const struct {
	const char *name;
	void (*run)(char *line);
} steps[] = {
	{ "task", do_task },
	{ "map", do_map },
	{ "changed", do_changed },
	{ "time", do_time },
	{ "sample", do_sample },
	{ "alloc", do_alloc },
	{ "serve", do_serve },
	{ "say", do_say },
	{ "tell", do_tell },
	{ "connect", do_connect },
	{ "disconnect", do_disconnect },
	{ "budget", do_budget },
	{ "await", do_await },
};

static void run(char *line)
{
	char *rest = strchr(line, ' ');

	if (rest)
		*rest++ = '\0';
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (!strcmp(steps[i].name, line)) {
			steps[i].run(rest ? rest : line + strlen(line));
			return;
		}
	}
	fail("no such step", line);
}

static void listen_anywhere(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 4) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		fail("listen", strerror(errno));
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (!kscope_init(&k, &port, memory, sizeof(memory)))
		fail("kscope_init", "failed");
	if (argc > 1 && !strcmp(argv[1], "tcp"))
		listen_anywhere();
	while ((len = getline(&line, &cap, stdin)) > 0) {
		line[len - (line[len - 1] == '\n')] = '\0';
		if (*line)
			run(line);
	}
	free(line);
	return 0;
}
