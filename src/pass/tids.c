// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/tids.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct tids_kind {
	struct tids_ended *all;
	size_t nr, cap;
};

void tids_release(struct tids *tids)
{
	for (size_t i = 0; i < tids->nr; i++)
		free(tids->kinds[i].all);
	free(tids->kinds);
	hash_release(&tids->by_kind);
	memset(tids, 0, sizeof(*tids));
}

void tids_put(struct tids *tids, uint32_t pid, uint32_t kind, struct tids_ended ended)
{
	uint32_t *handle = hash_at(&tids->by_kind, (struct hash_key){ pid, kind });
	struct tids_kind *list;

	if (!*handle) {
		GROW(tids->kinds, tids->nr + 1, tids->cap);
		tids->kinds[tids->nr++] = (struct tids_kind){ 0 };
		*handle = (uint32_t)tids->nr;
	}
	list = &tids->kinds[*handle - 1];
	GROW(list->all, list->nr + 1, list->cap);
	list->all[list->nr++] = ended;
}

bool tids_take(struct tids *tids, uint32_t pid, uint32_t kind, uint64_t place,
	       struct tids_ended *ended)
{
	uint32_t handle = hash_get(&tids->by_kind, (struct hash_key){ pid, kind });
	struct tids_kind *list = handle ? &tids->kinds[handle - 1] : NULL;
	size_t at = list ? list->nr : 0;

	while (at && list->all[at - 1].last > place)
		at--;
	if (!at)
		return false;
	*ended = list->all[at - 1];
	list->all[at - 1] = list->all[--list->nr];
	return true;
}
