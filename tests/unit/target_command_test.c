// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands of the sampler: good ones, wrong ones and garbage, in every state, over the link and by call. */
#include <stdio.h>

#include "target_port.h"
#include "test.h"

#define USAGE "error: the commands are: start, stop, flush, clear, timer "
#define RUNNING "error: not while running; stop first"
#define USE_EVENT "error: use: event NAME|rXX period N|freq N, or event NAME|rXX off"

static const struct kscope_at here = { .pc = 0x1000 };

struct row {
	const char *command, *answer; /* the beginning of it */
	bool good;
};

static bool answers(const struct row *row)
{
	char answer[1024], small[8];
	bool good = kscope_command(&port_k, row->command, answer, sizeof(answer));
	size_t len = strlen(row->answer);

	if (good == row->good && !strncmp(answer, row->answer, len) && (len || !*answer))
		return true;
	snprintf(small, sizeof(small), "%s", good ? "good" : "bad");
	printf("  '%s': %s, '%s'\n", row->command, small, answer);
	return false;
}

static void test_rows(const char *name, const struct row *rows, size_t nr)
{
	bool all = true;

	for (size_t i = 0; i < nr; i++)
		all &= answers(&rows[i]);
	check(name, all);
}
#define TEST_ROWS(name, rows) test_rows(name, rows, sizeof(rows) / sizeof((rows)[0]))

static const struct row words[] = {
	{ "", "", true },
	{ "  \t ", "", true },
	{ "hello", USAGE, false },
	{ "'status'", "stopped", true },
	{ " status ", "stopped", true },
	{ "status\r", "stopped", true },
	{ "status now", "error: use: status", false },
	{ "'status", USAGE, false },
	{ "start 'a b' c d e f", USAGE, false },
	{ "STATUS", USAGE, false },
	{ "''", USAGE, false },
	{ "timer", "error: use: timer CORE|all on|off, timer period US", false },
	{ "\xff\xfe\x80", USAGE, false },
};

static const struct row timers[] = {
	{ "timer 0 on", "", true },
	{ "timer 3 off", "", true },
	{ "timer all on", "", true },
	{ "timer 4 on", "error: the core must be from 0 to 3", false },
	{ "timer -1 on", "error: the core must be", false },
	{ "timer 00000000000000000000001 on", "", true },
	{ "timer 18446744073709551616 on", "error: the core must be", false },
	{ "timer 4294967296 on", "error: the core must be", false },
	{ "timer '' on", "error: the core must be", false },
	{ "timer 0 maybe", "error: use: timer CORE|all on|off, or timer period US", false },
	{ "timer period 1", "", true },
	{ "timer period 3600000000", "", true },
	{ "timer period 3600000001", "error: the period in us must be from 1 to 3600000000",
	  false },
	{ "timer period 0", "error: the period in us must be", false },
	{ "timer period 1e3", "error: the period in us must be", false },
	{ "timer period 99999999999999999999999", "error: the period in us must be", false },
	{ "timer period 1000", "", true },
};

static const struct row events[] = {
	{ "event nothing period 5",
	  "error: no such event; this machine has, by name or by number: "
	  "cycles instructions rXX",
	  false },
	{ "event cycles", "error: use: event NAME", false },
	{ "event cycles off", "", true },
	{ "event cycles freq", USE_EVENT, false },
	{ "event cycles often 5", USE_EVENT, false },
	{ "event cycles off 5", USE_EVENT, false },
	{ "event cycles period 0", "error: the period must be from 1 to 140737488355327", false },
	{ "event cycles period 140737488355328", "error: the period must be from 1 to", false },
	{ "event cycles freq 1000001", "error: the frequency must be from 1 to 1000000", false },
	{ "event cycles freq 1000000", "", true },
	{ "event cycles period 140737488355327", "", true },
	{ "event r period 5", "error: no such event", false },
	{ "event r@ period 5", "error: no such event", false },
	{ "event r` period 5", "error: no such event", false },
	{ "event rg period 5", "error: no such event", false },
	{ "event r1234567890 period 5", "error: no such event", false },
	{ "event '' period 5", "error: no such event", false },
	{ "event x12 period 5", "error: no such event", false },
	{ "event r0011aAfF period 5", "", true },
	{ "event r11aaff freq 7", "", true }, /* the same */
	{ "event instructions freq 3", "", true },
	{ "event r1 period 5", "error: no counter that counts this event is free", false },
	{ "event instructions off", "", true },
	{ "event r1 period 4294967296", "error: the period must be from 1 to 4294967295", false },
	{ "event r1 period 4294967295", "", true },
	{ "event r1 off", "", true },
	{ "event r11aaff off", "", true },
	{ "event cycles off", "", true },
};

