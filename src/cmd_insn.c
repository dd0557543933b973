// SPDX-License-Identifier: GPL-2.0-or-later
/* insn: prints every instruction of a trace, in the order of execution. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cmd.h"
#include "look.h"
#include "model/world.h"
#include "pass/straight.h"

#define TEXT_MAX ((size_t)64 << 20) /* of all instructions; if there is more, it is made again */
#define DIM "\033[2m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"
#define ADDRESS_WIDTH 16
#define CODE_COLUMN 56	 /* from the address on */
#define SOURCE_COLUMN 40 /* from the code on */
#define GAP_MESSAGE "                 some code was not traced"

struct insn_options {
	bool addresses;
	enum insn_syntax syntax;
};

/* The first columns of a line, which are the same for all instructions between two branches. */
struct insn_head {
	uint64_t time;
	uint32_t comm, tid, cpu;
	struct buf text;
};

struct insn_writer {
	struct insn_options asked;
	struct straights straights;
	struct insn_head head;
	struct look look;
	struct buf tails;	 /* of lines: the length in two bytes, and the text */
	uint32_t forgotten;	 /* straights.forgotten when they were made */
	struct straight unknown; /* code without text that is not printed yet; nr 0: none */
	uint64_t unknown_since;	 /* its time */
	struct buf line;
	uint64_t nr_branches;
};

static const char *const syntaxes[] = { "att", "intel", NULL };

/* clang-format off: tables are read by the row. */
static const struct option_table insn_table = {
	"Output",
	(const struct option_row[]){
		{ "addresses", 0, NULL, "print only the thread and the address of each instruction",
		  OPTION_FLAG(struct insn_options, addresses) },
		{ "syntax", 0, "SYNTAX", "disassemble x86 code in att (default) or intel syntax",
		  OPTION_WORD(struct insn_options, syntax, syntaxes) },
		{ 0 },
	},
};

static const struct option_table output_table = {
	"Output",
	(const struct option_row[]){
		OPTION_OUTPUT("write this file; - is stdout (default)"),
		{ 0 },
	},
};
/* clang-format on */

/* Addresses only */

#define ADDRESS_LINE 64 /* bytes, at most */
#define LINES 64	/* at once */

static char *put_hex(char *to, uint64_t value)
{
	unsigned digits = value ? (67 - (unsigned)__builtin_clzll(value)) / 4 : 1;

	for (unsigned i = digits; i-- > 0; value >>= 4)
		to[i] = "0123456789abcdef"[value & 15];
	return to + digits;
}

static void make_short_head(struct buf *head, const struct straight *run)
{
	buf_clear(head);
	if (run->by_thread)
		buf_addu(head, run->tid);
	else
		buf_addf(head, "[%03" PRIu32 "]", run->cpu);
	buf_addc(head, ' ');
}

static void put_addresses(struct out *out, const struct straight *run, const struct buf *head)
{
	uint64_t address = run->address;
	char lines[LINES * ADDRESS_LINE], *at = lines;

	for (uint64_t i = 0; i < run->nr; i++) {
		memcpy(at, head->data, head->len);
		at = put_hex(at + head->len, address);
		*at++ = '\n';
		address += run->insns[i].size;
		if (i % LINES == LINES - 1 || i + 1 == run->nr) {
			out_write(out, lines, (size_t)(at - lines));
			at = lines;
		}
	}
}

/* All columns */

static void color(struct insn_writer *writer, struct buf *to, const char *color)
{
	if (writer->look.colors)
		buf_adds(to, color);
}

static void pad(struct buf *to, size_t since, size_t width)
{
	while (to->len - since < width)
		buf_addc(to, ' ');
}

