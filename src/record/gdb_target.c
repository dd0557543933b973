// SPDX-License-Identifier: GPL-2.0-or-later
/* gdb_target: what a stub can do, and what is behind it. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "record/gdb_parts.h"

#define OBJECT_MAX ((size_t)1 << 20) /* bytes of target.xml, or of another file */
#define WINDOW 64
#define PATHS_MAX 256

/* ---- What the stub supports ---- */

/* Looks for a word of the answer to qSupported, and returns what follows it; NULL: it is not there. */
static const char *feature(const struct buf *reply, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = reply->len ? reply->data : NULL; at; at = strchr(at, ';')) {
		at += *at == ';';
		if (!strncmp(at, name, len))
			return at + len;
	}
	return NULL;
}

static size_t packet_size(const struct buf *reply)
{
	const char *given = feature(reply, "PacketSize=");
	uint64_t size;

	if (!given || !text_hex(given, strcspn(given, ";"), &size) || size < 64)
		return 400; /* gdb's own guess */
	return size < GDB_PACKET_MAX / 2 ? (size_t)size : GDB_PACKET_MAX / 2;
}

/* Reads an object of the target: target.xml, for example. False: there is none, or the link is lost. */
static bool read_object(struct gdb_talk *talk, const char *object, const char *annex,
			struct buf *out)
{
	size_t part = talk->packet_size - 16 < 4096 ? talk->packet_size - 16 : 4096;

	while (out->len < OBJECT_MAX) {
		if (gdb_ask(talk, "qXfer:%s:read:%s:%zx,%zx", object, annex, out->len, part) !=
			    GDB_GOT ||
		    !talk->reply.len || (talk->reply.data[0] != 'm' && talk->reply.data[0] != 'l'))
			return false;
		buf_add(out, talk->reply.data + 1, talk->reply.len - 1);
		if (talk->reply.data[0] == 'l' || talk->reply.len == 1)
			break;
	}
	return out->len > 0;
}

static bool read_feature(void *data, const char *name, struct buf *text)
{
	return read_object(data, "features", name, text);
}

/* ---- Registers ---- */

/* The registers of a stub without target.xml: those of the kernel's architecture. */
static bool guess_registers(const char *kernel, struct gdb_registers *registers)
{
	uint8_t head[EI_NIDENT + 4];
	int fd = kernel ? open(kernel, O_RDONLY | O_CLOEXEC) : -1;
	bool read_it = fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head);

	if (fd >= 0)
		close(fd);
	return read_it && !memcmp(head, ELFMAG, SELFMAG) &&
	       gdb_default_registers(registers, head[EI_NIDENT + 2] | head[EI_NIDENT + 3] << 8,
				     head[EI_CLASS] == ELFCLASS64);
}

static int lost(struct gdb *gdb)
{
	const char *address = gdb->options->address;

	if (gdb->talk.exited)
		return err_set(&gdb->source->err, ERR_INPUT, "%s: the target has ended", address);
	return err_set(&gdb->source->err, ERR_INPUT, "%s: the stub %s", address,
		       gdb->link.why[0] ? GDB_CLOSED : "does not answer");
}

static int read_registers(struct gdb *gdb, bool described)
{
	const struct gdb_includer includer = { read_feature, &gdb->talk };
	struct gdb_registers registers = { 0 };
	struct err *err = &gdb->source->err;
	const char *address = gdb->options->address;
	struct buf text = { 0 };
	bool known = false;

	if (described && read_feature(&gdb->talk, "target.xml", &text))
		gdb_xml_scan(text.data, text.len, &includer, &registers);
	buf_release(&text);
	if (!registers.nr && !guess_registers(gdb->options->kernel, &registers)) {
		err_set(err, ERR_INPUT,
			"%s: the stub does not describe its registers; give the kernel's ELF file "
			"with --kernel, so that kscope knows the architecture",
			address);
	} else if (gdb_ask(&gdb->talk, "g") != GDB_GOT) {
		lost(gdb);
	} else if (gdb_layout_init(&gdb->target.layout, &registers, gdb->talk.reply.len / 2,
				   gdb->target.user_mode)) {
		known = true;
	} else {
		err_set(err, ERR_INPUT,
			"%s: unknown architecture%s%s: kscope knows x86, Arm and RISC-V", address,
			registers.arch[0] ? " " : "", registers.arch);
	}
	gdb_registers_release(&registers);
	return known ? 0 : -1;
}

