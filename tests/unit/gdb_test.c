// SPDX-License-Identifier: GPL-2.0-or-later
/* record/gdb: packets, target.xml and registers, also such as no stub should send. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "record/gdb_packet.h"
#include "record/gdb_regs.h"
#include "test.h"
#include "wire/wire.h"

/* ---- Packets ---- */

static enum gdb_item decode(const char *text, struct buf *payload, size_t *took)
{
	enum gdb_item item;

	*took = gdb_decode(text, strlen(text), &item, payload);
	return item;
}

static bool decodes_to(const char *text, const char *want)
{
	struct buf payload = { 0 };
	size_t took;
	bool good = decode(text, &payload, &took) == GDB_PACKET && took == strlen(text) &&
		    payload.len == strlen(want) && !memcmp(payload.data, want, payload.len);

	buf_release(&payload);
	return good;
}

static enum gdb_item item_of(const char *text)
{
	struct buf payload = { 0 };
	size_t took;
	enum gdb_item item = decode(text, &payload, &took);

	buf_release(&payload);
	return item;
}

static void test_packets(void)
{
	struct buf out = { 0 };

	gdb_encode(&out, "g", 1);
	check("encode", !strcmp(out.data, "$g#67"));
	buf_release(&out);
	check("decode", decodes_to("$OK#9a", "OK"));
	check("an empty packet", decodes_to("$#00", ""));
	check("capital digits of a checksum", decodes_to("$OK#9A", "OK"));
	check("a run", decodes_to("$0* #7a", "0000"));
	check("escapes", decodes_to("$}\x03}]#5a", "#}"));
	check("an escaped bracket, then text", decodes_to("$}}a#5b", "]a"));
	check("a wrong checksum", item_of("$OK#9b") == GDB_DAMAGED);
	check("a checksum that is none", item_of("$OK#zz") == GDB_DAMAGED);
	check("a run of nothing", item_of("$* #4a") == GDB_DAMAGED);
	check("a run that is too short", item_of("$0*\x1e#78") == GDB_DAMAGED);
	check("an escape at the end", item_of("$a}#de") == GDB_DAMAGED);
	check("part of a packet", item_of("$OK#9") == GDB_PARTIAL && item_of("$O") == GDB_PARTIAL);
	check("a notification", item_of("%Stop:T05#99") == GDB_NOTIFICATION);
	check("a damaged one is none, too", item_of("%Stop:T05#98") == GDB_NOTIFICATION);
	check("acknowledgements", item_of("+$OK#9a") == GDB_ACK && item_of("-") == GDB_NAK);
	check("noise", item_of("x$OK#9a") == GDB_NOISE);
}

/* A packet that expands to more than the limit, and one without an end. */
static void test_long_packets(void)
{
	size_t len = GDB_PACKET_MAX;
	struct buf text = { 0 }, payload = { 0 };
	enum gdb_item item;
	uint8_t sum = 0;

	buf_adds(&text, "$0");
	while (text.len < len)
		buf_adds(&text, "*~");
	for (size_t i = 1; i < text.len; i++)
		sum = (uint8_t)(sum + (uint8_t)text.data[i]);
	buf_addf(&text, "#%02x", sum);
	check("a bomb", gdb_decode(text.data, text.len, &item, &payload) == text.len &&
				item == GDB_DAMAGED && payload.cap < 4 * GDB_PACKET_MAX);
	buf_clear(&text);
	buf_addc(&text, '$');
	while (text.len <= len)
		buf_addc(&text, 'a');
	check("a packet without an end",
	      gdb_decode(text.data, text.len, &item, &payload) == text.len && item == GDB_DAMAGED);
	buf_release(&text);
	buf_release(&payload);
}

/* Bytes at random, of those that matter. Decoding always goes on, and never beyond the end. */
static void test_random_packets(void)
{
	static const char bytes[] = "$#%+-*}0a9\x03~";
	struct buf payload = { 0 };
	uint64_t seed = 1;
	bool good = true;

	for (int round = 0; round < 20000; round++) {
		size_t len = next_random(&seed) % 40, at = 0;
		char *text = malloc(len + 1); /* its end is known to sanitizers */
		enum gdb_item item = GDB_NOISE;

		for (size_t i = 0; i < len; i++)
			text[i] = bytes[next_random(&seed) % (sizeof(bytes) - 1)];
		while (at < len && item != GDB_PARTIAL) {
			size_t took = gdb_decode(text + at, len - at, &item, &payload);

			good &= (took == 0) == (item == GDB_PARTIAL) && took <= len - at;
			at += took;
		}
		free(text);
	}
	check("packets of random bytes", good);
	buf_release(&payload);
}

