/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_packet: packets of gdb's remote protocol: $TEXT#CHECKSUM. A side that wants them acknowledged gets a '+', or
 * a '-' to send the packet again.
 */
#ifndef KSCOPE_RECORD_GDB_PACKET_H
#define KSCOPE_RECORD_GDB_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "record/link.h"

#define GDB_PACKET_MAX ((size_t)1 << 17) /* bytes of a packet, before and after it is decoded */
#define GDB_PATIENCE (10 * SECOND)	 /* for an answer */

enum gdb_item {
	GDB_PARTIAL, /* there is more to come */
	GDB_PACKET,
	GDB_NOTIFICATION, /* not decoded: kscope uses none */
	GDB_ACK,
	GDB_NAK,
	GDB_DAMAGED, /* a packet with a wrong checksum, or one that is too long */
	GDB_NOISE,   /* bytes between packets */
};

/* Decodes what the data begins with. Returns how many bytes that are; 0: GDB_PARTIAL. */
size_t gdb_decode(const char *data, size_t len, enum gdb_item *item, struct buf *payload);
void gdb_encode(struct buf *out, const char *text, size_t len);
/* Decodes hexadecimal digits, up to the first pair that is none. Returns the number of bytes. */
size_t gdb_unhex(const char *hex, size_t len, uint8_t *bytes, size_t max);
/* T or S and a signal; W or X and why the target has ended. */
bool gdb_is_stop(const struct buf *reply);
bool gdb_is_exit(const struct buf *reply);

/* A conversation. */
struct gdb_talk {
	struct link *link;
	bool acks;	    /* packets are acknowledged */
	unsigned window;    /* how many requests may wait for their answers */
	size_t packet_size; /* that the stub takes */
	struct buf in;
	size_t taken; /* of `in` */
	struct buf reply, sent;
	bool ahead;	  /* requests after the one whose answer is waited for were sent */
	uint64_t faults;  /* packets that arrived damaged, on either side */
	bool noise;	  /* bytes arrived that are no packets */
	bool exited;	  /* the target ended, while it should have been stopped: see reply */
};

enum gdb_got { GDB_LOST = -1, GDB_NOTHING, GDB_GOT };

void gdb_talk_init(struct gdb_talk *talk, struct link *link);
void gdb_talk_release(struct gdb_talk *talk);
bool gdb_send(struct gdb_talk *talk, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Waits for the next packet, and sends the last one again if the stub asks for that. Without a packet before the
 * deadline: GDB_NOTHING.
 */
enum gdb_got gdb_receive(struct gdb_talk *talk, uint64_t deadline);
/* Waits for the answer to the packet that was sent, not for that of a stop. */
enum gdb_got gdb_answer(struct gdb_talk *talk, uint64_t deadline);
/* Sends a request, and waits for its answer. */
enum gdb_got gdb_ask(struct gdb_talk *talk, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool gdb_is_ok(const struct gdb_talk *talk);

/* Many requests: they are sent ahead of the answers, as far as the stub allows that. */
struct gdb_batch {
	struct buf text;
	size_t *ends, nr, cap;
	size_t sent, got;
};

void gdb_batch_clear(struct gdb_batch *batch);
void gdb_batch_release(struct gdb_batch *batch);
void gdb_batch_add(struct gdb_batch *batch, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The next answer, in the order of the requests. A damaged one is empty. False: the link is lost. */
bool gdb_batch_next(struct gdb_talk *talk, struct gdb_batch *batch);

#endif
