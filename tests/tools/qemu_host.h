/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A host that loads kscope-qemu.so as QEMU does, with the functions and signatures of the version
 * that HOST_VERSION says (702, 901, 1101) and nothing else: a QEMU without modules exports no more.
 * It has one block of ten instructions, which vCPUs run as often as they are told.
 */
#ifndef KSCOPE_TESTS_QEMU_HOST_H
#define KSCOPE_TESTS_QEMU_HOST_H

#include <dlfcn.h>
#include <libgen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/pb.h"

/* What a plugin keeps, it keeps until its process ends: that is no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

#if HOST_VERSION >= 1101
#define HOST_TEXT "QEMU emulator version 11.1.0"
#define HOST_SPEAKS 7
#elif HOST_VERSION >= 901
#define HOST_TEXT "QEMU emulator version 9.1.0"
#define HOST_SPEAKS 2
#else
#define HOST_TEXT "QEMU emulator version 7.2.0"
#define HOST_SPEAKS 1
#endif

#define HOST_CPUS 2
#define BLOCK_PC 0xffffffff81000100ull
#define BLOCK_INSNS 10
#define PAGE_TABLE 0x1234000ull
#define STACK_POINTER 0xffffc90000001000ull
#define HANGS 500 /* seconds that nothing takes */

const char *host_text = HOST_TEXT;
static bool is_program; /* user mode */
static int failures;

static void expect(bool good, const char *what, uint64_t got)
{
	printf("%s %s", good ? "ok" : "not ok", what);
	if (!good)
		printf(": got %llu", (unsigned long long)got);
	printf("\n");
	failures += !good;
}

/* GLib, as far as the plugin uses it. */
struct bytes {
	uint8_t *data;
	unsigned len, room;
};
struct array {
	char *data;
	unsigned len, stride;
};

struct bytes *g_byte_array_new(void);
struct bytes *g_byte_array_set_size(struct bytes *bytes, unsigned size);
unsigned g_array_get_element_size(struct array *array);
char *g_array_free(struct array *array, int free_data);

struct bytes *g_byte_array_new(void)
{
	return calloc(1, sizeof(struct bytes));
}

struct bytes *g_byte_array_set_size(struct bytes *bytes, unsigned size)
{
	if (size > bytes->room) {
		bytes->data = realloc(bytes->data, size);
		bytes->room = size;
	}
	bytes->len = size;
	return bytes;
}

unsigned g_array_get_element_size(struct array *array)
{
	return array->stride;
}

char *g_array_free(struct array *array, int free_data)
{
	(void)free_data;
	free(array->data);
	free(array);
	return NULL;
}

/* Callbacks that the plugin registered. */
struct qemu_plugin_insn {
	uint64_t address;
};
struct qemu_plugin_tb {
	struct qemu_plugin_insn insns[BLOCK_INSNS];
};
struct qemu_plugin_scoreboard {
	uint64_t values[HOST_CPUS];
};
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} host_u64;

enum host_op { OP_CALL, OP_ADD, OP_CALL_IF };
static struct {
	enum host_op op;
	void (*call)(unsigned, void *);
	void *data;
	uint64_t *values;
	uint64_t number;
	int flags;
} ops[8];
static unsigned n_ops;

static void *on_init, *on_exit_cpu, *on_idle, *on_resume, *on_translate, *on_flush, *on_end;
static struct qemu_plugin_tb block;
static __thread unsigned running;
static __thread int flags_now;

#if HOST_VERSION >= 1101
#define REGISTER(name, slot)                                                   \
	void qemu_plugin_register_##name(uint64_t id, void *call, void *data); \
	void qemu_plugin_register_##name(uint64_t id, void *call, void *data)  \
	{                                                                      \
		(void)id, (void)data;                                          \
		slot = call;                                                   \
	}
static void tell_cpu(void *slot, unsigned cpu)
{
	((void (*)(unsigned, void *))slot)(cpu, NULL);
}
static void tell_end(void)
{
	((void (*)(void *))on_end)(NULL);
}
static void translate(void)
{
	((void (*)(struct qemu_plugin_tb *, void *))on_translate)(&block, NULL);
}
#else
#define REGISTER(name, slot)                                       \
	void qemu_plugin_register_##name(uint64_t id, void *call); \
	void qemu_plugin_register_##name(uint64_t id, void *call)  \
	{                                                          \
		(void)id;                                          \
		slot = call;                                       \
	}
