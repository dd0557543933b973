/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * event: what readers produce and writers consume. Everything an event points to is borrowed and
 * valid until the reader returns the next one. Addresses and ids are as in the data; names come
 * later (model/frame).
 */
#ifndef KSCOPE_MODEL_EVENT_H
#define KSCOPE_MODEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
	EVENT_META,   /* a fact about the recording: key, value */
	EVENT_SOURCE, /* what triggers samples: cycles, a timer, a PMU event */
	EVENT_COMM,   /* a task has this name from now on */
	EVENT_FORK,   /* a task begins, with its parent's maps if it is a new process */
	EVENT_EXIT,   /* a task ends */
	EVENT_MAP,    /* a binary is mapped */
	EVENT_SAMPLE, /* a call stack and its weight */
	EVENT_LOST,   /* samples or bytes that are missing here */
	EVENT_SYMBOL, /* code that is in no file has this name from now on */
	EVENT_SWITCH, /* a task starts or stops running on a cpu */
	EVENT_ALLOC,  /* memory is allocated or freed */
	EVENT_CALL,   /* a function is entered or left */
	EVENT_BRANCH, /* a branch in a control flow trace */
	EVENT_AUX,    /* bytes of a kind that its decoder knows: a hardware trace, say */
	EVENT_CHAIN,  /* a sample whose chain may run through interrupts; pass/split splits it */
	EVENT_CHECK,  /* a sample inside a trace, to check its stacks; not part of a profile */
	EVENT_SLICE,  /* a call begins or ends on the time axis of its task */
	EVENT_STRETCH, /* the same, inferred from samples: a stretch of time with the same function */
	EVENT_MASK,    /* in a control flow trace: a cpu switches interrupts on or off */
	EVENT_NOTE,    /* in a control flow trace: a moment that a program or the cpu noted in it */
	EVENT_COUNTER, /* how often what triggers samples has happened on a cpu */
	EVENT_KINDS
};

#define EVENT_BIT(kind) ((uint32_t)1 << (kind))
#define EVENT_ALL (EVENT_BIT(EVENT_KINDS) - 1)
/* What the world learns from, whatever else a run needs. */
#define EVENT_STATE                                                                \
	(EVENT_BIT(EVENT_META) | EVENT_BIT(EVENT_SOURCE) | EVENT_BIT(EVENT_COMM) | \
	 EVENT_BIT(EVENT_FORK) | EVENT_BIT(EVENT_EXIT) | EVENT_BIT(EVENT_MAP) |    \
	 EVENT_BIT(EVENT_SYMBOL))

#define NO_TIME UINT64_MAX
#define NO_CPU UINT32_MAX
#define NO_TASK UINT32_MAX /* pid and tid, if unknown */

/*
 * Markers inside a call chain: the addresses that follow are of this kind. Values are those of
 * perf, so chains pass through unchanged. IP_NAMED is ours: handles of frames follow, which the
 * reader created because its data has names instead of addresses. It means that only if the chain's own context
 * (event_sample.context) is IP_NAMED, too: a chain that passes through may contain any value.
 */
#define IP_MARKERS ((uint64_t)-4095) /* this and above are markers */
#define IP_KERNEL ((uint64_t)-128)
#define IP_USER ((uint64_t)-512)
#define IP_GUEST ((uint64_t)-2048)
#define IP_GUEST_KERNEL ((uint64_t)-2176)
#define IP_GUEST_USER ((uint64_t)-2560)
#define IP_NAMED ((uint64_t)-4000)

/* perf's type numbers, so that a source passes through unchanged. */
enum source_type {
	SOURCE_HARDWARE = 0,
	SOURCE_SOFTWARE = 1,
	SOURCE_TRACEPOINT = 2,
	SOURCE_CACHE = 3,
	SOURCE_RAW = 4,
	SOURCE_BREAKPOINT = 5,
};

struct event_meta { /* keys: arch, hostname, osrelease, cmdline, cpudesc, nrcpus, clock */
	const char *key, *value;
};

