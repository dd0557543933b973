// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_calls: a control flow trace that mostly makes sense, as a dump, through a verb that follows its calls, with
 * --verify. The first byte of the input selects the machine, the second one the verb, and the third one its options;
 * then each event has a few bytes: see step(). The code is in the files of tests/unit/unwind_scene.h.
 */
#include <inttypes.h>

#include "base/buf.h"
#include "fuzz/verb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CPUS 3
#define DEPTH 64 /* return addresses that a strand remembers */
#define STACKS 6
#define MAX_STEPS 3000

struct bytes {
	const uint8_t *at, *end;
};

/* What runs on a cpu, or in a thread if the data names threads. */
struct strand {
	uint64_t pc, sp, space;
	bool user;
	unsigned guest;
	struct frame_on_stack {
		uint64_t to, sp;
		bool trap, user;
	} frames[DEPTH];
	unsigned depth;
	uint64_t instructions; /* since its last branch */
};

struct trace {
	struct bytes in;
	struct strand strands[CPUS];
	unsigned now; /* the strand */
	uint64_t time;
	bool by_thread, links, blind, cycles, calls; /* calls: events of calls, and no branches */
	uint64_t stacks[STACKS];		     /* stack pointers to switch to */
	struct buf text;
};

static uint8_t next_byte(struct trace *t)
{
	return t->in.at < t->in.end ? *t->in.at++ : 0;
}

/* An address in a function, or somewhere. */
static uint64_t next_address(struct trace *t, bool user)
{
	uint8_t what = next_byte(t);
	uint64_t base = user ? VERB_USER : VERB_KERNEL;

	if (what >= 240) /* no function there */
		return base + 0x900 * (what - 239);
	return base + ROOT + 0x100 * (what % 6) + (what & 0x40 ? 2 * (what >> 3 & 7) : 0);
}

static void put_head(struct trace *t, const char *kind)
{
	const struct strand *s = &t->strands[t->now];
	unsigned pid = s->user ? 100 + t->now : (unsigned)s->space * 100;

	buf_addf(&t->text, "%s time=%" PRIu64 ".%09" PRIu64 " cpu=%u task=%u/%u", kind,
		 t->time / 1000000000, t->time % 1000000000, t->by_thread ? t->now & 1 : t->now,
		 pid, t->by_thread ? pid + t->now : pid);
}

/* The branch is some instructions of 2 bytes behind the last one, unless the input says otherwise. */
static uint64_t run_to_branch(struct trace *t, uint8_t how)
{
	struct strand *s = &t->strands[t->now];

	s->instructions += 1 + (how & 7);
	t->time += 10 * s->instructions + ((uint64_t)(how >> 6) << (how >> 3 & 15));
	return s->pc + 2 * (how & 7);
}

static void put_stack(struct trace *t, int32_t moved, uint8_t how)
{
	struct strand *s = &t->strands[t->now];

	s->sp += (uint64_t)(int64_t)moved;
	if (t->blind || t->by_thread)
		return;
	if (how % 8 != 7)
		buf_addf(&t->text, moved < 0 ? " down=%u" : " up=%u",
			 (unsigned)(moved < 0 ? -moved : moved));
	if (how % 4 == 3)
		buf_addf(&t->text, " sp=%#" PRIx64, s->sp);
	if (s->space)
		buf_addf(&t->text, " space=%" PRIu64, s->space);
}

static void put_branch(struct trace *t, const char *kind, uint64_t from, uint64_t to, bool user)
{
	struct strand *s = &t->strands[t->now];

	put_head(t, "branch");
	buf_addf(&t->text, " %s", kind);
	if (from)
		buf_addf(&t->text, " from=%#" PRIx64, from);
	if (to)
		buf_addf(&t->text, " to=%#" PRIx64, to);
	buf_addf(&t->text, " instructions=%" PRIu64, s->instructions);
	if (t->cycles)
		buf_addf(&t->text, " cycles=%" PRIu64, s->instructions * 3 / 2);
	if (t->by_thread)
		buf_adds(&t->text, " by-thread");
	else if (s->guest)
		buf_addf(&t->text, " guest=%u", s->guest);
	buf_adds(&t->text, user ? " user" : " kernel");
	s->instructions = 0;
	s->pc = to;
	s->user = user;
}

static void push(struct strand *s, uint64_t to, bool trap)
{
	s->frames[s->depth++ % DEPTH] = (struct frame_on_stack){ to, s->sp, trap, s->user };
}

