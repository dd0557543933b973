// SPDX-License-Identifier: GPL-2.0-or-later
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "stage.h"

static const struct option_table input_table = {
	"Input",
	(const struct option_row[]){
		{ "from", 'f', "FORMAT", "read this format (default: detect it)",
		  OPTION_TEXT(struct args, reader), .completion = COMPLETE_INPUT_FORMAT },
		{ 0 },
	},
};

static const struct option_table message_table = {
	"Messages",
	(const struct option_row[]){
		{ "verbose", 'v', NULL, "print more messages", .set = NULL },
		{ "quiet", 'q', NULL, "print only errors", .set = NULL },
		{ "help", 'h', NULL, "print this help", .set = NULL },
		{ 0 },
	},
};

/* Options of the whole run, as opposed to those of one reader, stage or writer. */
static const struct option_use common[] = {
	{ &input_table, 0 },
	{ &build_dir_table, offsetof(struct args, options) },
	{ &names_table, offsetof(struct args, options) },
	{ &elf_table, offsetof(struct args, options) },
	{ &slide_table, offsetof(struct args, options) },
	{ &timeline_table, offsetof(struct args, options) },
	{ &inlines_table, offsetof(struct args, options) },
	{ &gate_table, offsetof(struct args, options) },
	{ &select_table, offsetof(struct args, selection) },
	{ &pick_table, offsetof(struct args, selection) },
	{ &verify_table, offsetof(struct args, options) },
	{ 0 },
};

/* ---- the options of a verb ---- */

struct offers {
	struct offer *all;
	size_t nr, cap;
};

static size_t find_offer(const struct offers *offers, const char *name)
{
	size_t i = 0;

	while (i < offers->nr && strcmp(offers->all[i].row->name, name) != 0)
		i++;
	return i;
}

/*
 * Options of the same name mean the same: only the first one is added. Only an old spelling may be an option elsewhere:
 * --from of `record qemu`.
 */
static void offer_table(struct offers *offers, const struct option_table *table)
{
	for (const struct option_row *row = table->rows; row->name; row++) {
		size_t found = find_offer(offers, row->name);

		if (found < offers->nr && offers->all[found].row->same_as && !row->same_as)
			offers->all[found] = (struct offer){ table->heading, row };
		if (found < offers->nr)
			continue;
		GROW(offers->all, offers->nr + 1, offers->cap);
		offers->all[offers->nr++] = (struct offer){ table->heading, row };
	}
}

static void offer_uses(struct offers *offers, const struct option_use *uses)
{
	for (; uses && uses->table; uses++)
		offer_table(offers, uses->table);
}

static void offer_input(struct offers *offers)
{
	offer_table(offers, &input_table);
	offer_table(offers, &build_dir_table);
	offer_table(offers, &names_table);
	for (size_t i = 0; readers[i]; i++)
		offer_uses(offers, readers[i]->options);
}

bool args_has_writer(const struct command *command, const struct writer_ops *ops)
{
	return !command->takes || !(ops->takes & ~command->takes);
}

static void offer_output(struct offers *offers, const struct command *command)
{
	const struct writer_ops *const *to = command->writers;
	bool useful[NR_STAGES] = { 0 };

	for (size_t i = 0; to[i]; i++) {
		if (args_has_writer(command, to[i]))
			stages_mark(to[i]->takes, useful);
	}
	for (size_t i = 0; i < NR_STAGES; i++) {
		if (useful[i])
			offer_uses(offers, stages[i]->options);
	}
	for (size_t i = 0; to[i]; i++) {
		if (args_has_writer(command, to[i]))
			offer_uses(offers, to[i]->options);
	}
}

static void offer_command(struct offers *offers, const struct command *command)
{
	for (size_t i = 0; command->subs && command->subs[i]; i++)
		offer_command(offers, command->subs[i]);
	offer_uses(offers, command->options);
	if (command->reads)
		offer_input(offers);
	if (command->writers)
		offer_output(offers, command);
	if (command->reads || command->writers)
		offer_table(offers, &verify_table);
}

