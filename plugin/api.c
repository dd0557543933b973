// SPDX-License-Identifier: GPL-2.0-or-later
/* See api.h. */
#include "api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* QEMU reads it after the constructor ran, before it calls qemu_plugin_install(). */
EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = 1;

struct api api;
static struct api_hooks hooks;
static __thread struct running {
	struct CPUState *state;
	unsigned cpu;
} running;
static _Atomic bool takes_turns; /* several vCPUs share a thread */

static void *find(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

/* A path may contain terminal escapes or line breaks. */
static void make_ascii(char *line, const char *text)
{
	for (; *text; text++) {
		if (*text >= ' ' && *text <= '~')
			*line++ = *text;
		else
			line += sprintf(line, "\\x%02x", (uint8_t)*text);
	}
	*line = '\0';
}

void api_say(const char *format, ...)
{
	va_list list;
	char text[1024], line[4 * sizeof(text)];

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	make_ascii(line, text);
	fprintf(stderr, "kscope-qemu: %s\n", line);
}

int api_thread(pthread_t *thread, void *(*body)(void *))
{
	sigset_t all, before;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(thread, NULL, body, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

int api_above_standard(int fd)
{
	int high;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

/* Whether the word before " version " is "emulator" or a name such as qemu-x86_64. */
static bool is_version(const char *image, const char *at)
{
	const char *word = at;

	while (word > image && at - word < 24 && word[-1] > ' ')
		word--;
	return !strncmp(word, "emulator ", 9) || !strncmp(word, "qemu-", 5);
}

/*
 * Like memmem(). The memmem() of a QEMU with AddressSanitizer reports an error, because the search also
 * reads the gaps between constants.
 */
static const char *find_text(const char *at, const char *end, const char *text, size_t n)
{
	for (; (size_t)(end - at) >= n; at++) {
		size_t same = 0;

		while (same < n && at[same] == text[same])
			same++;
		if (same == n)
			return at;
	}
	return NULL;
}

/*
 * Finds the version of QEMU. There is no function for it, but the text that --version prints is in the
 * program: "QEMU emulator version X.Y.Z", in user mode "qemu-x86_64 version X.Y.Z".
 */
static void find_version(const char *image, size_t size)
{
	static const char mark[] = " version ";
	const char *at = image, *end = image + size;

	while ((at = find_text(at, end, mark, sizeof(mark) - 1))) {
		bool good = is_version(image, at);
		size_t n = 0;

		at += sizeof(mark) - 1;
		while (good && n < sizeof(api.version) - 1 && at + n < end &&
		       ((at[n] >= '0' && at[n] <= '9') || (n && at[n] == '.')))
			n++;
		if (n >= 3 && memchr(at, '.', n)) {
			memcpy(api.version, at, n);
			return;
		}
	}
}

/* Searches the read-only segments of QEMU. */
static int search_object(struct dl_phdr_info *object, size_t size, void *function)
{
	const ElfW(Phdr) *part = object->dlpi_phdr, *end = part + object->dlpi_phnum;
	uintptr_t at = (uintptr_t)function - object->dlpi_addr;
	bool is_qemu = false;

	(void)size;
	for (const ElfW(Phdr) *p = part; p < end; p++)
		is_qemu |= p->p_type == PT_LOAD && at - p->p_vaddr < p->p_memsz;
	for (; is_qemu && part < end && !api.version[0]; part++) {
		if (part->p_type == PT_LOAD && part->p_flags & PF_R && !(part->p_flags & PF_W))
			find_version((const char *)(object->dlpi_addr + part->p_vaddr),
				     part->p_filesz);
	}
	return is_qemu;
}

/* Searches memory, because /proc/self/exe may be missing, or be a loader that runs QEMU. */
static void read_version(void)
{
	void *function = find("qemu_plugin_tb_vaddr");

	if (function && !api.version[0])
		dl_iterate_phdr(search_object, function);
}

/* dlopen() runs this before QEMU reads qemu_plugin_version. */
__attribute__((constructor)) static void choose_version(void)
{
	unsigned major = 0, minor = 0;

	if (!find("qemu_plugin_scoreboard_new"))
		return;
	qemu_plugin_version = 2;
	read_version();
	if (sscanf(api.version, "%u.%u", &major, &minor) != 2)
		return;
	if (major > 11 || (major == 11 && minor >= 1)) {
		qemu_plugin_version = 7;
		api.callbacks_have_data = true;
	}
}

static void set_arch(const char *target)
{
	snprintf(api.arch, sizeof(api.arch), "%s", target);
}

struct symbol {
	const char *name;
	void *slot; /* a pointer to a function */
	bool needed;
};

static const struct symbol symbols[] = {
	{ "qemu_plugin_tb_n_insns", &api.tb_n_insns, true },
	{ "qemu_plugin_tb_vaddr", &api.tb_vaddr, true },
	{ "qemu_plugin_tb_get_insn", &api.tb_get_insn, true },
	{ "qemu_plugin_insn_size", &api.insn_size, true },
	{ "qemu_plugin_insn_vaddr", &api.insn_vaddr, true },
	{ "qemu_plugin_insn_haddr", &api.insn_haddr, false },
	{ "qemu_plugin_insn_symbol", &api.insn_symbol, false },
	{ "qemu_plugin_register_vcpu_tb_exec_cb", &api.tb_exec_cb, true },
	{ "qemu_plugin_register_vcpu_insn_exec_cb", &api.insn_exec_cb, true },
	{ "qemu_plugin_get_registers", &api.get_registers, false },
	{ "qemu_plugin_scoreboard_new", &api.scoreboard_new, false },
	{ "qemu_plugin_scoreboard_find", &api.scoreboard_find, false },
	{ "qemu_plugin_u64_get", &api.u64_get, false },
	{ "qemu_plugin_u64_set", &api.u64_set, false },
	{ "qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu", &api.tb_exec_inline, false },
	{ "qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu", &api.insn_exec_inline, false },
	{ "qemu_plugin_register_vcpu_tb_exec_cond_cb", &api.tb_exec_cond_cb, false },
	{ "qemu_plugin_register_vcpu_insn_exec_cond_cb", &api.insn_exec_cond_cb, false },
	{ "qemu_plugin_read_memory_vaddr", &api.read_memory, false },
	{ "async_run_on_cpu", &api.async_run_on_cpu, false },
	{ "qemu_get_cpu", &api.get_cpu, false },
	{ "cpu_memory_rw_debug", &api.memory_rw_debug, false },
	{ "object_property_find", &api.find_property, false },
	{ "runstate_is_running", &api.runstate_is_running, false },
	{ "cpu_thread_is_idle", &api.cpu_is_idle, false },
	{ "cpu_physical_memory_rw", &api.physical_rw, false },
	{ "qemu_clock_get_ns", &api.clock_ns, false },
	{ "icount_get_raw", &api.icount_raw, false },
	{ "timer_init_full", &api.timer_init, false },
	{ "timer_mod", &api.timer_mod, false },
	{ "main_loop_tlg", &api.timer_lists, false },
	{ "use_icount", &api.icount, false },
	{ "g_byte_array_new", &api.byte_array_new, true },
	{ "g_byte_array_set_size", &api.byte_array_set_size, true },
	{ "g_byte_array_free", &api.byte_array_free, false },
	{ "g_array_get_element_size", &api.array_element_size, true },
	{ "g_array_free", &api.array_free, true },
};

/* Finds the function that reads a register of this target by its gdb number. */
static void *find_gdb_read(void)
{
	static const char *const names[][2] = {
		{ "x86_64", "x86_cpu_gdb_read_register" },
		{ "i386", "x86_cpu_gdb_read_register" },
		{ "aarch64", "aarch64_cpu_gdb_read_register" },
		{ "arm", "arm_cpu_gdb_read_register" },
		{ "riscv64", "riscv_cpu_gdb_read_register" },
		{ "riscv32", "riscv_cpu_gdb_read_register" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(api.arch, names[i][0]))
			return find(names[i][1]);
	return NULL;
}

int api_open(const api_info *info)
{
	void *read;

	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *found = find(symbols[i].name);

		if (!found && symbols[i].needed) {
			api_say("this QEMU has no function %s: use QEMU 7.2 or later",
				symbols[i].name);
			return -1;
		}
		memcpy(symbols[i].slot, &found, sizeof(found));
	}
	read_version();
	set_arch(info->target_name);
	read = find_gdb_read();
	memcpy(&api.gdb_read, &read, sizeof(read));
	api.user_mode = !info->system_emulation;
	api.cpus = api.user_mode ? 0 : (unsigned)info->system.smp_vcpus;
	api.max_cpus = api.user_mode ? 0 : (unsigned)info->system.max_vcpus;
	return 0;
}

/* Since 9.0, the thread of a vCPU calls this before it translates any code. */
static void note_thread(unsigned cpu)
{
	static __thread unsigned first; /* first vCPU of this thread, plus 1 */

	if (api.user_mode || !api.get_registers)
		return;
	if (first && first != cpu + 1)
		atomic_store(&takes_turns, true);
	first = cpu + 1;
	running.state = NULL;
}

/*
 * QEMU's callbacks. Up to 11.0 the first argument of most is the plugin's id and they have no data;
 * since 11.1 they have data and no id.
 */
static void old_cpu_init(uint64_t id, unsigned cpu)
{
	(void)id;
	note_thread(cpu);
	hooks.cpu_init(cpu);
}

static void old_cpu_exit(uint64_t id, unsigned cpu)
{
	(void)id;
	hooks.cpu_exit(cpu);
}

static void old_cpu_idle(uint64_t id, unsigned cpu)
{
	(void)id;
	hooks.cpu_idle(cpu);
}

static void old_cpu_resume(uint64_t id, unsigned cpu)
{
	(void)id;
	hooks.cpu_resume(cpu);
}

static void old_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	hooks.translate(tb);
}

static void old_flush(uint64_t id)
{
	(void)id;
	hooks.flush();
}

static void old_exit(uint64_t id, void *data)
{
	(void)id, (void)data;
	hooks.exit();
}

static void old_syscall(uint64_t id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2,
			uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
			uint64_t a8)
{
	(void)id, (void)a7, (void)a8;
	hooks.syscall(cpu, &(struct api_syscall){ .number = number,
						  .args = { a1, a2, a3, a4, a5, a6 } });
}

static void old_syscall_return(uint64_t id, unsigned cpu, int64_t number, int64_t value)
{
	(void)id;
	hooks.syscall(cpu, &(struct api_syscall){ true, number, .result = value });
}

static void new_cpu_init(unsigned cpu, void *data)
{
	(void)data;
	note_thread(cpu);
	hooks.cpu_init(cpu);
}

static void new_cpu_exit(unsigned cpu, void *data)
{
	(void)data;
	hooks.cpu_exit(cpu);
}

static void new_cpu_idle(unsigned cpu, void *data)
{
	(void)data;
	hooks.cpu_idle(cpu);
}

static void new_cpu_resume(unsigned cpu, void *data)
{
	(void)data;
	hooks.cpu_resume(cpu);
}

static void new_translate(struct qemu_plugin_tb *tb, void *data)
{
	(void)data;
	hooks.translate(tb);
}

static void new_flush(void *data)
{
	(void)data;
	hooks.flush();
}

static void new_exit(void *data)
{
	(void)data;
	hooks.exit();
}

static void new_syscall(unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
			uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8, void *data)
{
	(void)data;
	old_syscall(0, cpu, number, a1, a2, a3, a4, a5, a6, a7, a8);
}

static void new_syscall_return(unsigned cpu, int64_t number, int64_t value, void *data)
{
	(void)data;
	old_syscall_return(0, cpu, number, value);
}

/* Registers a callback, with data or, in old versions, without. */
static void set_callback(uint64_t id, const char *name, void *old, void *new, bool old_has_data)
{
	void *found = find(name);
	void (*with_data)(uint64_t, void *, void *);
	void (*without)(uint64_t, void *);

	if (!found)
		return;
	memcpy(&with_data, &found, sizeof(found));
	memcpy(&without, &found, sizeof(found));
	if (api.callbacks_have_data)
		with_data(id, new, NULL);
	else if (old_has_data)
		with_data(id, old, NULL);
	else
		without(id, old);
}

#define SET(member, name, old, new, old_has_data)                                     \
	do {                                                                          \
		if (wanted->member) {                                                 \
			hooks.member = wanted->member;                                \
			set_callback(id, "qemu_plugin_register_" name, (void *)(old), \
				     (void *)(new), old_has_data);                    \
		}                                                                     \
	} while (0)

void api_hook(uint64_t id, const struct api_hooks *wanted)
{
	SET(cpu_init, "vcpu_init_cb", old_cpu_init, new_cpu_init, false);
	SET(cpu_exit, "vcpu_exit_cb", old_cpu_exit, new_cpu_exit, false);
	SET(cpu_idle, "vcpu_idle_cb", old_cpu_idle, new_cpu_idle, false);
	SET(cpu_resume, "vcpu_resume_cb", old_cpu_resume, new_cpu_resume, false);
	SET(translate, "vcpu_tb_trans_cb", old_translate, new_translate, false);
	SET(flush, "flush_cb", old_flush, new_flush, false);
	SET(exit, "atexit_cb", old_exit, new_exit, true);
	SET(syscall, "vcpu_syscall_cb", old_syscall, new_syscall, false);
	SET(syscall, "vcpu_syscall_ret_cb", old_syscall_return, new_syscall_return, false);
}

/* Since 9.1, which also added conditional callbacks, this function copies. */
size_t api_insn_data(const struct qemu_plugin_insn *insn, void *bytes, size_t size)
{
	static void *found;
	const void *(*point)(const struct qemu_plugin_insn *);
	size_t (*copy)(const struct qemu_plugin_insn *, void *, size_t);
	size_t have = api.insn_size(insn);

	if (!found)
		found = find("qemu_plugin_insn_data");
	if (!found)
		return 0;
	if (have > size)
		have = size;
	memcpy(&copy, &found, sizeof(found));
	if (api.tb_exec_cond_cb)
		return copy(insn, bytes, have);
	memcpy(&point, &found, sizeof(found));
	memcpy(bytes, point(insn), have);
	return have;
}

/*
 * Up to 10.2 QEMU's function returns the number of bytes, since 11.0 a bool. The length of the array is
 * right for both.
 */
size_t api_read_register(void *handle, GByteArray *into)
{
	static void *found;
	int (*read)(void *, GByteArray *);

	if (!found)
		found = find("qemu_plugin_read_register");
	if (!found)
		return 0;
	memcpy(&read, &found, sizeof(found));
	api.byte_array_set_size(into, 0);
	read(handle, into);
	return into->len;
}

struct CPUState *api_current_cpu(void)
{
	static __thread struct CPUState **current;

	if (!current)
		current = find("current_cpu");
	return current ? *current : NULL;
}

bool api_is_current(struct CPUState *cpu)
{
	return cpu == api_current_cpu();
}

bool api_mixes_cpus(void)
{
	return atomic_load_explicit(&takes_turns, memory_order_relaxed);
}

/* Remembers the vCPU, which changes rarely, until another one runs. */
unsigned api_running_cpu(unsigned given)
{
	struct CPUState *current = api_mixes_cpus() && api.get_cpu ? api_current_cpu() : NULL;

	if (!current)
		return given;
	for (unsigned cpu = 0; current != running.state && cpu < api.max_cpus; cpu++)
		if (api.get_cpu((int)cpu) == current)
			running = (struct running){ current, cpu };
	return current == running.state ? running.cpu : given;
}

/* 10.1, which added writing of registers, refuses it. */
bool api_reads_in_work(void)
{
	static int refuses = -1;

	if (refuses < 0)
		refuses = find("qemu_plugin_write_register") != NULL;
	return api.get_registers && !refuses;
}

bool api_counts_time(void)
{
	return api.icount && *api.icount;
}