/* As perf script does: the name of the task, its thread, the cpu, the time. */
static void make_head(struct insn_writer *writer, struct world *world, const struct straight *run,
		      uint64_t time)
{
	struct insn_head *head = &writer->head;
	uint32_t comm = world_comm(world, run->pid, run->tid);

	if (head->text.len && head->time == time && head->comm == comm && head->tid == run->tid &&
	    head->cpu == run->cpu)
		return;
	head->time = time;
	head->comm = comm;
	head->tid = run->tid;
	head->cpu = run->cpu;
	buf_clear(&head->text);
	buf_addf(&head->text, "%16s %6" PRId32, look_name(&writer->look, 0, comm),
		 (int32_t)run->tid);
	if (run->cpu != NO_CPU)
		buf_addf(&head->text, " [%03" PRIu32 "]", run->cpu);
	if (time != NO_TIME)
		buf_addf(&head->text, " %5" PRIu64 ".%09" PRIu64 ":", time / 1000000000,
			 time % 1000000000);
	buf_addc(&head->text, ' ');
}

/* "function+0x12". The functions that are inlined there stand elsewhere. */
static void add_symbol(struct insn_writer *writer, struct world *world, struct buf *to,
		       uint32_t frame, bool start)
{
	size_t nr;
	const struct symbol *symbol = frame_symbols(world, frame, &nr) + nr - 1;
	const struct frame *at = &world->frames.all[frame];
	uint64_t offset;

	buf_adds(to, look_name(&writer->look, 0, symbol->name));
	if (symbol->unknown || at->flags & (FRAME_NAMED | FRAME_UNMAPPED))
		return;
	offset = image_vaddr(&world->images, at->image, at->addr) - symbol->start;
	if (start || offset)
		buf_addf(to, "+0x%" PRIx64, offset);
}

/* "  # file.c:12 inner, outer (inlined)" */
static void add_source(struct insn_writer *writer, struct world *world, struct buf *to,
		       uint32_t frame)
{
	size_t nr;
	const struct symbol *symbols = frame_symbols(world, frame, &nr);

	if (!symbols->file && nr < 2)
		return;
	color(writer, to, DIM);
	buf_adds(to, "  #");
	if (symbols->file)
		buf_addf(to, " %s:%" PRIu32,
			 text_last_part(look_name(&writer->look, 0, symbols->file)), symbols->line);
	for (size_t i = 0; i + 1 < nr; i++)
		buf_addf(to, "%s %s", i ? "," : "", look_name(&writer->look, 0, symbols[i].name));
	if (nr > 1)
		buf_adds(to, " (inlined)");
	color(writer, to, PLAIN);
}

static void add_tail(struct insn_writer *writer, struct world *world, const struct straight *run,
		     uint64_t address)
{
	struct event at = { .pid = run->pid };
	struct buf *to = &writer->tails;
	uint32_t frame = world_frame(world, &at, run->context, address, 0);
	uint32_t binary = frame_binary(world, frame);
	struct insn_code code;
	char text[INSN_TEXT];
	uint64_t target;
	size_t begin = to->len;

	buf_addf(to, "%*" PRIx64 " ", ADDRESS_WIDTH, address);
	add_symbol(writer, world, to, frame, true);
	if (binary)
		buf_addf(to, " (%s)", look_name(&writer->look, 0, binary));
	buf_addc(to, ' ');
	pad(to, begin, CODE_COLUMN);
	begin = to->len;
	world_code(world, run->pid, run->context, address, &code);
	target = insn_text(&code, address, writer->asked.syntax, text);
	buf_adds(to, text);
	if (target) {
		buf_adds(to, " <");
		add_symbol(writer, world, to, world_frame(world, &at, run->context, target, 0),
			   false);
		buf_addc(to, '>');
	}
	pad(to, begin, SOURCE_COLUMN);
	add_source(writer, world, to, frame);
	while (to->data[to->len - 1] == ' ')
		to->len--;
	buf_addc(to, '\n');
}

/* Makes the text of an instruction, after its length. */
static uint32_t make_tail(struct insn_writer *writer, struct world *world,
			  const struct straight *run, uint64_t address)
{
	uint32_t begin = (uint32_t)writer->tails.len;
	uint32_t len = 0;

	buf_add(&writer->tails, &len, sizeof(len));
	add_tail(writer, world, run, address);
	len = (uint32_t)(writer->tails.len - begin - sizeof(len));
	memcpy(writer->tails.data + begin, &len, sizeof(len));
	return begin;
}

