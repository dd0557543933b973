// SPDX-License-Identifier: GPL-2.0-or-later
#include "sql_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_out.h"
#include "base/mem.h"
#include "base/text.h"

#define FULL ((size_t)64 << 10)
#define MEASURED 1000	   /* rows from which a table has the widths of its columns */
#define MOST_MEASURED FULL /* bytes of them, which is more if a single row is */
#define WIDEST 60	   /* characters to which a column is padded */

struct cell {
	size_t at, len; /* in `cells` */
	size_t width;	/* characters */
	bool is_number;
};

struct printer {
	struct database *db;
	enum sql_format format;
	bool on_terminal;
	struct buf text; /* to be printed */
	struct json_out json;
	size_t nr_columns;
	struct buf scratch, one;
	/* In a table, rows wait here until the widths of all columns are known. */
	struct buf cells;
	struct cell *waiting;
	size_t nr_waiting, cap_waiting;
	size_t *widths;
	bool *numbers; /* columns that are aligned to the right */
};

static void flush(struct printer *p, size_t beyond)
{
	if (p->text.len <= beyond)
		return;
	if (p->on_terminal && p->format != SQL_TABLE) { /* tables are safe */
		buf_clear(&p->scratch);
		text_add_lines(&p->scratch, p->text.data, p->text.len);
		fwrite(p->scratch.data, 1, p->scratch.len, stdout);
	} else {
		fwrite(p->text.data, 1, p->text.len, stdout);
	}
	buf_clear(&p->text);
}

/* ---- values as text ---- */

static void add_real(struct buf *to, double real)
{
	char text[40];

	snprintf(text, sizeof(text), "%.15g", real);
	buf_adds(to, text);
	if (!text[strcspn(text, ".en")]) /* 2.0, as opposed to 2 */
		buf_adds(to, ".0");
}

static void add_hex(struct buf *to, const char *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	buf_reserve(to, 2 * len);
	for (size_t i = 0; i < len; i++) {
		buf_addc(to, digits[(unsigned char)bytes[i] >> 4]);
		buf_addc(to, digits[bytes[i] & 15]);
	}
}

/* Appends a value as it is; a NUL ends a text. */
static void add_value(struct buf *to, const struct database_value *value)
{
	switch (value->type) {
	case DATABASE_NUMBER: buf_addf(to, "%" PRId64, value->number); break;
	case DATABASE_REAL: add_real(to, value->real); break;
	case DATABASE_TEXT: buf_adds(to, value->text); break;
	case DATABASE_BYTES: add_hex(to, value->text, value->len); break;
	case DATABASE_NULL: break;
	}
}

/* The same, alone, never NULL. */
static const char *value_text(struct printer *p, const struct database_value *value)
{
	buf_clear(&p->one);
	buf_reserve(&p->one, 1)[0] = '\0';
	add_value(&p->one, value);
	return p->one.data;
}

/* ---- CSV and TSV ---- */

static void add_csv(struct buf *to, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		buf_adds(to, text);
		return;
	}
	buf_addc(to, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_addc(to, '"');
		buf_addc(to, *text);
	}
	buf_addc(to, '"');
}

static void add_tsv(struct buf *to, const char *text)
{
	static const char special[] = "\t\n\r\\", letters[] = "tnr\\";

	for (; *text; text++) {
		const char *found = strchr(special, *text);

		if (found)
			buf_addc(to, '\\');
		buf_addc(to, found ? letters[found - special] : *text);
	}
}

static void add_field(struct printer *p, size_t nth, const char *text)
{
	bool csv = p->format == SQL_CSV;

	if (nth)
		buf_addc(&p->text, csv ? ',' : '\t');
	if (csv && p->nr_columns == 1 && !*text) /* readers skip empty lines */
		buf_adds(&p->text, "\"\"");
	else if (csv)
		add_csv(&p->text, text);
	else
		add_tsv(&p->text, text);
	if (nth + 1 == p->nr_columns)
		buf_addc(&p->text, '\n');
}

/* ---- JSON ---- */

#define MOST_DECIMALS 344 /* of the smallest number */

/* The fewest decimals that identify the number. */
static unsigned decimals_of(double real)
{
	char text[400];
	double size = fabs(real);
	unsigned nr = size > 0 && size < 1 ? (unsigned)-floor(log10(size)) : 1;

	for (; nr < MOST_DECIMALS; nr++) {
		snprintf(text, sizeof(text), "%.*f", (int)nr, real);
		if (strtod(text, NULL) == real)
			break;
	}
	return nr;
}

static void put_json(struct printer *p, const char *key, const struct database_value *value)
{
	struct json_out *json = &p->json;
	const char *text = value_text(p, value);

	if (value->type == DATABASE_NULL)
		json_out_null(json, key);
	else if (value->type == DATABASE_NUMBER)
		json_out_i64(json, key, value->number);
	else if (value->type == DATABASE_REAL)
		json_out_double(json, key, value->real, decimals_of(value->real));
	else
		json_out_text(json, key, text);
}

/* ---- tables ---- */

static size_t width_of(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += (*text & 0xc0) != 0x80;
	return nr;
}

