// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coverage_lines: sums up counts of code by line of source.
 *
 * The counts equal gcov's, as far as machine code allows, and follow gcov's rule, applied to the basic blocks of the
 * machine code: see sum_block(). Blocks begin at the targets of branches, where calls return to, and behind
 * conditional jumps; only blocks that ran matter. A line has a count for each function and inlined call that contains it
 * (struct group); the count of the line is their sum.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pass/coverage_code.h"

struct segment { /* of code that ran, of one line in one scope */
	uint64_t start, end;
	uint32_t line; /* index */
	uint32_t group;
	uint64_t scope;
	bool stmt; /* not only a rest of the line, which was moved */
};

struct call {		/* an inlined one, whose code ran */
	uint64_t scope; /* the one around it */
	uint32_t file, line;
	uint32_t group; /* of the line; 0: no code of it is known */
};

struct block {
	uint64_t start, end;
	size_t first, nr; /* segments */
	uint32_t group;	  /* of its last line; 0: none */
	uint64_t ran;	  /* how often that line did in it */
	bool hop;	  /* only a jump */
	size_t streak; /* the first block of this line from which the code goes on up to this one */
};

struct group { /* a line in a scope */
	uint32_t line;
	bool is_last; /* in some block */
	bool is_more; /* than jumps */
	uint64_t scope;
	uint64_t entries, sum;
	uint64_t most;
	size_t block;  /* + 1: the last that was counted in the sum */
	size_t streak; /* of the last block with this group */
};

struct rest { /* of a line in a scope, where no statement begins */
	uint32_t line;
	uint64_t most; /* of its places */
};

struct mark {
	bool stmt; /* a statement of the line begins somewhere */
	uint64_t rest;
};

struct summing {
	struct coverage *coverage;
	struct hash
		files; /* by the addresses of a path and of its unit's folder, which live as long as their symfile */
	struct hash lines, functions, jumps; /* indices + 1 */
	struct mark *marks;		     /* of the lines */
	size_t cap_marks;
	struct buf joined, path;

	/* Of one binary: */
	struct symfile *symfile;
	struct coverage_code code;
	uint64_t code_left; /* bytes that may be decoded */
	struct segment now; /* is being put together; start == end: none */
	struct segment *segments;
	size_t nr_segments, cap_segments;
	struct block *blocks;
	size_t nr_blocks, cap_blocks;
	struct group *groups; /* [0] is none */
	size_t nr_groups, cap_groups;
	struct call *calls; /* [0] is none, and always there */
	size_t nr_calls, cap_calls;
	struct rest *rests;
	size_t nr_rests, cap_rests;
	struct hash by_rest;	/* (scope, line): index + 1 */
	struct hash by_call;	/* scope */
	struct hash artificial; /* scopes of functions that the compiler made */
	struct hash by_group;	/* (scope, line) */
	struct hash nr_jumps;	/* likewise: how many conditional jumps it has */
	bool has_lines;
};

/* ---- paths ---- */

/* Removes the last part of a path: "a/b/" becomes "a/". False: there is no part to remove. */
static bool drop_part(struct buf *path)
{
	size_t len = path->len;

	while (len && path->data[len - 1] == '/')
		len--;
	while (len && path->data[len - 1] != '/')
		len--;
	if (len == path->len || !strcmp(path->data + len, "../") || !strcmp(path->data + len, "/"))
		return false;
	path->len = len;
	path->data[len] = '\0';
	return true;
}

/* The path without "." and "..": compilers have several names for a file that several units include. */
static void put_path(struct buf *out, const char *path)
{
	buf_clear(out);
	buf_adds(out, *path == '/' ? "/" : "");
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && !memcmp(path, "..", 2)) {
			if (!drop_part(out) &&
			    (!out->len || out->data[out->len - 1] != '/' || out->len > 1))
				buf_adds(out, "../");
		} else if (len && !(len == 1 && *path == '.')) {
			buf_add(out, path, len);
			if (path[len])
				buf_addc(out, '/');
		}
		path += len + (path[len] == '/');
	}
}

/*
 * Whether a path of a line table is relative to the folder of its unit: libdw adds only folders of the table, one of
 * which may be the unit's, and that may be relative, too.
 */
static bool needs_folder(const char *dir, const char *file)
{
	size_t len = dir ? strlen(dir) : 0;

	return len && *file != '/' && (strncmp(file, dir, len) != 0 || file[len] != '/');
}

