// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * completion: prints the script that makes a shell complete kscope's command line. Verbs, options
 * and their words come from the tables that args.c parses with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* Calls each() for the options of a verb, without old spellings. */
static void each_option(const struct command *command,
			void (*each)(const struct command *command, const struct option_row *row))
{
	struct offer *offers;
	size_t nr = args_offers(command, &offers);

	for (size_t i = 0; i < nr; i++) {
		if (!offers[i].row->same_as)
			each(command, offers[i].row);
	}
	free(offers);
}

static void each_verb(void (*each)(const struct command *command))
{
	for (size_t i = 0; commands[i]; i++)
		each(commands[i]);
}

/* Prints the words that the argument may be, separated by spaces. */
static void print_words(const struct command *command, const struct option_row *row)
{
	const char *space = "";

	for (size_t i = 0; row->words && row->words[i]; i++, space = " ")
		printf("%s%s", space, row->words[i]);
	for (size_t i = 0; row->completion == COMPLETE_INPUT_FORMAT && readers[i]; i++, space = " ")
		printf("%s%s", space, readers[i]->name);
	for (size_t i = 0; row->completion == COMPLETE_OUTPUT_FORMAT && writers[i]; i++) {
		if (!args_has_writer(command, writers[i]))
			continue;
		printf("%s%s", space, writers[i]->name);
		space = " ";
	}
}

static bool has_words(const struct option_row *row)
{
	return row->words || row->completion == COMPLETE_INPUT_FORMAT ||
	       row->completion == COMPLETE_OUTPUT_FORMAT;
}

static bool is_optional(const struct option_row *row)
{
	return row->arg && row->arg[0] == '[';
}

/* Prints the first sentence, for single quotes; a character in `special` gets a backslash. */
static void print_about(const char *about, const char *special)
{
	for (size_t i = 0; about[i] && about[i] != '\n' && strncmp(about + i, ". ", 2) != 0; i++) {
		if (about[i] == '.' && !about[i + 1])
			break;
		if (strchr(special, about[i]))
			putchar('\\');
		fputs(about[i] == '\'' ? "'\\''" : (char[]){ about[i], '\0' }, stdout);
	}
}

static void print_subs(const struct command *command)
{
	for (size_t i = 0; command->subs[i]; i++)
		printf("%s%s", i ? " " : "", command->subs[i]->name);
}

/* ---- bash ---- */

static void bash_argument(const struct command *command, const struct option_row *row)
{
	(void)command;
	if (!row->arg)
		return;
	if (is_optional(row)) /* its argument is never a separate word */
		printf("\t\t--%s=)", row->name);
	else if (row->letter)
		printf("\t\t-%c | --%s | --%s=)", row->letter, row->name, row->name);
	else
		printf("\t\t--%s | --%s=)", row->name, row->name);
	if (has_words(row)) {
		printf(" words='");
		print_words(command, row);
		printf("' ;;\n");
	} else {
		printf(" %s ;;\n", row->completion == COMPLETE_FILE	? "kind=file"
				   : row->completion == COMPLETE_FOLDER ? "kind=folder"
									: ":");
	}
}

static void bash_option(const struct command *command, const struct option_row *row)
{
	(void)command;
	printf("--%s ", row->name);
}

static void bash_words(const struct command *command)
{
	printf("\t\t\twords='");
	for (size_t i = 0; command->words[i]; i++)
		printf("%s%s", i ? " " : "", command->words[i]);
	printf("'\n");
}

static void bash_verb(const struct command *command)
{
	printf("\t%s)\n\t\tcase $before in\n", command->name);
	each_option(command, bash_argument);
	printf("\t\t*)\n\t\t\toptions='");
	each_option(command, bash_option);
	printf("'\n");
	if (command->subs) {
		printf("\t\t\tif ((COMP_CWORD == 2)); then words='");
		print_subs(command);
		printf("'; else kind=file; fi\n");
	} else if (command->words) {
		bash_words(command);
	} else {
		printf("\t\t\tkind=file\n");
	}
	printf("\t\t\t;;\n\t\tesac\n\t\t;;\n");
}

static void bash_name(const struct command *command)
{
	printf("%s ", command->name);
}

