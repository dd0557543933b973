// SPDX-License-Identifier: GPL-2.0-or-later
/* Lengths of instructions, to find where the next one begins. */
#include <elf.h>

#include "sym/internal.h"

#ifdef HAVE_ZYDIS
#include <Zydis/Zydis.h>

static size_t x86_length(const uint8_t *code, size_t len, bool wide)
{
	ZydisMachineMode mode = wide ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32;
	ZydisStackWidth stack = wide ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32;
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	ZyanStatus status;

	ZydisDecoderInit(&decoder, mode, stack);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, code, len, &insn);
	if (status == ZYDIS_STATUS_NO_MORE_DATA)
		return len;
	return ZYAN_SUCCESS(status) ? insn.length : 0;
}
#else
static size_t x86_length(const uint8_t *code, size_t len, bool wide)
{
	(void)code, (void)len, (void)wide;
	return 0;
}
#endif

size_t code_length(uint16_t machine, bool thumb, const uint8_t *code, size_t len)
{
	size_t length = 4;

	switch (machine) {
	case EM_X86_64:
	case EM_386: return x86_length(code, len, machine == EM_X86_64);
	case EM_RISCV: length = (code[0] & 3) == 3 ? 4 : 2; break;
	case EM_ARM: length = len > 1 && thumb && code[1] >> 3 < 0x1d ? 2 : 4; break;
	case EM_AARCH64: break;
	default: return 0;
	}
	return length < len ? length : len;
}