static void tell_cpu(void *slot, unsigned cpu)
{
	((void (*)(uint64_t, unsigned))slot)(77, cpu);
}
static void tell_end(void)
{
	((void (*)(uint64_t, void *))on_end)(77, NULL);
}
static void translate(void)
{
	((void (*)(uint64_t, struct qemu_plugin_tb *))on_translate)(77, &block);
}
#endif

REGISTER(vcpu_init_cb, on_init)
REGISTER(vcpu_exit_cb, on_exit_cpu)
REGISTER(vcpu_idle_cb, on_idle)
REGISTER(vcpu_resume_cb, on_resume)
REGISTER(vcpu_tb_trans_cb, on_translate)
REGISTER(flush_cb, on_flush)

void qemu_plugin_register_atexit_cb(uint64_t id, void *call, void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, void *call, void *data)
{
	(void)id, (void)data;
	on_end = call;
}

/* Blocks */
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*call)(unsigned, void *),
					  int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void *call, int flags,
					    void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	(void)tb;
	return BLOCK_INSNS;
}

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb)
{
	return tb->insns[0].address;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(struct qemu_plugin_tb *tb, size_t i)
{
	return &tb->insns[i];
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	(void)insn;
	return 4;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return insn->address;
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*call)(unsigned, void *),
					  int flags, void *data)
{
	(void)tb;
	ops[n_ops].op = OP_CALL;
	ops[n_ops].call = call;
	ops[n_ops].flags = flags;
	ops[n_ops++].data = data;
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void *call, int flags,
					    void *data)
{
	(void)insn, (void)call, (void)flags, (void)data;
}

#if HOST_VERSION >= 901
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
uint64_t qemu_plugin_u64_get(host_u64 entry, unsigned cpu);
void qemu_plugin_u64_set(host_u64 entry, unsigned cpu, uint64_t value);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op,
						       host_u64 entry, uint64_t value);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb,
					       void (*call)(unsigned, void *), int flags, int cond,
					       host_u64 entry, uint64_t value, void *data);
struct array *qemu_plugin_get_registers(void);

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size)
{
	(void)size;
	return calloc(1, sizeof(struct qemu_plugin_scoreboard));
}

uint64_t qemu_plugin_u64_get(host_u64 entry, unsigned cpu)
{
	return entry.score->values[cpu];
}

void qemu_plugin_u64_set(host_u64 entry, unsigned cpu, uint64_t value)
{
	entry.score->values[cpu] = value;
}

void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op,
						       host_u64 entry, uint64_t value)
{
	(void)tb, (void)op;
	ops[n_ops].op = OP_ADD;
	ops[n_ops].values = entry.score->values;
	ops[n_ops++].number = value;
}

/* Only "at least" is used. */
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb,
					       void (*call)(unsigned, void *), int flags, int cond,
					       host_u64 entry, uint64_t value, void *data)
{
	(void)tb;
	if (cond != 7)
		abort();
	ops[n_ops].op = OP_CALL_IF;
	ops[n_ops].call = call;
	ops[n_ops].flags = flags;
	ops[n_ops].data = data;
	ops[n_ops].values = entry.score->values;
	ops[n_ops++].number = value;
}

/* Registers. 11.0 made a descriptor longer. */
static const char *const register_names[] = {
	"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp",    "rsp", "r8",  "r9",	 "r10",
	"r11", "r12", "r13", "r14", "r15", "rip", "eflags", "cs",  "cr0", "cr3", "efer",
};
#define REGISTERS (sizeof(register_names) / sizeof(*register_names))

static uint64_t register_value(size_t i)
{
	const char *name = register_names[i];

	if (!strcmp(name, "rip")) /* a program's is stored only where QEMU needs it */
		return is_program ? 0x1000 : BLOCK_PC;
	if (!strcmp(name, "rsp"))
		return STACK_POINTER;
	if (!strcmp(name, "cs"))
		return running ? 0x33 : 0x10;
	if (!strcmp(name, "cr0"))
		return 0x80000001;
	if (!strcmp(name, "cr3"))
		return PAGE_TABLE | 5;
	return !strcmp(name, "efer") ? 0x500 : 1000 + i;
}

struct array *qemu_plugin_get_registers(void)
{
	struct array *list = calloc(1, sizeof(*list));