static void call(struct trace *t, uint8_t how)
{
	struct strand *s = &t->strands[t->now];
	uint64_t from = run_to_branch(t, how), to = next_address(t, s->user);
	int32_t room = 16 * (how >> 5);

	push(s, from + 4, false);
	put_branch(t, "call", from, to, s->user);
	buf_addf(&t->text, t->links ? " next=%#" PRIx64 : " pushed=8 next=%#" PRIx64, from + 4);
	put_stack(t, -room - (t->links ? 0 : 8), how);
	buf_addc(&t->text, '\n');
}

/* To the caller, or past some callers. */
static void leave(struct trace *t, const char *kind, uint8_t how)
{
	struct strand *s = &t->strands[t->now];
	uint64_t from = run_to_branch(t, how & 15);
	struct frame_on_stack frame = { .to = next_address(t, s->user), .sp = s->sp + 64 };

	for (unsigned nr = how >> 6 == 3 ? 3 : 1; nr && s->depth; nr--)
		frame = s->frames[--s->depth % DEPTH];
	put_branch(t, kind, from, frame.to, frame.user);
	put_stack(t, (int32_t)(frame.sp - s->sp) + (how & 32 ? 8 : 0), how >> 2);
	buf_addc(&t->text, '\n');
}

static void trap(struct trace *t, uint8_t how)
{
	struct strand *s = &t->strands[t->now];
	uint64_t from = run_to_branch(t, how), old = s->sp, to = next_address(t, false);

	push(s, how & 16 ? from + 2 : from, true);
	if (s->user || how & 32)
		s->sp = t->stacks[how >> 3 & 3] - 64;
	put_branch(t, "enter", from, to, false);
	if (how & 8)
		buf_addf(&t->text, " next=%#" PRIx64, how & 16 ? from + 2 : from);
	else if (how & 64)
		buf_addf(&t->text, " after=%#" PRIx64, from + 4);
	if (!t->blind && !t->by_thread)
		buf_addf(&t->text, " left=%#" PRIx64 " sp=%#" PRIx64, old, s->sp);
	buf_addc(&t->text, '\n');
}

static void jump(struct trace *t, uint8_t how)
{
	struct strand *s = &t->strands[t->now];
	uint64_t from = run_to_branch(t, how);
	uint64_t to = how & 8 ? next_address(t, s->user) : (s->pc & ~(uint64_t)0xff) + how % 64 * 2;

	if (how >> 6 == 3 && s->depth > 1) /* longjmp() */
		to = s->frames[(s->depth - 2) % DEPTH].to;
	put_branch(t, "jump", from, to, s->user);
	if (how & 16)
		buf_adds(&t->text, " direct");
	put_stack(t, how & 32 ? -32 : 0, how >> 1);
	buf_addc(&t->text, '\n');
}

/* An instruction replaces the stack pointer, as a switch of tasks does. */
static void switch_stack(struct trace *t, uint8_t how)
{
	struct strand *s = &t->strands[t->now];
	uint64_t from = run_to_branch(t, how & 15), old = s->sp, to;

	s->sp = t->stacks[how % STACKS];
	t->stacks[how % STACKS] = old;
	to = how & 16 && s->depth ? s->frames[(s->depth - 1) % DEPTH].to : next_address(t, s->user);
	put_branch(t, how & 32 ? "return" : "jump", from, to, s->user);
	if (!t->by_thread)
		buf_addf(&t->text,
			 " left=%#" PRIx64 " taken=%#" PRIx64 " sp=%#" PRIx64 " space=%" PRIu64,
			 how & 64 ? old : 0, s->sp, s->sp, s->space);
	buf_addc(&t->text, '\n');
}

static void edge(struct trace *t, uint8_t how)
{
	struct strand *s = &t->strands[t->now];

	if (how & 1) {
		put_branch(t, "begin", 0, next_address(t, how & 2), how & 2);
		if (!t->blind && !t->by_thread)
			buf_addf(&t->text, " sp=%#" PRIx64, s->sp);
	} else {
		put_branch(t, how & 8 ? "jump" : "end", run_to_branch(t, how), 0, s->user);
	}
	buf_adds(&t->text, how & 4 ? " over\n" : "\n");
}

