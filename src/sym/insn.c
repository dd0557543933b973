// SPDX-License-Identifier: GPL-2.0-or-later
/* x86 by Zydis; the sizes of other machines' instructions are simple, their text is in insn_other.c. */
#include "sym/insn.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sym/insn_other.h"

static bool is_x86(uint16_t machine)
{
	return machine == EM_X86_64 || machine == EM_386;
}

#ifdef HAVE_ZYDIS
#include <Zydis/Zydis.h>

#define HAS_X86 true
#define NAME_MAX_LEN 24

static ZyanStatus start(ZydisDecoder *decoder, const struct insn_code *code)
{
	bool wide = code->machine == EM_X86_64;

	return ZydisDecoderInit(decoder,
				wide ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
				wide ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
}

static size_t x86_size(const struct insn_code *code)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	ZyanStatus status;

	start(&decoder, code);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, code->bytes, code->len, &insn);
	if (status == ZYDIS_STATUS_NO_MORE_DATA)
		return code->len;
	return ZYAN_SUCCESS(status) ? insn.length : 0;
}

static uint64_t target_of(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
			  uint64_t address)
{
	ZyanU64 target;

	for (int i = 0; i < insn->operand_count_visible; i++) {
		if (operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    operands[i].imm.is_relative &&
		    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, &operands[i], address, &target)))
			return target;
	}
	return 0;
}

static enum insn_flow_kind flow_of(const ZydisDecodedInstruction *insn, uint64_t target)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_CALL: return INSN_CALLS;
	case ZYDIS_CATEGORY_RET:
		return insn->mnemonic == ZYDIS_MNEMONIC_RET ? INSN_RETURNS : INSN_LEAVES;
	case ZYDIS_CATEGORY_UNCOND_BR: return target ? INSN_JUMPS : INSN_LEAVES;
	case ZYDIS_CATEGORY_COND_BR: return INSN_BRANCHES;
	case ZYDIS_CATEGORY_INTERRUPT: return INSN_LEAVES;
	case ZYDIS_CATEGORY_SYSRET: return INSN_LEAVES;
	default: break;
	}
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2: return INSN_LEAVES;
	default: return INSN_GOES_ON;
	}
}

static bool moves_stack(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
	ZydisRegister sp = insn->machine_mode == ZYDIS_MACHINE_MODE_LONG_64 ? ZYDIS_REGISTER_RSP
									    : ZYDIS_REGISTER_ESP;

	for (int i = 0; i < insn->operand_count; i++) {
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(insn->machine_mode, operands[i].reg.value) ==
			    sp)
			return true;
	}
	return false;
}

static bool moves_down(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_PUSH || insn->mnemonic == ZYDIS_MNEMONIC_SUB ||
	       insn->mnemonic == ZYDIS_MNEMONIC_ENTER;
}

static bool x86_flow(const struct insn_code *code, uint64_t address, struct insn_flow *flow)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	start(&decoder, code);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code->bytes, code->len, &insn, operands)))
		return false;
	flow->size = insn.length;
	flow->target = target_of(&insn, operands, address);
	flow->kind = flow_of(&insn, flow->target);
	flow->moves = flow->kind != INSN_CALLS && flow->kind != INSN_RETURNS &&
		      moves_stack(&insn, operands);
	flow->down = flow->moves && moves_down(&insn);
	return true;
}

struct other_name {
	const char *zydis, *gnu;
};

static const struct other_name conditions[] = {
	{ "z", "e" },	{ "nz", "ne" }, { "nb", "ae" }, { "nbe", "a" },
	{ "nl", "ge" }, { "nle", "g" }, { NULL, NULL },
};
static const struct other_name att_names[] = {
	{ "cbw", "cbtw" }, { "cwde", "cwtl" }, { "cdqe", "cltq" }, { "cwd", "cwtd" },
	{ "cdq", "cltd" }, { "cqo", "cqto" },  { NULL, NULL },
};

static const char *find_name(const struct other_name *names, const char *zydis)
{
	while (names->zydis && strcmp(names->zydis, zydis) != 0)
		names++;
	return names->gnu;
}

static char size_letter(const ZydisDecodedOperand *operand)
{
	switch (operand->size) {
	case 8: return 'b';
	case 16: return 'w';
	case 32: return 'l';
	default: return 'q';
	}
}

/* GNU's name of an instruction, which readers know from objdump, if Zydis has another one; else "". */
static void gnu_name(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
		     enum insn_syntax syntax, const char *zydis, char name[NAME_MAX_LEN])
{
	static const char *const conditional[] = { "j", "set", "cmov" };
	const char *gnu = NULL;

