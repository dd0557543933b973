// SPDX-License-Identifier: GPL-2.0-or-later
/* insn: prints every instruction of a trace, in the order of execution. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "cmd.h"
#include "pass/straight.h"

struct insn_options {
	bool addresses;
	enum insn_syntax syntax;
};

struct insn_writer {
	struct insn_options asked;
	struct straights straights;
	struct buf scratch;
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

#define ADDRESS_LINE 40 /* bytes, at most */

static char *put_hex(char *to, uint64_t value)
{
	unsigned digits = value ? (67 - (unsigned)__builtin_clzll(value)) / 4 : 1;

	for (unsigned i = digits; i-- > 0; value >>= 4)
		to[i] = "0123456789abcdef"[value & 15];
	return to + digits;
}

static void put_addresses(struct out *out, const struct straight *run, const struct buf *head)
{
	uint64_t address = run->address;
	char lines[64 * ADDRESS_LINE], *at = lines;

	for (uint64_t i = 0; i < run->nr; i++) {
		memcpy(at, head->data, head->len);
		at = put_hex(at + head->len, address);
		*at++ = '\n';
		address += run->insns[i].size;
		if (i % 64 == 63 || i + 1 == run->nr) {
			out_write(out, lines, (size_t)(at - lines));
			at = lines;
		}
	}
}

/* The verb */

static int insn_open(struct writer *w)
{
	struct insn_writer *writer = w->priv;

	straights_init(&writer->straights, w->world);
	return 0;
}

static int insn_put(struct writer *w, const struct event *ev)
{
	struct insn_writer *writer = w->priv;
	struct buf *head = &writer->scratch;
	struct straight run;

	if (!straights_take(&writer->straights, ev, &run) || run.outside)
		return 0;
	buf_clear(head);
	buf_addu(head, run.tid);
	buf_addc(head, ' ');
	if (run.state == STRAIGHT_KNOWN) {
		put_addresses(w->out, &run, head);
		return 0;
	}
	buf_addf(head, "%" PRIx64 " %" PRIu64 " instructions, %s\n", run.address, run.nr,
		 run.state == STRAIGHT_NO_CODE ? "code not found" : "other code in the binary");
	out_write(w->out, head->data, head->len);
	return 0;
}

static void insn_close(struct writer *w)
{
	struct insn_writer *writer = w->priv;

	straights_release(&writer->straights);
	buf_release(&writer->scratch);
}

static const struct writer_ops insn_ops = {
	.name = "insn",
	.needs = WRITER_TEXT | WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_BRANCH),
	.options = OPTION_USES({ &insn_table, offsetof(struct insn_writer, asked) }),
	.priv_size = sizeof(struct insn_writer),
	.open = insn_open,
	.put = insn_put,
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
	.about = "Print every instruction of a trace, in the order of execution.",
	.examples = "  kscope insn perf.data --tid 4711 | less\n",
	.options = OPTION_USES({ &output_table, OPTION_ELSEWHERE }),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &insn_ops, NULL },
	.output = "-",
	.check = check,
	.run = run,
};