static const struct row settings[] = {
	{ "jitter 90", "", true },
	{ "jitter 91", "error: the jitter in percent must be from 0 to 90", false },
	{ "jitter off", "", true },
	{ "jitter on", "error: the jitter", false },
	{ "prof_qlimit 0", "error: prof_qlimit in KB must be from 1 to 256", false },
	{ "prof_qlimit 257", "error: prof_qlimit in KB must be", false },
	{ "prof_qlimit 1", "error: too little for the samples of all cpus", false },
	{ "prof_qlimit 256", "", true },
	{ "prof_cpubufsz 65", "error: prof_cpubufsz in KB must be from 1 to 64", false },
	{ "prof_cpubufsz 1", "", true },
	{ "prof_btdepth 127", "error: the rings are too small for stacks of that depth", false },
	{ "prof_btdepth 20", "", true },
	{ "prof_btdepth 127", "error: the rings are too small for stacks of that depth", false },
	{ "status", "stopped, format kscope, depth 20, ring 1 KB, drop oldest", true },
	{ "prof_cpubufsz 64", "", true },
	{ "prof_btdepth 0", "error: the depth must be from 1 to 127", false },
	{ "prof_btdepth 128", "error: the depth must be", false },
	{ "prof_btdepth 127", "", true },
	{ "prof_btdepth 1", "", true },
	{ "prof_btdepth 16", "", true },
	{ "drop newest", "", true },
	{ "drop it", "error: use: drop oldest|newest", false },
	{ "drop oldest", "", true },
	{ "hold maybe", "error: use: hold on|off", false },
	{ "hold on", "", true },
	{ "hold off", "", true },
	{ "format elf", "error: use: format kscope|sel4|kpdata", false },
	{ "format kpdata", "", true },
	{ "format kscope", "", true },
	{ "mappings", "kernel.elf: 0\nuser.elf: 1", true },
	{ "stop", "", true },
	{ "flush", "", true },
	{ "clear", "", true },
};

static const struct row while_running[] = {
	{ "timer period 5", RUNNING, false },
	{ "timer 1 off", "", true },
	{ "timer 1 on", "", true },
	{ "event cycles period 5", RUNNING, false },
	{ "event cycles off", RUNNING, false },
	{ "jitter 5", RUNNING, false },
	{ "prof_qlimit 256", RUNNING, false },
	{ "prof_cpubufsz 64", RUNNING, false },
	{ "prof_btdepth 5", RUNNING, false },
	{ "drop newest", RUNNING, false },
	{ "format sel4", RUNNING, false },
	{ "hold on", "", true },
	{ "hold off", "", true },
	{ "flush", "", true },
	{ "clear", "", true },
	{ "mappings", "kernel.elf: 0", true },
	{ "nonsense", USAGE, false },
};

static const struct row status_of_running[] = {
	{ "start", "", true },
	{ "status",
	  "running, format kscope, depth 16, ring 64 KB, drop oldest\nevent cpu-clock period "
	  "1000000\ncpu 0 on, taken 0, sent 0, dropped 0, throttled 0\ncpu 1 on,",
	  true },
};

static const struct row while_stopping[] = {
	{ "stop", "", true },
	{ "start", "error: the last recording is still being sent; try again", false },
	{ "status", "stopping", true },
};

static void test_calls(void)
{
	port_open(PORT_CPUS, sizeof(port_memory));
	port_state.maps = 2;
	TEST_ROWS("words", words);
	TEST_ROWS("timers", timers);
	TEST_ROWS("events", events);
	TEST_ROWS("settings", settings);
	TEST_ROWS("status", status_of_running);
	kscope_sample(&port_k, 0, 0, 1, &here);
	TEST_ROWS("while it runs", while_running);
	TEST_ROWS("while it stops", while_stopping);
	TEST_ROWS("while it stops: settings", while_running);
	port_serve();
	check("then it is done", kscope_is_done(&port_k) && answers(&status_of_running[0]));
}