static uint32_t file_of(struct summing *sum, const char *dir, const char *file)
{
	uint32_t *at = hash_at(&sum->files, (struct hash_key){ (uintptr_t)file, (uintptr_t)dir });

	if (!*at) {
		buf_clear(&sum->joined);
		if (needs_folder(dir, file))
			buf_addf(&sum->joined, "%s/", dir);
		buf_adds(&sum->joined, file);
		put_path(&sum->path, sum->joined.data);
		*at = str_intern(sum->coverage->world->strings, sum->path.data, sum->path.len);
	}
	return *at;
}

/* ---- lines ---- */

static uint32_t line_of(struct summing *sum, uint32_t file, uint32_t line)
{
	struct coverage *coverage = sum->coverage;
	uint32_t *at = hash_at(&sum->lines, (struct hash_key){ file, line });

	if (!*at) {
		GROW(coverage->lines, coverage->nr_lines + 1, coverage->cap_lines);
		GROW(sum->marks, coverage->nr_lines + 1, sum->cap_marks);
		sum->marks[coverage->nr_lines] = (struct mark){ 0 };
		coverage->lines[coverage->nr_lines++] = (struct coverage_line){ file, line, 0 };
		*at = (uint32_t)coverage->nr_lines;
	}
	return *at - 1;
}

static struct coverage_branch *jump_of(struct summing *sum, uint32_t line, uint32_t nth)
{
	struct coverage *coverage = sum->coverage;
	uint32_t *at = hash_at(&sum->jumps, (struct hash_key){ line, nth });

	if (!*at) {
		GROW(coverage->jumps, coverage->nr_jumps + 1, coverage->cap_jumps);
		coverage->jumps[coverage->nr_jumps++] =
			(struct coverage_branch){ .file = coverage->lines[line].file,
						  .line = coverage->lines[line].line,
						  .nth = nth };
		*at = (uint32_t)coverage->nr_jumps;
	}
	return &coverage->jumps[*at - 1];
}

static void add_conditional(struct summing *sum, const struct segment *segment, uint64_t addr)
{
	uint32_t *nth = hash_at(&sum->nr_jumps, (struct hash_key){ segment->scope, segment->line });
	struct coverage_branch *jump = jump_of(sum, segment->line, (*nth)++);
	uint64_t ran = coverage_code_at(&sum->code, addr);
	uint64_t jumped = coverage_code_jumped(&sum->code, addr);

	jump->ran |= ran > 0;
	jump->jumps += jumped;
	jump->goes_on += jumped < ran ? ran - jumped : 0;
}

/* Includes the targets of code that did not run, so that parts of a trace have the same blocks as the whole. */
static void cut(struct summing *sum, uint64_t addr)
{
	if (coverage_code_at(&sum->code, addr))
		coverage_code_cut(&sum->code, addr);
}

/* Enough for sound line tables, which do not describe the same code again and again. */
static uint64_t code_budget(const struct symfile *symfile)
{
	size_t nr;
	const struct sym_segment *segments = symfile_segments(symfile, &nr);
	uint64_t all = 4096;

	for (size_t i = 0; i < nr; i++)
		all += segments[i].filesz;
	return 16 * all;
}

/* Counts the conditional jumps, and finds where blocks begin. */
static void read_code(struct summing *sum, const struct segment *segment)
{
	struct insn_code insn;
	uint64_t addr = segment->start, target;

	symfile_insns(sum->symfile, addr, &insn);
	while (insn.bytes && addr < segment->end && sum->code_left) {
		size_t size = insn_size(&insn);
		enum insn_jump jump = size ? insn_jump(&insn, addr, &target) : INSN_JUMP_NONE;

		if (!size)
			break;
		if (jump == INSN_JUMP_IF)
			add_conditional(sum, segment, addr);
		addr += size;
		insn.bytes += size;
		insn.len -= size;
		sum->code_left -= size < sum->code_left ? size : sum->code_left;
		if (jump != INSN_JUMP_NONE) {
			cut(sum, addr);
			cut(sum, target);
		}
	}
}

static void add_segment(struct summing *sum, const struct segment *segment)
{
	GROW(sum->segments, sum->nr_segments + 1, sum->cap_segments);
	sum->segments[sum->nr_segments++] = *segment;
}

static void end_segment(struct summing *sum)
{
	const struct segment *now = &sum->now;

	if (now->start == now->end)
		return;
	read_code(sum, now);
	if (coverage_code_any(&sum->code, now->start, now->end)) {
		add_segment(sum, now);
	} else if (coverage_code_came(&sum->code, now->start, now->end)) {
		/* It is not selected, but its line tells whether a jump from it to selected code enters another line. */
		coverage_code_cut(&sum->code, now->start);
		add_segment(sum, now);
	}
	sum->now = (struct segment){ 0 };
}