	name[0] = '\0';
	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(conditional[i]);

		if (strncmp(zydis, conditional[i], len) != 0)
			continue;
		gnu = find_name(conditions, zydis + len);
		if (gnu)
			snprintf(name, NAME_MAX_LEN, "%s%s", conditional[i], gnu);
	}
	if (insn->mnemonic == ZYDIS_MNEMONIC_MOV && insn->raw.imm[0].size == 64)
		snprintf(name, NAME_MAX_LEN, "movabs");
	if (syntax == INSN_INTEL)
		return;
	if (insn->mnemonic == ZYDIS_MNEMONIC_MOVZX || insn->mnemonic == ZYDIS_MNEMONIC_MOVSX ||
	    insn->mnemonic == ZYDIS_MNEMONIC_MOVSXD)
		snprintf(name, NAME_MAX_LEN, "mov%c%c%c", zydis[3], size_letter(&operands[1]),
			 size_letter(&operands[0]));
	gnu = find_name(att_names, zydis);
	if (insn->mnemonic == ZYDIS_MNEMONIC_MOVD || insn->mnemonic == ZYDIS_MNEMONIC_MOVQ)
		gnu = zydis; /* without a suffix */
	if (gnu)
		snprintf(name, NAME_MAX_LEN, "%s", gnu);
}

static void use_gnu_name(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
			 enum insn_syntax syntax, char text[INSN_TEXT])
{
	const char *zydis = ZydisMnemonicGetString(insn->mnemonic);
	char *at = zydis ? strstr(text, zydis) : NULL;
	char name[NAME_MAX_LEN], rest[INSN_TEXT];

	if (!at)
		return;
	gnu_name(insn, operands, syntax, zydis, name);
	if (!name[0])
		return;
	snprintf(rest, sizeof(rest), "%s", at + strcspn(at, " "));
	snprintf(at, INSN_TEXT - (size_t)(at - text), "%s%s", name, rest);
}

/* False: it is not an instruction. */
static bool x86_text(const struct insn_code *code, uint64_t address, enum insn_syntax syntax,
		     char text[INSN_TEXT], uint64_t *target)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisFormatter formatter;
	ZydisDecoder decoder;

	start(&decoder, code);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code->bytes, code->len, &insn, operands)))
		return false;
	ZydisFormatterInit(&formatter, syntax == INSN_INTEL ? ZYDIS_FORMATTER_STYLE_INTEL
							    : ZYDIS_FORMATTER_STYLE_ATT);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL,
				  ZYAN_TRUE);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING,
				  ZYDIS_PADDING_DISABLED);
	if (ZYAN_FAILED(ZydisFormatterFormatInstruction(&formatter, &insn, operands,
							insn.operand_count_visible, text, INSN_TEXT,
							address, ZYAN_NULL)))
		return false;
	use_gnu_name(&insn, operands, syntax, text);
	*target = target_of(&insn, operands, address);
	return true;
}
#else
#define HAS_X86 false

static size_t x86_size(const struct insn_code *code)
{
	(void)code;
	return 0;
}

static bool x86_flow(const struct insn_code *code, uint64_t address, struct insn_flow *flow)
{
	(void)code, (void)address, (void)flow;
	return false;
}

static bool x86_text(const struct insn_code *code, uint64_t address, enum insn_syntax syntax,
		     char text[INSN_TEXT], uint64_t *target)
{
	(void)code, (void)address, (void)syntax, (void)text, (void)target;
	return false;
}
#endif

bool insn_supports(uint16_t machine)
{
	return machine == EM_RISCV || machine == EM_ARM || machine == EM_AARCH64 ||
	       (HAS_X86 && is_x86(machine));
}

bool insn_flow(const struct insn_code *code, uint64_t address, struct insn_flow *flow)
{
	*flow = (struct insn_flow){ .kind = INSN_GOES_ON };
	return code->len && is_x86(code->machine) && x86_flow(code, address, flow);
}

size_t insn_size(const struct insn_code *code)
{
	size_t size = 4;

	if (!code->len)
		return 0;
	switch (code->machine) {
	case EM_X86_64:
	case EM_386: return x86_size(code);
	case EM_RISCV: size = (code->bytes[0] & 3) == 3 ? 4 : 2; break;
	case EM_ARM:
		size = code->len > 1 && code->thumb && code->bytes[1] >> 3 < 0x1d ? 2 : 4;
		break;
	case EM_AARCH64: break;
	default: return 0;
	}
	return size < code->len ? size : code->len;
}

