// SPDX-License-Identifier: GPL-2.0-or-later
#include "code.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/mem.h"

#define PAGE 4096

struct code_page {
	uint32_t generation;
	bool named;		/* function by function, because there is no file */
	uint64_t offset;	/* in the file */
	uint64_t dso;		/* its digest */
	uint64_t function, end; /* the last one that was named */
};

void code_release(struct code *code)
{
	free(code->pages);
	hash_release(&code->page_at);
	hash_release(&code->generations);
	hash_release(&code->files);
	hash_release(&code->sizes);
}

static bool is_kernel(uint64_t address)
{
	return address >> 63;
}

/* The kernel's maps do not change with a process's system calls. */
static uint32_t generation_of(struct code *code, uint32_t pid, uint64_t address)
{
	return is_kernel(address) ? 0 : hash_get(&code->generations, (struct hash_key){ pid, 0 });
}

void code_changed(struct code *code, uint32_t pid)
{
	++*hash_at(&code->generations, (struct hash_key){ pid, 0 });
}

static struct hash_key page_key(uint32_t pid, uint64_t address)
{
	return (struct hash_key){ address / PAGE, is_kernel(address) ? 0 : pid };
}

static struct code_page *page_of(struct code *code, uint32_t pid, uint64_t address)
{
	uint32_t at = hash_get(&code->page_at, page_key(pid, address));

	return at ? &code->pages[at - 1] : NULL;
}

bool code_asks(struct code *code, uint32_t pid, uint64_t address)
{
	const struct code_page *page = page_of(code, pid, address);

	if (!page || page->generation != generation_of(code, pid, address))
		return true;
	return page->named && address - page->function >= page->end - page->function;
}

static bool is_file(struct code *code, const char *path)
{
	uint32_t *known =
		hash_at(&code->files, (struct hash_key){ hash_bytes(path, strlen(path)), 0 });
	struct stat info;

	if (!*known)
		*known = *path == '/' && !stat(path, &info) && S_ISREG(info.st_mode) &&
					 strncmp(path, "/tmp/perf-", 10)
				 ? 2
				 : 1;
	return *known == 2;
}

static void fill_map(struct event *ev, uint64_t address, const struct perf_dlfilter_al *al)
{
	ev->kind = EVENT_MAP;
	ev->map = (struct event_map){ .addr = address & ~(uint64_t)(PAGE - 1),
				      .len = PAGE,
				      .offset = al->addr & ~(uint64_t)(PAGE - 1),
				      .path = al->dso,
				      .prot = PROT_READ | PROT_EXEC };
	if (al->buildid && al->buildid_size && al->buildid_size <= 20) {
		ev->map.build_id = al->buildid;
		ev->map.build_id_len = (uint8_t)al->buildid_size;
	}
}

static void fill_symbol(struct event *ev, uint64_t address, const struct perf_dlfilter_al *al)
{
	const char *slash = al->dso ? strrchr(al->dso, '/') : NULL;

	ev->kind = EVENT_SYMBOL;
	ev->symbol = (struct event_symbol){ .addr = address - al->symoff,
					    .len = al->sym_end - al->sym_start,
					    .name = al->sym,
					    .binary = slash && slash[1] ? slash + 1 : al->dso,
					    .user = !is_kernel(address) };
}

static struct code_page *new_page(struct code *code, uint32_t pid, uint64_t address)
{
	uint32_t *at = hash_at(&code->page_at, page_key(pid, address));

	if (!*at) {
		GROW(code->pages, code->nr + 1, code->cap);
		code->pages[code->nr++] = (struct code_page){ 0 };
		*at = (uint32_t)code->nr;
	}
	return &code->pages[*at - 1];
}

static bool learn_file(struct code_page *page, uint64_t address, const struct perf_dlfilter_al *al,
		       struct event *ev)
{
	uint64_t dso = hash_bytes(al->dso, strlen(al->dso)), offset = al->addr - address % PAGE;

	if (!page->named && page->dso == dso && page->offset == offset)
		return false;
	page->named = false;
	page->dso = dso;
	page->offset = offset;
	fill_map(ev, address, al);
	return true;
}

static bool learn_symbol(struct code_page *page, uint64_t address,
			 const struct perf_dlfilter_al *al, struct event *ev)
{
	page->named = true;
	page->function = address;
	page->end = address + 1;
	if (!al->sym || al->sym_end <= al->sym_start || al->symoff >= al->sym_end - al->sym_start)
		return false;
	page->function = address - al->symoff;
	page->end = page->function + (al->sym_end - al->sym_start);
	fill_symbol(ev, address, al);
	return true;
}

bool code_learn(struct code *code, uint32_t pid, uint64_t address,
		const struct perf_dlfilter_al *al, struct event *ev)
{
	struct code_page *page = new_page(code, pid, address);

	page->generation = generation_of(code, pid, address);
	if (!al || al->size < OLDEST_AL)
		return false;
	*ev = (struct event){ .time = NO_TIME, .cpu = NO_CPU, .pid = pid, .tid = pid };
	if (!is_kernel(address) && al->dso && is_file(code, al->dso))
		return learn_file(page, address, al, ev);
	return learn_symbol(page, address, al, ev);
}

uint32_t code_size(struct code *code, uint32_t pid, uint64_t address, uint32_t (*ask)(void *ctx),
		   void *ctx)
{
	uint32_t *known = hash_at(&code->sizes, (struct hash_key){ address, pid });

	if (!*known)
		*known = ask(ctx) + 1;
	return *known - 1;
}
