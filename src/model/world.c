// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/world.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "base/mem.h"

#define MEMO_MAX ((size_t)2 << 20) /* entries: at most 96 MB */
#define MEMO_TRIAL 10000
/* Events that may change what is mapped somewhere. */
#define REMAPS                                                                  \
	(EVENT_BIT(EVENT_FORK) | EVENT_BIT(EVENT_EXIT) | EVENT_BIT(EVENT_MAP) | \
	 EVENT_BIT(EVENT_SYMBOL))
#define PAGE 4096
#define ENDED_KEPT 4096 /* processes */

void world_init(struct world *world, struct strtab *strings, const struct image_search *where)
{
	memset(world, 0, sizeof(*world));
	world->strings = strings;
	images_init(&world->images, strings, where);
	frames_init(&world->frames, strings);
	stacks_init(&world->stacks);
	GROW(world->spaces, SPACES_FIXED, world->cap_spaces);
	memset(world->spaces, 0, SPACES_FIXED * sizeof(*world->spaces));
	world->nr_spaces = SPACES_FIXED;
	GROW(world->tasks, 1, world->cap_tasks);
	memset(&world->tasks[0], 0, sizeof(world->tasks[0]));
	world->nr_tasks = 1;
	GROW(world->sources, 1, world->cap_sources);
	memset(&world->sources[0], 0, sizeof(world->sources[0]));
	world->nr_sources = 1;
}

void world_release(struct world *world)
{
	for (size_t i = 0; i < world->nr_spaces; i++)
		space_release(&world->spaces[i]);
	images_release(&world->images);
	frames_release(&world->frames);
	stacks_release(&world->stacks);
	free(world->spaces);
	free(world->ended);
	free(world->tasks);
	free(world->sources);
	free(world->facts);
	free(world->scratch);
	free(world->functions);
	hash_release(&world->function_index);
	hash_release(&world->space_by_pid);
	hash_release(&world->task_by_id);
	hash_release(&world->source_by_name);
	hash_release(&world->source_by_id);
	memset(world, 0, sizeof(*world));
}

static struct hash_key task_key(uint32_t pid, uint32_t tid)
{
	return (struct hash_key){ pid, tid };
}

static uint32_t space_of(struct world *world, uint32_t pid)
{
	uint32_t *handle = hash_at(&world->space_by_pid, (struct hash_key){ pid, 0 });

	if (!*handle) {
		*handle = (uint32_t)world->nr_spaces;
		GROW(world->spaces, world->nr_spaces + 1, world->cap_spaces);
		memset(&world->spaces[world->nr_spaces++], 0, sizeof(*world->spaces));
	}
	return *handle;
}

static struct task *task_of(struct world *world, uint32_t pid, uint32_t tid)
{
	uint32_t *handle = hash_at(&world->task_by_id, task_key(pid, tid));

	if (!*handle) {
		*handle = (uint32_t)world->nr_tasks;
		GROW(world->tasks, world->nr_tasks + 1, world->cap_tasks);
		world->tasks[world->nr_tasks++] = (struct task){ .pid = pid, .tid = tid };
	}
	return &world->tasks[*handle];
}

static uint32_t known_task(const struct world *world, uint32_t pid, uint32_t tid)
{
	return hash_get(&world->task_by_id, task_key(pid, tid));
}

/* A thread without a name uses its process's. */
uint32_t world_comm(const struct world *world, uint32_t pid, uint32_t tid)
{
	uint32_t comm = world->tasks[known_task(world, pid, tid)].comm;

	return comm ? comm : world->tasks[known_task(world, pid, pid)].comm;
}

const struct map *world_map(const struct world *world, uint32_t pid, uint64_t addr)
{
	uint32_t space = hash_get(&world->space_by_pid, (struct hash_key){ pid, 0 });

	return space_find(&world->spaces[space], addr);
}

/* The distance from the start of its function to an address; UINT64_MAX: unknown. */
static uint64_t distance_to_start(struct world *world, uint32_t image, uint64_t offset)
{
	struct symfile *symfile = image_symfile(&world->images, image);
	uint64_t vaddr = symfile ? image_vaddr(&world->images, image, offset) : 0, start;
	bool label;

	if (!symfile || !symfile_function(symfile, vaddr, &start, &label))
		return UINT64_MAX;
	return vaddr - start;
}