size_t args_offers(const struct command *command, struct offer **all)
{
	struct offers offers = { 0 };

	offer_command(&offers, command);
	offer_table(&offers, &message_table);
	*all = offers.all;
	return offers.nr;
}

/* ---- help ---- */

static void help_row(const struct option_row *row)
{
	char text[64];

	snprintf(text, sizeof(text), "--%s%s%s", row->name,
		 row->arg && row->arg[0] != '[' ? " " : "", row->arg ? row->arg : "");
	if (row->letter)
		printf("  -%c, %-22s %s\n", row->letter, text, row->about);
	else
		printf("      %-22s %s\n", text, row->about);
}

/* Prints all options under the heading of the nth one, if no earlier option has that heading. */
static void help_group(const struct offers *offers, size_t nth)
{
	const char *heading = offers->all[nth].heading;

	for (size_t i = 0; i < nth; i++) {
		if (!strcmp(offers->all[i].heading, heading))
			return;
	}
	printf("\n%s:\n", heading);
	for (size_t i = nth; i < offers->nr; i++) {
		if (!offers->all[i].row->same_as && !strcmp(offers->all[i].heading, heading))
			help_row(offers->all[i].row);
	}
}

static void help_subs(const struct command *command)
{
	printf("\n%s:\n", command->heading);
	for (size_t i = 0; command->subs[i]; i++)
		printf("  %-10s %.*s\n", command->subs[i]->name,
		       (int)strcspn(command->subs[i]->about, ".\n"), command->subs[i]->about);
	printf("\nEach has its own options; see, for example, kscope %s %s --help\n", command->name,
	       command->subs[0]->name);
}

/* verb: the command that this one is a part of, or itself. */
static void help(const struct command *verb, const struct command *command,
		 const struct offers *offers)
{
	printf("Usage: kscope %s%s%s\n%s\n", verb == command ? "" : verb->name,
	       verb == command ? "" : " ", command->usage, command->about);
	if (command->subs)
		help_subs(command);
	for (size_t i = 0; i < offers->nr && !command->subs; i++)
		help_group(offers, i);
	printf("\nExamples:\n%s", command->examples);
}

/* ---- parsing ---- */

#define LONG 256 /* getopt's value of a long option: LONG + its index */

struct parser {
	const struct command *verb, *command;
	struct offers offers;
	struct option *longs;
	char *shorts;
};

static int wants(const char *arg)
{
	if (!arg)
		return no_argument;
	return arg[0] == '[' ? optional_argument : required_argument;
}

/* Builds getopt's tables of the options of one verb. */
static void parser_init(struct parser *p, const struct command *verb, const struct command *command)
{
	char *shorts;

	*p = (struct parser){ .verb = verb, .command = command };
	p->offers.nr = args_offers(command, &p->offers.all);
	p->longs = xcalloc(p->offers.nr + 1, sizeof(*p->longs));
	p->shorts = shorts = xcalloc(2 * p->offers.nr + 3, 1);
	if (command->runs || command->subs)
		*shorts++ = '+';
	*shorts++ = ':';
	for (size_t i = 0; i < p->offers.nr; i++) {
		const char *same_as = p->offers.all[i].row->same_as;
		size_t at = same_as ? find_offer(&p->offers, same_as) : i;
		const struct option_row *row = p->offers.all[at].row;

		p->longs[i] = (struct option){ p->offers.all[i].row->name, wants(row->arg), NULL,
					       LONG + (int)at };
		if (at == i && row->letter) {
			*shorts++ = row->letter;
			if (row->arg)
				*shorts++ = ':';
		}
	}
}

static void parser_release(struct parser *p)
{
	free(p->offers.all);
	free(p->longs);
	free(p->shorts);
}

static const struct option_row *row_of(const struct parser *p, int opt)
{
	if (opt >= LONG)
		return p->offers.all[opt - LONG].row;
	for (size_t i = 0; i < p->offers.nr; i++) {
		if (p->offers.all[i].row->letter == opt)
			return p->offers.all[i].row;
	}
	return NULL;
}

