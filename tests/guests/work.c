// SPDX-License-Identifier: GPL-2.0-or-later
/* work N: a Linux program with names: N rounds of user_mix (three quarters) and user_sum (one). */

#define ROUND 4000000
#define USED __attribute__((noinline, used))

static volatile unsigned long sink;

static void end(int code)
{
#if defined(__x86_64__)
	__asm__ volatile("syscall" : : "a"(231L), "D"((long)code) : "memory");
#elif defined(__riscv)
	register long a7 __asm__("a7") = 94;
	register long a0 __asm__("a0") = code;
	__asm__ volatile("ecall" : : "r"(a7), "r"(a0) : "memory");
#else
	register long x8 __asm__("x8") = 94;
	register long x0 __asm__("x0") = code;
	__asm__ volatile("svc #0" : : "r"(x8), "r"(x0) : "memory");
#endif
	__builtin_unreachable();
}

USED static unsigned long user_mix(unsigned long seed, unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
	}
	return seed;
}

USED static unsigned long user_sum(unsigned long seed, unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
	}
	return seed + 1;
}

USED static void user_round(unsigned long round)
{
	sink = user_mix(round + 1, 3 * ROUND);
	sink = user_sum(round + 1, ROUND);
}

/* The stack as the kernel leaves it: argc, then argv. */
__attribute__((used)) void begin(char **stack)
{
	unsigned long count = 0;

	for (const char *digit = stack[2]; digit && *digit >= '0' && *digit <= '9'; digit++)
		count = count * 10 + (unsigned long)(*digit - '0');
	for (unsigned long i = 0; i < count; i++)
		user_round(i);
	end(0);
}

__asm__(".globl _start\n"
	".type _start, %function\n"
	"_start:\n"
#if defined(__x86_64__)
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	xor %ebp, %ebp\n"
	"	call begin\n"
#elif defined(__riscv)
	"	mv a0, sp\n"
	"	li s0, 0\n"
	"	call begin\n"
#else
	"	mov x0, sp\n"
	"	mov x29, xzr\n"
	"	bl begin\n"
#endif
	".size _start, . - _start\n");