static const struct space *space_at(struct world *world, uint32_t pid, uint64_t context)
{
	return &world->spaces[context == IP_KERNEL ? SPACE_KERNEL : space_of(world, pid)];
}

static const struct map *map_at(struct world *world, uint32_t pid, uint64_t context, uint64_t addr)
{
	return space_find(space_at(world, pid, context), addr);
}

uint32_t world_maps(struct world *world, uint32_t pid, uint64_t context)
{
	return space_at(world, pid, context)->version;
}

uint64_t world_function(struct world *world, uint32_t pid, uint64_t context, uint64_t addr)
{
	const struct map *map = map_at(world, pid, context, addr);
	uint64_t offset;
	uint32_t *at;

	if (!map)
		return 0;
	offset = addr - map->start + map->offset;
	if (world->images.all[map->image].one_symbol)
		return addr - offset;
	at = hash_at(&world->function_index, (struct hash_key){ offset, map->image });
	if (!*at) {
		GROW(world->functions, world->nr_functions + 2, world->cap_functions);
		*at = (uint32_t)++world->nr_functions;
		world->functions[*at] = distance_to_start(world, map->image, offset);
	}
	return world->functions[*at] == UINT64_MAX ? 0 : addr - world->functions[*at];
}

/* The binary at an address, and the address in it. NULL: unknown. */
static struct symfile *symfile_at(struct world *world, const struct map *map, uint64_t addr,
				  uint64_t *vaddr)
{
	struct symfile *symfile = map ? image_symfile(&world->images, map->image) : NULL;

	if (symfile)
		*vaddr = image_vaddr(&world->images, map->image, addr - map->start + map->offset);
	return symfile;
}

void world_inlines(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
		   struct inlines_at *out)
{
	uint8_t flags = context == IP_KERNEL ? FRAME_KERNEL : 0;
	const struct map *map = map_at(world, pid, context, addr);
	struct sym_frame found[SYM_MAX_INLINE];
	uint64_t vaddr, until;
	struct symfile *symfile = symfile_at(world, map, addr, &vaddr);
	size_t nr = symfile ? symfile_lookup(symfile, vaddr, found, SYM_MAX_INLINE) : 0;

	out->nr = 0;
	out->function = nr ? found[nr - 1].id : 0;
	out->until = UINT64_MAX;
	if (!symfile)
		return;
	until = symfile_same_until(symfile, vaddr);
	if (until - vaddr < UINT64_MAX - addr)
		out->until = addr + (until - vaddr);
	for (size_t i = nr; i-- > 0;) {
		if (!found[i].inlined)
			continue;
		out->all[out->nr++] = (struct inlined_call){
			.frame = frame_named(&world->frames,
					     str_intern_z(world->strings, found[i].name),
					     world->images.all[map->image].name, flags),
			.image = map->image,
			.id = found[i].id,
			.start = addr + (found[i].first - vaddr),
		};
	}
}

uint64_t world_instructions(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
			    uint64_t end)
{
	uint64_t vaddr;
	struct symfile *symfile =
		symfile_at(world, map_at(world, pid, context, addr), addr, &vaddr);

	return symfile ? symfile_instructions(symfile, vaddr, vaddr + (end - addr)) : 0;
}

uint32_t world_image(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
		     uint64_t *vaddr)
{
	const struct map *map = map_at(world, pid, context, addr);

	return symfile_at(world, map, addr, vaddr) ? map->image : 0;
}

/* Code that is in no binary is that of the machine. */
static void raw_code(struct world *world, const struct map *map, uint64_t addr,
		     struct insn_code *code)
{
	uint64_t offset = addr - map->start + map->offset;
	size_t len;
	const uint8_t *bytes = image_raw(&world->images, map->image, &len);

	if (!bytes || offset >= len)
		return;
	*code = (struct insn_code){ .machine = world->images.machine,
				    .wide = world->images.is_64bit,
				    .bytes = bytes + offset,
				    .len = len - (size_t)offset };
	if (!code->machine && !strcmp(world_arch(world), "x86_64"))
		code->machine = EM_X86_64;
}

