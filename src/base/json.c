// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/json.h"
#include "base/le.h"

#include <string.h>

#define MAX_NESTING 256
#define SPACES 0x2020202020202020ULL

bool json_fail(struct json *js, const char *what)
{
	if (!js->wrong)
		js->wrong = what;
	return false;
}

static bool run_out(struct json *js)
{
	js->cut = true;
	return false;
}

static inline bool is_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Much of a pretty-printed file is indentation: eight blanks at a time. */
static const uint8_t *skip_blanks(const uint8_t *at, const uint8_t *end)
{
	while (end - at >= 8) {
		uint64_t word = le64_at(at) ^ SPACES;

		if (word)
			return at + __builtin_ctzll(word) / 8;
		at += 8;
	}
	return at;
}

int json_peek_after_space(struct json *js)
{
	const uint8_t *at = js->at, *end = js->end;

	while (at < end && is_space(*at))
		at = skip_blanks(at + 1, end);
	js->at = at;
	if (at == end) {
		js->cut = true;
		return 0;
	}
	return *at;
}

bool json_raw_string(struct json *js, const char **text, size_t *len)
{
	const uint8_t *start, *at;

	if (!json_take(js, '"'))
		return js->cut ? false : json_fail(js, "expected a string");
	start = js->at;
	js->escaped = false;
	for (at = start; at < js->end && *at != '"'; at++) {
		if (*at == '\\') {
			js->escaped = true;
			at++; /* whatever it escapes is part of the string */
		}
	}
	if (at >= js->end)
		return run_out(js);
	*text = (const char *)start;
	*len = (size_t)(at - start);
	js->at = at + 1;
	return true;
}

