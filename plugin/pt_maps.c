// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What code is where, found when QEMU translates it: in /proc/self/maps, by the address that it has in this
 * process. A decoder needs the bytes of code that is in no file, too: of each of its pages, a copy goes to a file.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "pt_parts.h"

#define PAGE 4096
#define KNOWN_MAX 1024
#define SEGMENTS_MAX 64

static struct known {
	uint64_t start, end;
	uint64_t sum;  /* of a page that was copied; 0: it is in a file */
	uint64_t from; /* a digest of the file and the offset in it */
	bool doubtful; /* a system call may have changed it */
} known[KNOWN_MAX];
static size_t nr_known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

_Atomic unsigned pt_maps_version;
_Atomic uint64_t pt_guest_shift;

static struct known *find_known(uint64_t address)
{
	for (size_t i = nr_known; i-- > 0;) {
		if (address - known[i].start < known[i].end - known[i].start)
			return &known[i];
	}
	return NULL;
}

/* Later ones hide earlier ones. */
static void add_known(struct known new)
{
	if (nr_known == KNOWN_MAX)
		nr_known = 0;
	known[nr_known++] = new;
	atomic_fetch_add(&pt_maps_version, 1);
}

/* Not 0. A program may change code that it generates. */
static uint64_t sum_of(const void *page)
{
	const uint64_t *words = page;
	uint64_t sum = 0;

	for (size_t i = 0; i < PAGE / sizeof(*words); i++)
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15;
	return sum | 1;
}

void pt_maps_lock(void)
{
	pthread_mutex_lock(&lock);
}

void pt_maps_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void pt_maps_changed(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < nr_known; i++)
		known[i].doubtful = true;
	pthread_mutex_unlock(&lock);
}

/* A line of /proc/self/maps. */
struct line {
	uint64_t start, end, offset;
	char path[4096];
};

static bool read_line(FILE *maps, struct line *line)
{
	char text[4096 + 200];
	int at = 0;

	if (!fgets(text, sizeof(text), maps))
		return false;
	line->path[0] = 0;
	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &line->start,
		   &line->end, &line->offset, &at) < 3 ||
	    !at)
		return false;
	snprintf(line->path, sizeof(line->path), "%.*s", (int)strcspn(text + at, "\n"), text + at);
	return true;
}

static bool find_line(uint64_t address, struct line *line)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;

	while (maps && !found && read_line(maps, line))
		found = address - line->start < line->end - line->start;
	if (maps)
		fclose(maps);
	return found;
}

static size_t read_segments(const char *path, Elf64_Phdr all[SEGMENTS_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr elf = { 0 };
	size_t nr = 0, size;

	if (fd < 0)
		return 0;
	if (pread(fd, &elf, sizeof(elf), 0) == (ssize_t)sizeof(elf) &&
	    !memcmp(elf.e_ident, ELFMAG, SELFMAG) && elf.e_phentsize == sizeof(*all) &&
	    elf.e_phnum <= SEGMENTS_MAX) {
		size = elf.e_phnum * sizeof(*all);
		nr = pread(fd, all, size, (off_t)elf.e_phoff) == (ssize_t)size ? elf.e_phnum : 0;
	}
	close(fd);
	return nr;
}

/*
 * The host need not execute the program's code, so QEMU maps it like constants: a line may have both. As Linux would
 * record it, the map has only the segment with the code.
 */
static void clip_to_segment(struct line *line, uint64_t address)
{
	uint64_t at = address - line->start + line->offset;
	Elf64_Phdr all[SEGMENTS_MAX];
	size_t nr = read_segments(line->path, all);

	for (size_t i = 0; i < nr; i++) {
		uint64_t from = all[i].p_offset / PAGE * PAGE;
		uint64_t to = (all[i].p_offset + all[i].p_filesz + PAGE - 1) / PAGE * PAGE;

		if (all[i].p_type != PT_LOAD || !(all[i].p_flags & PF_X) || at < from || at >= to)
			continue;
		if (to - line->offset < line->end - line->start)
			line->end = line->start + (to - line->offset);
		if (from > line->offset) {
			line->start += from - line->offset;
			line->offset = from;
		}
		return;
	}
}

/* Appends a page to the file of copies. Returns its offset there, or -1. */
static int64_t copy_page(const void *page, const char *path)
{
	int fd = api_above_standard(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
	int64_t at = -1;
	struct stat stat;

	if (fd >= 0 && fstat(fd, &stat) == 0 && write(fd, page, PAGE) == PAGE)
		at = stat.st_size;
	if (fd >= 0)
		close(fd);
	return at;
}

/* kscope moves the copies to a folder beside its output. */
static void add_copy(struct pt_file *file, uint64_t page, uint64_t shift)
{
	const void *bytes = (const void *)(page + shift);
	char path[4096];
	int64_t offset;

	snprintf(path, sizeof(path), "%s/" EMULATE_CODE "%u", args.parts, file->id.pid);
	offset = copy_page(bytes, path);
	snprintf(path, sizeof(path), "%s/%u", args.out, file->id.pid);
	if (offset >= 0)
		pt_file_map(file, page, PAGE, (uint64_t)offset, path);
	add_known((struct known){ page, page + PAGE, .sum = sum_of(bytes) });
}

/* The bytes of a file that is gone, or of memory, cannot be read later. */
static bool is_file(const struct line *line)
{
	static const char gone[] = " (deleted)";
	size_t length = strlen(line->path), tail = sizeof(gone) - 1;

	return line->path[0] == '/' &&
	       (length < tail || strcmp(line->path + length - tail, gone) != 0);
}

static uint64_t digest(const struct line *line)
{
	uint64_t sum = line->offset;

	for (const char *at = line->path; *at; at++)
		sum = (sum ^ (uint8_t)*at) * 0x9e3779b97f4a7c15;
	return sum;
}

/* shift: from addresses of the program to those of this process; old: what was known there, or NULL */
static void add_map(struct pt_file *file, uint64_t address, uint64_t shift, struct known *old)
{
	struct known new;
	struct line line;

	if (!find_line(address + shift, &line))
		return;
	if (!is_file(&line)) {
		add_copy(file, address / PAGE * PAGE, shift);
		return;
	}
	clip_to_segment(&line, address + shift);
	new = (struct known){ line.start - shift, line.end - shift, .from = digest(&line) };
	if (old && old->start == new.start && old->end == new.end && old->from == new.from) {
		old->doubtful = false;
		return;
	}
	pt_file_map(file, line.start - shift, line.end - line.start, line.offset, line.path);
	add_known(new);
}

static void check(struct pt_file *file, uint64_t address, uint64_t shift)
{
	struct known *found = find_known(address);

	if (!found || found->doubtful ||
	    (found->sum && found->sum != sum_of((const void *)(found->start + shift))))
		add_map(file, address, shift, found);
}

/* A block is in two pages at most. */
void pt_maps_translate(struct pt_file *file, const struct qemu_plugin_tb *tb)
{
	const struct qemu_plugin_insn *first = api.tb_get_insn(tb, 0);
	const struct qemu_plugin_insn *last = api.tb_get_insn(tb, api.tb_n_insns(tb) - 1);
	uint64_t start = api.insn_vaddr(first);
	uint64_t shift = (uint64_t)api.insn_haddr(first) - start;

	pthread_mutex_lock(&lock);
	pt_guest_shift = shift;
	check(file, start, shift);
	check(file, api.insn_vaddr(last) + api.insn_size(last) - 1, shift);
	pthread_mutex_unlock(&lock);
}