enum source_lacks {		     /* what samples of a source do not have */
		    LACKS_CHAIN = 1, /* only the pc */
		    LACKS_TIME = 2,
		    LACKS_CPU = 4,
		    LACKS_THREADS = 8, /* a tid stands for all threads of its process */
};

struct event_source {
	uint32_t id;	  /* assigned by the reader; samples refer to it */
	const char *name; /* NULL: derived from type, config and the architecture */
	uint32_t type;
	uint64_t config;
	uint64_t period;      /* 0: varies, or unknown */
	bool freq;	      /* period is a frequency in Hz */
	const char *unit;     /* of a sample's weight; NULL: events of this source */
	unsigned lacks;	      /* enum source_lacks */
	bool branches;	      /* samples have a branch stack */
	uint64_t branch_type; /* perf's: which branches are in it; 0: unknown */
	bool raw;	      /* samples have raw data, as tracepoints do */
	bool late; /* also what earlier samples of this id belong to: it was not known then */
};

struct event_comm {
	const char *comm;
	/*
	 * The task called execve(). The old maps stay until new ones replace them, because samples
	 * of the rest of execve(), on behalf of the old binary, still follow.
	 */
	bool exec;
};

struct event_fork { /* also for EVENT_EXIT, where the parent may be 0: unknown */
	uint32_t parent_pid, parent_tid;
	bool fresh; /* it existed before the recording: do not copy the parent's maps */
};

struct event_map {
	uint64_t addr, len, offset; /* offset in the file */
	const char *path;
	const uint8_t *build_id; /* NULL if unknown */
	uint8_t build_id_len;
	uint8_t prot;	/* PROT_* of mmap(2) */
	bool kernel;	/* in the kernel's space: shared by all tasks */
	bool foreign;	/* the path is on another system: do not use this machine's file */
	bool as_linked; /* addresses are the ELF's own: offset is unused, except with an anchor */
	/*
	 * The whole image, for the whole life of the task: addr, len and offset are unknown and
	 * come from the program headers.
	 */
	bool whole;
	bool given; /* the user named this file: try its path first */
	bool guest; /* in a virtual machine */
	/*
	 * With as_linked: the image was relocated as a whole, and this symbol is at `offset`. "" is
	 * the start of a kernel module.
	 */
	const char *anchor;
	const char *names; /* a file with symbols that came with the data, or NULL */
};

struct branch {			  /* taken, newest first: Intel LBR and the like */
	uint64_t from, to, flags; /* flags as in perf */
};

/* Input for the unwinder: the registers, and a copy of the stack from sp up. */
struct cpu_state {
	uint64_t abi;  /* perf's: 1 for 32, 2 for 64 bits */
	uint64_t mask; /* which registers regs has, lowest first */
	const uint64_t *regs;
	/*
	 * False: perf's user registers, in perf's numbering, to extend a kernel chain. True: the
	 * cpu's registers at the sample, in any context, in DWARF's numbering; the chain has only
	 * the pc, and the unwinder has to find the rest.
	 */
	bool whole;
	const uint8_t *stack;
	uint64_t stack_len;
	/* The interrupted stack, if interrupts run on their own. */
	uint64_t outer_addr;
	const uint8_t *outer;
	uint64_t outer_len;
};

/* A word that may be the caller of a place that was interrupted, which the chain may lack. */
struct link_word {
	uint32_t at; /* ips[at] was interrupted */
	uint64_t word;
};

/*
 * Also of EVENT_CHAIN, whose chain has no markers: there, frames in no function separate the stack of
 * an interrupt handler from the stack that it interrupted. And of EVENT_CHECK, which has no source and
 * no weight: the cpu is at the start of the code that its last branch led to.
 */