/* ---- target.xml ---- */

static bool no_file(void *data, const char *name, struct buf *text)
{
	unsigned *asked = data;

	(void)name;
	(void)text;
	++*asked;
	return false;
}

/* Every file includes itself twice. */
static bool same_file(void *data, const char *name, struct buf *text)
{
	unsigned *asked = data;

	++*asked;
	buf_addf(text,
		 "<reg name='r%u' bitsize='32'/><xi:include href=\"%s\"/><xi:include href='%s'/>",
		 *asked, name, name);
	return true;
}

static void scan(const char *text, struct gdb_registers *registers)
{
	unsigned asked = 0;
	const struct gdb_includer includer = { no_file, &asked };

	gdb_xml_scan(text, strlen(text), &includer, registers);
}

static void test_xml(void)
{
	struct gdb_registers registers = { 0 };
	unsigned asked = 0;
	const struct gdb_includer includer = { same_file, &asked };

	scan("<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
	     "<architecture> i386:x86-64 </architecture><!-- <reg name='no' bitsize='8'/> -->"
	     "<feature name=\"org.gnu.gdb.i386.core\"><reg bitsize=\"64\" name=\"rax\" type='int'/>"
	     "<regs name='no' bitsize='8'/><reg name = 'eflags' bitsize='32' regnum='17'/>"
	     "<reg name='st0' bitsize='80'/></feature></target>",
	     &registers);
	check("registers in target.xml",
	      registers.nr == 3 && !strcmp(registers.at[0].name, "rax") &&
		      registers.at[0].number == 0 && registers.at[0].size == 8 &&
		      registers.at[1].number == 17 && registers.at[2].number == 18 &&
		      registers.at[2].size == 10);
	check("the architecture", !strcmp(registers.arch, "i386:x86-64"));
	gdb_registers_release(&registers);

	scan("<reg name='a' bitsize='99999999999'/><reg name='b' bitsize='-1'/><reg name='' "
	     "bitsize='8'/>"
	     "<reg bitsize='8'/><reg name='c' bitsize='8' "
	     "regnum='18446744073709551615'/><reg/><reg",
	     &registers);
	check("registers that cannot be", registers.nr == 0);
	gdb_registers_release(&registers);

	gdb_xml_scan("<xi:include href='a'/>", 22, &includer, &registers);
	check("files that include themselves", asked > 3 && asked < 100 && registers.nr == asked);
	gdb_registers_release(&registers);
}

static void test_random_xml(void)
{
	static const char *const parts[] = { "<reg ",
					     "name=",
					     "\"rax\"",
					     "'",
					     "\"",
					     "/>",
					     ">",
					     " ",
					     "bitsize=",
					     "'64'",
					     "<",
					     "<!--",
					     "-->",
					     "=",
					     "<xi:include href='x'",
					     "<architecture>",
					     "regnum='3'" };
	struct gdb_registers registers = { 0 };
	unsigned asked = 0;
	const struct gdb_includer includer = { no_file, &asked };
	uint64_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct buf text = { 0 };
		char *copy;

		for (unsigned i = next_random(&seed) % 20; i; i--)
			buf_adds(&text,
				 parts[next_random(&seed) % (sizeof(parts) / sizeof(*parts))]);
		copy = malloc(text.len + 1);
		memcpy(copy, text.data ? text.data : "", text.len);
		gdb_xml_scan(copy, text.len, &includer, &registers);
		free(copy);
		buf_release(&text);
	}
	check("target.xml of random parts", registers.nr <= GDB_REGISTERS_MAX && asked > 0);
	gdb_registers_release(&registers);
}

/* ---- Registers ---- */

static const struct gdb_values none;

/* An answer to `g` whose bytes count up. */
static void counting(struct buf *reply, size_t size)
{
	buf_clear(reply);
	for (size_t i = 0; i < size; i++)
		buf_addf(reply, "%02x", (unsigned)i & 0xff);
}

static void test_machine(unsigned elf, bool wide, const char *arch, size_t pc_at, size_t g)
{
	struct gdb_registers registers = { 0 };
	struct gdb_values values;
	struct gdb_layout layout;
	struct gdb_state state;
	struct buf reply = { 0 };
	bool known = false;
	char name[64];

	snprintf(name, sizeof(name), "%s without target.xml", arch);
	counting(&reply, g);
	if (!gdb_default_registers(&registers, elf, wide) ||
	    !gdb_layout_init(&layout, &registers, g, true)) {
		check(name, false);
		return;
	}
	gdb_values_all(&layout, &reply, &values);
	gdb_state_read(&layout, &values, &none, &state);
	check(name, !strcmp(layout.arch, arch) && state.nr && (state.pc & 0xff) == (pc_at & 0xff) &&
			    state.level == WIRE_LEVEL_USER);
	/* Cut short: without the pc, nothing is known. */
	layout.user_mode = false;
	for (size_t len = 2 * pc_at + 1; len-- > 0;) {
		struct buf part = { .data = reply.data, .len = len };

		gdb_values_all(&layout, &part, &values);
		gdb_state_read(&layout, &values, &none, &state);
		known |= state.nr > 0;
	}
	check(name, !known);
	buf_release(&reply);
	gdb_registers_release(&registers);
}