void world_code(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
		struct insn_code *code)
{
	const struct map *map = map_at(world, pid, context, addr);
	uint64_t vaddr;
	struct symfile *symfile = symfile_at(world, map, addr, &vaddr);

	*code = (struct insn_code){ 0 };
	if (symfile)
		symfile_insns(symfile, vaddr, code);
	else if (map)
		raw_code(world, map, addr, code);
	if (map && code->len > map->last - addr)
		code->len = (size_t)(map->last - addr) + 1;
}

const char *world_fact(const struct world *world, const char *key)
{
	for (size_t i = 0; i < world->nr_facts; i++) {
		if (!strcmp(str_text(world->strings, world->facts[i].key), key))
			return str_text(world->strings, world->facts[i].value);
	}
	return NULL;
}

const char *world_arch(const struct world *world)
{
	const char *arch = world_fact(world, "arch");

	if (arch)
		return arch;
	switch (world->images.machine) {
	case EM_X86_64: return "x86_64";
	case EM_386: return "i686";
	case EM_AARCH64: return "aarch64";
	case EM_ARM: return "armv7l";
	case EM_RISCV: return world->images.is_64bit ? "riscv64" : "riscv32";
	}
	return "";
}

/* Recorded on this machine, with the running kernel: its symbols match the data. */
static bool is_this_machine(const struct world *world)
{
	const char *host = world_fact(world, "hostname"), *release = world_fact(world, "osrelease");
	struct utsname here;

	return host && release && !uname(&here) && !strcmp(host, here.nodename) &&
	       !strcmp(release, here.release);
}

/* If inputs disagree, the first one wins. */
static void add_fact(struct world *world, const struct event_meta *meta)
{
	if (world_fact(world, meta->key))
		return;
	GROW(world->facts, world->nr_facts + 1, world->cap_facts);
	world->facts[world->nr_facts++] = (struct fact){
		.key = str_intern_z(world->strings, meta->key),
		.value = str_intern_z(world->strings, meta->value),
	};
	world->images.this_machine = is_this_machine(world);
	if (!strcmp(meta->key, "arch"))
		world->images.arch = world_fact(world, "arch");
}

/* Describes a source that samples referred to before. False: it has to become another one. */
static bool describe_source(struct world *world, uint32_t input, struct event_source *from)
{
	uint32_t known = hash_get(&world->source_by_id, (struct hash_key){ input, from->id });
	struct source *source = &world->sources[known];
	uint32_t *by_name, name;

	if (!known || !from->name)
		return false;
	name = str_intern_z(world->strings, from->name);
	by_name = hash_at(&world->source_by_name, (struct hash_key){ name, UINT64_MAX });
	if (*by_name && *by_name != known)
		return false;
	*by_name = known;
	source->name = name;
	source->unit = from->unit ? str_intern_z(world->strings, from->unit) : 0;
	source->type = from->type;
	source->config = from->config;
	source->period = from->period;
	source->freq = from->freq;
	from->id = known;
	return true;
}

/* Merges sources with the same name from several inputs. */
static void add_source(struct world *world, uint32_t input, struct event_source *from)
{
	uint32_t name = from->name ? str_intern_z(world->strings, from->name) : 0;
	struct hash_key key = name ? (struct hash_key){ name, UINT64_MAX }
				   : (struct hash_key){ from->config, from->type };
	uint32_t *handle;

	if (from->late && describe_source(world, input, from))
		return;
	handle = hash_at(&world->source_by_name, key);
	if (!*handle) {
		*handle = (uint32_t)world->nr_sources;
		GROW(world->sources, world->nr_sources + 1, world->cap_sources);
		world->sources[world->nr_sources++] = (struct source){
			.name = name,
			.unit = from->unit ? str_intern_z(world->strings, from->unit) : 0,
			.type = from->type,
			.config = from->config,
			.period = from->period,
			.freq = from->freq,
			.lacks = from->lacks,
			.branch_type = from->branch_type,
		};
	}
	/* Another input may have fields that the first one lacks. */
	if (from->unit && !world->sources[*handle].unit)
		world->sources[*handle].unit = str_intern_z(world->strings, from->unit);
	world->sources[*handle].lacks &= from->lacks;
	world->sources[*handle].branches |= from->branches;
	world->sources[*handle].branch_type &= from->branch_type;
	world->sources[*handle].raw |= from->raw;
	*hash_at(&world->source_by_id, (struct hash_key){ input, from->id }) = *handle;
	world->last_source.handle = 0;
	from->id = *handle;
}