struct event_sample {
	const uint64_t *ips; /* leaf first, the sampled pc being the first, with markers */
	uint32_t nr;
	uint32_t source;
	uint64_t pc;	  /* if the chain does not begin with it; else 0 */
	bool no_chain;	  /* no chain was recorded: ips has only the pc */
	uint64_t weight;  /* in events of its source: perf's period */
	uint64_t count;	  /* number of samples, more than 1 in aggregated data; 0 means 1 */
	uint64_t context; /* IP_KERNEL or IP_USER...: where the pc was */
	bool at_calls;	  /* the user's ips are those of the calls, not return addresses */
	/*
	 * The stack of the chain, interned by the maps of its time; 0: not yet. Samples that sum up
	 * earlier events have it, because the maps of now may be others.
	 */
	uint32_t stack;
	const struct branch *branches; /* NULL: this source records none */
	uint32_t nr_branches;
	const uint8_t *raw; /* NULL: this source has none */
	uint32_t raw_len;
	const struct link_word *links; /* in the order of ips */
	uint32_t nr_links;
	uint32_t nr_unwound;	       /* how many of the last ips src/unwind found */
	bool ended;		       /* and whether it found them all */
	const struct cpu_state *state; /* NULL: nothing to unwind from */
};

struct event_lost {
	uint64_t count; /* samples; 0 if only bytes are known */
	uint64_t bytes;
	bool damage; /* lost by damage to the input, not while recording */
};

struct event_symbol {
	uint64_t addr, len;
	const char *name;
	const char *binary; /* that the code is part of, which is not at hand; or NULL */
	bool user;	    /* code of the event's process, not of the kernel */
	bool gone;	    /* the code is removed */
	uint16_t type;	    /* perf's: 1 for BPF */
};

struct event_switch {
	bool out;
	bool preempted;
	uint32_t other_pid, other_tid; /* the next, or the previous task; NO_TASK if unknown */
};

enum alloc_op {
	ALLOC_NEW,
	ALLOC_RESIZE, /* ptr is the old one; the block may have moved */
	ALLOC_FREE,
};

struct event_alloc {
	enum alloc_op op;
	const char *allocator;
	uint64_t ptr, size;  /* bytes; of the whole block after a resize */
	uint64_t offset;     /* in the input, for messages */
	const uint64_t *ips; /* as in a sample */
	uint32_t nr;
	uint64_t context;
	const struct cpu_state *state; /* likewise */
};

enum branch_kind {
	BRANCH_JUMP,
	BRANCH_CALL,
	BRANCH_RETURN,
	BRANCH_ENTER, /* an exception, an interrupt or a system call */
	BRANCH_LEAVE, /* the return from one */
	BRANCH_BEGIN, /* tracing begins at `to` */
	BRANCH_END,   /* tracing ends after `from` */
};

/* A cpu leaves one straight run of instructions for another. The usual fields come first. */
struct event_branch {
	enum branch_kind kind;
	/*
	 * By how much pushes, pops, calls and the like moved the stack pointer since the last branch
	 * event of this cpu, including this branch.
	 */
	int32_t moved;
	bool has_moved; /* false: unknown, for example after a copy from the frame pointer */
	uint8_t pushed; /* of a call: the size of the return address on the stack; 0: in a register */
	/*
	 * The guest of a hypervisor that runs `to`, whose stacks are all its own; 0: none, or the
	 * trace does not tell. Only an ENTER or a LEAVE changes it.
	 */
	uint16_t guest;
	/*
	 * The data names the thread: the branches of ev->tid are in order, whichever cpu it runs on. There are
	 * no stack pointers. If `to` is 0, the thread goes on in code that is not traced, until the next BEGIN
	 * or LEAVE.
	 */
	bool by_thread;
	bool direct; /* of a jump: its instruction contains the target, so it is not longjmp() or the like */
	/*
	 * Of an END: all calls are over: the kernel returned to a program, or the thread ended. Of a BEGIN: the
	 * thread was in code that is not traced, and does not resume its calls.
	 */
	bool over;
	uint64_t context;      /* IP_KERNEL or IP_USER, of `to` */
	uint64_t space;	       /* the register that names the address space, at `to`; 0 unknown */
	uint64_t from, to;     /* addresses of the branch and of its target; 0 unknown */
	uint64_t instructions; /* executed by this cpu or thread since its last branch event */
	uint64_t cycles;       /* likewise; 0 if the trace does not count them */
	uint64_t next;	       /* of a call: the return address; 0 unknown */
	uint64_t sp;	       /* at `to`, if it was read; else 0 */
	/*
	 * With sp, if an instruction replaced the stack pointer: the old value right before it, and the
	 * new one right after it, or near it, if the code around it computes the stack pointer. ENTER:
	 * `left` is the interrupted code's stack pointer. 0: unknown, or not replaced.
	 */
	uint64_t left, taken;
	/*
	 * Of an ENTER whose return address is unknown: the return address of the call at the end of the
	 * interrupted code, which may have happened.
	 */
	uint64_t after;
};

