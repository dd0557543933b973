// SPDX-License-Identifier: GPL-2.0-or-later
/* See args.h. */
#include "args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

#define DEFAULT_PERIOD 1000000
#define DEFAULT_STACK 8192
#define PERIOD_MIN 1000

struct args args;

static int bad(const char *name, const char *value, const char *want)
{
	api_say("%s=%s: %s", name, value, want);
	return -1;
}

static bool number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && !*end;
}

/* The index of a word in a list separated by |, or -1. */
static int choice(const char *value, const char *words)
{
	size_t length = strlen(value);

	for (int i = 0;; i++) {
		size_t word = strcspn(words, "|");

		if (word == length && !strncmp(words, value, length))
			return i;
		if (!words[word])
			return -1;
		words += word + 1;
	}
}

static int set_cpus(const char *value)
{
	const char *at = value;

	args.all_cpus = false;
	do {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (end == at)
			return bad("vcpu", value, "expected a list such as 0+2-3");
		if (*end == '-') {
			at = end + 1;
			last = strtoul(at, &end, 10);
			if (end == at)
				return bad("vcpu", value, "expected a list such as 0+2-3");
		}
		if (last < first || last >= sizeof(args.cpus) * 8)
			return bad("vcpu", value, "no such vCPU");
		for (; first <= last; first++)
			args.cpus[first / 8] |= (uint8_t)(1 << first % 8);
		at = end;
	} while ((*at == '+' || *at == ',') && *++at);
	return *at ? bad("vcpu", value, "expected a list such as 0+2-3") : 0;
}

static int set_place(const char *name, const char *text, struct args_place *place)
{
	if (!*text)
		return bad(name, text, "expected an address or a symbol");
	if (*text >= '0' && *text <= '9')
		return number(text, &place->address) ? 0 : bad(name, text, "not an address");
	place->symbol = text;
	return 0;
}

static int set_places(const char *name, char *value, struct args_place *places, size_t *n)
{
	char *rest = NULL;

	for (char *word = strtok_r(value, "+", &rest); word; word = strtok_r(NULL, "+", &rest)) {
		if (*n == ARGS_LIST_MAX)
			return bad(name, word, "too many places");
		if (set_place(name, word, &places[(*n)++]))
			return -1;
	}
	return 0;
}

static bool argument(const char *word, unsigned *n)
{
	uint64_t value;

	if (!word || strncmp(word, "arg", 3) || !number(word + 3, &value) || value > 7)
		return false;
	*n = (unsigned)value;
	return true;
}

static int set_hook(const char *name, char *value, enum args_hook_kind kind)
{
	struct args_hook *hook = &args.hooks[args.n_hooks];
	static const char *const forms[] = { "expected FUNCTION:argN:ret, N from 0 to 7",
					     "expected FUNCTION:argN:argN:ret (pointer, size)",
					     "expected FUNCTION:argN, N from 0 to 7" };
	char *rest = NULL, *function, *word, *at;
	bool good;

	if (args.n_hooks == ARGS_LIST_MAX)
		return bad(name, value, "too many functions");
	function = strtok_r(value, ":", &rest);
	if (!function)
		return bad(name, value, forms[kind]);
	hook->kind = kind;
	at = strrchr(function, '@');
	snprintf(hook->name, sizeof(hook->name), "%.*s",
		 (int)(at ? (size_t)(at - function) : strlen(function)), function);
	good = argument(strtok_r(NULL, ":", &rest),
			kind == HOOK_ALLOC ? &hook->size : &hook->pointer);
	if (kind == HOOK_REALLOC)
		good = good && argument(strtok_r(NULL, ":", &rest), &hook->size);
	word = strtok_r(NULL, ":", &rest);
	if (word && (kind == HOOK_FREE || strcmp(word, "ret")))
		good = false;
	if (!good || strtok_r(NULL, ":", &rest))
		return bad(name, function, forms[kind]);
	args.n_hooks++;
	return set_place(name, at ? at + 1 : function, &hook->place);
}

/* Arguments that are stored as they are. */
static bool set_text(const char *name, const char *value)
{
	if (!strcmp(name, "out"))
		args.out = value;
	else if (!strcmp(name, "control"))
		args.control = value;
	else if (!strcmp(name, "parts"))
		args.parts = value;
	else if (!strcmp(name, "kernel"))
		args.kernel = value;
	else if (!strcmp(name, "elf") && args.n_elf < ARGS_LIST_MAX)
		args.elf[args.n_elf++] = value;
	else
		return false;
	return true;
}

