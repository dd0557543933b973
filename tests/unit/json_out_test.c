// SPDX-License-Identifier: GPL-2.0-or-later
/* The JSON writer: commas, nesting, hostile strings, numbers at their limits, misuse. */
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_out.h"
#include "test.h"

static struct buf text;

/* A writer into an empty text. */
static struct json_out begin(void)
{
	buf_clear(&text);
	return (struct json_out){ .to = &text };
}

static void wrote(const char *name, const char *want)
{
	bool good = !strcmp(text.data, want);

	check(name, good);
	if (!good)
		printf("wrote: %s\nwant:  %s\n", text.data, want);
}

static void test_nesting(void)
{
	struct json_out out = begin();

	json_out_object(&out, NULL);
	json_out_end(&out);
	wrote("json_out: an empty object", "{}\n");

	out = begin();
	json_out_object(&out, NULL);
	json_out_u64(&out, "a", 1);
	json_out_array(&out, "b");
	json_out_end(&out);
	json_out_object(&out, "c");
	json_out_null(&out, "d");
	json_out_bool(&out, "e", true);
	json_out_end(&out);
	json_out_bool(&out, "f", false);
	json_out_end(&out);
	wrote("json_out: commas in objects",
	      "{\"a\":1,\"b\":[],\"c\":{\"d\":null,\"e\":true},\"f\":false}\n");

	out = begin();
	json_out_array(&out, NULL);
	json_out_u64(&out, NULL, 1);
	json_out_array(&out, NULL);
	json_out_text(&out, NULL, "x");
	json_out_text(&out, NULL, "");
	json_out_end(&out);
	json_out_i64(&out, NULL, -2);
	json_out_end(&out);
	wrote("json_out: commas in arrays", "[1,[\"x\",\"\"],-2]\n");

	out = begin();
	json_out_array(&out, NULL);
	for (uint64_t i = 0; i < 2; i++) {
		json_out_object(&out, NULL);
		json_out_u64(&out, "i", i);
		json_out_end(&out);
	}
	json_out_end(&out);
	wrote("json_out: a row per line", "[\n{\"i\":0},\n{\"i\":1}]\n");
}

static void test_string(const char *name, const char *string, const char *want)
{
	struct json_out out = begin();

	json_out_text(&out, NULL, string);
	wrote(name, want);
}

static void test_strings(void)
{
	struct json_out out;

	test_string("json_out: quotes and backslashes", "a\"b\\c/", "\"a\\\"b\\\\c/\"");
	test_string("json_out: controls", "\x01\n\t\x1b[31m\x1f \x7f",
		    "\"\\u0001\\u000a\\u0009\\u001b[31m\\u001f \\u007f\"");
	test_string("json_out: C1 controls", "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0",
		    "\"\\u0080\\u009b\\u009f\xc2\xa0\"");
	test_string("json_out: UTF-8 of every length", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		    "\"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	test_string("json_out: the first and last of every length",
		    "\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
		    "\xf4\x8f\xbf\xbf",
		    "\"\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
		    "\xf4\x8f\xbf\xbf\"");
#define BAD "\xef\xbf\xbd"
	test_string("json_out: stray bytes", "\x80|\x9b|\xff", "\"" BAD "|" BAD "|" BAD "\"");
	test_string("json_out: overlong", "\xc0\xaf|\xc1\xbf|\xe0\x9f\xbf|\xf0\x8f\xbf\xbf",
		    "\"" BAD BAD "|" BAD BAD "|" BAD BAD BAD "|" BAD BAD BAD BAD "\"");
	test_string("json_out: surrogates", "\xed\xa0\x80|\xed\xbf\xbf",
		    "\"" BAD BAD BAD "|" BAD BAD BAD "\"");
	test_string("json_out: beyond Unicode", "\xf4\x90\x80\x80|\xf5",
		    "\"" BAD BAD BAD BAD "|" BAD "\"");
	test_string("json_out: cut", "\xc3|\xe2\x82|\xf0\x9f\x98",
		    "\"" BAD "|" BAD BAD "|" BAD BAD BAD "\"");

	out = begin();
	json_out_object(&out, NULL);
	json_out_u64(&out, "k\"\xff\x1b", 1);
	json_out_end(&out);
	wrote("json_out: keys are strings, too", "{\"k\\\"" BAD "\\u001b\":1}\n");
}

/* What the scanner makes of any bytes is what the writer was given, as far as that was UTF-8. */
static void test_any_bytes(void)
{
	struct buf back = { 0 };
	uint64_t random = 1;
	bool good = true;

	for (int round = 0; round < 20000; round++) {
		struct json_out out = begin();
		struct json js;
		char string[9] = { 0 };

		for (int i = 0; i < 8; i++)
			string[i] = (char)(next_random(&random) >> (round % 8));
		json_out_text(&out, NULL, string);
		js = (struct json){ .at = (const uint8_t *)text.data,
				    .end = (const uint8_t *)text.data + text.len };
		good &= json_string(&js, &back) && js.at == js.end;
		for (size_t i = 0; i < text.len; i++)
			good &= (uint8_t)text.data[i] >= ' ' && text.data[i] != 0x7f;
		good &= strstr(back.data, BAD) || !strcmp(back.data, string);
	}
	check("json_out: any bytes", good);
	buf_release(&back);
}