uint32_t world_source(struct world *world, uint32_t input, uint32_t id)
{
	if (world->last_source.input != input || world->last_source.id != id ||
	    !world->last_source.handle) {
		world->last_source.input = input;
		world->last_source.id = id;
		world->last_source.handle =
			hash_get(&world->source_by_id, (struct hash_key){ input, id });
	}
	return world->last_source.handle;
}

/* The kernel's names for memory without a file. */
static bool is_anonymous(const char *path)
{
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/dev/zero", 9) ||
	       !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "[heap]", 6) ||
	       !strncmp(path, "[stack", 6) || !strncmp(path, "/SYSV", 5);
}

static uint32_t image_of(struct world *world, const struct event *ev)
{
	const struct event_map *map = &ev->map;

	if (map->prot & PROT_EXEC && !map->kernel && !map->guest && is_anonymous(map->path))
		return image_of_memory(&world->images, map->path, ev->pid);
	return image_intern(&world->images, map->path, map->build_id, map->build_id_len,
			    map->as_linked, map->kernel);
}

static void add_map(struct world *world, const struct event *ev)
{
	const struct event_map *map = &ev->map;
	uint32_t space = map->guest    ? SPACE_GUEST
			 : map->kernel ? SPACE_KERNEL
				       : space_of(world, ev->pid);
	uint32_t image;

	if (!map->len)
		return;
	image = image_of(world, ev);
	world->images.all[image].foreign |= map->foreign;
	world->images.all[image].given |= map->given;
	world->images.all[image].code |= map->prot & PROT_EXEC;
	image_moved(&world->images, image, map->anchor, map->offset);
	if (map->names)
		image_names(&world->images, image, map->names);
	space_map(&world->spaces[space],
		  (struct map){
			  .start = map->addr,
			  .last = map->len - 1 > UINT64_MAX - map->addr
					  ? UINT64_MAX
					  : map->addr + (map->len - 1),
			  .offset = world->images.all[image].as_linked ? map->addr : map->offset,
			  .image = image,
			  .code = map->prot & PROT_EXEC,
		  });
}

/* Code with a name but no file becomes an image where every address has that name. */
static void add_symbol_map(struct world *world, const struct event *ev)
{
	const struct event_symbol *symbol = &ev->symbol;
	uint32_t number = symbol->user ? space_of(world, ev->pid) : SPACE_KERNEL;
	struct space *space = &world->spaces[number];

	if (!symbol->len)
		return;
	if (symbol->gone) {
		space_unmap(space, symbol->addr);
		return;
	}
	space_map(space, (struct map){
				 .code = true,
				 .start = symbol->addr,
				 .last = symbol->len - 1 > UINT64_MAX - symbol->addr
						 ? UINT64_MAX
						 : symbol->addr + (symbol->len - 1),
				 .image = image_of_symbol(&world->images, symbol->name,
							  symbol->binary, !symbol->user),
			 });
}

static void add_fork(struct world *world, const struct event *ev)
{
	uint32_t comm = world_comm(world, ev->fork.parent_pid, ev->fork.parent_tid);
	uint32_t child, parent;

	task_of(world, ev->pid, ev->tid)->comm = comm;
	child = space_of(world, ev->pid);
	if (ev->pid != ev->tid)
		world->spaces[child].threads++;
	if (ev->pid == ev->fork.parent_pid || ev->fork.fresh)
		return;
	world->spaces[child].threads = 0;
	parent = space_of(world, ev->fork.parent_pid);
	space_copy(&world->spaces[child], &world->spaces[parent]);
}