/* The position after the prefixes, which have one byte each here; `len` if nothing follows. */
static size_t x86_opcode(const struct insn_code *code)
{
	size_t at = 0;

	while (at < code->len && at < INSN_MAX &&
	       (code->bytes[at] == 0x66 || code->bytes[at] == 0x67 || code->bytes[at] == 0x2e ||
		code->bytes[at] == 0x3e || code->bytes[at] == 0xf2 || code->bytes[at] == 0xf3 ||
		(code->machine == EM_X86_64 && code->bytes[at] >> 4 == 4)))
		at++;
	return at;
}

bool insn_is_string(const struct insn_code *code)
{
	size_t at = x86_opcode(code);
	uint8_t opcode = at < code->len ? code->bytes[at] : 0;

	/* ins, outs; movs, cmps; stos, lods, scas */
	return is_x86(code->machine) && (opcode >> 2 == 0x6c >> 2 || opcode >> 2 == 0xa4 >> 2 ||
					 (opcode >= 0xaa && opcode <= 0xaf));
}

/* ---- direct jumps ---- */

struct jump {
	enum insn_jump kind;
	int64_t distance;
};

/* The bits of a number, of which `sign` is the highest, with its sign. */
static int64_t signed_of(uint32_t value, unsigned sign)
{
	return (int64_t)((uint64_t)value << (63 - sign)) >> (63 - sign);
}

static uint32_t bits(uint32_t word, unsigned from, unsigned nr, unsigned to)
{
	return (word >> from & ((1u << nr) - 1)) << to;
}

static struct jump x86_jump(const struct insn_code *code, size_t size)
{
	size_t at = x86_opcode(code), len = 1;
	uint8_t opcode = at < size ? code->bytes[at] : 0;
	struct jump jump = { INSN_JUMP_IF, 0 };
	uint32_t distance = 0;

	if (opcode == 0xeb || opcode == 0xe9)
		jump.kind = INSN_JUMP_ALWAYS;
	else if (opcode >> 4 != 7 && (opcode < 0xe0 || opcode > 0xe3) &&
		 (opcode != 0x0f || at + 1 >= size || code->bytes[at + 1] >> 4 != 8))
		return (struct jump){ INSN_JUMP_NONE, 0 };
	if (opcode == 0x0f || opcode == 0xe9)
		len = 4;
	if (size < len || size > code->len)
		return (struct jump){ INSN_JUMP_NONE, 0 };
	for (size_t i = 0; i < len; i++)
		distance |= (uint32_t)code->bytes[size - len + i] << 8 * i;
	jump.distance = signed_of(distance, (unsigned)len * 8 - 1) + (int64_t)size;
	return jump;
}

static struct jump arm_jump(uint32_t word)
{
	if ((word & 0x0f000000) != 0x0a000000 || word >> 28 == 15)
		return (struct jump){ INSN_JUMP_NONE, 0 };
	return (struct jump){ word >> 28 == 14 ? INSN_JUMP_ALWAYS : INSN_JUMP_IF,
			      signed_of(bits(word, 0, 24, 2), 25) + 8 };
}

static struct jump thumb_jump(uint32_t word, size_t size)
{
	uint32_t first = word & 0xffff, second = word >> 16, sign = first >> 10 & 1;

	if (size == 2 && first >> 12 == 0xd && (first >> 8 & 15) < 0xe)
		return (struct jump){ INSN_JUMP_IF, signed_of(bits(first, 0, 8, 1), 8) + 4 };
	if (size == 2 && first >> 11 == 0x1c)
		return (struct jump){ INSN_JUMP_ALWAYS, signed_of(bits(first, 0, 11, 1), 11) + 4 };
	if (size == 2 && (first & 0xf500) == 0xb100) /* cbz, cbnz */
		return (struct jump){ INSN_JUMP_IF,
				      bits(first, 3, 5, 1) + bits(first, 9, 1, 6) + 4 };
	if (size == 2 || first >> 11 != 0x1e)
		return (struct jump){ INSN_JUMP_NONE, 0 };
	if ((second & 0xd000) == 0x8000 && (first >> 6 & 15) < 0xe)
		return (struct jump){ INSN_JUMP_IF,
				      signed_of(bits(second, 0, 11, 1) | bits(first, 0, 6, 12) |
							bits(second, 13, 1, 18) |
							bits(second, 11, 1, 19) | sign << 20,
						20) +
					      4 };
	if ((second & 0xd000) == 0x9000)
		return (struct jump){ INSN_JUMP_ALWAYS,
				      signed_of(bits(second, 0, 11, 1) | bits(first, 0, 10, 12) |
							((second >> 11 ^ sign ^ 1) & 1) << 22 |
							((second >> 13 ^ sign ^ 1) & 1) << 23 |
							sign << 24,
						24) +
					      4 };
	return (struct jump){ INSN_JUMP_NONE, 0 };
}

