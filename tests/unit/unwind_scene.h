/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_scene: a kernel of a few functions, with tables, and one sample of it; for tests and the fuzzer. */
#ifndef KSCOPE_TESTS_UNIT_UNWIND_SCENE_H
#define KSCOPE_TESTS_UNIT_UNWIND_SCENE_H

#include <elf.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/world.h"
#include "unwind/unwind.h"

#define TABLE_DISTANCE 0x1000000 /* from the code to the tables */
#define TEXT_LEN 0x1000		 /* of the segment */
#define CODE_LEN 0x800		 /* of the section; data follows */
#define MAX_LINES 16
#define WORDS 512

/* ---- a kernel of a few functions, and perhaps a table of ORC ---- */

enum { ROOT = 0x100, OUTER = 0x200, MIDDLE = 0x300, LEAF = 0x400, STUB = 0x500 };

struct orc_line {
	uint32_t at;
	int16_t sp_offset, bp_offset;
	uint16_t flags;
};

static const char names[] = "\0root\0outer\0middle\0leaf\0stub";
static const char section_names[] =
	"\0.text\0.symtab\0.strtab\0.shstrtab\0.orc_unwind_ip\0.orc_unwind\0.ARM.exidx\0.ARM.extab";

struct file {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[7];
	Elf64_Sym symbols[6];
	char names[sizeof(names)], section_names[sizeof(section_names)];
	int32_t ips[MAX_LINES];
	uint8_t entries[6 * MAX_LINES], index[8 * MAX_LINES], text[TEXT_LEN];
};

static inline uint32_t name_at(const char *all, size_t len, const char *name)
{
	const char *found = memmem(all, len, name, strlen(name) + 1);

	return (uint32_t)(found - all);
}

static inline void put_section(struct file *f, unsigned nr, const char *name, uint32_t type,
			       uint64_t addr, const void *data, size_t len)
{
	f->sh[nr] = (Elf64_Shdr){
		.sh_name = name_at(section_names, sizeof(section_names), name),
		.sh_type = type,
		.sh_flags = addr ? SHF_ALLOC : 0,
		.sh_addr = addr,
		.sh_offset = (uint64_t)((const char *)data - (const char *)f),
		.sh_size = len,
	};
}

static inline void put_symbol(struct file *f, unsigned nr, const char *name, uint64_t addr,
			      uint64_t size)
{
	f->symbols[nr] = (Elf64_Sym){
		.st_name = name_at(names, sizeof(names), name),
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = 1,
		.st_value = addr,
		.st_size = size,
	};
}

static inline void put_le16(uint8_t *to, uint16_t value)
{
	value = htole16(value);
	memcpy(to, &value, sizeof(value));
}

static inline void put_le32(void *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static inline void put_table(struct file *f, uint64_t text, const struct orc_line *lines, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		uint64_t here = text + TABLE_DISTANCE + 4 * i;

		put_le32(&f->ips[i], (uint32_t)(text + lines[i].at - here));
		put_le16(f->entries + 6 * i, (uint16_t)lines[i].sp_offset);
		put_le16(f->entries + 6 * i + 2, (uint16_t)lines[i].bp_offset);
		put_le16(f->entries + 6 * i + 4, lines[i].flags);
	}
	put_section(f, 5, ".orc_unwind_ip", SHT_PROGBITS, text + TABLE_DISTANCE, f->ips, 4 * nr);
	put_section(f, 6, ".orc_unwind", SHT_PROGBITS, text + 2 * TABLE_DISTANCE, f->entries,
		    6 * nr);
}