static void test_levels(void)
{
	struct gdb_registers registers = { 0 };
	struct gdb_values values = { 0 };
	struct gdb_layout layout;
	struct gdb_state state;

	scan("<reg name='rsp' bitsize='64'/><reg name='rip' bitsize='64'/><reg name='cs' "
	     "bitsize='32'/>"
	     "<reg name='cr3' bitsize='64' regnum='70'/><reg name='efer' bitsize='64'/>",
	     &registers);
	check("x86-64",
	      gdb_layout_init(&layout, &registers, 20, false) && !strcmp(layout.arch, "x86_64"));
	check("a register that `g` does not have",
	      layout.slots[GDB_DWARF_MAX + GDB_SPACE].asked &&
		      layout.slots[GDB_DWARF_MAX + GDB_SPACE].number == 70 &&
		      !layout.slots[7].asked);
	for (unsigned i = 0; i < GDB_SLOTS; i++)
		values.has[i] = layout.slots[i].known;
	values.at[GDB_DWARF_MAX + GDB_LEVEL] = 0x33;
	values.at[GDB_DWARF_MAX + GDB_SPACE] = 0x8000000000123fff;
	values.at[GDB_DWARF_MAX + GDB_EFER] = 1 << 10;
	gdb_state_read(&layout, &values, &none, &state);
	check("its level and address space", state.level == WIRE_LEVEL_USER && state.has_space &&
						     state.space == 0x123000 && state.nr == 17);
	values.at[GDB_DWARF_MAX + GDB_EFER] = 0;
	gdb_state_read(&layout, &values, &none, &state);
	check("in 32-bit mode, its registers are i386's", state.nr == 9 && state.word == 4);
	gdb_registers_release(&registers);

	scan("<architecture>mips</architecture><reg name='r0' bitsize='32'/><reg name='pc' "
	     "bitsize='32'/>",
	     &registers);
	check("an unknown machine", !gdb_layout_init(&layout, &registers, 8, false));
	gdb_registers_release(&registers);
}

/* ---- Interrupts that the stub delivers before it stops ---- */

struct machine {
	struct gdb_layout layout;
	struct gdb_values values;
};

static void set(struct machine *machine, enum gdb_special which, uint64_t value)
{
	machine->values.at[GDB_DWARF_MAX + which] = value;
}

static void start_machine(struct machine *machine, const char *xml)
{
	struct gdb_registers registers = { 0 };

	*machine = (struct machine){ 0 };
	scan(xml, &registers);
	check("a machine with interrupts", gdb_layout_init(&machine->layout, &registers, 0, false));
	machine->layout.interrupts_first = true;
	for (unsigned i = 0; i < GDB_SLOTS; i++)
		machine->values.has[i] = machine->layout.slots[i].known;
	gdb_registers_release(&registers);
}

static void expect(const char *name, const struct machine *machine, uint64_t pc, uint64_t sp,
		   unsigned level)
{
	struct gdb_state state;

	gdb_state_read(&machine->layout, &machine->values, &none, &state);
	check(name, state.pc == pc && state.sp == sp && state.level == level);
}

/* At the stop before, everything was the same. */
static void expect_same(const char *name, const struct machine *machine, uint64_t pc)
{
	struct gdb_state state;

	gdb_state_read(&machine->layout, &machine->values, &machine->values, &state);
	check(name, state.pc == pc);
}

