/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules of thumb of track, each with the code that needs it. All but RULE_SERIALIZE and
 * RULE_ENTRY apply only where the stack pointer does not help: the trace has none, or code computed
 * it and the plugin has not read it since.
 */
#ifndef KSCOPE_PASS_TRACK_RULES_H
#define KSCOPE_PASS_TRACK_RULES_H

/*
 *	rule		needed by			what it looks like
 *
 *	RULE_NEAR	Linux x86 (RSB stuffing),	a call over this distance, in bytes, may not be a
 *			i386 code that reads its	real call
 *			own address
 *	RULE_RETPOLINE	Linux x86			a return at most this many instructions after such
 *							a call is a jump
 *	RULE_ONWARD	Linux x86 (untrained returns)	a return this far ahead, in bytes, goes to the next
 *							instruction: a jump
 *	RULE_SERIALIZE	Linux x86 (sync_core)		a return from an exception this far ahead, in bytes,
 *							that ends no exception: a jump, also with a known sp
 *	RULE_ENTRY	x86 (nested exceptions)		a return from an exception of a program to the kernel,
 *							at most this many words above where it entered the
 *							kernel, is to the entry of another exception, also
 *							with a known sp
 *	RULE_LOST	kernels that switch tasks, in	if more than one return in this many has no call,
 *			a trace without sp		callers are left out until the trace has an sp
 *	RULE_FIXUP	Linux (exception tables)	a trap in the kernel that returns less than this far
 *							from where it came returns to the same function
 *	RULE_CALL	traces as text			a call instruction has at most this many bytes
 *	RULE_RESTART	programs under Linux		a return from an exception at most this far before
 *							where it came, in bytes, makes a system call again
 */
enum track_rule {
	RULE_NEAR = 16,
	RULE_RETPOLINE = 8,
	RULE_ONWARD = 3,
	RULE_SERIALIZE = 16,
	RULE_ENTRY = 8,
	RULE_LOST = 1000,
	RULE_FIXUP = 65536,
	RULE_CALL = 8,
	RULE_RESTART = 4,
};

#endif
