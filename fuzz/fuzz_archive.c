// SPDX-License-Identifier: GPL-2.0-or-later
/* fuzz_archive: an archive, and every file in it, found by every name and read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"
#include "base/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static void read_file(struct store *store, const struct store_file *file)
{
	char *place = store_place(store, file->path), *real = store_real(store, file->path);
	int fd = store_open(store, file->path);
	struct err err = { 0 };
	struct in in;
	char bytes[100];
	uint64_t length = 0;

	must(real && store_has(store, file->path) && store_find(store, STORE_NAME, file->path));
	must(fd >= 0);
	close(fd);
	must(store_read(store, file->path, bytes, sizeof(bytes), 1, &length) >= 0);
	if (store_in(store, &in, file->path, &err) == 0) {
		in_length(&in, &length, &err);
		in_close(&in);
	}
	free(place);
	free(real);
}

/* A change of a header must not end the run: makes the sums right again. */
static void fix_sums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
		uint8_t *header = data + at;
		unsigned sum = 0;

		if (memcmp(header + 257, "ustar", 5) != 0)
			continue;
		memset(header + 148, ' ', 8);
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += header[i];
		snprintf((char *)header + 148, 7, "%06o", sum);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = xmalloc(size + 1);
	struct err err = { 0 };
	struct store *store;
	struct buf manifest = { 0 };
	struct in in;

	log_level = -1;
	memcpy(copy, data, size);
	fix_sums(copy, size);
	in_open_memory(&in, "fuzz", copy, size);
	store_probe(&in);
	store = store_read_archive(&in, &err);
	for (size_t i = 0; store && i < store->nr; i++)
		read_file(store, &store->files[i]);
	if (store)
		store_write_manifest(store, &manifest);
	must(store || *err.msg);
	buf_release(&manifest);
	store_free(store);
	in_close(&in);
	free(copy);
	return 0;
}