static void put_lines(struct writer *w, const struct straight *run)
{
	struct insn_writer *writer = w->priv;
	const struct buf *head = &writer->head.text;
	uint64_t address = run->address;

	for (uint64_t i = 0; i < run->nr; i++) {
		struct straight_insn *insn = &run->insns[i];
		const char *tail;
		uint32_t len;

		if (!insn->note)
			insn->note = make_tail(writer, w->world, run, address);
		tail = writer->tails.data + insn->note;
		memcpy(&len, tail, sizeof(len));
		out_write(w->out, head->data, head->len);
		out_write(w->out, tail + sizeof(len), len);
		address += insn->size;
	}
}

/* Drops the text of code that was forgotten. Offset 0 means that there is no text. */
static void drop_old_tails(struct insn_writer *writer)
{
	if (writer->forgotten == writer->straights.forgotten && writer->tails.len)
		return;
	writer->forgotten = writer->straights.forgotten;
	buf_clear(&writer->tails);
	buf_addc(&writer->tails, '\n');
}

/* The verb */

static const char *const excuses[] = {
	[STRAIGHT_NO_CODE] = "code not found",
	[STRAIGHT_NO_DECODER] = "built without a decoder for this machine",
	[STRAIGHT_DIFFERENT] = "code differs from the binary",
};

static void make_any_head(struct writer *w, const struct straight *run, uint64_t time)
{
	struct insn_writer *writer = w->priv;

	if (writer->asked.addresses)
		make_short_head(&writer->head.text, run);
	else
		make_head(writer, w->world, run, time);
}

static void put_message(struct writer *w, const char *text)
{
	struct insn_writer *writer = w->priv;
	struct buf *line = &writer->line;

	buf_clear(line);
	buf_add(line, writer->head.text.data, writer->head.text.len);
	color(writer, line, YELLOW);
	buf_adds(line, text);
	color(writer, line, PLAIN);
	buf_addc(line, '\n');
	out_write(w->out, line->data, line->len);
}

static void put_unknown(struct writer *w)
{
	struct insn_writer *writer = w->priv;
	struct straight *run = &writer->unknown;
	char text[128];

	if (!run->nr)
		return;
	make_any_head(w, run, writer->unknown_since);
	snprintf(text, sizeof(text), "%*" PRIx64 " %" PRIu64 " instruction%s, %s",
		 writer->asked.addresses ? 0 : ADDRESS_WIDTH, run->address, run->nr,
		 run->nr == 1 ? "" : "s", excuses[run->state]);
	put_message(w, text);
	run->nr = 0;
}

/* One line tells of all that runs in one sequence. */
static void add_unknown(struct writer *w, const struct straight *run, uint64_t time)
{
	struct insn_writer *writer = w->priv;
	struct straight *old = &writer->unknown;

	if (old->nr && old->state == run->state && old->tid == run->tid && old->cpu == run->cpu) {
		old->nr += run->nr;
		return;
	}
	put_unknown(w);
	*old = *run;
	writer->unknown_since = time;
}

static void put_run(struct writer *w, const struct straight *run, uint64_t time)
{
	struct insn_writer *writer = w->priv;

	put_unknown(w);
	make_any_head(w, run, time);
	if (run->state == STRAIGHT_GAP)
		put_message(w, GAP_MESSAGE);
	else if (writer->asked.addresses)
		put_addresses(w->out, run, &writer->head.text);
	else
		put_lines(w, run);
}

/* "  401136 ptwrite value=0x2a" */
static void put_note_line(struct writer *w, const struct event *ev)
{
	struct straight at = { .pid = ev->pid, .tid = ev->tid, .cpu = ev->cpu };
	const struct event_note *note = &ev->note;
	struct buf text = { 0 };

	make_any_head(w, &at, ev->time);
	if (note->address)
		buf_addf(&text, "%*" PRIx64 " ", ADDRESS_WIDTH, note->address);
	pad(&text, 0, ADDRESS_WIDTH + 1);
	buf_adds(&text, note_names[note->kind]);
	for (unsigned i = 0; i < NOTE_FIELDS; i++) {
		if (note_fields[i].kind == note->kind)
			buf_addf(&text, " %s=0x%" PRIx64, note_fields[i].name,
				 note_number(note, i));
	}
	put_message(w, text.data);
	buf_release(&text);
}

