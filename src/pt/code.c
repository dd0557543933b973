// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_INSNS 512
#define CODE_SIZE 256 /* bytes that are read at once */
#define FIRST_CHUNK 4 /* blocks; most changes of code are of one instruction */
#define MAX_CHUNK 256
#define MIN_BUCKETS ((size_t)4)
#define MAX_BUCKETS ((size_t)1 << 20)
#define BYTES_PER_BUCKET 16

struct ipt_chunk {
	struct ipt_chunk *next;
	size_t nr, cap;
	struct ipt_block blocks[];
};

void ipt_code_init(struct ipt_code *code, struct ipt_bytes bytes, uint64_t len, uint64_t beyond)
{
	memset(code, 0, sizeof(*code));
	code->bytes = bytes;
	code->len = len;
	code->beyond = beyond;
	code->nothing.kind = IPT_NOTHING;
	pthread_mutex_init(&code->lock, NULL);
}

void ipt_code_release(struct ipt_code *code)
{
	while (code->chunks) {
		struct ipt_chunk *next = code->chunks->next;

		free(code->chunks);
		code->chunks = next;
	}
	free(code->buckets);
	pthread_mutex_destroy(&code->lock);
}

/* Holes */

const struct ipt_hole *ipt_hole_from(const struct ipt_holes *holes, uint64_t address)
{
	size_t low = 0, high = holes->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (holes->all[middle].last < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < holes->nr ? &holes->all[low] : NULL;
}

#ifdef HAVE_ZYDIS
#include <Zydis/Zydis.h>

/* Instructions */

static bool is_far(const ZydisDecodedInstruction *insn)
{
	uint8_t reg = insn->raw.modrm.reg;

	switch (insn->opcode) {
	case 0xff: return reg == 3 || reg == 5; /* call, jmp */
	case 0x9a:				/* call */
	case 0xea:				/* jmp */
	case 0xca:				/* ret */
	case 0xcb: return true;
	default: return false;
	}
}

static enum ipt_flow_kind near_or_far(const ZydisDecodedInstruction *insn,
				      enum ipt_flow_kind direct, enum ipt_flow_kind any,
				      enum ipt_flow_kind far)
{
	if (insn->raw.imm[0].is_relative)
		return direct;
	return is_far(insn) ? far : any;
}

static enum ipt_flow_kind kind_of(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_JB:
	case ZYDIS_MNEMONIC_JBE:
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JL:
	case ZYDIS_MNEMONIC_JLE:
	case ZYDIS_MNEMONIC_JNB:
	case ZYDIS_MNEMONIC_JNBE:
	case ZYDIS_MNEMONIC_JNL:
	case ZYDIS_MNEMONIC_JNLE:
	case ZYDIS_MNEMONIC_JNO:
	case ZYDIS_MNEMONIC_JNP:
	case ZYDIS_MNEMONIC_JNS:
	case ZYDIS_MNEMONIC_JNZ:
	case ZYDIS_MNEMONIC_JO:
	case ZYDIS_MNEMONIC_JP:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JS:
	case ZYDIS_MNEMONIC_JZ:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE: return IPT_COND;
	case ZYDIS_MNEMONIC_JMP: return near_or_far(insn, IPT_JUMP, IPT_JUMP_ANY, IPT_LEAVE);
	case ZYDIS_MNEMONIC_CALL: return near_or_far(insn, IPT_CALL, IPT_CALL_ANY, IPT_ENTER);
	case ZYDIS_MNEMONIC_RET: return is_far(insn) ? IPT_LEAVE : IPT_RETURN;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_VMCALL: return IPT_ENTER;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_RSM:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_VMLAUNCH:
	case ZYDIS_MNEMONIC_VMRESUME: return IPT_LEAVE;
	default: return IPT_ON;
	}
}

/* ERETS and ERETU, with which a kernel that uses FRED returns, if Zydis does not know them. */
static bool is_event_return(const uint8_t *bytes, size_t have, ZydisDecodedInstruction *insn)
{
	if (have < 4 || (bytes[0] != 0xf2 && bytes[0] != 0xf3) ||
	    memcmp(bytes + 1, "\x0f\1\xca", 3) != 0)
		return false;
	memset(insn, 0, sizeof(*insn));
	insn->mnemonic = ZYDIS_MNEMONIC_IRETQ;
	insn->length = 4;
	return true;
}

/* Code that is read piece by piece. */
struct reading {
	const struct ipt_code *code;
	ZydisDecoder decoder;
	uint64_t start; /* of the bytes */
	size_t have;
	uint8_t bytes[CODE_SIZE];
};

static void begin_reading(struct reading *r, const struct ipt_code *code, const struct ipt_block *b)
{
	r->code = code;
	r->start = b->start;
	r->have = 0;
	ZydisDecoderInit(&r->decoder,
			 b->wide ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
			 b->wide ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	ZydisDecoderEnableMode(&r->decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
}

static bool next_insn(struct reading *r, uint64_t at, ZydisDecodedInstruction *insn)
{
	const struct ipt_code *code = r->code;
	size_t skip = at - r->start;

	if (skip + IPT_LONGEST_INSN > r->have) {
		uint64_t end = code->len + code->beyond, left = at < end ? end - at : 0;

		r->have = code->bytes.read(code->bytes.data, at, r->bytes,
					   left < CODE_SIZE ? (size_t)left : CODE_SIZE);
		r->start = at;
		skip = 0;
	}
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&r->decoder, NULL, r->bytes + skip,
							  r->have - skip, insn)) ||
	       is_event_return(r->bytes + skip, r->have - skip, insn);
}