/* Frees the maps of the process that ended longest ago, unless it has running threads. */
static void add_exit(struct world *world, const struct event *ev)
{
	uint32_t space = hash_get(&world->space_by_pid, (struct hash_key){ ev->pid, 0 });
	struct ended *slot;

	if (!space)
		return;
	if (ev->pid != ev->tid) {
		world->spaces[space].threads--;
		return;
	}
	if (!world->ended)
		world->ended = xcalloc(ENDED_KEPT, sizeof(*world->ended));
	slot = &world->ended[world->nr_ended++ % ENDED_KEPT];
	if (slot->space && world->spaces[slot->space].version == slot->version &&
	    world->spaces[slot->space].threads <= 0)
		space_clear(&world->spaces[slot->space]);
	*slot = (struct ended){ space, world->spaces[space].version };
}

void world_apply(struct world *world, struct event *ev)
{
	if (EVENT_BIT(ev->kind) & REMAPS)
		world->version++;
	switch (ev->kind) {
	case EVENT_META: add_fact(world, &ev->meta); break;
	case EVENT_SOURCE: add_source(world, ev->input, &ev->source); break;
	case EVENT_COMM:
		task_of(world, ev->pid, ev->tid)->comm =
			str_intern_z(world->strings, ev->comm.comm);
		break;
	case EVENT_FORK: add_fork(world, ev); break;
	case EVENT_EXIT: add_exit(world, ev); break;
	case EVENT_MAP: add_map(world, ev); break;
	case EVENT_SYMBOL: add_symbol_map(world, ev); break;
	case EVENT_SAMPLE:
	case EVENT_CHAIN:
		ev->sample.source = world_source(world, ev->input, ev->sample.source);
		break;
	case EVENT_COUNTER:
		ev->counter.source = world_source(world, ev->input, ev->counter.source);
		break;
	default: break;
	}
}

bool world_segment(struct world *world, const struct event *whole, size_t n, struct event *ev)
{
	uint32_t image = image_intern(&world->images, whole->map.path, whole->map.build_id,
				      whole->map.build_id_len, false, whole->map.kernel);
	const struct sym_segment *segment = NULL;
	struct symfile *symfile;
	uint64_t before;
	size_t nr = 0;

	world->images.all[image].given |= whole->map.given;
	symfile = image_symfile(&world->images, image);
	if (symfile)
		segment = symfile_segments(symfile, &nr);
	*ev = *whole;
	ev->map.whole = false;
	ev->map.prot = PROT_READ | PROT_EXEC;
	if (!nr) { /* not found, or no code in it */
		image = image_intern(&world->images, whole->map.path, NULL, 0, true,
				     whole->map.kernel);
		world->images.all[image].opened = true; /* it was just tried */
		ev->map.as_linked = true;
		ev->map.addr = 0;
		ev->map.len = (uint64_t)1 << 63;
		return n == 0;
	}
	if (n >= nr)
		return false;
	segment += n;
	/* Start at the page boundary like a loader, if the file allows it. */
	before = segment->vaddr % PAGE == segment->offset % PAGE ? segment->vaddr % PAGE : 0;
	ev->map.addr = segment->vaddr - before;
	ev->map.len = segment->memsz + before;
	ev->map.offset = segment->offset - before;
	ev->map.build_id = world->images.all[image].build_id;
	ev->map.build_id_len = world->images.all[image].build_id_len;
	return true;
}

static uint32_t frame_at(struct world *world, uint32_t space, uint64_t context, uint64_t ip,
			 uint8_t flags)
{
	bool kernel = context == IP_KERNEL || context == IP_GUEST_KERNEL;
	const struct map *map;

	if (context == IP_NAMED)
		return (uint32_t)ip;
	flags |= kernel ? FRAME_KERNEL : 0;
	if (context == IP_GUEST || context == IP_GUEST_KERNEL || context == IP_GUEST_USER)
		space = SPACE_GUEST;
	else if (kernel)
		space = SPACE_KERNEL;
	map = space_find(&world->spaces[space], ip);
	if (!map)
		return frame_intern(&world->frames, space, ip, flags | FRAME_UNMAPPED);
	return frame_intern(&world->frames, map->image, ip - map->start + map->offset, flags);
}

uint32_t world_frame(struct world *world, const struct event *ev, uint64_t context, uint64_t ip,
		     uint8_t flags)
{
	return frame_at(world, space_of(world, ev->pid), context, ip, flags);
}

