// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_frames: a sample with any registers and stack, and a binary with any code and tables. The input is two files, see
 * folder.h: the binary, and what fuzz_unwind.c has, without a table. Then the sample comes again with a word that may be
 * a caller, as samplers send it that walk frame pointers.
 */
#include "base/log.h"
#include "fuzz/folder.h"
#include "fuzz/unwind_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const machines[] = { "x86_64", "i386",    "aarch64", "arm",
					"thumb",  "riscv64", "riscv32", "armv7m" };

/* The words are about the code of the first segment. */
static uint64_t text_of(const char *path)
{
	const struct sym_segment *segments;
	struct err err = { 0 };
	struct symfile *sf = symfile_open(path, NULL, &err);
	uint64_t text = 0;
	size_t nr = 0;

	segments = sf ? symfile_segments(sf, &nr) : NULL;
	if (nr)
		text = segments[0].vaddr;
	symfile_close(sf);
	return text;
}

/* A frame below its caller, and a word that comes with them. */
static void look_at_link(struct scene *s, uint64_t pc, uint64_t caller, uint64_t word)
{
	uint64_t ips[] = { IP_KERNEL, pc, caller, caller };
	struct link_word links[] = { { word % 4, word }, { 2 + word % 2, caller } };
	struct event ev = { .kind = EVENT_SAMPLE };

	ev.sample = (struct event_sample){
		.ips = ips, .nr = 4, .context = IP_KERNEL, .links = links, .nr_links = 2
	};
	unwind_event(&s->unwind, &ev);
	check(&ev.sample);
}

static void run(char *path, const uint8_t *data, size_t size)
{
	static struct scene s;
	struct bytes in = { data, data + size };
	const char *machine = machines[next_byte(&in) % 8];
	enum unwind_method method = next_byte(&in) % 4;
	uint64_t pc;

	scene_open_file(&s, machine, strdup(path), text_of(path));
	s.unwind.method = method;
	pc = next_state(&in, &s);
	check(look(&s, pc));
	look_at_link(&s, pc, s.regs[0], s.regs[1]);
	look_at_link(&s, s.regs[2], s.regs[3], s.regs[4]);
	scene_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_folder folder;
	uint8_t what[8192];
	FILE *file;

	log_level = -1;
	open_folder(&folder, data, size);
	file = folder.nr > 1 ? fopen(folder.files[1], "rb") : NULL;
	if (file) {
		size = fread(what, 1, sizeof(what), file);
		fclose(file);
		run(folder.files[0], what, size);
	}
	close_folder(&folder);
	return 0;
}