/* Tables of 32-bit Arm that cover the code, with the bytes of the lines as rules. */
static inline void put_arm_tables(struct file *f, uint64_t text, const struct orc_line *lines,
				  size_t nr)
{
	uint64_t index = text + TABLE_DISTANCE, rules = text + 2 * TABLE_DISTANCE;

	for (size_t i = 0; i < nr; i++) {
		uint64_t here = index + 8 * i;
		uint32_t word, start = (uint32_t)(text + i * 0x60 - here) & INT32_MAX;

		memcpy(&word, &lines[i].sp_offset, 4);
		if (i % 4 < 2)
			word = 0x80000000 | (word & 0xffffff);
		else if (i % 4 == 2)
			word = (uint32_t)(rules + word % (6 * MAX_LINES) - here - 4) & INT32_MAX;
		put_le32(f->index + 8 * i, start);
		put_le32(f->index + 8 * i + 4, word);
		memcpy(f->entries + 6 * i, &lines[i].sp_offset, 6);
		if (i % 2)
			f->entries[6 * i + 3] = 0x81;
	}
	put_section(f, 5, ".ARM.exidx", SHT_PROGBITS, index, f->index, 8 * nr - 3);
	put_section(f, 6, ".ARM.extab", SHT_PROGBITS, rules, f->entries, 6 * nr - 3);
}

/* On x86, and on RISC-V, whose files say x86: call, with jal in its last bytes. */
static inline void put_call(struct file *f, uint16_t machine, uint64_t end)
{
	const char *code = machine == EM_AARCH64 ? "\0\0\0\x94"
			   : machine == EM_ARM	 ? "\0\0\0\xeb"
						 : "\xef\0\0\0";

	f->text[end - 5] = 0xe8;
	memcpy(f->text + end - 4, code, 4);
}

/* Functions that need to have code: see the tests of each machine. */
static inline void put_code(struct file *f, uint16_t machine)
{
	static const uint32_t recursive[] = {
		0x34000080, /* cbz w0, + 16 */
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x97fffffe, /* bl LEAF */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};

	put_call(f, machine, ROOT + 0x10);
	put_call(f, machine, ROOT + 0x20);
	put_call(f, machine, CODE_LEN);
	if (machine == EM_AARCH64) {
		for (unsigned i = 0; i < sizeof(recursive) / 4; i++)
			put_le32(f->text + LEAF + 4 * i, recursive[i]);
		put_le32(f->text + ROOT - 4, 0x94000000); /* bl */
	}
	if (machine == EM_AARCH64 || machine == EM_ARM)
		return;
	/* For x86: push %rbp; mov %rsp,%rbp; the same of 32 bits. And call at the end of root. */
	memcpy(f->text + LEAF, machine == EM_X86_64 ? "\x55\x48\x89\xe5" : "\x55\x89\xe5\x90", 4);
	f->text[OUTER - 5] = 0xe8;
	memcpy(f->text + LEAF + 0x40, "\xe7\x80\0\0", 4); /* RISC-V: jalr ra, 0(ra) */
}

/* Its path; to be removed and freed. */
static inline char *write_kernel(uint16_t machine, uint64_t text, const struct orc_line *lines,
				 size_t nr)
{
	struct file *f = calloc(1, sizeof(*f));
	char *path = strdup("/tmp/kscope-unwind-XXXXXX");
	int fd = mkstemp(path);

	memcpy(f->eh.e_ident, "\177ELF\2\1\1", 7);
	if (BYTE_ORDER == BIG_ENDIAN)
		f->eh.e_ident[EI_DATA] = ELFDATA2MSB;
	f->eh.e_type = ET_EXEC;
	f->eh.e_machine = machine;
	f->eh.e_version = EV_CURRENT;
	f->eh.e_phoff = offsetof(struct file, ph);
	f->eh.e_shoff = offsetof(struct file, sh);
	f->eh.e_ehsize = sizeof(f->eh);
	f->eh.e_phentsize = sizeof(f->ph);
	f->eh.e_phnum = 1;
	f->eh.e_shentsize = sizeof(f->sh[0]);
	f->eh.e_shnum = lines ? 7 : 5;
	f->eh.e_shstrndx = 4;
	f->ph = (Elf64_Phdr){
		PT_LOAD, PF_R | PF_X, offsetof(struct file, text), text, text, TEXT_LEN, TEXT_LEN, 1
	};
	memcpy(f->names, names, sizeof(names));
	memcpy(f->section_names, section_names, sizeof(section_names));
	put_symbol(f, 1, "root", text + ROOT, 0x100);
	put_symbol(f, 2, "outer", text + OUTER, 0x100);
	put_symbol(f, 3, "middle", text + MIDDLE, 0x100);
	put_symbol(f, 4, "leaf", text + LEAF, 0x100);
	put_symbol(f, 5, "stub", text + STUB, 0); /* no size: assembly */
	put_section(f, 1, ".text", SHT_PROGBITS, text, f->text, CODE_LEN);
	f->sh[1].sh_flags |= SHF_EXECINSTR;
	put_section(f, 2, ".symtab", SHT_SYMTAB, 0, f->symbols, sizeof(f->symbols));
	f->sh[2].sh_link = 3;
	f->sh[2].sh_info = 1;
	f->sh[2].sh_entsize = sizeof(f->symbols[0]);
	put_section(f, 3, ".strtab", SHT_STRTAB, 0, f->names, sizeof(names));
	put_section(f, 4, ".shstrtab", SHT_STRTAB, 0, f->section_names, sizeof(section_names));
	put_code(f, machine);
	if (lines)
		(machine == EM_ARM ? put_arm_tables : put_table)(f, text, lines, nr);
	if (write(fd, f, sizeof(*f)) != sizeof(*f))
		abort();
	close(fd);
	free(f);
	return path;
}