	list->stride = HOST_VERSION >= 1101 ? 32 : 24;
	list->len = REGISTERS;
	list->data = calloc(REGISTERS, list->stride);
	for (size_t i = 0; i < REGISTERS; i++) {
		void *handle = (void *)(HOST_VERSION >= 1101 ? i << 1 : i + 1);

		memcpy(list->data + i * list->stride, &handle, sizeof(handle));
		memcpy(list->data + i * list->stride + 8, &register_names[i], sizeof(handle));
	}
	return list;
}

static size_t put_register(void *handle, struct bytes *into)
{
	size_t i = HOST_VERSION >= 1101 ? (size_t)handle >> 1 : (size_t)handle - 1;
	uint64_t value = register_value(i);
	unsigned size = !strcmp(register_names[i], "cs") ? 4 : 8, before = into->len;

	if (!flags_now)
		return 0;
	g_byte_array_set_size(into, before + size);
	memcpy(into->data + before, &value, size);
	return size;
}

/* A bool fills only the lowest byte of the register that it comes back in. */
uint64_t qemu_plugin_read_register(void *handle, struct bytes *into);
uint64_t qemu_plugin_read_register(void *handle, struct bytes *into)
{
	size_t size = put_register(handle, into);

	return HOST_VERSION >= 1101 ? 0xdeadbeef00ull | (size > 0) : size;
}
#endif

#if HOST_VERSION >= 1101
bool qemu_plugin_read_memory_vaddr(uint64_t address, struct bytes *into, size_t size);
bool qemu_plugin_read_memory_vaddr(uint64_t address, struct bytes *into, size_t size)
{
	if (address >= STACK_POINTER + 4096) /* the stack's last page */
		if (address < BLOCK_PC - 4096)
			return false;
	g_byte_array_set_size(into, (unsigned)size);
	for (size_t i = 0; i < size; i++)
		into->data[i] = (uint8_t)(address + i);
	return true;
}

/* 10.1 and later refuse registers where a callback did not ask for them; this one tells of it. */
bool qemu_plugin_write_register(void *handle, struct bytes *from);
bool qemu_plugin_write_register(void *handle, struct bytes *from)
{
	(void)handle, (void)from;
	return false;
}
#endif

static void run_block(unsigned cpu)
{
	for (unsigned i = 0; i < n_ops; i++) {
		if (ops[i].op == OP_ADD) {
			ops[i].values[cpu] += ops[i].number;
			continue;
		}
		if (ops[i].op == OP_CALL_IF && ops[i].values[cpu] < ops[i].number)
			continue;
		flags_now = ops[i].flags;
		ops[i].call(cpu, ops[i].data);
		flags_now = 0;
	}
}

/* What the file has. */
struct seen {
	uint64_t samples[HOST_CPUS], idle[HOST_CPUS], weight[HOST_CPUS];
	uint64_t counted[HOST_CPUS], instructions[HOST_CPUS];
	uint64_t registers, stack, pc, level[HOST_CPUS], space, codes;
	bool end, damaged;
};

static void see_sample(struct seen *seen, struct pb pb, unsigned cpu)
{
	struct pb_field field;
	uint64_t level = 0;
	bool idle = false;

	while (pb_next(&pb, &field) > 0) {
		switch (field.number) {
		case 2: seen->pc = field.value; break;
		case 3: seen->space = field.value; break;
		case 4: level = field.value; break;
		case 5: seen->weight[cpu] += field.value; break;
		case 6: idle = true; break;
		case 7: seen->registers = (uint64_t)(field.bytes.end - field.bytes.at) / 8; break;
		case 8: seen->stack = (uint64_t)(field.bytes.end - field.bytes.at); break;
		}
	}
	seen->samples[cpu]++;
	seen->idle[cpu] += idle;
	if (!idle)
		seen->level[cpu] = level;
}

static void see_end(struct seen *seen, struct pb pb)
{
	struct pb_field field, part;

	seen->end = true;
	while (pb_next(&pb, &field) > 0) {
		unsigned cpu = 0;

		while (field.number == 2 && pb_next(&field.bytes, &part) > 0) {
			if (part.number == 1)
				cpu = part.value < HOST_CPUS ? (unsigned)part.value : 0;
			else if (part.number == 2)
				seen->counted[cpu] = part.value;
			else if (part.number == 4)
				seen->instructions[cpu] = part.value;
		}
	}
}

static void see_chunk(struct seen *seen, struct pb pb)
{
	struct pb_field field;
	unsigned cpu = 0;

	while (pb_next(&pb, &field) > 0) {
		if (field.number == 2 && field.value < HOST_CPUS)
			cpu = (unsigned)field.value;
		else if (field.number == 6)
			see_sample(seen, field.bytes, cpu);
		else if (field.number == 8)
			seen->codes++;
		else if (field.number == 11)
			see_end(seen, field.bytes);
	}
}

