// SPDX-License-Identifier: GPL-2.0-or-later
/* fuzz_archive: an archive, and every file in it, found by every name and read. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/store.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct store *store;
	struct buf manifest = { 0 };
	struct in in;

	log_level = -1;
	in_open_memory(&in, "fuzz", data, size);
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
	return 0;
}
