// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control flow of all kinds, without a C library, so that it is the same on every processor. Built with -nostdlib
 * -static -no-pie.
 */
#define LEAF __attribute__((noinline, noclone))

static volatile unsigned long sink;

LEAF static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

/* More calls than a processor's stack of return addresses has. */
LEAF static int deep(int n)
{
	return n ? deep(n - 1) + 1 : 0;
}

LEAF static int end_of_chain(int n)
{
	sink += (unsigned long)n;
	return n;
}

LEAF static int tail_call(int n)
{
	return end_of_chain(n + 1);
}

LEAF static int jump_table(int n)
{
	switch (n) {
	case 0: return 3;
	case 1: return tail_call(n);
	case 2: sink++; return 7;
	case 3: return deep(5);
	case 4: return fib(3);
	case 5: sink += 3; return 2;
	case 6: return 11;
	case 7: sink ^= 5; return 13;
	default: return 1;
	}
}

static int (*volatile function_table[])(int) = { tail_call, end_of_chain, deep, jump_table, fib };

LEAF static void copy_bytes(unsigned long nr)
{
	static char from[4096], to[4096];
	char *source = from, *target = to;

	__asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(nr) : : "memory");
}

/* A jump to itself, a call to the next instruction, a return to nowhere that was called. */
LEAF static void odd_branches(void)
{
	__asm__ volatile("mov $5, %%ecx\n"
			 "0: loop 0b\n"
			 "jrcxz 1f\n"
			 "nop\n"
			 "1: call 2f\n"
			 "2: pop %%rax\n"
			 "lea 3f(%%rip), %%rax\n"
			 "push %%rax\n"
			 "ret\n"
			 "3: lea 4f(%%rip), %%rax\n"
			 "jmp *%%rax\n"
			 "nop\n"
			 "4: push %%rbx\n"
			 "call 5f\n"
			 "jmp 6f\n"
			 "5: ret $8\n"
			 "6:"
			 :
			 :
			 : "rax", "rcx", "memory");
}

/* Instructions across a page: one that goes on, conditional jumps, an indirect call, a return. */
__asm__(".pushsection .pages, \"ax\", @progbits\n"
	".balign 4096\n"
	".globl pages\n"
	"pages:\n"
	"jmp 1f\n"
	".org pages + 4096 - 5\n"
	"1: xor %ecx, %ecx\n"
	"movabs $0x1122334455667788, %rax\n"
	"jmp 2f\n"
	".org pages + 2 * 4096 - 4\n"
	"2: inc %ecx\n"
	".byte 0x0f, 0x85\n" /* jne 3f */
	".long 3f - . - 4\n"
	"nop\n"
	"3: cmp $3, %ecx\n"
	"jl 2b\n"
	"lea 5f(%rip), %rdx\n"
	"jmp 4f\n"
	".org pages + 3 * 4096 - 4\n"
	"4: xor %eax, %eax\n"
	"nop\n"
	"call *%rdx\n"
	"jmp 6f\n"
	".org pages + 4 * 4096 - 3\n"
	"5: xor %eax, %eax\n"
	"ret $0\n"
	"6: ret\n"
	".popsection\n");
void pages(void);

__attribute__((used)) static void work(void)
{
	fib(12);
	deep(500);
	for (int i = 0; i < 30; i++)
		jump_table(i % 9);
	for (int i = 0; i < 25; i++)
		function_table[i % 5](i % 7);
	copy_bytes(3000);
	copy_bytes(0);
	odd_branches();
	pages();
}

__asm__(".globl _start\n"
	"_start:\n"
	"xor %ebp, %ebp\n"
	"and $-16, %rsp\n"
	"call work\n"
	"mov $60, %eax\n"
	"xor %edi, %edi\n"
	"syscall\n"
	"hlt\n");