static void print_bash(void)
{
	printf("# bash completion for kscope, as `kscope completion bash` prints it\n"
	       "_kscope()\n"
	       "{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
	       "\tlocal verb=${COMP_WORDS[1]} options= words= kind= word IFS=$' \\t\\n'\n"
	       "\n"
	       "\tCOMPREPLY=()\n"
	       "\t# bash splits --name=value into three words.\n"
	       "\tif [[ $cur == = ]]; then\n"
	       "\t\tbefore+== cur=\n"
	       "\telif [[ $before == = ]]; then\n"
	       "\t\tbefore=${COMP_WORDS[COMP_CWORD - 2]}=\n"
	       "\tfi\n"
	       "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do\n"
	       "\t\t[[ $word != -- ]] || verb=--\n"
	       "\tdone\n"
	       "\t((COMP_CWORD > 1)) || verb=\n"
	       "\tcase $verb in\n"
	       "\t'') words='");
	each_verb(bash_name);
	printf("' options='--help --version' ;;\n"
	       "\t--)\n"
	       "\t\tkind=file\n"
	       "\t\t[[ $before != -- ]] || words=$(compgen -c -- \"$cur\")\n"
	       "\t\t;;\n");
	each_verb(bash_verb);
	printf("\tesac\n"
	       "\t[[ $cur != -* ]] || words=$options kind=\n"
	       "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	       "\t[[ $kind != file ]] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY \\\n"
	       "\t\t< <(compgen -f -- \"$cur\")\n"
	       "\t[[ $kind != folder ]] || mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
	       "\t[[ ! $kind ]] || compopt -o filenames 2>/dev/null\n"
	       "}\n"
	       "complete -F _kscope kscope\n");
}

/* ---- zsh ---- */

static void zsh_option(const struct command *command, const struct option_row *row)
{
	(void)command;
	printf(" \\\n\t\t\t'*'");
	if (row->letter)
		printf("{-%c%s,--%s%s}", row->letter, row->arg ? "+" : "", row->name,
		       row->arg ? "=" : "");
	else
		printf("--%s%s", row->name, is_optional(row) ? "=-" : row->arg ? "=" : "");
	printf("'[");
	print_about(row->about, "[]\\");
	printf("]");
	if (option_is_pair(row)) {
		printf(":%.*s::%s:", (int)strcspn(row->arg, " "), row->arg,
		       strchr(row->arg, ' ') + 1);
	} else if (row->arg) {
		printf("%s:%s:", is_optional(row) ? ":" : "", is_optional(row) ? "DIR" : row->arg);
		if (has_words(row)) {
			putchar('(');
			print_words(command, row);
			putchar(')');
		} else if (row->completion == COMPLETE_FILE) {
			printf("_files");
		} else if (row->completion == COMPLETE_FOLDER) {
			printf("_files -/");
		}
	}
	putchar('\'');
}

static void zsh_verb(const struct command *command)
{
	printf("\t%s)\n\t\t_arguments -s -S", command->name);
	each_option(command, zsh_option);
	for (size_t i = 0; command->words && command->words[i]; i++)
		printf("%s%s", i ? " " : " \\\n\t\t\t'1:word:(", command->words[i]);
	if (command->words && command->words[0])
		printf(")'");
	if (command->subs) {
		printf(" \\\n\t\t\t'1:word:(");
		print_subs(command);
		printf(")' '*:::command:_normal'");
	} else if (!command->words) {
		printf(" \\\n\t\t\t'*:input:_files'");
	}
	printf("\n\t\t;;\n");
}

static void zsh_name(const struct command *command)
{
	printf("\t\t\t'%s:", command->name);
	print_about(command->about, ":\\");
	printf("'\n");
}

