// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/html.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/pack.h"

#define FULL ((size_t)64 << 10)
#define LINE 3072 /* bytes that are encoded at once; a multiple of 3 */

/* ---- compression, into a file without a name ---- */

static void flush(struct html_block *block, enum pack_until until)
{
	int error = 0;

	if (block->fd < 0)
		return;
	if (block->pack)
		error = block->pack->ops->write(block->pack, block->fd, block->bytes.data,
						block->bytes.len, until);
	else if (block->bytes.len)
		error = fd_write(block->fd, block->bytes.data, block->bytes.len);
	if (!block->failed)
		block->failed = error;
	block->done += block->bytes.len;
	buf_clear(&block->bytes);
}

void html_block_begin(struct html_block *block, struct out *to, const char *name, bool before)
{
	*block = (struct html_block){ .to = to };
	block->fd = memfd_create("kscope", MFD_CLOEXEC);
	if (block->fd < 0)
		block->failed = errno;
	block->pack = pack_gzip.open();
	block->json.to = &block->text;
	json_out_object(&block->json, NULL);
	out_puts(to, "<script type=\"application/octet-stream\" id=\"");
	out_puts(to, before ? "before-" : "data-");
	out_puts(to, name);
	out_puts(to, block->pack ? "\" data-packing=\"gzip\">" : "\" data-packing=\"none\">");
}

static size_t encode(char *to, const uint8_t *from, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *at = to;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t word = (uint32_t)from[i] << 16;

		word |= i + 1 < len ? (uint32_t)from[i + 1] << 8 : 0;
		word |= i + 2 < len ? from[i + 2] : 0;
		*at++ = digits[word >> 18];
		*at++ = digits[word >> 12 & 63];
		*at++ = i + 1 < len ? digits[word >> 6 & 63] : '=';
		*at++ = i + 2 < len ? digits[word & 63] : '=';
	}
	return (size_t)(at - to);
}

/* In base64. */
static void copy_out(struct html_block *block)
{
	uint8_t bytes[LINE];
	char text[LINE / 3 * 4];
	uint64_t at = 0;
	ssize_t len;

	while ((len = pread(block->fd, bytes, sizeof(bytes), (off_t)at)) > 0) {
		out_write(block->to, text, encode(text, bytes, (size_t)len));
		at += (uint64_t)len;
	}
	if (len < 0 && !block->failed)
		block->failed = errno;
}

/* ---- columns ---- */

static void put_leb(struct buf *to, uint64_t number)
{
	uint8_t *at = (uint8_t *)buf_reserve(to, 10), *begin = at;

	for (; number > 127; number >>= 7)
		*at++ = (uint8_t)(number | 128);
	*at++ = (uint8_t)number;
	to->len += (size_t)(at - begin);
}

static void put_number(struct html_block *block, uint64_t number)
{
	const struct html_column *column = &block->columns[block->nr];
	uint64_t difference = number - block->last;

	if (column->delta)
		put_leb(&block->bytes, difference << 1 ^ -(difference >> 63));
	else
		put_leb(&block->bytes, number);
	block->last = number;
	if (block->bytes.len >= FULL)
		flush(block, PACK_MORE);
}

void html_column_begin(struct html_block *block, const char *name, bool delta)
{
	block->columns[block->nr] = (struct html_column){
		.name = name,
		.delta = delta,
		.constant = true,
		.bytes = block->done + block->bytes.len,
	};
	block->last = 0;
}

/* Equal numbers wait: if no other one follows, the column needs no bytes. */
void html_number(struct html_block *block, uint64_t number)
{
	struct html_column *column = &block->columns[block->nr];

	if (!column->count)
		column->value = number;
	if (column->constant && number != column->value) {
		for (uint64_t i = 0; i < column->count; i++)
			put_number(block, column->value);
		column->constant = false;
	}
	if (!column->constant)
		put_number(block, number);
	column->count++;
}

void html_column_end(struct html_block *block)
{
	struct html_column *column = &block->columns[block->nr++];

	column->bytes = block->done + block->bytes.len - column->bytes;
}

static void put_column(struct json_out *json, const struct html_column *column)
{
	json_out_array(json, NULL);
	json_out_text(json, NULL, column->name);
	json_out_u64(json, NULL, column->count);
	json_out_u64(json, NULL, column->bytes);
	json_out_text(json, NULL, column->constant ? "c" : column->delta ? "d" : "u");
	if (column->delta)
		json_out_i64(json, NULL, (int64_t)column->value);
	else
		json_out_u64(json, NULL, column->value);
	json_out_end(json);
}

static void put_length(struct buf *to, uint32_t length)
{
	for (unsigned i = 0; i < 4; i++)
		buf_addc(to, (char)(length >> 8 * i));
}

int html_block_end(struct html_block *block, struct err *err)
{
	json_out_array(&block->json, "columns");
	for (size_t i = 0; i < block->nr; i++)
		put_column(&block->json, &block->columns[i]);
	json_out_end(&block->json);
	json_out_end(&block->json);
	put_length(&block->text, (uint32_t)block->text.len);
	for (size_t at = 0; at < block->text.len; at += FULL) {
		size_t left = block->text.len - at;

		buf_add(&block->bytes, block->text.data + at, left < FULL ? left : FULL);
		flush(block, PACK_MORE);
	}
	flush(block, PACK_END);
	if (block->fd >= 0) {
		copy_out(block);
		close(block->fd);
	}
	out_puts(block->to, "</script>\n");
	if (block->pack)
		block->pack->ops->close(block->pack);
	buf_release(&block->bytes);
	buf_release(&block->text);
	return block->failed ? out_error("a temporary file", block->failed, err) : 0;
}