static void test_missing(void)
{
	static const struct row none[] = {
		{ "timer 0 on", "error: this kernel has no timer for samples", false },
		{ "event cycles period 5", "error: this machine has no counters", false },
		{ "mappings", "", true },
		{ "start", "", true },
	};

	port_open(2, sizeof(port_memory));
	port_ops = (struct kscope_port){ .cpus = 2, .time = port_time };
	if (!kscope_init(&port_k, &port_ops, port_memory, sizeof(port_memory)))
		abort();
	TEST_ROWS("a port with nothing but a clock", none);
	kscope_sample(&port_k, 0, 0, 1, &here);
	port_says("stop");
	port_serve();
	check("it records", kscope_is_done(&port_k) && port_k.cpu[0].sent == 1);
}

static void test_init(void)
{
	struct kscope_port ops = port_ops;

	check("too little memory", !kscope_init(&port_k, &ops, port_memory, 300));
	check("none at all", !kscope_init(&port_k, &ops, port_memory, 0));
	check("memory that is not aligned",
	      kscope_init(&port_k, &ops, (uint8_t *)port_memory + 3, sizeof(port_memory) - 3) &&
		      (uintptr_t)port_k.cpu[0].ring.words % 8 == 0);
	ops.cpus = 0;
	check("no cpus", !kscope_init(&port_k, &ops, port_memory, sizeof(port_memory)));
	ops.cpus = KSCOPE_CPUS + 1;
	check("too many cpus", !kscope_init(&port_k, &ops, port_memory, sizeof(port_memory)));
	ops.cpus = 1;
	ops.time = NULL;
	check("no clock", !kscope_init(&port_k, &ops, port_memory, sizeof(port_memory)));
}

/* What the host types, and what it gets. */
static bool link_says(const char *typed, const char *answer)
{
	bool good;

	port_state.in = typed;
	port_state.out_len = 0;
	port_serve();
	good = port_state.out_len >= strlen(answer) &&
	       !memcmp(port_state.out, answer, strlen(answer));
	if (!good)
		printf("  '%s': '%.*s'\n", typed, (int)port_state.out_len, (char *)port_state.out);
	return good;
}

static void test_link(void)
{
	char line[600], answer[20];

	port_open(PORT_CPUS, sizeof(port_memory));
	port_state.maps = 2;
	check("a good command is quiet", link_says("drop oldest\n", "") && !port_state.out_len);
	check("an empty line has none", link_says("\n\r\n\n", "") && !port_state.out_len);
	check("two commands",
	      link_says("drop oldest\r\nmappings\r\n", "kernel.elf: 0\nuser.elf: 1\n"));
	check("half a command waits", link_says("mapp", "") && !port_state.out_len &&
					      link_says("ings\n", "kernel.elf: 0\n"));
	check("garbage", link_says("\x01\x02 \xff\xff'''\n", USAGE));
	check("a mistake", link_says("timer 9 on\n", "error: the core must be from 0 to 3\n"));
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	check("a line that is too long", link_says(line, USAGE));
	memset(line, ' ', KSCOPE_LINE + 1);
	strcpy(line + KSCOPE_LINE - 2, "mappings\n");
	check("a good command at the end of it", link_says(line, USAGE));
	check("the next one is good again", link_says("mappings\n", "kernel.elf: 0\n"));
	check("no room for an answer", !kscope_command(&port_k, "x", answer, sizeof(answer)) &&
					       strlen(answer) == sizeof(answer) - 1 &&
					       !kscope_command(&port_k, "x", NULL, 0));
}

/* The host disconnects in the middle of a command and of a message. */
static void test_connected(void)
{
	port_open(1, sizeof(port_memory));
	port_state.maps = 1;
	link_says("sta", "");
	kscope_connected(&port_k);
	check("half a command is forgotten", link_says("mappings\n", "kernel.elf: 0\n"));
}

int main(void)
{
	test_calls();
	test_missing();
	test_init();
	test_link();
	test_connected();
	return test_result();
}