static void print_zsh(void)
{
	printf("#compdef kscope\n"
	       "# zsh completion for kscope, as `kscope completion zsh` prints it\n"
	       "_kscope()\n"
	       "{\n"
	       "\tlocal -a verbs\n"
	       "\n"
	       "\tif ((CURRENT == 2)); then\n"
	       "\t\tverbs=(\n");
	each_verb(zsh_name);
	printf("\t\t)\n"
	       "\t\t_describe -t commands command verbs\n"
	       "\t\t[[ $PREFIX != -* ]] || compadd -- --help --version\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tshift words\n"
	       "\t((CURRENT--))\n"
	       "\tcase $words[1] in\n");
	each_verb(zsh_verb);
	printf("\tesac\n"
	       "}\n"
	       "if [[ $funcstack[1] == _kscope ]]; then\n"
	       "\t_kscope \"$@\"\n"
	       "else\n"
	       "\tcompdef _kscope kscope\n"
	       "fi\n");
}

/* ---- fish ---- */

static void fish_option(const struct command *command, const struct option_row *row)
{
	printf("complete -c kscope -n '__kscope_verb %s' -l %s", command->name, row->name);
	if (row->letter)
		printf(" -s %c", row->letter);
	if (has_words(row)) {
		printf(" -x -a '");
		print_words(command, row);
		putchar('\'');
	} else if (row->completion == COMPLETE_FILE) {
		printf(" -r -F");
	} else if (row->completion == COMPLETE_FOLDER && !is_optional(row)) {
		printf(" -x -a '(__fish_complete_directories)'");
	} else if (row->arg && !is_optional(row)) {
		printf(" -x");
	}
	printf(" -d '");
	print_about(row->about, "");
	printf("'\n");
}

static void fish_verb(const struct command *command)
{
	printf("\ncomplete -c kscope -n __kscope_no_verb -a %s -d '", command->name);
	print_about(command->about, "");
	printf("'\n");
	if (command->subs) {
		printf("complete -c kscope -n '__kscope_verb %s first' -f -a '", command->name);
		print_subs(command);
		printf("'\n");
	}
	if (command->words)
		printf("complete -c kscope -n '__kscope_verb %s' -f\n", command->name);
	for (size_t i = 0; command->words && command->words[i]; i++)
		printf("complete -c kscope -n '__kscope_verb %s first' -a %s\n", command->name,
		       command->words[i]);
	each_option(command, fish_option);
}

static void print_fish(void)
{
	printf("# fish completion for kscope, as `kscope completion fish` prints it\n"
	       "function __kscope_no_verb\n"
	       "\ttest (count (commandline -opc)) -eq 1\n"
	       "end\n"
	       "\n"
	       "# __kscope_verb NAME [first]: NAME is the verb; first: its first word comes next\n"
	       "function __kscope_verb\n"
	       "\tset -l words (commandline -opc)\n"
	       "\ttest (count $words) -gt 1; or return 1\n"
	       "\ttest $words[2] = $argv[1]; or return 1\n"
	       "\ttest (count $argv) -eq 1; or test (count $words) -eq 2\n"
	       "end\n"
	       "\n"
	       "complete -c kscope -n __kscope_no_verb -f\n"
	       "complete -c kscope -n __kscope_no_verb -l help -d 'print the commands'\n"
	       "complete -c kscope -n __kscope_no_verb -l version -d 'print the version'\n");
	each_verb(fish_verb);
}

/* ---- the verb ---- */

static const char *const shells[] = { "bash", "zsh", "fish", NULL };
static void (*const printers[])(void) = { print_bash, print_zsh, print_fish };

static size_t find_shell(const struct args *args)
{
	size_t i = 0;

	while (shells[i] && (args->nr_inputs != 1 || strcmp(shells[i], args->inputs[0]) != 0))
		i++;
	return i;
}

static int check(const struct args *args, struct err *err)
{
	return shells[find_shell(args)]
		       ? 0
		       : err_set(err, ERR_USAGE, "completion expects bash, zsh or fish");
}

static int run(struct args *args)
{
	printers[find_shell(args)]();
	return 0;
}

const struct command cmd_completion = {
	.name = "completion",
	.usage = "completion bash|zsh|fish",
	.about = "Print a completion script for bash, zsh or fish.",
	.examples = "  kscope completion bash >~/.local/share/bash-completion/completions/kscope\n"
		    "  kscope completion zsh >~/.zfunc/_kscope # ~/.zfunc is in $fpath\n"
		    "  kscope completion fish >~/.config/fish/completions/kscope.fish\n",
	.words = shells,
	.check = check,
	.run = run,
};
