// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_sym: a binary or a symbol list with its debug files, asked for everything that sym/ knows. The input is several
 * files, see folder.h. The first one is asked; the others are where its links may lead. fuzz/sym_seeds.py makes such inputs.
 */
#include "base/log.h"
#include "fuzz/folder.h"
#include "sym/sym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_ASKED 100

static uint8_t sum; /* forces all bytes of answers to be read */

static void use(const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum ^= ((const uint8_t *)bytes)[i];
}

static void use_text(const char *text)
{
	if (text)
		use(text, strlen(text));
}

static void ask_code(struct symfile *sf, uint64_t address)
{
	char text[INSN_TEXT];
	struct insn_flow flow;
	struct insn_code code;
	size_t len;
	const uint8_t *bytes = symfile_code_from(sf, address, &len);

	use(bytes, bytes ? len : 0);
	symfile_insns(sf, address, &code);
	for (unsigned i = 0; i < 4 && code.bytes; i++) {
		len = insn_size(&code);
		insn_text(&code, address, i & 1 ? INSN_INTEL : INSN_ATT, text);
		use_text(text);
		if (insn_flow(&code, address, &flow) && flow.size > code.len)
			abort();
		if (!len)
			break;
		code.bytes += len;
		code.len -= len;
		address += len;
	}
}

static void ask_at(struct symfile *sf, uint64_t address)
{
	struct sym_frame frames[SYM_MAX_INLINE];
	size_t max = address % 3 ? SYM_MAX_INLINE : 1;
	size_t nr = symfile_lookup(sf, address, frames, max);
	uint64_t start, until = symfile_same_until(sf, address), found;
	bool label;

	if (nr > max || until < address)
		abort();
	for (size_t i = 0; i < nr; i++) {
		use_text(frames[i].name);
		use_text(frames[i].linkage);
		use_text(frames[i].file);
		symfile_find(sf, frames[i].linkage, &found);
	}
	symfile_function(sf, address, &start, &label);
	symfile_is_thumb(sf, address);
	symfile_is_code(sf, address);
	symfile_is_loaded(sf, address);
	symfile_instructions(sf, address, address + 40);
	ask_code(sf, address);
}

static void ask_sections(struct symfile *sf)
{
	static const char *const names[] = { ".text",	".eh_frame",  ".orc_unwind",
					     ".symtab", ".ARM.exidx", ".plt" };
	struct sym_section section;
	size_t nr;
	uint64_t *patches = symfile_patches(sf, &nr);

	use(patches, nr * (patches ? sizeof(*patches) : 0));
	free(patches);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (symfile_section(sf, names[i], &section))
			use(section.data, section.len);
	use(symfile_build_id(sf, &nr), nr);
	symfile_elf(sf);
	symfile_debug_elf(sf);
}

static void take_line(void *arg, const struct sym_line *line)
{
	(void)arg;
	if (!line->line || line->addr > line->end)
		abort();
	use_text(line->file);
}

static void take_function(void *arg, const struct sym_function *function)
{
	(void)arg;
	use_text(function->name);
	use_text(function->file);
	use_text(function->call_file);
}

static void ask(struct symfile *sf)
{
	struct sym_module module;
	size_t nr, nr_segments, step;
	const uint64_t *starts = symfile_starts(sf, &nr);
	const struct sym_segment *segments = symfile_segments(sf, &nr_segments);

	ask_sections(sf);
	step = nr / MAX_ASKED + 1;
	for (size_t i = 0; i < nr; i += step) {
		ask_at(sf, starts[i]);
		ask_at(sf, starts[i] + 1 + i % 13);
	}
	for (size_t i = 0; i < nr_segments && i < 8; i++) {
		uint64_t far = segments[i].memsz / MAX_ASKED + 1; /* the size may be UINT64_MAX */

		for (uint64_t n = 0; n < MAX_ASKED && n < segments[i].memsz; n++)
			ask_at(sf, segments[i].vaddr + n * far);
	}
	for (size_t i = 0; symfile_module(sf, i, &module); i++)
		use_text(module.name);
	ask_at(sf, 0);
	ask_at(sf, UINT64_MAX);
	symfile_each_line(sf, take_line, NULL);
	symfile_each_function(sf, take_function, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_folder folder;
	struct sym_search where = { 0 };
	struct err err = { 0 };
	struct symfile *sf;

	log_level = -1;
	open_folder(&folder, data, size);
	where.folder = where.symfs = size % 2 ? folder.path : NULL;
	sf = folder.nr ? symfile_open(folder.files[0], &where, &err) : NULL;
	if (sf)
		ask(sf);
	symfile_close(sf);
	close_folder(&folder);
	return 0;
}