/* Where the next hole begins, or this one ends: no instruction of a block begins at or behind it. */
static uint64_t border_of(const struct ipt_code *code, uint64_t offset)
{
	uint64_t address = code->address + offset, border;
	const struct ipt_hole *hole = code->holes ? ipt_hole_from(code->holes, address) : NULL;

	if (!hole)
		return code->len;
	border = hole->start > address ? hole->start - address : hole->last - address + 1;
	return code->len - offset > border ? offset + border : code->len;
}

static bool in_hole(const struct ipt_code *code, uint64_t offset)
{
	const struct ipt_hole *hole =
		code->holes ? ipt_hole_from(code->holes, code->address + offset) : NULL;

	return hole && hole->start <= code->address + offset;
}

/* If no code is known there, the block has no instructions. */
static void decode(const struct ipt_code *code, struct ipt_block *b)
{
	uint64_t border = b->start < code->len ? border_of(code, b->start) : 0;
	ZydisDecodedInstruction insn;
	struct reading r;

	begin_reading(&r, code, b);
	if (!border)
		b->kind = IPT_NOTHING;
	while (b->kind == IPT_ON && b->insns < MAX_INSNS && ipt_block_next(b) < border) {
		if (!next_insn(&r, ipt_block_next(b), &insn)) {
			if (!b->insns)
				b->kind = IPT_NOTHING;
			break;
		}
		b->insns++;
		b->size += insn.length;
		b->last = insn.length;
		b->kind = (uint8_t)kind_of(&insn);
	}
	if (b->kind == IPT_JUMP || b->kind == IPT_COND || b->kind == IPT_CALL)
		b->target = ipt_block_next(b) + (uint64_t)insn.raw.imm[0].value.s;
	b->taken_changes = in_hole(code, b->target);
	/* Until a call returns, much time may pass. */
	b->fall_changes = in_hole(code, ipt_block_next(b)) ||
			  (code->passing && (b->kind == IPT_CALL || b->kind == IPT_CALL_ANY));
	b->leaves = b->target >= code->len || !code->bytes.same ||
		    !code->bytes.same(code->bytes.data, b->start, b->target);
}

int ipt_block_before(const struct ipt_code *code, const struct ipt_block *b, uint64_t offset)
{
	ZydisDecodedInstruction insn;
	uint64_t at = b->start;
	struct reading r;
	int nr = 0;

	begin_reading(&r, code, b);
	for (; at < offset && at < ipt_block_next(b) && next_insn(&r, at, &insn); nr++)
		at += insn.length;
	return at == offset ? nr : -1;
}
#else
static void decode(const struct ipt_code *code, struct ipt_block *b)
{
	(void)code;
	b->kind = IPT_NOTHING;
}

int ipt_block_before(const struct ipt_code *code, const struct ipt_block *b, uint64_t offset)
{
	(void)code;
	return b->start == offset ? 0 : -1;
}
#endif

/* The table. Threads that only read it take no lock: blocks are only added, each when it is complete. */

static size_t bucket_of(const struct ipt_code *code, uint64_t offset, bool wide)
{
	return (offset ^ wide) * 0x9e3779b97f4a7c15 >> 32 & code->mask;
}

static struct ipt_block *find_in(struct ipt_block **bucket, uint64_t offset, bool wide)
{
	struct ipt_block *b = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);

	while (b && (b->start != offset || b->wide != wide))
		b = b->other;
	return b;
}

static struct ipt_block *new_block(struct ipt_code *code)
{
	struct ipt_chunk *chunk = code->chunks;

	if (!chunk || chunk->nr == chunk->cap) {
		size_t cap = !chunk		      ? FIRST_CHUNK
			     : chunk->cap < MAX_CHUNK ? chunk->cap * 2
						      : MAX_CHUNK;

		chunk = xcalloc(1, sizeof(*chunk) + cap * sizeof(*chunk->blocks));
		chunk->cap = cap;
		chunk->next = code->chunks;
		code->chunks = chunk;
	}
	code->nr++;
	return &chunk->blocks[chunk->nr++];
}

static void make_table(struct ipt_code *code)
{
	size_t size = MIN_BUCKETS;

	while (size < MAX_BUCKETS && size < code->len / BYTES_PER_BUCKET)
		size *= 2;
	code->mask = size - 1;
	__atomic_store_n(&code->buckets, xcalloc(size, sizeof(*code->buckets)), __ATOMIC_RELEASE);
}

static struct ipt_block *add_block(struct ipt_code *code, uint64_t offset, bool wide)
{
	struct ipt_block **bucket, *b;

	if (!code->buckets)
		make_table(code);
	bucket = &code->buckets[bucket_of(code, offset, wide)];
	b = find_in(bucket, offset, wide);
	if (b)
		return b;
	if (code->nr >= IPT_MAX_BLOCKS)
		return &code->nothing;
	b = new_block(code);
	b->start = offset;
	b->wide = wide;
	decode(code, b);
	b->other = *bucket;
	__atomic_store_n(bucket, b, __ATOMIC_RELEASE);
	return b;
}

struct ipt_block *ipt_code_find(struct ipt_code *code, uint64_t offset, bool wide)
{
	struct ipt_block **buckets = __atomic_load_n(&code->buckets, __ATOMIC_ACQUIRE);
	struct ipt_block *b = NULL;

	if (buckets)
		b = find_in(&buckets[bucket_of(code, offset, wide)], offset, wide);
	if (b)
		return b;
	pthread_mutex_lock(&code->lock);
	b = add_block(code, offset, wide);
	pthread_mutex_unlock(&code->lock);
	return b;
}