/* Builds the stack from root to leaf, so that stacks share common callers. */
static uint32_t stack_of(struct world *world, const struct event_sample *sample, uint32_t space)
{
	uint64_t context = sample->context;
	uint32_t stack = 0;

	GROW(world->scratch, sample->nr, world->cap_scratch);
	for (uint32_t i = 0; i < sample->nr; i++) {
		if (ip_is_marker(sample->ips[i]))
			context = sample->ips[i] == IP_NAMED ? sample->context : sample->ips[i];
		world->scratch[i] = context;
	}
	for (uint32_t i = sample->nr; i-- > 0;) {
		bool is_return;

		if (ip_is_marker(sample->ips[i]))
			continue;
		/* The first address in each context is a pc, not a return address. */
		is_return = i > 0 && !ip_is_marker(sample->ips[i - 1]) &&
			    !(sample->at_calls && world->scratch[i] == IP_USER);
		stack = stack_push(&world->stacks, stack,
				   frame_at(world, space, world->scratch[i], sample->ips[i],
					    is_return ? FRAME_RETURN : 0));
	}
	return stack;
}

/* Folded stacks are sorted, so each shares most frames with the previous one. */
static uint32_t named_stack(struct stacks *stacks, const struct event_sample *sample)
{
	const uint64_t *root = sample->ips + sample->nr - 1;
	uint32_t same = 0, stack;

	while (same < sample->nr && same < stacks->nr_path &&
	       stacks->path[same].frame == *(root - same))
		same++;
	stack = same ? stacks->path[same - 1].stack : 0;
	GROW(stacks->path, sample->nr, stacks->cap_path);
	for (; same < sample->nr; same++) {
		stack = stack_push(stacks, stack, (uint32_t) * (root - same));
		stacks->path[same] = (struct stack_step){ (uint32_t) * (root - same), stack };
	}
	stacks->nr_path = sample->nr;
	return stack;
}

/* Caches stack_of() as long as that pays off: in aggregated data stacks do not repeat. */
uint32_t world_stack(struct world *world, const struct event *ev)
{
	const struct event_sample *sample = &ev->sample;
	struct stacks *stacks = &world->stacks;
	uint32_t space = space_of(world, ev->pid), stack;
	uint64_t where[] = { space, world->spaces[space].version,
			     world->spaces[SPACE_KERNEL].version, sample->context,
			     sample->at_calls };
	uint32_t *memo;

	if (sample->stack)
		return sample->stack;
	/* Aggregated data: no chain occurs twice. */
	if (sample->context == IP_NAMED && sample->count > 1 && !ip_is_marker(sample->ips[0]))
		return named_stack(stacks, sample);
	if (stacks->asked >= MEMO_TRIAL && stacks->hits < stacks->asked / 4)
		return stack_of(world, sample, space);
	memo = hash_at(&stacks->memo,
		       hash_words(sample->ips, sample->nr,
				  hash_words(where, sizeof(where) / sizeof(*where), 0).a));
	stacks->asked++;
	if (*memo) {
		stacks->hits++;
		return *memo - 1;
	}
	stack = stack_of(world, sample, space);
	*memo = stack + 1;
	if (stacks->memo.nr > MEMO_MAX)
		hash_release(&stacks->memo);
	return stack;
}

static void add_symbol(struct frames *frames, struct symbol symbol)
{
	GROW(frames->symbols, frames->nr_symbols + 1, frames->cap_symbols);
	frames->symbols[frames->nr_symbols++] = symbol;
}

