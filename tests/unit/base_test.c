// SPDX-License-Identifier: GPL-2.0-or-later
/* The base: scanners that meet the end of their bytes anywhere, numbers at their limits, tables. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/in.h"
#include "base/json.h"
#include "base/pb.h"
#include "base/pb_out.h"
#include "base/text.h"
#include "model/strtab.h"
#include "test.h"

static bool json_number(const char *text, uint64_t *value)
{
	struct json js = { .at = (const uint8_t *)text,
			   .end = (const uint8_t *)text + strlen(text) };

	return json_u64(&js, value);
}

static bool json_signed(const char *text, uint64_t *value)
{
	struct json js = { .at = (const uint8_t *)text,
			   .end = (const uint8_t *)text + strlen(text) };

	return json_address(&js, value);
}

static void test_json_numbers(void)
{
	uint64_t v = 0;

	check("json: a number", json_number("123,  ", &v) && v == 123);
	check("json: a number in quotes", json_number("  \"123\" , ", &v) && v == 123);
	check("json: hexadecimal in quotes", json_number("\"0xFf\" ,", &v) && v == 255);
	check("json: the largest", json_number("18446744073709551615 ,", &v) && v == UINT64_MAX);
	check("json: the largest in quotes",
	      json_number("\"18446744073709551615\"        ,", &v) && v == UINT64_MAX);
	check("json: one more", !json_number("18446744073709551616 ,", &v));
	check("json: hexadecimal beyond 64 bits", !json_number("\"0x10000000000000000\" ,", &v));
	check("json: negative", !json_number("\"-1\" ,", &v));
	check("json: negative without quotes", !json_number("-1 ,", &v));
	check("json: a signed address", json_signed("\"-1\" ,", &v) && v == UINT64_MAX);
	check("json: the lowest address",
	      json_signed("-9223372036854775808 ,", &v) && v == (uint64_t)1 << 63);
	check("json: one less", !json_signed("-9223372036854775809 ,", &v));
	check("json: an unsigned address",
	      json_signed("\"0xffffffffc0000000\" ,", &v) && v == 0xffffffffc0000000);
	check("json: a negative hexadecimal", !json_signed("\"-0x5\" ,", &v));
	check("json: a fraction", !json_number("1.5 ,", &v));
	check("json: an exponent", json_number("1.2e6 ,", &v) && v == 1200000);
	check("json: whole all the same", json_number("\"1200.000E-2\" ,", &v) && v == 12);
	check("json: not whole", !json_number("12e-1 ,", &v));
	check("json: nothing however often", json_number("0e999999999999 ,", &v) && v == 0);
	check("json: an exponent beyond 64 bits", !json_number("1e20 ,", &v));
	check("json: an exponent without digits", !json_number("1e+ ,", &v));
	check("json: a point without digits", !json_number("1. ,", &v));
	check("json: a word", !json_number("true ,", &v));
	check("json: nothing", !json_number("\"\" ,", &v));
	check("json: half a number", !json_number("\"12x\" ,", &v));
}

/* Cut anywhere, the scanner asks for more and never takes a part for the whole. */
static void test_json_cuts(void)
{
	static const char text[] =
		" { \"k\\\"\\u00e9\" : [ 1 , \"two\", {} , [ ] , null , -3e5 ] } ";
	size_t whole = strlen(text) - 1;
	bool good = true;

	for (size_t len = 0; len < whole; len++) {
		uint8_t *copy = malloc(len + 1); /* so that ASan sees a byte too far */
		struct json js = { .at = copy, .end = copy + len };

		memcpy(copy, text, len);
		good &= !json_skip(&js) && js.cut && !js.wrong;
		free(copy);
	}
	struct json js = { .at = (const uint8_t *)text, .end = (const uint8_t *)text + whole };

	check("json: cut at every byte", good);
	check("json: whole", json_skip(&js) && !js.cut);
}