static int wrong(const struct parser *p, const char *message, int *code)
{
	bool is_sub = p->verb != p->command;

	log_error("%s", message);
	fprintf(stderr, "Try: kscope %s%s%s --help\n", p->verb->name, is_sub ? " " : "",
		is_sub ? p->command->name : "");
	*code = ERR_USAGE;
	return -1;
}

static bool is_option(const struct option_row *row, const char *word)
{
	size_t len = strlen(row->name);

	if (strncmp(word, "--", 2) != 0)
		return row->letter && row->letter == word[1];
	return !strncmp(word + 2, row->name, len) && (word[2 + len] == '=' || !word[2 + len]);
}

/* Says so if it is an option of another command of the verb, such as --freq of `record qemu`. */
static int unknown_option(const struct parser *p, const char *word, int *code)
{
	struct buf text = { 0 };
	struct offers offers = { 0 };
	int ret;

	offers.nr = args_offers(p->verb, &offers.all);
	for (size_t i = 0; i < offers.nr && !text.len; i++) {
		if (is_option(offers.all[i].row, word) && p->verb != p->command)
			buf_addf(&text, "--%s does not work with %s %s", offers.all[i].row->name,
				 p->verb->name, p->command->name);
	}
	if (!text.len)
		buf_addf(&text, "unknown option %s", word);
	ret = wrong(p, text.data, code);
	buf_release(&text);
	free(offers.all);
	return ret;
}

/* A short option may be one of several in a word; a long one is the previous word. */
static int wrong_option(const struct parser *p, int opt, char **argv, int *code)
{
	char letter[] = { '-', (char)optopt, '\0' }, message[300];
	const char *word = optopt && optopt < LONG ? letter : argv[optind - 1];

	if (opt != ':')
		return unknown_option(p, word, code);
	snprintf(message, sizeof(message), "missing value after %s", word);
	return wrong(p, message, code);
}

static int wrong_pair(const struct parser *p, const struct option_row *row, int *code)
{
	char message[100];

	snprintf(message, sizeof(message), "--%s expects two values", row->name);
	return wrong(p, message, code);
}

/* 1: *row is the next option, 0: there are no more, -1: the help or an error message was printed. */
static int next_option(const struct parser *p, int argc, char **argv, const struct option_row **row,
		       int *code)
{
	int opt;

	opterr = 0;
	opt = getopt_long(argc, argv, p->shorts, p->longs, NULL);
	if (opt == -1)
		return 0;
	*row = opt == ':' || opt == '?' ? NULL : row_of(p, opt);
	if (!*row)
		return wrong_option(p, opt, argv, code);
	if (strcmp((*row)->name, "help") != 0)
		return 1;
	help(p->verb, p->command, &p->offers);
	*code = ERR_NONE;
	return -1;
}

/* Collects the options and words in the order of the command line. */
static int collect(struct args *args, const struct parser *p, int argc, char **argv, int *code)
{
	const struct option_row *row;
	int ret;

	while ((ret = next_option(p, argc, argv, &row, code)) > 0) {
		if (!strcmp(row->name, "verbose"))
			log_level = log_level < 1 ? 2 : log_level + 1;
		else if (!strcmp(row->name, "quiet"))
			log_level = 0;
		else
			option_add(&args->given, row, optarg);
		if (option_is_pair(row) && optind < argc)
			option_add(&args->given, row, argv[optind++]);
		else if (option_is_pair(row))
			return wrong_pair(p, row, code);
	}
	if (ret < 0)
		return -1;
	for (; optind < argc; optind++) {
		GROW(args->inputs, args->nr_inputs + 1, args->cap_inputs);
		args->inputs[args->nr_inputs++] = argv[optind];
	}
	return 0;
}