static struct seen read_stream(const char *path)
{
	static uint8_t data[64 << 20];
	FILE *file = fopen(path, "rb");
	size_t size = file ? fread(data, 1, sizeof(data), file) : 0;
	struct pb pb = { data, data + size };
	struct pb_field field;
	struct seen seen = { 0 };
	int result;

	if (file)
		fclose(file);
	while ((result = pb_next(&pb, &field)) > 0)
		see_chunk(&seen, field.bytes);
	seen.damaged = result < 0 || !size;
	return seen;
}

/* Loads the plugin. Everything else is done by the callbacks that it registers. */
static bool load(const char *program, const char *out, const char *arguments[], int n)
{
	struct {
		const char *target;
		int min, cur;
		bool system;
		int cpus, max_cpus;
	} info = { "x86_64", HOST_SPEAKS, HOST_SPEAKS, !is_program, HOST_CPUS, HOST_CPUS };
	char path[4096], text[4096], *argv[16];
	void *plugin;
	int *version;
	int (*install)(uint64_t, const void *, int, char **);

	snprintf(text, sizeof(text), "%s", program);
	snprintf(path, sizeof(path), "%s/../kscope-qemu.so", dirname(text));
	plugin = dlopen(path, RTLD_NOW);
	if (!plugin) {
		printf("not ok load: %s\n", dlerror());
		return false;
	}
	version = dlsym(plugin, "qemu_plugin_version");
	expect(version && *version == HOST_SPEAKS, "the version it speaks",
	       version ? (uint64_t)*version : 0);
	install =
		(int (*)(uint64_t, const void *, int, char **))dlsym(plugin, "qemu_plugin_install");
	snprintf(path, sizeof(path), "out=%s", out);
	argv[0] = path;
	for (int i = 0; i < n; i++)
		argv[i + 1] = (char *)(uintptr_t)arguments[i];
	for (unsigned i = 0; i < BLOCK_INSNS; i++)
		block.insns[i].address = BLOCK_PC + 4 * i;
	expect(!install(77, &info, n + 1, argv), "it installs", 0);
	return true;
}

#define BLOCKS 200000

static void *run_cpu(void *number)
{
	running = (unsigned)(uintptr_t)number;
	flags_now = 1;
	tell_cpu(on_init, running);
	flags_now = 0;
	for (unsigned i = 0; i < BLOCKS; i++)
		run_block(running);
	return NULL;
}

/* Two vCPUs at once, exactly counted. */
static void test_instructions(char *program, const char *out)
{
	const char *arguments[] = { "clock=instructions", "period=1000", "jitter=off",
				    "stack=8192" };
	pthread_t threads[HOST_CPUS];
	struct seen seen;

	if (!load(program, out, arguments, 4))
		return;
	translate();
	for (uintptr_t cpu = 0; cpu < HOST_CPUS; cpu++)
		pthread_create(&threads[cpu], NULL, run_cpu, (void *)cpu);
	for (unsigned cpu = 0; cpu < HOST_CPUS; cpu++)
		pthread_join(threads[cpu], NULL);
	tell_end();
	seen = read_stream(out);
	expect(!seen.damaged && seen.end, "the stream is whole", 0);
	for (unsigned cpu = 0; cpu < HOST_CPUS; cpu++) {
		expect(seen.samples[cpu] == BLOCKS * BLOCK_INSNS / 1000, "samples",
		       seen.samples[cpu]);
		expect(seen.counted[cpu] == seen.samples[cpu], "samples by the end",
		       seen.counted[cpu]);
		expect(seen.weight[cpu] == BLOCKS * BLOCK_INSNS, "weights", seen.weight[cpu]);
		expect(seen.instructions[cpu] == BLOCKS * BLOCK_INSNS, "instructions",
		       seen.instructions[cpu]);
	}
	expect(seen.pc == BLOCK_PC, "the pc", seen.pc);
	expect(seen.registers == (HOST_VERSION >= 901 ? 17 : 0), "registers", seen.registers);
	expect(seen.stack == (HOST_VERSION >= 1101 ? 4096 : 0),
	       "the stack ends where it cannot be read", seen.stack);
	expect((seen.codes > 0) == (HOST_VERSION >= 1101), "code", seen.codes);
	expect(seen.space == (HOST_VERSION >= 901 ? PAGE_TABLE : 0), "the address space",
	       seen.space);
	expect(HOST_VERSION < 901 || (seen.level[0] == 1 && seen.level[1] == 0), "levels",
	       seen.level[0]);
}