static void put_chain(struct trace *t, uint8_t how)
{
	const struct strand *s = &t->strands[t->now];
	bool user = s->user;

	buf_addf(&t->text, " : %s %#" PRIx64, user ? "user" : "kernel", s->pc);
	for (unsigned i = s->depth; i > 0 && s->depth - i < DEPTH && s->depth - i < 1u + how; i--) {
		const struct frame_on_stack *frame = &s->frames[(i - 1) % DEPTH];

		if (frame->user != user)
			buf_adds(&t->text, frame->user ? " user" : " kernel");
		user = frame->user;
		buf_addf(&t->text, " %#" PRIx64, frame->to);
	}
	buf_addc(&t->text, '\n');
}

/* What is no branch. */
static void other(struct trace *t, uint8_t how)
{
	static const char *const masks[] = { "off", "on", "unknown", "off" };
	static const char *const ops[] = { "new", "resize", "free", "new" };
	struct strand *s = &t->strands[t->now];
	const char *context = s->user ? "user" : "kernel";
	uint8_t more = next_byte(t);

	switch (how % 7) {
	case 0:
		s->instructions += more & 3;
		put_head(t, "mask");
		buf_addf(&t->text, " %s instructions=%" PRIu64 " %s\n", masks[more >> 2 & 3],
			 s->instructions, context);
		break;
	case 1:
		put_head(t, "note");
		buf_addf(&t->text, " %s value=%u at=%#" PRIx64 " instructions=%" PRIu64 " %s\n",
			 note_names[more % NOTE_KINDS], more, s->pc, s->instructions, context);
		break;
	case 2:
		put_head(t, "check");
		put_chain(t, more);
		break;
	case 3:
		put_head(t, "sample");
		buf_addf(&t->text, " source=1 weight=%u%s", 1 + more % 100,
			 more & 128 ? " split" : "");
		put_chain(t, more & 31);
		break;
	case 4:
		put_head(t, "alloc");
		buf_addf(&t->text, " %s by=\"%s\" ptr=%#x size=%u at=0", ops[more & 3],
			 more & 4 ? "malloc" : "slab", 0x1000 + (more >> 3 & 7) * 16, more);
		put_chain(t, 3);
		break;
	case 5:
		put_head(t, "switch");
		buf_addf(&t->text, " %s%s other=%u/%u\n", more & 1 ? "out" : "in",
			 more & 2 ? " preempted" : "", 100 + more % 4, 100 + more % 4);
		break;
	default:
		put_head(t, more & 1 ? "lost" : "comm");
		buf_addf(&t->text, more & 1 ? " count=%u\n" : " name=\"task%u\"\n", more >> 1);
	}
}

/* The strand, its address space, its guest, or time. */
static void change(struct trace *t, uint8_t how)
{
	struct strand *s = &t->strands[t->now];

	switch (how & 3) {
	case 0: t->now = (how >> 2) % CPUS; break;
	case 1: s->space = how >> 2 & 3; break;
	case 2: s->guest = how >> 2 & 1; break;
	default: t->time += (uint64_t)1 << (how >> 2 & 31);
	}
}

/* The events of a tracer of functions. */
static void tell_call(struct trace *t, bool enters, uint8_t how)
{
	struct strand *s = &t->strands[t->now];
	uint64_t caller = s->pc;

	t->time += how;
	if (enters || !s->depth)
		push(s, next_address(t, s->user), false);
	s->pc = s->frames[(s->depth - 1) % DEPTH].to;
	s->depth -= !enters;
	put_head(t, "call");
	buf_addf(&t->text, " %s function=%#" PRIx64 " caller=%#" PRIx64 " %s\n",
		 enters ? "enter" : "leave", s->pc, caller, s->user ? "user" : "kernel");
}

static void step(struct trace *t)
{
	uint8_t what = next_byte(t), how = next_byte(t);

	if (t->calls && what % 16 <= 12) {
		tell_call(t, what % 16 < 6, how);
		return;
	}
	switch (what % 16) {
	case 0:
	case 1:
	case 2:
	case 3: call(t, how); break;
	case 4:
	case 5:
	case 6: leave(t, "return", how); break;
	case 7:
	case 8: jump(t, how); break;
	case 9: trap(t, how); break;
	case 10: leave(t, "leave", how); break;
	case 11: switch_stack(t, how); break;
	case 12: edge(t, how); break;
	case 13:
	case 14: other(t, how); break;
	default: change(t, how);
	}
}