static void take_line(void *arg, const struct sym_line *line)
{
	struct summing *sum = arg;
	struct segment segment = {
		.start = line->addr, .end = line->end, .scope = line->scope, .stmt = line->stmt
	};
	struct segment *now = &sum->now;

	sum->has_lines = true;
	/* gcov leaves such functions out: their lines are those of the class or of another function. */
	if (hash_get(&sum->artificial, (struct hash_key){ line->scope, 0 }))
		return;
	segment.line = line_of(sum, file_of(sum, line->dir, line->file), line->line);
	sum->marks[segment.line].stmt |= line->stmt;
	if (segment.start == now->end && segment.start < segment.end && now->start < now->end &&
	    segment.line == now->line && segment.scope == now->scope) {
		now->end = segment.end;
		now->stmt |= segment.stmt;
		return;
	}
	end_segment(sum);
	if (segment.start < segment.end)
		*now = segment;
	else if (coverage_code_at(&sum->code, segment.start))
		add_segment(sum, &segment);
}

/* ---- blocks ---- */

static int by_start(const void *va, const void *vb)
{
	const struct segment *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->scope < b->scope ? -1 : a->scope > b->scope;
}

/* The group of a segment that is new in the order of addresses. */
static uint32_t group_of(struct summing *sum, const struct segment *segment)
{
	uint32_t *at = hash_at(&sum->by_group, (struct hash_key){ segment->scope, segment->line });

	if (!*at) {
		GROW(sum->groups, sum->nr_groups + 1, sum->cap_groups);
		*at = (uint32_t)sum->nr_groups;
		sum->groups[sum->nr_groups++] =
			(struct group){ .line = segment->line, .scope = segment->scope };
	}
	return *at;
}

static void add_piece(struct summing *sum, size_t *nr, struct segment **pieces, size_t *cap,
		      struct segment piece, bool cut)
{
	struct block *last = sum->nr_blocks ? &sum->blocks[sum->nr_blocks - 1] : NULL;

	piece.group = piece.stmt ? group_of(sum, &piece) : 0;
	if (!last || last->end != piece.start || (cut && last->start != piece.start)) {
		GROW(sum->blocks, sum->nr_blocks + 1, sum->cap_blocks);
		last = &sum->blocks[sum->nr_blocks++];
		*last = (struct block){ .start = piece.start, .first = *nr };
	}
	last->end = piece.end;
	last->nr++;
	GROW(*pieces, *nr + 1, *cap);
	(*pieces)[(*nr)++] = piece;
}

/* Cuts the segments into pieces that are in one block each. */
static void make_blocks(struct summing *sum)
{
	const struct coverage_code *code = &sum->code;
	struct segment *pieces = NULL;
	size_t nr = 0, cap = 0;
	uint64_t done = 0;

	if (sum->nr_segments)
		qsort(sum->segments, sum->nr_segments, sizeof(*sum->segments), by_start);
	for (size_t i = 0; i < sum->nr_segments; i++) {
		struct segment piece = sum->segments[i];
		uint64_t end = piece.end;
		size_t at;

		/* Units that share code. */
		if (piece.start < done)
			piece.start = done;
		if (piece.start > end || (piece.start == end && sum->segments[i].start < end))
			continue;
		at = coverage_code_next_cut(code, piece.start);
		do {
			bool cut = at < code->nr_cuts && code->cuts[at] == piece.start;

			at += cut;
			piece.end =
				at < code->nr_cuts && code->cuts[at] < end ? code->cuts[at] : end;
			add_piece(sum, &nr, &pieces, &cap, piece, cut);
			piece.start = piece.end;
		} while (piece.start < end);
		done = end;
	}
	free(sum->segments);
	sum->segments = pieces;
	sum->nr_segments = nr;
	sum->cap_segments = cap;
}

/*
 * The groups in which a block ends: that of its last statement and, if this is in an inlined call, that of the line
 * with the call. So an inlined call is part of its line, like any call. Returns their number.
 */