/* Looks the frame up in its binary. False: not found. */
static bool ask_binary(struct world *world, const struct frame *frame, uint64_t vaddr)
{
	struct sym_frame found[SYM_MAX_INLINE];
	struct symfile *symfile = image_symfile(&world->images, frame->image);
	struct strtab *strings = world->strings;
	bool call = frame->flags & FRAME_RETURN;
	size_t nr, first;

	if (!symfile)
		return false;
	nr = symfile_lookup(symfile, call ? vaddr - 1 : vaddr, found, SYM_MAX_INLINE);
	/* No call before it: this is the start of a function, such as a signal trampoline. */
	if (!nr && call)
		nr = symfile_lookup(symfile, vaddr, found, SYM_MAX_INLINE);
	first = frame->flags & FRAME_FUNCTION && nr ? nr - 1 : 0;
	for (size_t i = first; i < nr; i++)
		add_symbol(&world->frames,
			   (struct symbol){
				   .name = str_intern_z(strings, found[i].name),
				   .file = found[i].file ? str_intern_z(strings, found[i].file) : 0,
				   .line = found[i].line,
				   .inlined = found[i].inlined,
				   .label = found[i].label,
				   .start = found[i].start,
			   });
	return nr > 0;
}

static void name_by_address(struct world *world, const struct frame *frame, uint64_t vaddr)
{
	const struct image *image = &world->images.all[frame->image];
	char text[300];
	int len;

	len = snprintf(text, sizeof(text), "%.200s+0x%" PRIx64,
		       str_text(world->strings, image->name), vaddr);
	add_symbol(&world->frames, (struct symbol){
					   .name = str_intern(world->strings, text, (size_t)len),
					   .unknown = true,
				   });
}

/* A map for the whole life of a task may come after its samples: look again. */
static void bind_late(struct world *world, struct frame *frame)
{
	const struct map *map = space_find(&world->spaces[frame->image], frame->addr);

	if (!map)
		return;
	frame->addr = frame->addr - map->start + map->offset;
	frame->image = map->image;
	frame->flags &= (uint8_t)~FRAME_UNMAPPED;
}

static void resolve(struct world *world, struct frame *frame)
{
	uint64_t vaddr;

	if (frame->flags & FRAME_NAMED) {
		add_symbol(&world->frames, (struct symbol){ .name = (uint32_t)frame->addr });
		return;
	}
	if (frame->flags & FRAME_UNMAPPED) {
		add_symbol(&world->frames,
			   (struct symbol){
				   .name = str_intern_z(world->strings, "[unknown]"),
				   .unknown = true,
			   });
		return;
	}
	if (world->images.all[frame->image].one_symbol) {
		add_symbol(&world->frames, (struct symbol){
						   .name = world->images.all[frame->image].symbol,
					   });
		return;
	}
	vaddr = image_vaddr(&world->images, frame->image, frame->addr);
	if (!ask_binary(world, frame, vaddr))
		name_by_address(world, frame, vaddr);
}

const struct symbol *frame_symbols(struct world *world, uint32_t handle, size_t *nr)
{
	struct frames *frames = &world->frames;
	struct frame *frame = &frames->all[handle];

	/* In a live view, somebody may have asked for the name before the map came. */
	if (frame->flags & FRAME_UNMAPPED) {
		bind_late(world, frame);
		if (!(frame->flags & FRAME_UNMAPPED))
			frame->nr_symbols = 0;
	}
	if (!frame->nr_symbols) {
		size_t first = frames->nr_symbols;

		resolve(world, frame);
		frame->symbols = (uint32_t)first;
		frame->nr_symbols = (uint16_t)(frames->nr_symbols - first);
	}
	*nr = frame->nr_symbols;
	return frames->symbols + frame->symbols;
}

uint32_t frame_binary(const struct world *world, uint32_t handle)
{
	const struct frame *frame = &world->frames.all[handle];

	if (frame->flags & FRAME_NAMED)
		return frame->image;
	if (frame->flags & FRAME_UNMAPPED)
		return 0;
	return world->images.all[frame->image].name;
}

uint32_t frame_function(struct world *world, uint32_t handle)
{
	size_t nr;
	const struct symbol *symbols = frame_symbols(world, handle, &nr);
	const struct frame *frame = &world->frames.all[handle];
	uint64_t start = symbols[nr - 1].start, vaddr;

	if (!start || frame->flags & (FRAME_NAMED | FRAME_UNMAPPED))
		return handle;
	vaddr = image_vaddr(&world->images, frame->image, frame->addr);
	if (vaddr < start || vaddr - start > frame->addr)
		return handle;
	return frame_intern(&world->frames, frame->image, frame->addr - (vaddr - start),
			    (frame->flags & FRAME_KERNEL) | FRAME_FUNCTION);
}