static void add_cell(struct printer *p, const char *text, bool is_number)
{
	struct cell cell = { .at = p->cells.len, .is_number = is_number };

	text_add_plain(&p->cells, text);
	buf_addc(&p->cells, '\0');
	cell.len = p->cells.len - cell.at - 1;
	cell.width = width_of(p->cells.data + cell.at);
	GROW(p->waiting, p->nr_waiting + 1, p->cap_waiting);
	p->waiting[p->nr_waiting++] = cell;
}

static void print_cell(struct printer *p, size_t column, const struct cell *cell)
{
	size_t width = p->widths[column], pad = cell->width < width ? width - cell->width : 0;
	bool right = p->numbers[column], is_last = column + 1 == p->nr_columns;

	if (column)
		buf_adds(&p->text, "  ");
	if (right)
		buf_addf(&p->text, "%*s", (int)pad, "");
	buf_add(&p->text, p->cells.data + cell->at, cell->len);
	if (!right && !is_last)
		buf_addf(&p->text, "%*s", (int)pad, "");
	if (is_last)
		buf_addc(&p->text, '\n');
}

/* The first row has the names. */
static void measure(struct printer *p)
{
	bool *others = xcalloc(p->nr_columns, sizeof(*others));

	p->widths = xcalloc(p->nr_columns, sizeof(*p->widths));
	p->numbers = xcalloc(p->nr_columns, sizeof(*p->numbers));
	for (size_t i = 0; i < p->nr_waiting; i++) {
		const struct cell *cell = &p->waiting[i];
		size_t column = i % p->nr_columns, width = cell->width;

		if (width > WIDEST)
			width = WIDEST;
		if (width > p->widths[column])
			p->widths[column] = width;
		p->numbers[column] |= cell->is_number;
		others[column] |= i >= p->nr_columns && !cell->is_number && cell->len;
	}
	for (size_t i = 0; i < p->nr_columns; i++)
		p->numbers[i] &= !others[i];
	free(others);
}

static void print_cells(struct printer *p)
{
	if (!p->widths)
		measure(p);
	for (size_t i = 0; i < p->nr_waiting; i++) {
		print_cell(p, i % p->nr_columns, &p->waiting[i]);
		flush(p, FULL);
	}
	p->nr_waiting = 0;
	buf_clear(&p->cells);
}

/* ---- rows ---- */

static void print_names(struct printer *p)
{
	for (size_t i = 0; i < p->nr_columns; i++) {
		const char *name = database_column(p->db, i);

		if (p->format == SQL_TABLE)
			add_cell(p, name, false);
		else if (p->format != SQL_JSON)
			add_field(p, i, name);
	}
}

static void print_row(struct printer *p)
{
	if (p->format == SQL_JSON)
		json_out_object(&p->json, NULL);
	for (size_t i = 0; i < p->nr_columns; i++) {
		struct database_value value = database_value(p->db, i);

		if (p->format == SQL_JSON)
			put_json(p, database_column(p->db, i), &value);
		else if (p->format == SQL_TABLE)
			add_cell(p, value_text(p, &value),
				 value.type == DATABASE_NUMBER || value.type == DATABASE_REAL);
		else
			add_field(p, i, value_text(p, &value));
	}
	if (p->format == SQL_JSON)
		json_out_end(&p->json);
	if (p->widths || p->nr_waiting > MEASURED * p->nr_columns || p->cells.len > MOST_MEASURED)
		print_cells(p);
	flush(p, FULL);
}

static void release(struct printer *p)
{
	buf_release(&p->text);
	buf_release(&p->scratch);
	buf_release(&p->one);
	buf_release(&p->cells);
	free(p->waiting);
	free(p->widths);
	free(p->numbers);
}

int sql_check(const struct database *db, enum sql_format format, struct err *err)
{
	size_t nr = format == SQL_JSON ? database_columns(db) : 0;

	for (size_t i = 0; i < nr; i++) {
		const char *name = database_column(db, i);

		for (size_t j = 0; j < i; j++) {
			if (!strcmp(name, database_column(db, j)))
				return err_set(err, ERR_USAGE,
					       "SQL: two columns have the name %s: with --json, "
					       "name one of them with AS",
					       name);
		}
	}
	return 0;
}

int sql_print(struct database *db, enum sql_format format, size_t nth, struct err *err)
{
	struct printer p = { .db = db,
			     .format = format,
			     .on_terminal = isatty(STDOUT_FILENO),
			     .nr_columns = database_columns(db) };
	int ret;

	p.json.to = &p.text;
	if (nth && format != SQL_JSON)
		buf_addc(&p.text, '\n');
	if (format == SQL_JSON)
		json_out_array(&p.json, NULL);
	print_names(&p);
	while ((ret = database_next(db, err)) > 0 && !ferror(stdout))
		print_row(&p);
	if (format == SQL_TABLE && p.nr_columns)
		print_cells(&p);
	if (format == SQL_JSON)
		json_out_end(&p.json);
	flush(&p, 0);
	release(&p);
	return ret < 0 ? -1 : 0;
}