static void test_double(const char *name, double value, unsigned decimals, const char *want)
{
	struct json_out out = begin();

	json_out_double(&out, NULL, value, decimals);
	wrote(name, want);
}

static void test_numbers(void)
{
	struct json_out out = begin();

	json_out_array(&out, NULL);
	json_out_u64(&out, NULL, 0);
	json_out_u64(&out, NULL, UINT64_MAX);
	json_out_i64(&out, NULL, INT64_MIN);
	json_out_i64(&out, NULL, INT64_MAX);
	json_out_end(&out);
	wrote("json_out: whole numbers",
	      "[0,18446744073709551615,-9223372036854775808,9223372036854775807]\n");
	test_double("json_out: decimals", 100.0 / 3, 4, "33.3333");
	test_double("json_out: zeros stay", 12.5, 4, "12.5000");
	test_double("json_out: no decimals", 2, 0, "2");
	test_double("json_out: negative", -0.25, 2, "-0.25");
	test_double("json_out: large", 1e21, 1, "1000000000000000000000.0");
	test_double("json_out: small", 1e-300, 3, "0.000");
	test_double("json_out: not a number", NAN, 4, "null");
	test_double("json_out: infinity", INFINITY, 4, "null");
	test_double("json_out: minus infinity", -INFINITY, 4, "null");
}

/*
 * A locale of our own, whose decimal point is U+066B, two bytes: what is installed differs. glibc's
 * file of a category is a magic number, the number of fields, their offsets, the fields.
 */
static bool set_locale(const char *folder)
{
	static const struct {
		uint32_t magic, nr, offsets[6];
		char point[4], none[4];
		uint32_t wide_point, wide_none;
		char charset[8];
	} file = {
		.magic = 0x20031115 ^ LC_NUMERIC,
		.nr = 6,
		.offsets = { 32, 36, 36, 40, 44, 48 },
		.point = "\xd9\xab",
		.wide_point = 0x66b,
		.charset = "UTF-8",
	};
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/test", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/test/LC_NUMERIC", folder);
	f = fopen(path, "wb");
	if (!f || fwrite(&file, sizeof(file), 1, f) != 1 || fclose(f))
		return false;
	setenv("LOCPATH", folder, 1);
	return setlocale(LC_NUMERIC, "test");
}

static void test_locale(void)
{
	char folder[] = "/tmp/kscope-locale-XXXXXX", path[200], number[20];

	check("json_out: a locale", mkdtemp(folder) && set_locale(folder));
	snprintf(number, sizeof(number), "%.1f", 1.5);
	check("json_out: the locale has its own decimal point", !strcmp(number, "1\xd9\xab"
										"5"));
	test_double("json_out: no locale's decimal point", 1234567.5, 1, "1234567.5");
	setlocale(LC_NUMERIC, "C");
	snprintf(path, sizeof(path), "%s/test/LC_NUMERIC", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/test", folder);
	rmdir(path);
	rmdir(folder);
}

/* Aborts, if it does, in a process of its own, and silently. */
static bool aborts(void (*misuse)(struct json_out *))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct json_out out = begin();

		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		fclose(stderr);
		misuse(&out);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

static void deepest(struct json_out *out)
{
	for (unsigned i = 0; i < JSON_OUT_MAX_DEPTH; i++)
		json_out_array(out, NULL);
}

static void too_deep(struct json_out *out)
{
	deepest(out);
	json_out_array(out, NULL);
}

static void end_of_nothing(struct json_out *out)
{
	json_out_end(out);
}

static void no_key(struct json_out *out)
{
	json_out_object(out, NULL);
	json_out_u64(out, NULL, 1);
}

static void key_in_array(struct json_out *out)
{
	json_out_array(out, NULL);
	json_out_u64(out, "key", 1);
}

static void two_values(struct json_out *out)
{
	json_out_u64(out, NULL, 1);
	json_out_u64(out, NULL, 2);
}

static void test_misuse(void)
{
	check("json_out: the deepest is fine", !aborts(deepest));
	check("json_out: too deep aborts", aborts(too_deep));
	check("json_out: an end too many aborts", aborts(end_of_nothing));
	check("json_out: a member without a key aborts", aborts(no_key));
	check("json_out: a key in an array aborts", aborts(key_in_array));
	check("json_out: a second value at the top aborts", aborts(two_values));
}

int main(void)
{
	test_nesting();
	test_strings();
	test_any_bytes();
	test_numbers();
	test_locale();
	test_misuse();
	buf_release(&text);
	return test_result();
}
