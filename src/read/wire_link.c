// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wire_link: what a link may do to a stream. Chunks come twice, late or never, and a target that starts over
 * begins a new stream in the middle of this one.
 */
#include <stdlib.h>
#include <string.h>

#include "read/wire_parts.h"

#define WINDOW 64 /* chunks that are remembered: bits of `seen` */

/* ---- the order of chunks ---- */

static enum wire_turn take_in(struct wire_window *window, uint32_t sequence)
{
	int32_t ahead = (int32_t)(sequence - window->next);
	uint64_t bit;

	if (ahead >= 0) {
		window->seen = ahead + 1 < WINDOW ? window->seen << (ahead + 1) | 1 : 1;
		window->next = sequence + 1;
		return ahead ? WIRE_TURN_GAP : WIRE_TURN_NEXT;
	}
	if (ahead < -WINDOW)
		return WIRE_TURN_TWICE;
	bit = (uint64_t)1 << (-ahead - 1);
	if (window->seen & bit)
		return WIRE_TURN_TWICE;
	window->seen |= bit;
	return WIRE_TURN_LATE;
}

/*
 * Without a checksum, a damaged number may seem to be far ahead. Then the next chunks are far behind it, where
 * the window was before.
 */
enum wire_turn wire_turn_take(struct wire_turns *turns, uint32_t sequence)
{
	struct wire_window now = turns->now;
	int32_t ahead = (int32_t)(sequence - now.next);
	uint32_t before = sequence - turns->before.next;

	if (ahead > WINDOW) {
		turns->before = now;
		turns->jumped = true;
	} else if (ahead < -WINDOW && turns->jumped && before < WINDOW) {
		turns->now = turns->before;
		turns->before = now;
	}
	return take_in(&turns->now, sequence);
}

/* ---- boots of the target ---- */

static uint64_t add(uint64_t time, uint64_t shift)
{
	return time < NO_TIME - shift ? time + shift : NO_TIME - 1;
}

uint64_t wire_boot_time(const struct wire_boot *boot, uint64_t time)
{
	return boot->shift ? add(time, boot->shift) : time;
}

/* The clock of the first boot is the clock of the recording. Those of later ones begin at 0, or go on. */
uint64_t wire_boot_note(struct wire_boot *boot, uint64_t time)
{
	if (boot->fresh)
		boot->shift = time <= boot->last ? boot->last : 0;
	boot->fresh = false;
	time = wire_boot_time(boot, time);
	if (time > boot->last)
		boot->last = time;
	return time;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* What identifies a boot. */
static void take_identity(struct info_message *to, struct info_message *from)
{
	char *arch = to->arch;

	to->found = true;
	to->bad = false;
	to->start = from->start;
	to->arch = from->arch;
	from->arch = arch;
}

bool wire_boot_info(struct wire_reader *w, const struct wire_chunk *chunk)
{
	struct info_message info = { 0 };
	bool is_new = false;

	wire_chunk_info(chunk, &info);
	if (info.found && !info.bad) {
		if (info.version > WIRE_VERSION_CHECKED && info.version <= WIRE_VERSION)
			w->described.on = true;
		if (!w->info.found || w->info.bad) /* the first chunk was damaged */
			take_identity(&w->info, &info);
		else
			is_new = info.start != w->info.start || !same_text(info.arch, w->info.arch);
		w->boot.unsure = !info.start;
	}
	wire_info_release(&info);
	return is_new;
}

bool wire_boot_sequence(struct wire_reader *w, uint32_t cpu, uint64_t sequence)
{
	if (!w->boot.unsure)
		return false;
	w->boot.unsure = wire_cpu(w, cpu)->turn.now.next > sequence;
	return w->boot.unsure && !sequence;
}

void wire_boot_next(struct wire_reader *w, const struct wire_chunk *chunk)
{
	struct info_message info = { 0 };

	w->boot.over = w->info.trace;
	w->boot.fresh = true;
	w->boot.unsure = false;
	w->round = 0;
	wire_chunk_info(chunk, &info);
	if (info.found)
		take_identity(&w->info, &info);
	wire_info_release(&info);
}