/* Arguments with a fixed set of words. 1: set; 0: not such an argument; -1: not such a word. */
static int set_word(const char *name, const char *value)
{
	static const struct {
		const char *name, *words;
	} known[] = {
		{ "format", "kscope|maestro" },
		{ "mode", "sample|trace|pt" },
		{ "clock", "host|guest|instructions" }, /* enum wire_clock */
		{ "jitter", "off|on" },
		{ "level", "all|user|kernel" },
		{ "start", "on|off" },
		{ "compress", "none" },
		{ "state", "needed|all" },
	};
	int chosen = -1;
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known) && strcmp(name, known[i].name); i++)
		;
	if (i == sizeof(known) / sizeof(*known))
		return 0;
	chosen = choice(value, known[i].words);
	if (chosen < 0) {
		api_say("%s=%s: expected %s", name, value, known[i].words);
		return -1;
	}
	switch (i) {
	case 0: args.maestro = chosen; break;
	case 1:
		args.trace = chosen == 1;
		args.pt = chosen == 2;
		break;
	case 2: args.clock = (enum wire_clock)chosen; break;
	case 3: args.jitter = chosen; break;
	case 4:
		args.user = chosen != 2;
		args.kernel_level = chosen != 1;
		break;
	case 5: args.paused = chosen; break;
	case 7: args.all_states = chosen; break;
	}
	return 1;
}

static int set_number(const char *name, const char *value)
{
	bool stack = !strcmp(name, "stack"), delay = !strcmp(name, "delay");
	bool check = !strcmp(name, "check");
	uint64_t n;

	if (!stack && !delay && !check && strcmp(name, "period"))
		return 0;
	if (!number(value, &n))
		return bad(name, value, "expected a number");
	if (stack) {
		if (n > ARGS_STACK_MAX)
			return bad(name, value, "at most 65536 bytes");
		args.stack = n;
		return 1;
	}
	if (!n || n > UINT64_MAX / 4000)
		return bad(name, value, "out of range");
	if (check)
		args.check = n * 1000;
	else
		args.period = delay ? n * 1000 : n;
	return 1;
}

static int set(const char *name, char *value)
{
	int done = set_word(name, value);

	if (!done)
		done = set_number(name, value);
	if (done)
		return done < 0 ? -1 : 0;
	if (set_text(name, value))
		return 0;
	if (!strcmp(name, "vcpu"))
		return set_cpus(value);
	if (!strcmp(name, "from"))
		return set_places(name, value, args.from, &args.n_from);
	if (!strcmp(name, "to"))
		return set_places(name, value, args.to, &args.n_to);
	if (!strcmp(name, "alloc"))
		return set_hook(name, value, HOOK_ALLOC);
	if (!strcmp(name, "realloc"))
		return set_hook(name, value, HOOK_REALLOC);
	if (!strcmp(name, "free"))
		return set_hook(name, value, HOOK_FREE);
	return bad(name, value, "not an argument of this plugin");
}

static int finish(void)
{
	if (args.maestro && (args.trace || args.n_hooks)) {
		api_say("format=maestro supports only samples");
		return -1;
	}
	if (args.check && !args.trace) {
		api_say("check= takes samples inside a trace: it needs mode=trace");
		return -1;
	}
	if (!args.out)
		args.out = args.maestro ? "qemu-profile" : "kscope.out";
	if (!args.period)
		args.period = args.maestro ? 10000 : DEFAULT_PERIOD;
	if (args.clock != WIRE_CLOCK_INSTRUCTIONS && args.period < PERIOD_MIN) {
		api_say("period=%llu: expected at least 1000 ns", (unsigned long long)args.period);
		return -1;
	}
	return 0;
}

int args_parse(int argc, char **argv)
{
	args = (struct args){
		.jitter = true,
		.stack = DEFAULT_STACK,
		.user = true,
		.kernel_level = true,
		.all_cpus = true,
	};
	for (int i = 0; i < argc; i++) {
		char *name = strdup(argv[i]); /* never freed: args points into it */
		char *value = name ? strchr(name, '=') : NULL;

		if (!name)
			return -1;
		if (!value) {
			api_say("%s: expected NAME=VALUE", name);
			return -1;
		}
		*value++ = 0;
		if (set(name, value))
			return -1;
	}
	return finish();
}

bool args_wants_cpu(unsigned cpu)
{
	if (args.all_cpus)
		return true;
	return cpu < sizeof(args.cpus) * 8 && args.cpus[cpu / 8] & 1 << cpu % 8;
}

bool args_wants_level(unsigned level)
{
	return level == WIRE_LEVEL_USER ? args.user : args.kernel_level;
}