static void add_utf8(struct buf *to, uint32_t c)
{
	if (c < 0x80) {
		buf_addc(to, (char)c);
	} else if (c < 0x800) {
		buf_addc(to, (char)(0xc0 | c >> 6));
		buf_addc(to, (char)(0x80 | (c & 0x3f)));
	} else {
		if (c < 0x10000) {
			buf_addc(to, (char)(0xe0 | c >> 12));
		} else {
			buf_addc(to, (char)(0xf0 | c >> 18));
			buf_addc(to, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_addc(to, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addc(to, (char)(0x80 | (c & 0x3f)));
	}
}

static unsigned hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - (unsigned)'0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10 : 16;
}

/* The XXXX of \\uXXXX. */
static bool code_unit(const char *at, const char *end, uint32_t *code)
{
	*code = 0;
	if (end - at < 5 || *at != 'u')
		return false;
	for (int i = 1; i <= 4; i++) {
		unsigned digit = hex_digit((uint8_t)at[i]);

		if (digit > 15)
			return false;
		*code = *code << 4 | digit;
	}
	return true;
}

/* Joins a surrogate pair; an unpaired surrogate becomes U+FFFD. */
static uint32_t whole_character(uint32_t code, const char **at, const char *end)
{
	uint32_t low;

	if (code < 0xd800 || code > 0xdfff)
		return code;
	if (code > 0xdbff || end - *at < 6 || **at != '\\' || !code_unit(*at + 1, end, &low) ||
	    low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	*at += 6;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static bool add_escape(struct buf *to, const char **at, const char *end)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *known = *at < end && **at ? strchr(from, **at) : NULL;
	uint32_t code;

	if (known) {
		buf_addc(to, into[known - from]);
		++*at;
		return true;
	}
	if (!code_unit(*at, end, &code))
		return false;
	*at += 5;
	add_utf8(to, whole_character(code, at, end));
	return true;
}

bool json_string(struct json *js, struct buf *text)
{
	const char *at, *end;
	size_t len;

	if (!json_raw_string(js, &at, &len))
		return false;
	end = at + len;
	buf_clear(text);
	buf_reserve(text, len);
	while (at < end) {
		const char *escape = memchr(at, '\\', (size_t)(end - at));

		buf_add(text, at, (size_t)((escape ? escape : end) - at));
		if (!escape)
			break;
		at = escape + 1;
		if (!add_escape(text, &at, end))
			return json_fail(js, "invalid escape in a string");
	}
	buf_add(text, "", 0);
	return true;
}

bool json_key(struct json *js, struct buf *text, const char **key, size_t *len)
{
	struct json before = *js;

	if (!json_raw_string(js, key, len))
		return false;
	if (js->escaped) {
		*js = before;
		if (!json_string(js, text))
			return false;
		*key = text->data;
		*len = text->len;
	}
	if (json_take(js, ':'))
		return true;
	return js->cut ? false : json_fail(js, "expected ':'");
}

bool json_null(struct json *js)
{
	if (json_peek(js) != 'n')
		return false;
	if (js->end - js->at < 4)
		return run_out(js);
	if (memcmp(js->at, "null", 4) != 0)
		return false;
	js->at += 4;
	return true;
}

static bool hex_digits(struct json *js, uint64_t *value)
{
	const uint8_t *start = js->at;
	uint64_t sum = 0;

	for (; js->at < js->end; js->at++) {
		unsigned digit = hex_digit(*js->at);

		if (digit > 15)
			break;
		if (sum >> 60)
			return json_fail(js, "number does not fit in 64 bits");
		sum = sum << 4 | digit;
	}
	*value = sum;
	return js->at > start || json_fail(js, "expected a hexadecimal number");
}

static bool digits(struct json *js, uint64_t *value)
{
	const uint8_t *at = js->at, *start = at, *end = js->end;
	/* Nineteen digits always fit. */
	const uint8_t *safe = end - at > 19 ? at + 19 : end;
	uint64_t sum = 0;
	unsigned digit;

	while (at < safe && (digit = *at - (unsigned)'0') <= 9) {
		sum = sum * 10 + digit;
		at++;
	}
	for (; at < end && (digit = *at - (unsigned)'0') <= 9; at++) {
		if (__builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return json_fail(js, "number does not fit in 64 bits");
	}
	js->at = at;
	*value = sum;
	if (at == end)
		return run_out(js);
	return at > start || json_fail(js, "expected a whole number");
}

/* Appends the digits after a decimal point to *value; *nr is how many there are. */
static bool fraction(struct json *js, uint64_t *value, int *nr)
{
	const uint8_t *start = js->at;
	unsigned digit;

	for (; js->at < js->end && (digit = *js->at - (unsigned)'0') <= 9; js->at++) {
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, digit, value))
			return json_fail(js, "number does not fit in 64 bits");
	}
	*nr = (int)(js->at - start);
	return *nr || json_fail(js, "expected a digit");
}

/* The digits after an e, with an optional sign. */
static bool exponent(struct json *js, int *value)
{
	bool negative = js->at < js->end && *js->at == '-';
	const uint8_t *start;
	int sum = 0;

	js->at += negative || (js->at < js->end && *js->at == '+');
	for (start = js->at; js->at < js->end && *js->at >= '0' && *js->at <= '9'; js->at++) {
		if (sum < 1000)
			sum = sum * 10 + (*js->at - '0');
	}
	*value = negative ? -sum : sum;
	return js->at > start || json_fail(js, "expected a digit");
}

/*
 * The rest of 1.2e6 or 1200000.0, as some tools write whole numbers. Fails if the number is not
 * whole.
 */
static bool scale(struct json *js, uint64_t *value)
{
	int places = 0, power = 0;

	if (*js->at == '.') {
		js->at++;
		if (!fraction(js, value, &places))
			return js->at == js->end ? run_out(js) : false;
	}
	if (js->at < js->end && (*js->at | 0x20) == 'e') {
		js->at++;
		if (!exponent(js, &power))
			return js->at == js->end ? run_out(js) : false;
	}
	for (power -= places; *value && power > 0; power--) {
		if (__builtin_mul_overflow(*value, 10, value))
			return json_fail(js, "number does not fit in 64 bits");
	}
	for (; *value && power < 0; power++) {
		if (*value % 10)
			return json_fail(js, "expected a whole number");
		*value /= 10;
	}
	return true;
}

static bool number(struct json *js, bool is_signed, uint64_t *value)
{
	bool quoted = json_peek(js) == '"', negative, ok;
	const uint8_t *start = js->at;

	if (js->cut)
		return false;
	js->at += quoted;
	if (js->end - js->at < 3)
		return run_out(js);
	negative = *js->at == '-';
	if (negative && !is_signed)
		return json_fail(js, "the number must not be negative");
	js->at += negative;
	if (quoted && !negative && js->at[0] == '0' && (js->at[1] | 0x20) == 'x') {
		js->at += 2;
		ok = hex_digits(js, value);
	} else {
		ok = digits(js, value);
	}
	if (ok && js->at < js->end && (*js->at == '.' || (*js->at | 0x20) == 'e'))
		ok = scale(js, value);
	if (!ok)
		return false;
	if (negative && *value > (uint64_t)1 << 63) {
		js->at = start;
		return json_fail(js, "number does not fit in 64 bits");
	}
	if (negative)
		*value = -*value;
	if (js->at == js->end)
		return run_out(js);
	if (quoted)
		return *js->at++ == '"' || (js->at--, json_fail(js, "expected a whole number"));
	return true;
}

static bool any_u64(struct json *js, bool is_signed, uint64_t *value)
{
	const uint8_t *at;
	uint64_t sum = 0;
	unsigned digit, nr = 0;

	/* Fast path for by far the most common form: a few digits in quotes. */
	if (json_peek(js) == '"' && js->end - js->at > 20) {
		for (at = js->at + 1; nr < 18 && (digit = *at - (unsigned)'0') <= 9; at++, nr++)
			sum = sum * 10 + digit;
		if (nr && *at == '"') {
			js->at = at + 1;
			*value = sum;
			return true;
		}
	}
	return number(js, is_signed, value);
}

bool json_u64(struct json *js, uint64_t *value)
{
	return any_u64(js, false, value);
}

bool json_address(struct json *js, uint64_t *value)
{
	return any_u64(js, true, value);
}

bool json_u32(struct json *js, uint32_t *value)
{
	const uint8_t *start = js->at;
	uint64_t wide;

	if (!json_u64(js, &wide))
		return false;
	if (wide > UINT32_MAX) {
		js->at = start;
		return json_fail(js, "number does not fit in 32 bits");
	}
	*value = (uint32_t)wide;
	return true;
}

static bool skip_word(struct json *js)
{
	const uint8_t *start = js->at;

	while (js->at<js->end && * js->at> ' ' && !strchr(",]}:\"[{", *js->at))
		js->at++;
	if (js->at == js->end)
		return run_out(js);
	return js->at > start || json_fail(js, "expected a value");
}

/* The open brackets, one bit each: set for [, clear for {. */
struct nesting {
	uint8_t lists[MAX_NESTING / 8];
	unsigned depth;
};

static bool open_bracket(struct json *js, struct nesting *open, int c)
{
	unsigned bit = open->depth % 8;

	if (open->depth == MAX_NESTING)
		return json_fail(js, "values nested too deeply");
	open->lists[open->depth / 8] &= (uint8_t) ~(1U << bit);
	open->lists[open->depth++ / 8] |= (uint8_t)((c == '[') << bit);
	js->at++;
	return true;
}

static bool close_bracket(struct json *js, struct nesting *open, int c)
{
	if (!open->depth)
		return json_fail(js, "expected a value");
	open->depth--;
	if ((open->lists[open->depth / 8] >> open->depth % 8 & 1) != (c == ']'))
		return json_fail(js, "mismatched bracket");
	js->at++;
	return true;
}

bool json_skip(struct json *js)
{
	struct nesting open = { .depth = 0 };
	const char *text;
	size_t len;

	do {
		int c = json_peek(js);
		bool good = true;

		if (js->cut)
			return false;
		if (c == '{' || c == '[')
			good = open_bracket(js, &open, c);
		else if (c == '}' || c == ']')
			good = close_bracket(js, &open, c);
		else if (open.depth && (c == ',' || c == ':'))
			js->at++;
		else
			good = c == '"' ? json_raw_string(js, &text, &len) : skip_word(js);
		if (!good)
			return false;
	} while (open.depth);
	return true;
}
