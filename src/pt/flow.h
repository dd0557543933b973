/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flow: follows the code along the packets of a trace, and makes branches of it. It begins at a PSB packet
 * without any knowledge of the trace before, so several pieces of a trace can be decoded at the same time.
 *
 * Where packets and code contradict each other, there is a gap up to the next PSB packet.
 */
#ifndef KSCOPE_PT_FLOW_H
#define KSCOPE_PT_FLOW_H

#include "pt/clock.h"
#include "pt/code.h"

enum ipt_branch_kind {
	/* After the instruction at `from`: */
	IPT_DID_JUMP,	  /* to the target in the instruction */
	IPT_DID_JUMP_ANY, /* to an address in a register or in memory */
	IPT_DID_CALL,
	IPT_DID_RETURN,
	IPT_DID_ENTER, /* a system call or a software interrupt */
	IPT_DID_LEAVE,
	IPT_DID_END,	   /* and the code that follows is not traced */
	IPT_DID_INTERRUPT, /* before the instruction at `from` */
	IPT_DID_PAUSE,	   /* likewise, and the code that follows is not traced */
	IPT_DID_BEGIN,	   /* the trace begins at `to` */
	IPT_DID_GO_ON,	   /* likewise, at the begin of a piece: the piece before leads there */
	IPT_DID_GAP, /* part of the trace is missing: from: where the code was, to: the position, size: enum ipt_gap */
	IPT_DID_SWITCH, /* what follows is of the thread `from` of the process `to` */
	/*
	 * A note; insns and cycles are those since the last branch, and are not reset: size: enum note_kind (see
	 * model/event.h), from: the address if known, to: the value.
	 */
	IPT_DID_NOTE,
};

enum ipt_gap {
	IPT_GAP_NONE,
	IPT_GAP_OVERFLOW, /* the cpu could not write the trace as fast as it ran */
	IPT_GAP_LOST,	  /* bytes of the trace are missing */
	IPT_GAP_CUT,	  /* the trace ends inside a packet */
	/* Errors: */
	IPT_GAP_PACKET,
	IPT_GAP_NO_CODE,
	IPT_GAP_FOREIGN, /* the code is mapped, but is not at hand */
	IPT_GAP_CALL,	 /* a return to a call that foreign code hides */
	IPT_GAP_TNT,
	IPT_GAP_TIP,
	IPT_GAP_RETURN,
	IPT_GAP_FUP,
	IPT_GAP_OFF,
	IPT_GAP_ENDLESS,
	IPT_GAPS
};

extern const char *const ipt_gap_names[IPT_GAPS];

struct ipt_branch {
	uint64_t from, to;
	uint64_t time;	 /* in ticks of the TSC */
	uint32_t insns;	 /* executed since the branch before */
	uint32_t cycles; /* likewise; 0 if the trace does not count them */
	uint8_t kind;	 /* enum ipt_branch_kind */
	uint8_t size;	 /* of the instruction at `from` */
};

struct ipt_note { /* that waits for a FUP packet */
	uint64_t value;
	uint8_t kind; /* enum note_kind */
	bool ip;      /* the FUP packet has its address; else it only comes after one that waits */
};

struct ipt_place {	       /* code at an address */
	struct ipt_code *code; /* NULL: it is not at hand */
	uint64_t base;	       /* the address of the code's first byte */
	/* Instructions that begin in this code and end in the code right after it; NULL: none do. */
	struct ipt_code *bridge;
	uint64_t bridge_base;
};

struct ipt_thread {
	uint32_t pid, tid;
	uint64_t until; /* the time of the next switch or map, of the process or the kernel */
};

/* What ran, and what was mapped where. Called by several threads at a time. */
struct ipt_world {
	struct ipt_thread (*thread)(const void *data, uint32_t queue, uint64_t time);
	bool (*find)(const void *data, uint32_t pid, uint64_t time, uint64_t address,
		     struct ipt_place *place);
	const void *data;
};

#define IPT_RETURNS 64 /* as in the cpu, for return addresses that packets leave out */
#define IPT_TARGETS 256
#define IPT_NOTES 8
#define IPT_ENOUGH 32768 /* ipt_flow_run() returns when it has made this many branches */

struct ipt_spot {
	struct ipt_block *block; /* that runs next; NULL: none */
	struct ipt_place place;
};

/* How to read the next byte. */
enum ipt_reading {
	IPT_READS_PACKETS,
	IPT_READS_NOTHING, /* up to the next PSB packet */
	IPT_READS_ITEMS, /* also items of a block, whose first byte is otherwise that of a TNT packet */
};

struct ipt_flow {
	const struct ipt_world *world;
	uint32_t queue;
	bool all; /* also jumps that stay in their function */

	struct ipt_clock clock;
	struct ipt_thread thread;
	struct ipt_spot at;
	struct ipt_block nowhere; /* `at`, if no code is known there */
	uint64_t last_ip;
	uint64_t insns, cycles; /* since the last branch */
	bool wide, next_wide;	/* 64-bit code: now, and at the next target in a packet */
	uint8_t reading;	/* enum ipt_reading */
	uint8_t item;		/* bytes of an item, with the first one */
	uint64_t
		resume; /* after an error: continue here, as a PSB or TIP packet says; 0: nowhere */
	bool in_psb, after_ovf;
	bool foreign;	/* `nowhere` is mapped */
	bool unsaid;	/* the trace began in foreign code, and there is no branch for it */
	bool adrift;	/* in foreign code, up to the next target in a packet */
	bool doubt;	/* the cpu may remember calls that foreign code made */
	bool begun;	/* the first PSB packet has been read */
	bool at_fup;	/* an event interrupted the code here */
	bool fup_info;	/* the next FUP packet only tells where something happened */
	bool mode_info; /* likewise, if it comes before the next target */
	bool guest,
		next_guest; /* in a virtual machine, whose code is not known: now, and at the next target */
	struct ipt_note notes[IPT_NOTES];
	unsigned nr_notes;
	uint8_t ratio; /* in the last CBR packet; 0: none yet */

	struct ipt_spot returns[IPT_RETURNS]; /* the calls */
	unsigned top, nr_returns;
	struct {
		uint64_t address;
		struct ipt_spot spot;
	} targets
		[IPT_TARGETS]; /* of branches, found before; valid for `thread` up to its `until` */

	/* Conditions that are known, but come after a branch whose target is not; the oldest highest. */
	uint64_t tnt;
	unsigned nr_tnt;

	struct ipt_branch *branches;
	size_t nr, cap;
};

/* Begins a piece. The caller sets world, queue, all and clock.info in a zeroed struct first. */
void ipt_flow_begin(struct ipt_flow *flow);
void ipt_flow_release(struct ipt_flow *flow);
/*
 * Decodes bytes, which begin at a position of the trace. Returns how many: fewer than len if there are
 * enough branches, or if the last packet is not complete. With `last`, no bytes follow.
 */
size_t ipt_flow_run(struct ipt_flow *flow, const uint8_t *data, size_t len, uint64_t position,
		    bool last);
/*
 * The next piece begins at a PSB packet with this address: adds the instructions up to there. 0: it is
 * not traced there.
 */
void ipt_flow_end(struct ipt_flow *flow, uint64_t next, uint64_t position);
/* The address of the instruction that runs next; 0: none, the trace is off. */
uint64_t ipt_flow_at(const struct ipt_flow *flow);
/* The address in the PSB packet at the start of these bytes; 0: none. */
uint64_t ipt_flow_psb_ip(const uint8_t *data, size_t len);

#endif
