# SPDX-License-Identifier: GPL-2.0-or-later
# Completes the unwind rules in clang's assembly for Arm and RISC-V, so that they are right at every
# instruction. Older versions of clang describe a prologue only after its end, and epilogues not at
# all. Needs code without shrink-wrapping and alloca: the CFA is always at a distance of sp, also in
# functions with a frame pointer.

function moves(line,    part, number)
{
	# AArch64: stp x30, x19, [sp, #-32]! and ldp x30, x19, [sp], #32
	if (match(line, /\[sp, #-?[0-9]+\]!/))
		return substr(line, RSTART + 6) + 0
	if (match(line, /\[sp\], #-?[0-9]+/))
		return substr(line, RSTART + 7) + 0
	# sub sp, sp, #32; sub sp, #32; add; addi sp, sp, -32
	if ($1 ~ /^(sub|add|sub\.w|add\.w|addi)$/ && $2 == "sp,") {
		number = $NF
		sub(/#/, "", number)
		return $1 ~ /^sub/ ? -number : number + 0
	}
	# Thumb: push {r4, r5, lr}; vpush {d8, d9}
	if ($1 ~ /^v?(push|pop)(\.w)?$/)
		return split(line, part, ",") * ($1 ~ /^v/ ? 8 : 4) * ($1 ~ /push/ ? -1 : 1)
	return 0
}

function ends()
{
	return $1 ~ /^(ret|b|br|j|jr|tail|bx|b\.w)$/ || ($1 ~ /^pop/ && / pc}/) || \
		/^\tldr[\t ]*pc, \[sp\]/
}

/\.cfi_startproc/ { depth = 0; saved = ""; leaving = 0 }
/\.cfi_def_cfa/ { next }
/\.cfi_offset/ { saved = saved " " $2 }
{
	by = /^\t[a-z]/ && !/^\t\./ ? moves($0) : 0
	if (by > 0 && !leaving) {
		print "\t.cfi_remember_state"
		leaving = depth
	}
	print
	if (by && !($1 ~ /^pop/ && / pc}/)) {
		depth -= by
		print "\t.cfi_def_cfa sp, " depth
		count = depth ? 0 : split(saved, names)
		for (i = 1; i <= count; i++) {
			sub(/,$/, "", names[i])
			print "\t.cfi_restore " names[i]
		}
	}
	if (leaving && ends()) {
		print "\t.cfi_restore_state"
		print "\t.cfi_def_cfa sp, " leaving
		depth = leaving
		leaving = 0
	}
}