/* -t belongs to the -o that follows it, or to the last one. */
static void settle_outputs(struct args *args)
{
	for (size_t i = 0; i < args->given.nr; i++) {
		const struct option_given *given = &args->given.all[i];

		if (!strcmp(given->row->name, "type"))
			args->writer = given->arg;
		if (strcmp(given->row->name, "output") != 0)
			continue;
		GROW(args->outputs, args->nr_outputs + 1, args->cap_outputs);
		args->outputs[args->nr_outputs++] =
			(struct output_option){ given->arg, args->writer };
		args->writer = NULL;
	}
	if (!args->nr_outputs && !args->writer && args->command->output) {
		GROW(args->outputs, 1, args->cap_outputs);
		args->outputs[args->nr_outputs++] =
			(struct output_option){ args->command->output, NULL };
	}
	if (!args->nr_outputs || !args->writer)
		return;
	args->outputs[args->nr_outputs - 1].writer = args->writer;
	args->writer = NULL;
}

/*
 * Sets the options of the verb and of the whole run. Readers, stages and writers take theirs when
 * they are opened, but wrong values are reported now, even if none is opened.
 */
static int settle_options(struct args *args, struct err *err)
{
	const struct command *command = args->command;

	for (size_t i = 0; i < args->given.nr; i++) {
		const struct option_given *given = &args->given.all[i];

		if (!option_stored(command->options, given->row->name) &&
		    !option_stored(common, given->row->name) &&
		    option_check(given->row, given->arg, err) < 0)
			return -1;
	}
	if (option_apply(command->options, args->state, &args->given, err) < 0 ||
	    option_apply(common, args, &args->given, err) < 0)
		return -1;
	option_mark(command->options, &args->given);
	option_mark_name("from", &args->given);
	option_mark_name("verify", &args->given);
	settle_outputs(args);
	return args_check(&args->options, err);
}

/* Without this check, a wrong folder would only cause warnings of many missing binaries. */
static int check_folder(const char *option, const char *path, struct err *err)
{
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st) < 0)
		return err_set(err, ERR_USAGE, "%s %s: %s", option, path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "%s %s: not a directory", option, path);
	if (access(path, R_OK | X_OK) < 0)
		return err_set(err, ERR_USAGE, "%s %s: %s", option, path, strerror(errno));
	return 0;
}

int args_check(const struct options *options, struct err *err)
{
	if (check_folder("--build-dir", options->build_dir, err) < 0 ||
	    check_folder("--symfs", options->symfs, err) < 0)
		return -1;
	if (options->kernel && access(options->kernel, R_OK) < 0)
		return err_set(err, ERR_USAGE, "--kernel %s: %s", options->kernel, strerror(errno));
	for (size_t i = 0; i < options->nr_elfs; i++) {
		/* A name without a slash is searched under --build-dir. */
		if (strchr(options->elfs[i].path, '/') && access(options->elfs[i].path, R_OK) < 0)
			return err_set(err, ERR_USAGE, "--elf %s: %s", options->elfs[i].path,
				       strerror(errno));
	}
	return 0;
}

static int check_words(const struct args *args, struct err *err)
{
	const struct command *command = args->command;

	if ((command->reads || command->missing) && !args->nr_inputs)
		return err_set(err, ERR_USAGE, "%s",
			       command->missing ? command->missing : "no input file (- is stdin)");
	return command->check ? command->check(args, err) : 0;
}

/* ---- a verb with several commands ---- */

static const struct command *find_sub(const struct command *verb, const char *name)
{
	for (size_t i = 0; verb->subs[i]; i++) {
		if (!strcmp(verb->subs[i]->name, name))
			return verb->subs[i];
	}
	return NULL;
}

static int wrong_sub(const struct parser *p, const char *name, int *code)
{
	const struct command *verb = p->verb;
	struct buf text = { 0 };
	int ret;

	if (name)
		buf_addf(&text, "unknown source '%s'; use one of:", name);
	else
		buf_addf(&text, "kscope %s needs a source; use one of:", verb->name);
	for (size_t i = 0; verb->subs[i]; i++)
		buf_addf(&text, " %s", verb->subs[i]->name);
	ret = wrong(p, text.data, code);
	buf_release(&text);
	return ret;
}

