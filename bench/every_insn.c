// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A QEMU plugin that samples in the obvious way: a callback on every instruction reads the clock
 * and checks whether a sample is due. The baseline for kscope's plugin, for QEMU 6.2 to 8.2. It
 * only counts samples.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum { NO_REGS };

int qemu_plugin_version = 1;

uint64_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t nr);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned, void *), int flags, void *data);
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

static uint64_t next, samples;

static void at_instruction(unsigned cpu, void *data)
{
	struct timeval tv;
	uint64_t now;

	(void)cpu;
	(void)data;
	gettimeofday(&tv, NULL);
	now = (uint64_t)tv.tv_sec * 1000000 + (uint64_t)tv.tv_usec;
	if (now < next)
		return;
	next = now + 1000;
	samples++;
}

static void at_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (size_t i = 0; i < nr; i++)
		qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, i),
						       at_instruction, NO_REGS, NULL);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
	return 0;
}