/* ---- Threads ---- */

static uint32_t number_of(const char *id)
{
	const char *dot = strchr(id, '.');
	const char *digits = dot ? dot + 1 : id;
	uint64_t value;

	return text_hex(digits, strlen(digits), &value) && value <= UINT32_MAX ? (uint32_t)value
									       : 0;
}

static void add_thread(struct gdb *gdb, const char *id, size_t len)
{
	struct gdb_target *target = &gdb->target;
	struct gdb_thread *thread = NULL;

	if (len >= GDB_ID_MAX || strspn(id, "0123456789abcdefABCDEFp.") < len)
		return;
	for (size_t i = 0; i < target->nr; i++) {
		struct gdb_thread *known = &target->threads[i];

		if (!strncmp(known->id, id, len) && !known->id[len]) {
			known->listed = true;
			return;
		}
		if (!known->listed && !known->asked && !thread && target->user_mode)
			thread = known; /* its thread has ended */
	}
	if (!thread && target->nr == WIRE_CPUS_MAX)
		return;
	if (!thread) {
		GROW(target->threads, target->nr + 1, target->cap);
		thread = &target->threads[target->nr++];
		*thread = (struct gdb_thread){ 0 };
	}
	*thread = (struct gdb_thread){
		.stack = thread->stack, .outer = thread->outer, .listed = true, .last = gdb->last
	};
	memcpy(thread->id, id, len);
	thread->task = target->user_mode ? number_of(thread->id) : 0;
}

static void add_threads(struct gdb *gdb, const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ",");

		add_thread(gdb, list, len);
		list += len + (list[len] == ',');
	}
}

bool gdb_target_list(struct gdb *gdb)
{
	struct gdb_target *target = &gdb->target;
	struct gdb_talk *talk = &gdb->talk;
	bool more = true, any = false;

	for (size_t i = 0; i < target->nr; i++) {
		target->threads[i].asked = target->threads[i].listed;
		target->threads[i].listed = false;
	}
	/* Most stubs tell one thread at a time, so ask for all that there were, and for the end. */
	gdb_batch_clear(&gdb->batch);
	gdb_batch_add(&gdb->batch, "qfThreadInfo");
	for (size_t i = 0; i < target->nr + 1; i++)
		gdb_batch_add(&gdb->batch, "qsThreadInfo");
	for (size_t i = 0; i < gdb->batch.nr; i++) {
		if (!gdb_batch_next(talk, &gdb->batch))
			return false;
		more = more && talk->reply.len > 1 && talk->reply.data[0] == 'm';
		any |= more;
		if (more)
			add_threads(gdb, talk->reply.data + 1);
	}
	for (size_t i = 0; more && i < WIRE_CPUS_MAX; i++) {
		if (gdb_ask(talk, "qsThreadInfo") != GDB_GOT)
			return false;
		more = talk->reply.len > 1 && talk->reply.data[0] == 'm';
		if (more)
			add_threads(gdb, talk->reply.data + 1);
	}
	if (any)
		return true;
	if (gdb_ask(talk, "qC") != GDB_GOT)
		return false;
	if (talk->reply.len > 2 && !memcmp(talk->reply.data, "QC", 2))
		add_threads(gdb, talk->reply.data + 2);
	else
		add_thread(gdb, "", 0);
	return true;
}

/* ---- Programs ---- */

static void add_elf(struct gdb_target *target, const char *path, size_t len)
{
	char *copy = xstrndup(path, len);

	if (target->nr_elfs < PATHS_MAX && copy[0] == '/' && access(copy, R_OK) == 0) {
		target->elfs = xrealloc(target->elfs, target->nr_elfs + 1, sizeof(*target->elfs));
		target->elfs[target->nr_elfs++] = copy;
		return;
	}
	free(copy);
}

void gdb_target_paths(struct gdb *gdb)
{
	static const char mark[] = "<library name=\"";
	struct buf text = { 0 };

	if (gdb->target.has_program && read_object(&gdb->talk, "exec-file", "", &text))
		add_elf(&gdb->target, text.data, text.len);
	buf_clear(&text);
	if (gdb->target.has_libraries && read_object(&gdb->talk, "libraries-svr4", "", &text)) {
		for (const char *at = text.data; (at = strstr(at, mark));) {
			at += sizeof(mark) - 1;
			add_elf(&gdb->target, at, strcspn(at, "\""));
		}
	}
	buf_release(&text);
}