static void test_json_strings(void)
{
	static const char text[] = "\"a\\n\\\"\\u0041\\u00e9\\u20ac\" \"\\x\" ";
	struct json js = { .at = (const uint8_t *)text,
			   .end = (const uint8_t *)text + strlen(text) };
	struct buf buf = { 0 };

	check("json: escapes",
	      json_string(&js, &buf) && !strcmp(buf.data, "a\n\"A\xc3\xa9\xe2\x82\xac"));
	check("json: a broken escape", !json_string(&js, &buf) && js.wrong);
	buf_release(&buf);
}

static void test_text(void)
{
	struct buf buf = { 0 };
	uint64_t v = 0;

	check("text: seconds", text_seconds("1.5", 3, &v) && v == 1500000000);
	check("text: nanoseconds", text_seconds("0.000000001", 11, &v) && v == 1);
	check("text: whole seconds", text_seconds("12", 2, &v) && v == 12000000000);
	check("text: too fine", !text_seconds("0.0000000001", 12, &v));
	check("text: too large", !text_seconds("99999999999999", 14, &v));
	check("text: no seconds", !text_seconds(".", 1, &v) && !text_seconds("", 0, &v));
	check("text: hexadecimal", text_u64("0xff", 4, &v) && v == 255);
	check("text: not a number", !text_u64("12a", 3, &v) && !text_u64("", 0, &v));
	text_quote(&buf, "a\"b\\\n", 5);
	check("text: quotes", !strcmp(buf.data, "\"a\\\"b\\\\\\u000a\""));
	check("text: plain", !strcmp(text_plain(&buf, "\x1b[2J\n\x7f\xc3\xa9"), "?[2J??\xc3\xa9"));
	check("text: plain C1 controls",
	      !strcmp(text_plain(&buf, "\xc2\x9b|\xc2\xa0"), "?|\xc2\xa0"));
	check("text: plain stray bytes", !strcmp(text_plain(&buf, "\x9b|\xe2\x82"), "?|??"));
	check("text: plain directions",
	      !strcmp(text_plain(&buf, "\xe2\x80\xaeg|\xe2\x81\xa6|\xd8\x9c|\xe2\x80\xa8|"
				       "\xe2\x80\x8d|\xe2\x81\xaa"),
		      "?g|?|?|?|\xe2\x80\x8d|\xe2\x81\xaa"));
	buf_clear(&buf);
	text_add_lines(&buf, "a\tb\n\0\r\xc2\x9b\xc3", 9);
	check("text: plain lines", !strcmp(buf.data, "a\tb\n????"));
	check("text: plain nothing", !strcmp(text_plain(&buf, ""), ""));
	buf_release(&buf);
}

static void test_lines(void)
{
	struct in in;
	const char *line;
	size_t len, count = 0, bytes = 0;
	static const char text[] = "one\r\n\ntwo\nlast";

	in_open_memory(&in, "lines", text, strlen(text));
	while (text_line(&in, &line, &len)) {
		count++;
		bytes += len;
	}
	check("lines: all of them", count == 4 && bytes == 10);
	in_close(&in);
}