static void put_world(struct trace *t, bool moved)
{
	buf_adds(&t->text, "kscope-dump 1\n"
			   "meta key=\"arch\" value=\"x86_64\"\n"
			   "source id=1 name=\"cycles\" type=0 config=0x0\n");
	buf_addf(&t->text,
		 "map addr=%#" PRIx64 " len=0x1000 offset=0 prot=r-x path=\"%s\" kernel%s\n",
		 VERB_KERNEL, verb_path("kernel"), moved ? "" : " linked");
	for (unsigned i = 0; i < CPUS; i++)
		buf_addf(&t->text,
			 "comm task=%u/%u name=\"task%u\"\n"
			 "map task=%u/%u whole path=\"%s\"\n",
			 100 + i, 100 + i, i, 100 + i, 100 + i, verb_path("program"));
}

static void start(struct trace *t, uint8_t machine)
{
	t->by_thread = machine & 1;
	t->links = machine & 2;
	t->blind = machine & 4;
	t->cycles = machine & 8;
	t->calls = machine & 32;

	for (unsigned i = 0; i < STACKS; i++)
		t->stacks[i] = 0xffffc90000010000 + 0x10000 * i;
	for (unsigned i = 0; i < CPUS; i++)
		t->strands[i] =
			(struct strand){ .pc = (machine & 64 ? VERB_USER : VERB_KERNEL) + ROOT,
					 .sp = 0xffffc90000004000 + 0x4000 * i,
					 .space = i + 1,
					 .user = machine & 64 };
	put_world(t, machine & 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		const struct command *verb;
		const char *output, *options;
	} runs[] = {
		{ &cmd_calls, "", "" },
		{ &cmd_calls, "", "--json --histogram" },
		{ &cmd_calls, "", "--function root --sort=max" },
		{ &cmd_calls, "", "--between outer leaf" },
		{ &cmd_calls, "", "--syscalls --json" },
		{ &cmd_calls, "", "--traps --instructions" },
		{ &cmd_calls, "", "--irqs-off" },
		{ &cmd_calls, "", "--irqs-off --json --limit=0" },
		{ &cmd_report, "", "" },
		{ &cmd_report, "", "--by=cpu --json" },
		{ &cmd_info, "", "-v" },
		{ &cmd_info, "", "--json" },
		{ &cmd_alloc, "", "--live-over-time=5" },
		{ &cmd_alloc, "", "--json" },
		{ &cmd_insn, "", "" },
		{ &cmd_insn, "", "--addresses" },
		{ &cmd_flame, "flame", "" },
		{ &cmd_trace, "perfetto", "--inlines" },
		{ &cmd_trace, "fxt", "--axis=insns" },
		{ &cmd_trace, "perfetto", "--axis=cycles" },
		{ &cmd_trace, "fxt", "--start=outer --end=middle" },
		{ &cmd_trace, "uftrace", "" },
		{ &cmd_trace, "chrome", "" },
		{ &cmd_convert, "speedscope", "" },
		{ &cmd_convert, "firefox", "" },
		{ &cmd_convert, "sqlite", "" },
		{ &cmd_convert, "folded", "" },
		{ &cmd_convert, "dump", "" },
	};
	static const char *const selections[] = {
		"",
		"",
		"--time=0.000001,0.00001",
		"--rel=0.000001,1",
		"--cpu=0",
		"--cpu=1-2",
		"--pid=100",
		"--tid=101,102",
		"--level=user",
		"--level=kernel",
		"--comm=task1",
		"--event=cycles",
		"--verify",
		"--no-split",
		"--unwind=fp",
		"--time=0,+0.00005",
	};
	struct trace trace = { .in = { data, data + size } };
	struct buf words = { 0 }, options = { 0 };
	uint8_t machine = next_byte(&trace), run = next_byte(&trace), selection = next_byte(&trace);
	const char *file;

	write_binaries();
	file = verb_path("input.dump");
	run %= sizeof(runs) / sizeof(runs[0]);
	start(&trace, machine);
	for (unsigned i = 0; i < MAX_STEPS && trace.in.at < trace.in.end; i++)
		step(&trace);
	verb_write(file, trace.text.data, trace.text.len);
	buf_adds(&words, file);
	if (*runs[run].output)
		buf_addf(&words, " -o %s.%s -t %s", verb_path("out"), runs[run].output,
			 runs[run].output);
	buf_addf(&options, "%s %s", runs[run].options, selections[selection % 16]);
	run_verb(runs[run].verb, words.data, options.data);
	buf_release(&words);
	buf_release(&options);
	buf_release(&trace.text);
	return 0;
}
