// SPDX-License-Identifier: GPL-2.0-or-later
/* fuzz_kernel: any file for --kernel: ELF, kernel image, symbol list; compressed or not. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "sym/sym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct symfile *sf)
{
	struct sym_frame frames[SYM_MAX_INLINE];
	struct sym_module module;
	struct sym_section section;
	size_t nr, step;
	const uint64_t *starts = symfile_starts(sf, &nr);
	uint8_t sum = 0;

	step = nr / 50 + 1;
	for (size_t i = 0; i < nr; i += step) {
		const uint8_t *code = symfile_code(sf, starts[i], 64);

		symfile_lookup(sf, starts[i] + 1, frames, SYM_MAX_INLINE);
		for (size_t k = 0; code && k < 64; k++)
			sum ^= code[k];
	}
	for (size_t i = 0; symfile_module(sf, i, &module); i += step)
		sum ^= (uint8_t)module.name[0];
	if (symfile_section(sf, ".orc_unwind", &section) && section.len)
		sum ^= section.data[section.len - 1];
	/* The sum itself is unused: it forces all bytes to be read. */
	__asm__ volatile("" ::"r"(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("kernel", MFD_CLOEXEC);
	struct err err = { 0 };
	struct symfile *sf;
	char path[40];

	log_level = -1;
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	sf = symfile_open(path, NULL, &err);
	if (sf)
		ask(sf);
	symfile_close(sf);
	close(fd);
	return 0;
}