static size_t groups_of(const struct summing *sum, const struct block *block,
			uint32_t groups[SYM_MAX_INLINE])
{
	uint64_t scope = sum->groups[block->group].scope;
	size_t nr = 0;

	if (!block->group)
		return 0;
	if (!block->hop)
		groups[nr++] = block->group;
	while (nr < SYM_MAX_INLINE) {
		const struct call *call =
			&sum->calls[hash_get(&sum->by_call, (struct hash_key){ scope, 0 })];

		scope = call->scope;
		if (!call->group)
			break;
		groups[nr++] = call->group;
	}
	return nr;
}

static bool is_of(const struct summing *sum, const struct block *block, uint32_t group)
{
	uint32_t groups[SYM_MAX_INLINE];
	size_t nr = groups_of(sum, block, groups);

	for (size_t i = 0; i < nr; i++) {
		if (groups[i] == group)
			return true;
	}
	return false;
}

/* Whether the code right before a block is of this group, too. */
static bool goes_on(const struct summing *sum, const struct block *block, uint32_t group)
{
	return block > sum->blocks && block[-1].end == block->start && is_of(sum, block - 1, group);
}

static bool is_hop(const struct summing *sum, const struct block *block)
{
	struct insn_code insn;
	uint64_t target;

	symfile_insns(sum->symfile, block->start, &insn);
	return insn.bytes && insn_jump(&insn, block->start, &target) == INSN_JUMP_ALWAYS &&
	       insn_size(&insn) == block->end - block->start;
}

/*
 * Some blocks only jump from the end of one block to the start of another (hops). They have lines, too: clang gives them
 * the line of the whole statement. If the line has other code, hops are not part of it.
 */
static void name_blocks(struct summing *sum)
{
	for (size_t i = 0; i < sum->nr_blocks; i++) {
		struct block *block = &sum->blocks[i];
		const struct segment *pieces = sum->segments + block->first;

		for (size_t at = block->nr; at-- > 0 && !block->group;) {
			block->group = pieces[at].group;
			/* Not where the block begins: a new thread may begin behind a system call in it. */
			block->ran = coverage_code_at(&sum->code, pieces[at].start);
		}
		block->hop = is_hop(sum, block);
		for (size_t at = 0; at < block->nr && !block->hop; at++)
			sum->groups[pieces[at].group].is_more = true;
	}
	for (size_t i = 0; i < sum->nr_blocks; i++) {
		struct block *block = &sum->blocks[i];

		block->hop &= sum->groups[block->group].is_more;
	}
}

/* Copies of a line add up; the rests of one copy are those of the same statement. */
static void sum_rest(struct summing *sum, const struct segment *piece, uint64_t ran)
{
	uint32_t *at = hash_at(&sum->by_rest, (struct hash_key){ piece->scope, piece->line });
	struct rest *rest;

	if (!*at) {
		GROW(sum->rests, sum->nr_rests + 1, sum->cap_rests);
		sum->rests[sum->nr_rests++] = (struct rest){ .line = piece->line };
		*at = (uint32_t)sum->nr_rests;
	}
	rest = &sum->rests[*at - 1];
	rest->most = rest->most > ran ? rest->most : ran;
}

static void sum_piece(struct summing *sum, const struct block *block, size_t number,
		      const struct segment *piece)
{
	struct group *group = &sum->groups[piece->group];
	uint64_t ran = coverage_code_at(&sum->code, piece->start);

	if (!piece->group) {
		sum_rest(sum, piece, ran);
		return;
	}
	group->most = group->most > ran ? group->most : ran;
	if (group->block != number + 1 && !is_of(sum, block, piece->group)) {
		group->sum += ran;
		group->block = number + 1;
	}
}

/*
 * The rule of gcov. If blocks end with the line, it ran as often as control came to these blocks from other lines, plus
 * the repetitions of loops that are entirely on the line. Otherwise, it ran as often as the blocks that contain it.
 */
static void sum_block(struct summing *sum, size_t number)
{
	struct block *block = &sum->blocks[number];
	const struct segment *pieces = sum->segments + block->first;
	uint32_t groups[SYM_MAX_INLINE];
	size_t nr;

	for (size_t i = 0; i < block->nr && !block->hop; i++)
		sum_piece(sum, block, number, &pieces[i]);
	nr = groups_of(sum, block, groups);
	for (size_t i = 0; i < nr; i++) {
		struct group *group = &sum->groups[groups[i]];
		bool on = goes_on(sum, block, groups[i]);

		if (groups[i] == block->group)
			group->streak = block->streak =
				on && group->is_last ? group->streak : number;
		group->is_last = true;
		if (!on)
			group->entries += block->ran;
	}
}