static struct jump aarch64_jump(uint32_t word)
{
	if (word >> 26 == 5)
		return (struct jump){ INSN_JUMP_ALWAYS, signed_of(bits(word, 0, 26, 2), 27) };
	if (word >> 24 == 0x54 || (word & 0x7e000000) == 0x34000000) /* b.cond; cbz, cbnz */
		return (struct jump){ INSN_JUMP_IF, signed_of(bits(word, 5, 19, 2), 20) };
	if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		return (struct jump){ INSN_JUMP_IF, signed_of(bits(word, 5, 14, 2), 15) };
	return (struct jump){ INSN_JUMP_NONE, 0 };
}

static struct jump riscv_short_jump(uint32_t word)
{
	if ((word & 0xe003) == 0xa001) /* c.j */
		return (struct jump){ INSN_JUMP_ALWAYS,
				      signed_of(bits(word, 3, 3, 1) | bits(word, 11, 1, 4) |
							bits(word, 2, 1, 5) | bits(word, 7, 1, 6) |
							bits(word, 6, 1, 7) | bits(word, 9, 2, 8) |
							bits(word, 8, 1, 10) |
							bits(word, 12, 1, 11),
						11) };
	if ((word & 0xc003) == 0xc001) /* c.beqz, c.bnez */
		return (struct jump){ INSN_JUMP_IF,
				      signed_of(bits(word, 3, 2, 1) | bits(word, 10, 2, 3) |
							bits(word, 2, 1, 5) | bits(word, 5, 2, 6) |
							bits(word, 12, 1, 8),
						8) };
	return (struct jump){ INSN_JUMP_NONE, 0 };
}

static struct jump riscv_jump(uint32_t word)
{
	if ((word & 0x7f) == 0x63) /* beq and the like */
		return (struct jump){ INSN_JUMP_IF,
				      signed_of(bits(word, 8, 4, 1) | bits(word, 25, 6, 5) |
							bits(word, 7, 1, 11) |
							bits(word, 31, 1, 12),
						12) };
	if ((word & 0xfff) == 0x6f) /* jal without a return address */
		return (struct jump){ INSN_JUMP_ALWAYS,
				      signed_of(bits(word, 21, 10, 1) | bits(word, 20, 1, 11) |
							bits(word, 12, 8, 12) |
							bits(word, 31, 1, 20),
						20) };
	return (struct jump){ INSN_JUMP_NONE, 0 };
}

enum insn_jump insn_jump(const struct insn_code *code, uint64_t address, uint64_t *target)
{
	struct jump jump = { INSN_JUMP_NONE, 0 };
	size_t size = insn_size(code);
	uint32_t word = 0;

	for (size_t i = 0; i < size && i < 4; i++)
		word |= (uint32_t)code->bytes[i] << 8 * i;
	if (is_x86(code->machine))
		jump = x86_jump(code, size);
	else if (code->machine == EM_ARM && code->thumb)
		jump = thumb_jump(word, size);
	else if (code->machine == EM_ARM)
		jump = arm_jump(word);
	else if (code->machine == EM_AARCH64)
		jump = aarch64_jump(word);
	else if (code->machine == EM_RISCV)
		jump = size == 2 ? riscv_short_jump(word) : riscv_jump(word);
	*target = address + (uint64_t)jump.distance;
	return jump.kind;
}

/* As an assembler would take it. */
static void put_bytes(const struct insn_code *code, char text[INSN_TEXT])
{
	size_t size = insn_size(code);
	uint32_t word = 0;
	int len;

	for (size_t i = 0; i < size && i < 4; i++)
		word |= (uint32_t)code->bytes[i] << 8 * i;
	if (!is_x86(code->machine) && (size == 2 || size == 4)) {
		snprintf(text, INSN_TEXT, "%s 0x%0*" PRIx32, size == 2 ? ".short" : ".word",
			 (int)size * 2, word);
		return;
	}
	len = snprintf(text, INSN_TEXT, ".byte ");
	for (size_t i = 0; i < size && i < INSN_MAX; i++)
		len += snprintf(text + len, INSN_TEXT - (size_t)len, "%s0x%02x", i ? "," : "",
				code->bytes[i]);
}

uint64_t insn_text(const struct insn_code *code, uint64_t address, enum insn_syntax syntax,
		   char text[INSN_TEXT])
{
	uint64_t target = 0;

	if (is_x86(code->machine) ? x86_text(code, address, syntax, text, &target)
				  : insn_other_text(code, address, text, &target))
		return target;
	put_bytes(code, text);
	return 0;
}