static bool has_enough(const char *out)
{
	struct seen seen = read_stream(out);

	return seen.samples[0] > 5 && seen.samples[1] > 5;
}

/* A QEMU that runs a program. */
static void test_program(char *program, const char *out)
{
	const char *arguments[] = { "clock=instructions", "period=1000" };
	struct seen seen;

	is_program = true;
	if (!load(program, out, arguments, 2))
		return;
	translate();
	run_cpu(NULL);
	tell_end();
	seen = read_stream(out);
	expect(seen.samples[0] > 0 && seen.pc == BLOCK_PC, "a program: the pc", seen.pc);
	expect(seen.registers == (HOST_VERSION >= 901 ? 17 : 0), "a program: registers",
	       seen.registers);
}

/* One vCPU runs, the other is idle; both are asked by the clock. */
static void test_host_time(const char *program, const char *out)
{
	const char *arguments[] = { "period=200000" };
	time_t end = time(NULL) + HANGS;
	struct seen seen;

	if (!load(program, out, arguments, 1))
		return;
	for (unsigned cpu = 0; cpu < HOST_CPUS; cpu++) {
		flags_now = 1;
		tell_cpu(on_init, cpu);
		flags_now = 0;
	}
	tell_cpu(on_idle, 1);
	translate();
	while (!has_enough(out) && time(NULL) < end) {
		for (unsigned i = 0; i < 5000; i++)
			run_block(0);
		usleep(1000);
	}
	tell_cpu(on_resume, 1);
	tell_cpu(on_exit_cpu, 1);
	tell_end();
	seen = read_stream(out);
	expect(!seen.damaged && seen.end, "by time: the stream is whole", 0);
	expect(seen.samples[0] > 5 && !seen.idle[0], "by time: samples", seen.samples[0]);
	expect(seen.samples[1] > 5 && seen.idle[1] == seen.samples[1], "by time: an idle vCPU",
	       seen.idle[1]);
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_mode & 07777;
}

/* With closed descriptors, and an umask that forbids nothing: what was recorded is for this user alone. */
static void test_private(char *program, const char *out)
{
	char path[64], control[80];
	const char *arguments[] = { "clock=instructions", control };
	bool silent;

	snprintf(path, sizeof(path), "%s.socket", out);
	snprintf(control, sizeof(control), "control=%s", path);
	unlink(out);
	umask(0);
	close(STDIN_FILENO);
	close(STDERR_FILENO);
	if (!load(program, out, arguments, 2))
		return;
	expect(mode_of(out) == 0600, "private: the stream", mode_of(out));
	expect(mode_of(path) == 0600, "private: the control socket", mode_of(path));
	silent = write(STDIN_FILENO, "guest", 5) < 0 && write(STDERR_FILENO, "message", 7) < 0;
	expect(silent, "closed descriptors: messages go nowhere", 0);
	tell_end();
	expect(!read_stream(out).damaged, "closed descriptors: the stream is whole", 0);
	unlink(path);
}

/* As a program is run whose own loader the machine has not: the process is the loader's. */
static void test_loader(char *program, const char *out)
{
	const void *base = (const void *)getauxval(AT_BASE);
	Dl_info loader;

	if (dladdr(base, &loader))
		execl(loader.dli_fname, loader.dli_fname, program, out, NULL);
	expect(false, "by a loader", 0);
}

/* A plugin is loaded once in a process. */
static void in_child(void (*test)(char *, const char *), char *program, const char *out)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		test(program, out);
		exit(failures > 0);
	}
	waitpid(child, &status, 0);
	failures += status != 0;
}

int main(int argc, char **argv)
{
	char out[] = "/tmp/kscope-test-XXXXXX";
	int fd;

	if (argc > 1) {
		load(argv[0], argv[1], NULL, 0);
		return failures > 0;
	}
	fd = mkstemp(out);
	if (fd < 0)
		return 1;
	close(fd);
	in_child(test_instructions, argv[0], out);
	in_child(test_loader, argv[0], out);
	in_child(test_private, argv[0], out);
	in_child(test_program, argv[0], out);
	test_host_time(argv[0], out);
	unlink(out);
	return failures > 0;
}

#endif