static int put_note(struct writer *w, const struct event *ev)
{
	struct insn_writer *writer = w->priv;
	struct straight run;

	if (straights_take_note(&writer->straights, ev, &run) && !run.outside) {
		drop_old_tails(writer);
		put_run(w, &run, ev->time);
	}
	if (ev->outside || writer->asked.addresses)
		return 0;
	put_unknown(w);
	put_note_line(w, ev);
	return 0;
}

static int insn_open(struct writer *w)
{
	struct insn_writer *writer = w->priv;

	straights_init(&writer->straights, w->world);
	look_init(&writer->look, NULL, w->world->strings);
	writer->look.colors &= !strcmp(w->out->path, "-");
	return 0;
}

static int insn_put(struct writer *w, const struct event *ev)
{
	struct insn_writer *writer = w->priv;
	struct straight run;

	if (writer->tails.len > TEXT_MAX)
		straights_forget(&writer->straights);
	if (ev->kind == EVENT_NOTE)
		return put_note(w, ev);
	writer->nr_branches++;
	if (!straights_take(&writer->straights, ev, &run) || run.outside)
		return 0;
	drop_old_tails(writer);
	if (run.state == STRAIGHT_KNOWN)
		put_run(w, &run, ev->time);
	else if (run.state != STRAIGHT_GAP)
		add_unknown(w, &run, ev->time);
	else if (!writer->asked.addresses)
		put_run(w, &run, ev->time);
	return 0;
}

static int insn_finish(struct writer *w)
{
	const struct insn_writer *writer = w->priv;

	put_unknown(w);
	if (!writer->nr_branches)
		return err_set(&w->err, ERR_INPUT,
			       "no trace of branches, so the instructions are unknown: use kscope "
			       "record qemu --trace, or Intel PT");
	return 0;
}

static void insn_close(struct writer *w)
{
	struct insn_writer *writer = w->priv;

	straights_release(&writer->straights);
	look_release(&writer->look);
	buf_release(&writer->head.text);
	buf_release(&writer->tails);
	buf_release(&writer->line);
}

static const struct writer_ops insn_ops = {
	.name = "insn",
	.needs = WRITER_TEXT | WRITER_PLAIN | WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_NOTE),
	.options = OPTION_USES({ &insn_table, offsetof(struct insn_writer, asked) }),
	.priv_size = sizeof(struct insn_writer),
	.open = insn_open,
	.put = insn_put,
	.finish = insn_finish,
	.close = insn_close,
};

static int check(const struct args *args, struct err *err)
{
	return args->nr_outputs > 1 ? err_set(err, ERR_USAGE, "insn writes one file: use one -o")
				    : 0;
}

static int run(struct args *args)
{
	struct job job;

	args_job(args, &job);
	return convert_file(&job, &insn_ops, args->outputs[0].path);
}

const struct command cmd_insn = {
	.name = "insn",
	.usage = "insn INPUT... [-o FILE] [OPTIONS]",
	.about = "Print every instruction of a trace, in the order of execution.\n"
		 "\n"
		 "A line has the task, its thread, the cpu, the time, the address, the function, "
		 "the\n"
		 "instruction and its source line. The input is a trace of every branch: Intel PT "
		 "in\n"
		 "a perf.data, or the output of kscope record --trace or kscope record emulate. "
		 "The\n"
		 "code comes from the binaries.",
	.examples =
		"  perf record -e intel_pt//u ./program && kscope insn perf.data | less\n"
		"  kscope insn perf.data --tid 4711 --time 12.345,+0.001\n"
		"  kscope record qemu --trace -o t.kscope -- qemu-system-x86_64 ...\n"
		"  kscope insn t.kscope --kernel kernel.elf --cpu 0 --syntax intel -o insns.txt\n"
		"  kscope insn perf.data --addresses | sort | uniq -c | sort -rn | head\n",
	.options = OPTION_USES({ &output_table, OPTION_ELSEWHERE }),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &insn_ops, NULL },
	.output = "-",
	.check = check,
	.run = run,
};
