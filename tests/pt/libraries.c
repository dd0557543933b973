// SPDX-License-Identifier: GPL-2.0-or-later
/* A shared library, loaded, called and unloaded twice; longjmp(); code that the program writes itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int calls_back(int (*call)(int), int n);
static jmp_buf back;

__attribute__((noinline)) static int jump_out(int n)
{
	if (!n)
		longjmp(back, 1);
	return jump_out(n - 1) + 1;
}

static int called(int n)
{
	return n + 1;
}

static int use(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	calls_back *call = library ? (calls_back *)dlsym(library, "library_calls_back") : NULL;
	int sum = 0;

	for (int i = 0; call && i < 10; i++)
		sum += call(called, i);
	if (library)
		dlclose(library);
	return sum;
}

/* mov $n, %eax; ret */
static int generated(unsigned char *page, unsigned char n)
{
	const unsigned char code[] = { 0xb8, n, 0, 0, 0, 0xc3 };

	memcpy(page, code, sizeof(code));
	return ((int (*)(void))(void *)page)();
}

int main(int argc, char **argv)
{
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc != 2 || page == MAP_FAILED)
		return 2;
	for (int i = 0; i < 3; i++) {
		if (!setjmp(back))
			jump_out(100);
	}
	if (use(argv[1]) != use(argv[1]))
		return 3;
	return generated(page, 5) + generated(page, 7) + generated(page, 9) == 21 ? 0 : 4;
}