/* The last block that begins at or before an address; NULL: none. */
static struct block *find_block(const struct summing *sum, uint64_t addr)
{
	size_t lo = 0, hi = sum->nr_blocks;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sum->blocks[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &sum->blocks[lo - 1] : NULL;
}

static void sum_jump(struct summing *sum, const struct coverage_count *jump)
{
	const struct block *to = find_block(sum, jump->b), *from = find_block(sum, jump->a);
	uint32_t groups[SYM_MAX_INLINE];
	size_t nr = to && to->start == jump->b ? groups_of(sum, to, groups) : 0;

	for (size_t i = 0; i < nr; i++) {
		struct group *group = &sum->groups[groups[i]];
		bool on = goes_on(sum, to, groups[i]);
		bool same = from && jump->a < from->end && is_of(sum, from, groups[i]);
		/* A loop that is entirely on the line; others leave it and come back, or are in a call. */
		bool loop = same && groups[i] == to->group && jump->b <= jump->a &&
			    from->group == to->group && from->streak == to->streak;

		if (on && (!same || loop))
			group->entries += jump->count;
		else if (!on && same && !loop)
			group->entries -= jump->count;
	}
}

/* All lines are known now, and all code that ran. */
static void find_calls(struct summing *sum)
{
	for (size_t i = 1; i < sum->nr_calls; i++) {
		struct call *call = &sum->calls[i];
		struct segment at = { .scope = call->scope };

		at.line = hash_get(&sum->lines, (struct hash_key){ call->file, call->line });
		if (at.line--)
			call->group = group_of(sum, &at);
	}
}

static void sum_groups(struct summing *sum)
{
	for (size_t i = 1; i < sum->nr_groups; i++) {
		const struct group *group = &sum->groups[i];
		uint64_t count = group->is_last ? group->entries : group->sum;

		/* A selection may contain the code behind a jump without the jump, or the reverse. */
		if ((int64_t)count <= 0)
			count = group->most > 0;
		sum->coverage->lines[group->line].count += count;
	}
	for (size_t i = 0; i < sum->nr_rests; i++)
		sum->marks[sum->rests[i].line].rest += sum->rests[i].most;
}

/* ---- functions ---- */

static void add_call(struct summing *sum, const struct sym_function *function)
{
	GROW(sum->calls, sum->nr_calls + 1, sum->cap_calls);
	*hash_at(&sum->by_call, (struct hash_key){ function->scope, 0 }) = (uint32_t)sum->nr_calls;
	sum->calls[sum->nr_calls++] = (struct call){
		.scope = function->parent,
		.file = file_of(sum, function->dir, function->call_file),
		.line = function->call_line,
	};
}

static void count_function(struct summing *sum, const struct sym_function *function)
{
	struct coverage *coverage = sum->coverage;
	struct strtab *strings = coverage->world->strings;
	/* Commas end a name for some readers; a linkage name has none. */
	const char *name = strchr(function->name, ',') ? function->linkage : function->name;
	struct coverage_function new = { .file = file_of(sum, function->dir, function->file),
					 .line = function->line,
					 .name = str_intern_z(strings, name) };
	/* Readers take all functions of one name in a file for the same, also on different lines. */
	uint32_t *at = hash_at(&sum->functions, (struct hash_key){ new.file, new.name });
	struct coverage_function *known;
	uint64_t ran = coverage_code_at(&sum->code, function->start);
	uint64_t back = coverage_code_back(&sum->code, function->start, function->start,
					   function->start + function->size);

	if (!*at) {
		GROW(coverage->functions, coverage->nr_functions + 1, coverage->cap_functions);
		coverage->functions[coverage->nr_functions++] = new;
		*at = (uint32_t)coverage->nr_functions;
	}
	known = &coverage->functions[*at - 1];
	known->line = new.line < known->line ? new.line : known->line;
	known->count += back < ran ? ran - back : 0;
}

static void take_function(void *arg, const struct sym_function *function)
{
	struct summing *sum = arg;

	if (function->parent && function->call_file &&
	    coverage_code_any(&sum->code, function->start, function->start + function->size))
		add_call(sum, function);
	if (function->artificial)
		*hash_at(&sum->artificial, (struct hash_key){ function->scope, 0 }) = 1;
	else if (function->file)
		count_function(sum, function);
}

/* ---- binaries ---- */

static void release_binary(struct summing *sum)
{
	coverage_code_release(&sum->code);
	free(sum->segments);
	free(sum->blocks);
	free(sum->groups);
	free(sum->calls);
	free(sum->rests);
	hash_release(&sum->by_rest);
	hash_release(&sum->by_call);
	hash_release(&sum->artificial);
	hash_release(&sum->by_group);
	hash_release(&sum->nr_jumps);
}

static void sum_binary(struct summing *sum, uint32_t image, const struct coverage_count *counts,
		       size_t nr)
{
	struct coverage *coverage = sum->coverage;

	sum->symfile = image_symfile(&coverage->world->images, image);
	sum->has_lines = false;
	GROW(sum->calls, 1, sum->cap_calls);
	GROW(sum->groups, 1, sum->cap_groups);
	sum->calls[0] = (struct call){ 0 };
	sum->groups[0] = (struct group){ 0 };
	sum->nr_calls = sum->nr_groups = 1;
	if (sum->symfile) {
		sum->code_left = code_budget(sum->symfile);
		coverage_code_init(&sum->code, sum->symfile, counts, nr);
		symfile_each_function(sum->symfile, take_function, sum);
		symfile_each_line(sum->symfile, take_line, sum);
		end_segment(sum);
		coverage_code_sort(&sum->code);
		make_blocks(sum);
		find_calls(sum);
		name_blocks(sum);
		for (size_t i = 0; i < sum->nr_blocks; i++)
			sum_block(sum, i);
		for (size_t i = 0; i < sum->code.nr_to; i++)
			sum_jump(sum, &sum->code.to[i]);
		sum_groups(sum);
	}
	if (!sum->has_lines) {
		GROW(coverage->lineless, coverage->nr_lineless + 1, coverage->cap_lineless);
		coverage->lineless[coverage->nr_lineless++] = image;
	}
	release_binary(sum);
	*sum = (struct summing){ .coverage = coverage,
				 .files = sum->files,
				 .lines = sum->lines,
				 .functions = sum->functions,
				 .jumps = sum->jumps,
				 .marks = sum->marks,
				 .cap_marks = sum->cap_marks,
				 .joined = sum->joined,
				 .path = sum->path };
}

/* ---- the order of the output ---- */

struct place { /* what lines, functions and jumps begin with */
	uint32_t file, line;
};

static int by_place(const void *va, const void *vb, const struct strtab *strings)
{
	const struct place *a = va, *b = vb;

	if (a->file != b->file)
		return strcmp(str_text(strings, a->file), str_text(strings, b->file));
	return a->line < b->line ? -1 : a->line > b->line;
}

static int compare_lines(const void *va, const void *vb, void *strings)
{
	return by_place(va, vb, strings);
}

static int compare_functions(const void *va, const void *vb, void *strings)
{
	const struct coverage_function *a = va, *b = vb;
	int order = by_place(va, vb, strings);

	return order ? order : strcmp(str_text(strings, a->name), str_text(strings, b->name));
}

static int compare_jumps(const void *va, const void *vb, void *strings)
{
	const struct coverage_branch *a = va, *b = vb;
	int order = by_place(va, vb, strings);

	return order ? order : a->nth < b->nth ? -1 : a->nth > b->nth;
}

static void sort(struct coverage *coverage)
{
	struct strtab *strings = coverage->world->strings;

	if (coverage->nr_lines)
		qsort_r(coverage->lines, coverage->nr_lines, sizeof(*coverage->lines),
			compare_lines, strings);
	if (coverage->nr_functions)
		qsort_r(coverage->functions, coverage->nr_functions, sizeof(*coverage->functions),
			compare_functions, strings);
	if (coverage->nr_jumps)
		qsort_r(coverage->jumps, coverage->nr_jumps, sizeof(*coverage->jumps),
			compare_jumps, strings);
}

void coverage_sum(struct coverage *coverage)
{
	struct summing sum = { .coverage = coverage };
	const struct coverage_count *counts;
	size_t nr;

	coverage_end(coverage);
	counts = coverage->counts;
	for (size_t i = 0; i < coverage->nr_counts; i += nr) {
		for (nr = 1;
		     i + nr < coverage->nr_counts && counts[i + nr].image == counts[i].image;)
			nr++;
		sum_binary(&sum, counts[i].image, counts + i, nr);
	}
	for (size_t i = 0; i < coverage->nr_lines; i++) {
		if (!sum.marks[i].stmt)
			coverage->lines[i].count += sum.marks[i].rest;
	}
	sort(coverage);
	hash_release(&sum.files);
	hash_release(&sum.lines);
	hash_release(&sum.functions);
	hash_release(&sum.jumps);
	free(sum.marks);
	buf_release(&sum.joined);
	buf_release(&sum.path);
}