enum event_interrupts { INTERRUPTS_UNKNOWN, INTERRUPTS_ON, INTERRUPTS_OFF };

/*
 * Comes in order with the branches of its cpu. After BRANCH_BEGIN and BRANCH_END, the state is unknown. A cpu
 * that waits for an interrupt counts as on: it takes note of one.
 */
struct event_mask {
	enum event_interrupts interrupts;
	uint64_t instructions; /* executed by this cpu since its last branch event */
	uint64_t context;      /* IP_KERNEL or IP_USER, of the code before */
};

enum note_kind {
	NOTE_PTWRITE, /* a program wrote a value into the trace */
	/* The power states of the core: */
	NOTE_MWAIT,
	NOTE_PWRE,   /* it enters a C-state */
	NOTE_PWRX,   /* and leaves it */
	NOTE_EXSTOP, /* its clock stops */
	NOTE_CBR,    /* it changes its frequency: value: the ratio to the bus clock */
	NOTE_KINDS
};

/* What the value of a note has, as numbers. */
enum note_field_id {
	NOTE_VALUE,
	NOTE_HINTS,
	NOTE_EXTENSIONS,
	NOTE_CSTATE,
	NOTE_SUB_CSTATE,
	NOTE_HW, /* the hardware decided, not software */
	NOTE_LAST_CSTATE,
	NOTE_DEEPEST_CSTATE,
	NOTE_WAKE_REASON,
	NOTE_RATIO,
	NOTE_FIELDS
};

struct note_field {
	const char *name;
	enum note_kind kind; /* that has it */
	uint8_t shift, bits;
};

/*
 * Comes in order with the branches of its thread, which the data names (see by_thread), also while the thread's code
 * is not traced. Unlike a branch, it does not reset the counts.
 */
struct event_note {
	enum note_kind kind;
	uint64_t value; /* what was written, or the payload of the packet, as Intel PT defines it */
	uint64_t address; /* of the code; 0 unknown */
	uint64_t context; /* IP_KERNEL or IP_USER */
	uint64_t
		instructions; /* executed by this thread since its last branch event, as far as known */
	uint64_t cycles;      /* likewise */
};

struct event_counter {
	uint32_t source;
	uint32_t boot;	/* differs if the machine has started over */
	uint64_t value; /* since the recording began; it begins again at 0 if the machine does */
};

struct event_call {
	uint64_t function, caller; /* addresses; caller 0 if unknown */
	uint64_t context;
	bool leave;
};

enum slice_kind {
	SLICE_BEGIN, /* the code at which its task begins, or was first seen */
	SLICE_CALL,
	SLICE_JUMP, /* to another function, without a call: a tail call */
	SLICE_TRAP, /* an exception or an interrupt */
	SLICE_SYSCALL,
	SLICE_INLINE,  /* not called, but part of the code of the slice around it */
	SLICE_SAMPLED, /* was in all samples; they do not tell when it began and ended */
	/* On the time axis of a cpu: */
	SLICE_RUN, /* the event's task runs on it */
	/* It was not traced, or part of its trace is missing. If the event has a task: on the task's own axis. */
	SLICE_GAP,
	/* On another axis of a cpu: interrupts are off; the event's task switched them off. */
	SLICE_MASKED,
	SLICE_NOTE, /* not a slice: a moment on the axis of a task */
	SLICE_SPLIT, /* not a slice: the next part of a split timeline begins; writers do not get it */
	SLICE_RATE, /* not a slice: how many instructions the cpu executed between two times */
	SLICE_KINDS
};