/* ---- a world with that kernel, and one sample of it ---- */

struct scene {
	struct strtab strings;
	struct image_search where;
	struct world world;
	struct unwind unwind;
	char *path;
	unsigned word;
	uint64_t text, stack; /* addresses */
	uint64_t regs[33];
	uint8_t memory[8 * WORDS], outer[8 * WORDS];
	struct cpu_state cpu;
	struct event ev;
	uint64_t pc;
};

/* The machines whose code or tables matter. */
static inline uint16_t elf_machine(const char *arch)
{
	if (!strcmp(arch, "aarch64"))
		return EM_AARCH64;
	if (!strcmp(arch, "arm"))
		return EM_ARM;
	return strstr(arch, "64") ? EM_X86_64 : EM_386;
}

/* Of a file, whose code begins at `text`. */
static inline void scene_open_file(struct scene *s, const char *arch, char *path, uint64_t text)
{
	bool is_64bit = strstr(arch, "64");
	struct event ev = { .kind = EVENT_META, .meta = { "arch", arch } };

	memset(s, 0, sizeof(*s));
	s->word = is_64bit ? 8 : 4;
	s->text = text;
	s->stack = is_64bit ? 0xffffc90000001000 : 0xc8001000;
	s->path = path;
	strtab_init(&s->strings);
	world_init(&s->world, &s->strings, &s->where);
	world_apply(&s->world, &ev);
	ev = (struct event){ .kind = EVENT_MAP };
	ev.map = (struct event_map){ .len = UINT64_MAX,
				     .path = "[kernel.kallsyms]",
				     .names = s->path,
				     .kernel = true,
				     .as_linked = true,
				     .foreign = true };
	world_apply(&s->world, &ev);
	s->unwind.world = &s->world;
	s->cpu = (struct cpu_state){ .whole = true,
				     .mask = (UINT64_C(1) << 33) - 1,
				     .regs = s->regs,
				     .stack = s->memory,
				     .stack_len = sizeof(s->memory) };
}

static inline void scene_open(struct scene *s, const char *arch, const struct orc_line *lines,
			      size_t nr)
{
	uint64_t text = strstr(arch, "64") ? 0xffffffff81000000 : 0xc0100000;

	scene_open_file(s, arch, write_kernel(elf_machine(arch), text, lines, nr), text);
}

static inline void scene_close(struct scene *s)
{
	unwind_release(&s->unwind);
	world_release(&s->world);
	strtab_release(&s->strings);
	unlink(s->path);
	free(s->path);
}

static inline void poke(struct scene *s, unsigned word, uint64_t value)
{
	value = htole64(value); /* the low half comes first */
	memcpy(s->memory + word * s->word, &value, s->word);
}

static inline uint64_t place(const struct scene *s, unsigned word)
{
	return s->stack + word * s->word;
}

static inline const struct event_sample *look(struct scene *s, uint64_t pc)
{
	s->pc = pc;
	s->ev = (struct event){ .kind = EVENT_SAMPLE };
	s->ev.sample = (struct event_sample){
		.ips = &s->pc, .nr = 1, .context = IP_KERNEL, .state = &s->cpu
	};
	unwind_event(&s->unwind, &s->ev);
	return &s->ev.sample;
}

#endif
