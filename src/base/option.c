// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/option.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

/* ---- the types ---- */

int option_flag(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	(void)row, (void)arg, (void)err;
	*(bool *)field = true;
	return 0;
}

int option_value(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	(void)arg, (void)err;
	*(unsigned *)field = (unsigned)row->most;
	return 0;
}

int option_text(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	(void)row, (void)err;
	*(const char **)field = arg ? arg : "";
	return 0;
}

int option_number(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	uint64_t value;

	if (!text_u64(arg, strlen(arg), &value) || value > row->most)
		return err_set(err, ERR_USAGE, "--%s expects a number up to %" PRIu64 ", not '%s'",
			       row->name, row->most, arg);
	if (value < row->least)
		return row->least == 1 ? err_set(err, ERR_USAGE, "--%s must not be 0", row->name)
				       : err_set(err, ERR_USAGE,
						 "--%s expects at least %" PRIu64 ", not '%s'",
						 row->name, row->least, arg);
	*(uint64_t *)field = value;
	return 0;
}

int option_percent(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end || !(value >= 0 && value <= 100))
		return err_set(err, ERR_USAGE, "--%s expects a percentage, not '%s'", row->name,
			       arg);
	*(double *)field = value;
	return 0;
}

int option_seconds(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	uint64_t *ns = field;

	if (!text_seconds(arg, strlen(arg), ns) || !*ns)
		return err_set(err, ERR_USAGE, "--%s expects seconds, not '%s'", row->name, arg);
	return 0;
}

static int unknown_word(const struct option_row *row, const char *arg, struct err *err)
{
	struct buf text = { 0 };
	int ret;

	for (size_t i = 0; row->words[i]; i++)
		buf_addf(&text, "%s%s", !i ? "" : row->words[i + 1] ? ", " : " or ", row->words[i]);
	ret = err_set(err, ERR_USAGE, "--%s expects %s, not '%s'", row->name, text.data, arg);
	buf_release(&text);
	return ret;
}

int option_word(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	for (unsigned i = 0; row->words[i]; i++) {
		if (!strcmp(arg, row->words[i])) {
			*(unsigned *)field = i;
			return 0;
		}
	}
	return unknown_word(row, arg, err);
}

int option_append(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct option_list *list = field;

	(void)row, (void)err;
	GROW(list->all, list->nr + 1, list->cap);
	list->all[list->nr++] = arg;
	return 0;
}

static void release_field(const struct option_row *row, void *field)
{
	if (row->set == option_append)
		free(((struct option_list *)field)->all);
}

/* ---- using them ---- */

bool option_is_pair(const struct option_row *row)
{
	return row->arg && strchr(row->arg, ' ');
}

const struct option_row *option_find(const struct option_table *table, const char *name)
{
	for (const struct option_row *row = table->rows; row->name; row++) {
		if (!row->same_as && !strcmp(row->name, name))
			return row;
	}
	return NULL;
}

bool option_in(const struct option_use *uses, const char *name)
{
	for (; uses && uses->table; uses++) {
		if (option_find(uses->table, name))
			return true;
	}
	return false;
}

bool option_stored(const struct option_use *uses, const char *name)
{
	for (; uses && uses->table; uses++) {
		if (uses->at != OPTION_ELSEWHERE && option_find(uses->table, name))
			return true;
	}
	return false;
}

void option_add(struct option_line *line, const struct option_row *row, const char *arg)
{
	GROW(line->all, line->nr + 1, line->cap);
	line->all[line->nr++] = (struct option_given){ .row = row, .arg = arg };
}

int option_check(const struct option_row *row, const char *arg, struct err *err)
{
	_Alignas(max_align_t) char field[OPTION_FIELD] = { 0 };
	int ret = row->set ? row->set(row, field, arg, err) : 0;

	release_field(row, field);
	return ret;
}

static int apply_table(const struct option_table *table, char *to, const struct option_line *line,
		       struct err *err)
{
	for (size_t i = 0; i < line->nr; i++) {
		const struct option_row *row = option_find(table, line->all[i].row->name);

		if (row && row->set && row->set(row, to + row->at, line->all[i].arg, err) < 0)
			return -1;
	}
	return 0;
}

int option_apply(const struct option_use *uses, void *state, const struct option_line *line,
		 struct err *err)
{
	for (; line && uses && uses->table; uses++) {
		if (uses->at == OPTION_ELSEWHERE)
			continue;
		if (apply_table(uses->table, (char *)state + uses->at, line, err) < 0)
			return -1;
	}
	return 0;
}

void option_mark_name(const char *name, struct option_line *line)
{
	for (size_t i = 0; line && i < line->nr; i++)
		line->all[i].acted |= !strcmp(line->all[i].row->name, name);
}

void option_mark(const struct option_use *uses, struct option_line *line)
{
	for (size_t i = 0; line && i < line->nr; i++)
		line->all[i].acted |= option_in(uses, line->all[i].row->name);
}

void option_release(const struct option_use *uses, void *state)
{
	for (; uses && uses->table; uses++) {
		const struct option_row *row = uses->table->rows;

		for (; uses->at != OPTION_ELSEWHERE && row->name; row++)
			release_field(row, (char *)state + uses->at + row->at);
	}
}
