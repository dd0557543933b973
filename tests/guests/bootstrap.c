// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first task of GNU Mach, with known work: it takes memory, touches every page of it and gives
 * it back, then works for itself, and says so on the console.
 */

#define ROUNDS 400
#define PAGES 64
#define PAGE 4096
#define USED __attribute__((noinline, used))

/* A system call as Mach has them: the number in eax, arguments on the stack. */
#define TRAP(name, number)                                 \
	__asm__(".globl " #name "\n"                       \
		".type " #name ", @function\n" #name ":\n" \
		"	mov $-" #number ", %eax\n"         \
		"	lcall $7, $0\n"                          \
		"	ret\n"                                   \
		".size " #name ", . - " #name "\n")

TRAP(mach_task_self, 28);
TRAP(mach_print, 30);
TRAP(vm_allocate, 65);
TRAP(vm_deallocate, 66);

unsigned mach_task_self(void);
int mach_print(const char *text);
int vm_allocate(unsigned task, char **address, unsigned size, int anywhere);
int vm_deallocate(unsigned task, char *address, unsigned size);

static volatile unsigned sink;

USED static void touch_pages(char *memory)
{
	for (unsigned i = 0; i < PAGES; i++)
		((volatile char *)memory)[i * PAGE] = 1;
}

USED static int use_memory(unsigned task)
{
	char *memory = 0;

	if (vm_allocate(task, &memory, PAGES * PAGE, 1))
		return -1;
	touch_pages(memory);
	return vm_deallocate(task, memory, PAGES * PAGE);
}

USED static unsigned user_mix(unsigned seed, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 17;
	}
	return seed;
}

__attribute__((used)) void begin(void)
{
	unsigned task = mach_task_self();
	int failed = 0;

	mach_print("kscope: begin\n");
	for (unsigned i = 0; i < ROUNDS; i++)
		failed |= use_memory(task);
	mach_print(failed ? "kscope: memory failed\n" : "kscope: user\n");
	sink = user_mix(1, 100000000);
	mach_print("kscope: end\n");
	for (;;)
		mach_task_self();
}

__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	call begin\n"
	".size _start, . - _start\n");
