// SPDX-License-Identifier: GPL-2.0-or-later
/* wire_check: keeps samples inside a trace until the trace reaches their place. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/wire_parts.h"

void wire_checks_add(struct wire_checks *checks, uint64_t place, struct pb message)
{
	size_t len = (size_t)(message.end - message.at);
	struct wire_check check = { place, xmalloc(len), len };

	memcpy(check.data, message.at, len);
	if (checks->next == checks->nr)
		checks->next = checks->nr = 0;
	GROW(checks->waiting, checks->nr + 1, checks->cap);
	checks->waiting[checks->nr++] = check;
}

bool wire_checks_take(struct wire_checks *checks, uint64_t place, struct pb *message)
{
	struct wire_check *taken = &checks->taken;
	bool found = false;

	while (checks->next < checks->nr && checks->waiting[checks->next].place <= place) {
		free(taken->data);
		*taken = checks->waiting[checks->next++];
		found = taken->place == place;
	}
	if (found)
		*message = (struct pb){ taken->data, taken->data + taken->len };
	return found;
}

void wire_checks_release(struct wire_checks *checks)
{
	for (size_t i = checks->next; i < checks->nr; i++)
		free(checks->waiting[i].data);
	free(checks->waiting);
	free(checks->taken.data);
}