static void test_riscv_interrupts(void)
{
	const uint64_t timer = 1ull << 63 | 5;
	struct machine m;

	start_machine(&m, "<reg name='ra' bitsize='64'/><reg name='sp' bitsize='64'/>"
			  "<reg name='a0' bitsize='64'/><reg name='pc' bitsize='64'/>"
			  "<reg name='priv' bitsize='64'/><reg name='stvec' bitsize='64'/>"
			  "<reg name='scause' bitsize='64'/><reg name='sepc' bitsize='64'/>"
			  "<reg name='sstatus' bitsize='64'/><reg name='mtvec' bitsize='64'/>"
			  "<reg name='mcause' bitsize='64'/><reg name='mepc' bitsize='64'/>"
			  "<reg name='mstatus' bitsize='64'/>");
	m.values.at[2] = 0x7000;
	set(&m, GDB_LEVEL, 1);
	set(&m, GDB_PC, 0x8000);
	set(&m, GDB_VECTOR, 0x8000);
	set(&m, GDB_CAUSE, timer);
	set(&m, GDB_FROM, 0x1234);
	expect("RISC-V: a program that an interrupt left", &m, 0x1234, 0x7000, WIRE_LEVEL_USER);
	set(&m, GDB_SAVED, 1 << 8);
	expect("RISC-V: a kernel that an interrupt left", &m, 0x1234, 0x7000, WIRE_LEVEL_KERNEL);
	expect_same("RISC-V: a kernel that stays there", &m, 0x8000);
	set(&m, GDB_CAUSE, 8);
	expect("RISC-V: a system call", &m, 0x8000, 0x7000, WIRE_LEVEL_KERNEL);
	set(&m, GDB_CAUSE, timer);
	set(&m, GDB_VECTOR, 0x8001);
	expect("RISC-V: other code in the table", &m, 0x8000, 0x7000, WIRE_LEVEL_KERNEL);
	set(&m, GDB_PC, 0x8014);
	expect("RISC-V: an entry of the table", &m, 0x1234, 0x7000, WIRE_LEVEL_KERNEL);
	set(&m, GDB_LEVEL, 3);
	expect("RISC-V: firmware has its own vector", &m, 0x8014, 0x7000, WIRE_LEVEL_FIRMWARE);
	set(&m, GDB_VECTOR_3, 0x8014);
	set(&m, GDB_CAUSE_3, timer);
	set(&m, GDB_FROM_3, 0x4321);
	set(&m, GDB_SAVED_3, 1 << 11);
	expect("RISC-V: a kernel that firmware left", &m, 0x4321, 0x7000, WIRE_LEVEL_KERNEL);
	m.layout.interrupts_first = false;
	expect("RISC-V: a stub that just stops", &m, 0x8014, 0x7000, WIRE_LEVEL_FIRMWARE);
}

static void test_aarch64_interrupts(void)
{
	struct machine m;

	start_machine(&m, "<reg name='x30' bitsize='64'/><reg name='sp' bitsize='64'/>"
			  "<reg name='pc' bitsize='64'/><reg name='cpsr' bitsize='32'/>"
			  "<reg name='VBAR' bitsize='64'/><reg name='ELR_EL1' bitsize='64'/>"
			  "<reg name='SPSR_EL1' bitsize='64'/><reg name='SP_EL0' bitsize='64'/>");
	m.values.at[31] = 0x7000;
	set(&m, GDB_LEVEL, 0x3c5);
	set(&m, GDB_PC, 0x8480);
	set(&m, GDB_VECTOR, 0x8000);
	set(&m, GDB_FROM, 0x1234);
	set(&m, GDB_USER_SP, 0x6000);
	expect("AArch64: a program that an interrupt left", &m, 0x1234, 0x6000, WIRE_LEVEL_USER);
	set(&m, GDB_SAVED, 5);
	expect("AArch64: a kernel that an interrupt left", &m, 0x1234, 0x7000, WIRE_LEVEL_KERNEL);
	expect_same("AArch64: a kernel that stays there", &m, 0x8480);
	set(&m, GDB_SAVED, 0x10);
	expect("AArch64: 32-bit code has other registers", &m, 0x8480, 0x7000, WIRE_LEVEL_KERNEL);
	set(&m, GDB_SAVED, 5);
	set(&m, GDB_PC, 0x8400);
	expect("AArch64: a system call", &m, 0x8400, 0x7000, WIRE_LEVEL_KERNEL);
	set(&m, GDB_PC, 0x8484);
	expect("AArch64: the second instruction", &m, 0x8484, 0x7000, WIRE_LEVEL_KERNEL);
}

int main(void)
{
	test_packets();
	test_long_packets();
	test_random_packets();
	test_xml();
	test_random_xml();
	test_riscv_interrupts();
	test_aarch64_interrupts();
	test_machine(EM_X86_64, true, "x86_64", 128, 164);
	test_machine(EM_386, false, "i386", 32, 64);
	test_machine(EM_AARCH64, true, "aarch64", 256, 268);
	test_machine(EM_ARM, false, "arm", 60, 168);
	test_machine(EM_RISCV, true, "riscv64", 256, 264);
	test_machine(EM_RISCV, false, "riscv32", 128, 132);
	test_levels();
	return test_result();
}
