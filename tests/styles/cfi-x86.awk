# SPDX-License-Identifier: GPL-2.0-or-later
# Completes the unwind rules in clang's assembly for x86-64: after a pop, the value is in the register
# again, and no longer in the part of the stack that is in use, which is all that samples have.

/\.cfi_startproc/ { split("", rule); split("", popped) }
/\.cfi_offset/ { rule[$2] = $3 }
{ print }
$1 == "popq" && ($2 "," in rule) {
	print "\t.cfi_restore " $2
	popped[$2 ","] = 1
}
$1 ~ /^(retq|jmp|jmpq)$/ {
	for (name in popped)
		print "\t.cfi_offset " name " " rule[name]
	split("", popped)
}