/* What the times of slices are, which is the same for all slices of a run. */
enum slice_axis { AXIS_TIME, AXIS_CYCLES, AXIS_INSTRUCTIONS };

enum slice_knows { /* which numbers of a slice are known */
		   KNOWS_INSTRUCTIONS = 1,
		   KNOWS_LINES = 2,
		   KNOWS_CYCLES = 4,
};

/* Also of EVENT_STRETCH. The slices of a task, and of a cpu, are nested: they end in the reverse order. */
struct event_slice {
	/*
	 * The handle of the function's start; of an inlined one, which has none, a name; of MASKED, where
	 * interrupts went off; of NOTE, its address, or 0; 0 of RUN and GAP.
	 */
	uint32_t frame;
	enum slice_kind kind;
	bool leave;
	/*
	 * Of its begin: it began before, or outside what is selected, and the time is that of the first
	 * known part. Of its end: it goes on.
	 */
	bool cut;
	bool first; /* of its begin: of a task; others with the same tid have ended */
	/* Of its end: */
	uint8_t knows; /* enum slice_knows */
	uint64_t
		since; /* the place of its begin on the axis, as the event's time is that of its end */
	uint64_t began, ended;	     /* the time span in ns, whatever the axis is */
	uint64_t samples;	     /* that it was in, if it was sampled */
	uint64_t instructions;	     /* executed in it and in what it called */
	uint64_t own;		     /* those in its function itself */
	uint64_t cycles, own_cycles; /* likewise */
	uint32_t lines, own_lines;   /* likewise, the lines of 64 bytes that the code is in */
	/* Of the end of MASKED: where they went on again, and the stack where they went off; 0: unknown. */
	uint32_t end_frame, stack;
	const struct event_note
		*note; /* of NOTE, whose time is in `began` and `ended`; else NULL */
};

struct event_aux {
	const char *kind;     /* "intel_pt"...; "tracing_data": the format of tracepoint data */
	const uint8_t *data;  /* a piece; NULL: not stored, only the length is known */
	uint64_t len, offset; /* offset in the stream of this cpu or task */
	uint64_t flags;
};

/*
 * Why an event is not selected. Calls, branches and allocations that are not still pass, because
 * stages follow the state that they change; they count for nothing.
 */
enum outside {
	OUTSIDE_WHEN = 1,  /* another time */
	OUTSIDE_WHO = 2,   /* another process, thread or level */
	OUTSIDE_WHERE = 4, /* another cpu */
};

struct event {
	enum event_kind kind;
	uint32_t input; /* which of several inputs; set by pass/merge */
	uint64_t time;	/* ns; NO_TIME if unknown or before everything */
	uint32_t cpu;	/* NO_CPU if unknown */
	uint32_t pid, tid;
	uint32_t made_of; /* EVENT_BIT()s of the events that a stage made it of; 0: it was read */
	uint8_t outside;  /* enum outside */
	union {
		struct event_meta meta;
		struct event_source source;
		struct event_comm comm;
		struct event_fork fork;
		struct event_map map;
		struct event_sample sample;
		struct event_lost lost;
		struct event_symbol symbol;
		struct event_switch sched;
		struct event_alloc alloc;
		struct event_call call;
		struct event_branch branch;
		struct event_aux aux;
		struct event_slice slice;
		struct event_mask mask;
		struct event_note note;
		struct event_counter counter;
	};
};

extern const struct note_field note_fields[NOTE_FIELDS];

static inline uint64_t note_number(const struct event_note *note, enum note_field_id id)
{
	return note->value >> note_fields[id].shift & UINT64_MAX >> (64 - note_fields[id].bits);
}

static inline bool ip_is_marker(uint64_t ip)
{
	return ip >= IP_MARKERS;
}

extern const char *const event_names[EVENT_KINDS];
extern const char *const note_names[NOTE_KINDS];
const char *ip_marker_name(uint64_t marker);		  /* NULL: unknown */
uint64_t ip_marker_by_name(const char *name, size_t len); /* 0: none */

#endif