/* Takes the word that selects one of verb->subs out of argv. Options may precede it. */
static int choose_sub(struct args *args, int *argc, char **argv, int *code)
{
	const struct command *sub = NULL;
	const struct option_row *unused;
	struct parser parser;
	int at, ret;

	parser_init(&parser, args->verb, args->verb);
	while ((ret = next_option(&parser, *argc, argv, &unused, code)) > 0)
		;
	at = optind;
	if (ret == 0) {
		sub = at < *argc ? find_sub(args->verb, argv[at]) : NULL;
		if (!sub)
			wrong_sub(&parser, at < *argc ? argv[at] : NULL, code);
	}
	parser_release(&parser);
	if (!sub)
		return -1;
	args->command = sub;
	memmove(argv + at, argv + at + 1, (size_t)(*argc - at) * sizeof(*argv));
	(*argc)--;
	optind = 0; /* getopt() begins again */
	return 0;
}

int args_parse(struct args *args, const struct command *verb, int argc, char **argv, int *code)
{
	const struct command *command;
	struct parser parser;
	struct err err = { 0 };
	int ret;

	*args = (struct args){ .verb = verb, .command = verb, .options.given = &args->given };
	if (verb->subs && choose_sub(args, &argc, argv, code) < 0)
		return -1;
	command = args->command;
	args->state = xcalloc(1, command->state_size + 1);
	if (command->defaults)
		memcpy(args->state, command->defaults, command->state_size);
	parser_init(&parser, verb, command);
	ret = collect(args, &parser, argc, argv, code);
	if (ret == 0 && (settle_options(args, &err) < 0 || check_words(args, &err) < 0))
		ret = wrong(&parser, err.msg, code);
	parser_release(&parser);
	return ret;
}

void args_release(struct args *args)
{
	if (args->state)
		option_release(args->command->options, args->state);
	free(args->state);
	free(args->given.all);
	free(args->inputs);
	free(args->outputs);
	free(args->options.elfs);
	selection_release(&args->selection);
}

static const struct writer_ops *choose_writer(const struct command *command,
					      const struct output_option *option, struct err *err)
{
	const struct writer_ops *ops = writer_choose(option->writer, option->path, err);

	if (ops && !args_has_writer(command, ops)) {
		err_set(err, ERR_USAGE, "%s: %s does not write %s: use kscope convert",
			option->path, command->name, ops->name);
		return NULL;
	}
	return ops;
}

static struct output *choose_outputs(const struct args *args, struct err *err)
{
	struct output *outputs;

	if (!args->nr_outputs) {
		err_set(err, ERR_USAGE, "no output file: use -o FILE; - is stdout");
		return NULL;
	}
	outputs = xcalloc(args->nr_outputs, sizeof(*outputs));
	for (size_t i = 0; i < args->nr_outputs; i++) {
		const struct output_option *option = &args->outputs[i];

		outputs[i].path = option->path;
		outputs[i].ops = choose_writer(args->command, option, err);
		if (!outputs[i].ops) {
			free(outputs);
			return NULL;
		}
	}
	return outputs;
}

void args_job(const struct args *args, struct job *job)
{
	*job = (struct job){
		.inputs = args->inputs,
		.nr_inputs = args->nr_inputs,
		.reader = args->reader,
		.options = &args->options,
		.selection = args->selection,
	};
}

int args_convert(const struct args *args, struct job *job, void (*wrote)(const struct output *))
{
	struct err err = { 0 };
	struct output *outputs = choose_outputs(args, &err);
	int code;

	if (!outputs) {
		log_error("%s", err.msg);
		return err.code;
	}
	code = convert_files(job, outputs, args->nr_outputs);
	for (size_t i = 0; wrote && i < args->nr_outputs && code <= ERR_PARTIAL; i++) {
		if (strcmp(outputs[i].path, "-") != 0)
			wrote(&outputs[i]);
	}
	free(outputs);
	return code;
}