static void test_pb(void)
{
	static const uint8_t max[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
	static const uint8_t over[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02
	};
	static const uint8_t lying[] = { 0x0a, 0x05, 1, 2 };
	struct pb pb = { max, max + sizeof(max) };
	struct pb_field field;
	uint64_t v = 0;

	check("pb: the largest", pb_varint(&pb, &v) && v == UINT64_MAX);
	pb = (struct pb){ over, over + sizeof(over) };
	check("pb: one more", !pb_varint(&pb, &v));
	pb = (struct pb){ max, max + 4 };
	check("pb: cut", !pb_varint(&pb, &v));
	pb = (struct pb){ lying, lying + sizeof(lying) };
	check("pb: a length that lies", pb_next(&pb, &field) < 0);
}

/* A field, and inside it a message with a text and a number: reads back what was written. */
static bool pb_reads_back(size_t len, uint64_t number)
{
	struct buf buf = { 0 }, text = { 0 };
	struct pb_field outer = { 0 }, inner = { 0 }, first = { 0 }, second = { 0 };
	struct pb pb;
	size_t at[2];
	bool good;

	while (text.len < len)
		buf_addc(&text, (char)text.len);
	at[0] = pb_open(&buf, 1);
	at[1] = pb_open(&buf, 1000);
	pb_put_bytes(&buf, 2, text.data, text.len);
	pb_put_uint(&buf, 3, number);
	pb_close(&buf, at[1]);
	pb_close(&buf, at[0]);
	pb = (struct pb){ (uint8_t *)buf.data, (uint8_t *)buf.data + buf.len };
	good = pb_next(&pb, &outer) == 1 && outer.number == 1 && pb.at == pb.end &&
	       pb_next(&outer.bytes, &inner) == 1 && inner.number == 1000 &&
	       outer.bytes.at == outer.bytes.end && pb_next(&inner.bytes, &first) == 1 &&
	       (size_t)(first.bytes.end - first.bytes.at) == len &&
	       !memcmp(first.bytes.at, text.data ? text.data : "", len) &&
	       pb_next(&inner.bytes, &second) == 1 && second.value == number &&
	       inner.bytes.at == inner.bytes.end && !buf.data[buf.len];
	buf_release(&buf);
	buf_release(&text);
	return good;
}

static void test_pb_out(void)
{
	bool good = true;

	for (size_t len = 0; len < 300; len++)
		good &= pb_reads_back(len, (uint64_t)1 << len % 64);
	for (size_t len = 16300; len < 16500; len++)
		good &= pb_reads_back(len, UINT64_MAX >> len % 64);
	check("pb: messages of all lengths read back", good && pb_reads_back(3000000, 0));
}

static void test_tables(void)
{
	struct hash hash = { 0 };
	struct strtab st;
	bool good = true;
	char name[16];

	for (uint32_t i = 1; i <= 100000; i++)
		*hash_at(&hash, (struct hash_key){ i * 7, i % 3 }) = i;
	for (uint32_t i = 1; i <= 100000; i++)
		good &= hash_get(&hash, (struct hash_key){ i * 7, i % 3 }) == i;
	check("hash: every key", good && hash.nr == 100000);
	check("hash: no other", !hash_get(&hash, (struct hash_key){ 7, 2 }));
	hash_release(&hash);

	strtab_init(&st);
	for (uint32_t i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "name %u", i % 10000);
		good &= str_intern_z(&st, name) == i % 10000 + 1;
	}
	check("strtab: every string once", good && st.nr == 10001);
	check("strtab: none is empty", !strcmp(str_text(&st, 0), ""));
	strtab_release(&st);
}

static bool copies(struct in *in, uint64_t offset, size_t len, const char *wanted)
{
	char got[16] = "";

	return in_copy(in, offset, got, len) == strlen(wanted) && !strcmp(got, wanted);
}

static void test_copy(void)
{
	char path[] = "/tmp/kscope-copy-XXXXXX";
	int fd = mkstemp(path);
	struct err err = { 0 };
	uint64_t length = 0;
	struct in in;
	size_t have;

	in_open_memory(&in, "copy", "0123456789", 10);
	check("in: a copy from memory", copies(&in, 3, 4, "3456") && copies(&in, 8, 4, "89"));
	check("in: no copy beyond memory", copies(&in, 10, 4, "") && copies(&in, 1000, 4, ""));
	in_close(&in);

	check("in: a file", fd >= 0 && write(fd, "0123456789", 10) == 10);
	check("in: its length",
	      !in_open(&in, path, &err) && !in_length(&in, &length, &err) && length == 10);
	in_skip(&in, 2);
	check("in: a copy from a file", copies(&in, 3, 4, "3456") && copies(&in, 8, 4, "89"));
	check("in: no copy beyond a file", copies(&in, 10, 4, "") && copies(&in, 1000, 4, ""));
	check("in: the window stays", in_offset(&in) == 2 && *in_peek(&in, 1, &have) == '2');
	in_close(&in);
	close(fd);
	unlink(path);
}

int main(void)
{
	test_json_numbers();
	test_json_cuts();
	test_json_strings();
	test_text();
	test_lines();
	test_pb();
	test_pb_out();
	test_tables();
	test_copy();
	return test_result();
}