/* ---- Everything ---- */

/* Whether the stub keeps requests that come before it has answered the one before. */
static bool try_window(struct gdb *gdb)
{
	struct gdb_talk *talk = &gdb->talk;

	if (talk->faults)
		return true;
	talk->window = WINDOW;
	gdb_batch_clear(&gdb->batch);
	for (int i = 0; i < 3; i++)
		gdb_batch_add(&gdb->batch, "qC");
	while (gdb->batch.got < gdb->batch.nr) {
		if (gdb_batch_next(talk, &gdb->batch))
			continue;
		talk->window = 1;
		return gdb->batch.got > 0 && !gdb->link.why[0];
	}
	return true;
}

static bool ask_options(struct gdb *gdb)
{
	struct gdb_target *target = &gdb->target;
	struct gdb_talk *talk = &gdb->talk;
	const struct gdb_thread *first = &target->threads[0];
	uint8_t text[64] = "";

	if (gdb_ask(talk, "vCont?") != GDB_GOT)
		return false;
	target->vcont = !strncmp(talk->reply.data ? talk->reply.data : "", "vCont;", 6);
	target->resumes_with_signal = target->vcont && strstr(talk->reply.data, ";C");
	if (target->user_mode || !first->id[0])
		return true;
	if (gdb_ask(talk, "qThreadExtraInfo,%s", first->id) != GDB_GOT)
		return false;
	/* QEMU says "CPU#0 [running]" or "CPU#0 [halted ]". */
	gdb_unhex(talk->reply.data ? talk->reply.data : "", talk->reply.len, text,
		  sizeof(text) - 1);
	target->says_halted = strstr((char *)text, "[halted") || strstr((char *)text, "[running");
	target->layout.interrupts_first = target->says_halted; /* it is QEMU */
	return true;
}

/* Signals that the program gets without a stop: all but SIGTRAP, SIGINT and SIGSTOP. */
static void pass_signals(struct gdb_talk *talk)
{
	struct buf list = { 0 };

	for (unsigned i = 1; i < 150; i++) {
		if (i != 2 && i != 5 && i != 17)
			buf_addf(&list, "%s%x", i > 1 ? ";" : "", i);
	}
	gdb_ask(talk, "QPassSignals:%s", list.data);
	buf_release(&list);
}

static void set_detach(struct gdb *gdb)
{
	const char *id = gdb->target.threads[0].id;
	char text[GDB_ID_MAX + 8] = "D";

	if (id[0] == 'p') {
		strcpy(text, "D;");
		strncat(text, id + 1, strcspn(id + 1, "."));
	}
	gdb_guard_set_detach(&gdb->guard, text);
	gdb->detach = xstrdup(text);
}

int gdb_target_read(struct gdb *gdb)
{
	struct gdb_target *target = &gdb->target;
	struct gdb_talk *talk = &gdb->talk;
	const struct buf *reply = &talk->reply;
	bool described = feature(reply, "qXfer:features:read+");
	bool no_acks = feature(reply, "QStartNoAckMode+");
	bool passes = feature(reply, "QPassSignals+");

	target->has_program = feature(reply, "qXfer:exec-file:read+");
	target->has_libraries = feature(reply, "qXfer:libraries-svr4:read+");
	target->user_mode = target->has_program || feature(reply, "qXfer:auxv:read+");
	target->binary = feature(reply, "binary-upload+");
	talk->packet_size = packet_size(reply);
	if (no_acks && gdb_ask(talk, "QStartNoAckMode") == GDB_GOT)
		talk->acks = !gdb_is_ok(talk);
	if (!gdb_target_list(gdb))
		return lost(gdb);
	set_detach(gdb);
	if (target->threads[0].id[0] && gdb_ask(talk, "Hg%s", target->threads[0].id) != GDB_GOT)
		return lost(gdb);
	if (read_registers(gdb, described) < 0)
		return -1;
	if (!ask_options(gdb) || !try_window(gdb))
		return lost(gdb);
	if (passes)
		pass_signals(talk);
	return 0;
}

void gdb_target_release(struct gdb_target *target)
{
	for (size_t i = 0; i < target->nr; i++) {
		free(target->threads[i].stack);
		free(target->threads[i].outer);
	}
	for (size_t i = 0; i < target->nr_elfs; i++)
		free(target->elfs[i]);
	free(target->threads);
	free(target->elfs);
}
