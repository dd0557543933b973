# SPDX-License-Identifier: GPL-2.0-or-later
# kscope: make, make demo, make test, make test-quick, make install, make deb, make bench, make fuzz,
# make check.

VERSION := 0.1.0
PREFIX ?= /usr/local
CC ?= cc
BUILD ?= build
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wundef -Wformat=2 -Wno-format-nonliteral -Wvla
KSCOPE_CFLAGS := -std=gnu11 $(WARNINGS) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 -Isrc -I. \
	-DKSCOPE_VERSION='"$(VERSION)"' -I$(BUILD)/gen -MMD -MP -pthread -fPIC -fvisibility=hidden

# What makes a mistake in a reader harder to exploit. FORTIFY needs an optimizing compiler, and hides calls from sanitizers.
# Whoever sets it in CPPFLAGS or CFLAGS, as Debian does, has the last word.
OPTIMIZES = $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
FORTIFY = $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS))$(filter -fsanitize%,$(CFLAGS)),,$(if \
	$(OPTIMIZES),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDEN_CFLAGS = -fstack-protector-strong $(FORTIFY)
HARDEN_LDFLAGS := -Wl,-z,relro,-z,now,-z,noexecstack
PIE = $(if $(filter -static% -no-pie,$(CFLAGS) $(LDFLAGS)),,-pie)

# The same bytes, whatever the folders are called.
KSCOPE_CFLAGS += '-ffile-prefix-map=$(CURDIR)=.' '-ffile-prefix-map=$(abspath $(BUILD))=build'

# One short line a command; make V=1 shows them whole.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)	$@")

ifneq ($(words $(BUILD)),1)
$(error BUILD=$(BUILD): make needs a name without spaces)
endif

.PHONY: all
all: $(BUILD)/kscope $(BUILD)/kscope-qemu.so $(BUILD)/libkscope-dlfilter.so completions
	$(if $(MISSING),@echo "Built without these optional libraries: $(strip $(MISSING)); see doc/dependencies.md")

# For the thread that decodes traces.
LIBS := -pthread
# Optional libraries. Each is used by one source file, which also builds without it.
# Make 4.3 changed what \# means in a function; a variable means the same in all.
HASH := \#
have = $(shell printf '$(HASH)include <$(1)>\nint main(void) { return 0; }\n' | \
	$(CC) $(CPPFLAGS) $(CFLAGS) -x c - -o /dev/null $(2) 2>/dev/null && echo yes)
define optional
HAVE_$(1) := $$(call have,$(2),$(3))
ifeq ($$(HAVE_$(1)),yes)
KSCOPE_CFLAGS += -DHAVE_$(1)
LIBS += $(3)
else
MISSING += $(4)
endif
endef
$(eval $(call optional,LIBDW,elfutils/libdw.h,-ldw -lelf,libdw-dev))
$(eval $(call optional,LIBIBERTY,libiberty/demangle.h,-liberty,libiberty-dev))
$(eval $(call optional,ZSTD,zstd.h,-lzstd,libzstd-dev))
$(eval $(call optional,ZLIB,zlib.h,-lz,zlib1g-dev))
$(eval $(call optional,LZ4,lz4.h,-llz4,liblz4-dev))
$(eval $(call optional,LZMA,lzma.h,-llzma,liblzma-dev))
$(eval $(call optional,LIBIPT,intel-pt.h,-lipt,libipt-dev))
$(eval $(call optional,ZYDIS,Zydis/Zydis.h,-lZydis,libzydis-dev))
$(eval $(call optional,NCURSES,ncurses.h,-lncursesw,libncurses-dev))
$(eval $(call optional,SQLITE3,sqlite3.h,-lsqlite3,libsqlite3-dev))
$(eval $(call optional,CAPSTONE,capstone/capstone.h,-lcapstone,libcapstone-dev))

# What was built before a library was there is built again when it is.
$(BUILD)/libs: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBS)' | cmp -s - $@ || echo '$(LIBS)' >$@
.PHONY: FORCE

SRC := $(sort $(wildcard src/*.c src/*/*.c))
OBJ := $(SRC:%.c=$(BUILD)/obj/%.o)
LIBOBJ := $(filter-out $(BUILD)/obj/src/main.o,$(OBJ))

$(BUILD)/obj/%.o: %.c Makefile $(BUILD)/libs
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KSCOPE_CFLAGS) $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# Text that goes into the flame graphs, as a C string without its comment lines and indentation.
as_string = @mkdir -p $(@D) && { echo '\#define $(1) \\'; sed -e '/^[[:space:]]*\/[\/*]/d' \
	-e 's/^[[:space:]]*//' -e '/^$$/d' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n" \\/' $<; echo '""'; } >$@
# The same, unchanged.
as_lines = @mkdir -p $(@D) && { echo '\#define $(1) \\'; sed -e 's/[\\"]/\\&/g' -e 's/??/?\\?/g' -e 's/.*/"&\\n" \\/' $<; echo '""'; } >$@
$(BUILD)/gen/flame_js.h: src/write/flame.js Makefile
	$(call as_string,FLAME_JS)
$(BUILD)/gen/flame_css.h: src/write/flame.css Makefile
	$(call as_string,FLAME_CSS)
$(BUILD)/obj/src/write/flame_svg.o: $(BUILD)/gen/flame_js.h $(BUILD)/gen/flame_css.h

# The report's page: its modules are one script, whose hash is in the page. doc: web/README.md
WEB := base format data state sums colours canvas timeline flame chart slices functions calltree function memory about \
	live main
WEB_JS := $(wildcard $(WEB:%=web/%.js))
$(BUILD)/gen/report.js: $(WEB_JS) Makefile
	@mkdir -p $(@D)
	$(Q){ echo '"use strict";'; sed -e '/^ *\/\*\*.*\*\/$$/d' -e '/^ *\/\*\*/{/\*\//!{' -e ':more' -e 'N;/\*\//!bmore' -e 'd;}}' \
		-e '/^ *\/\//d' -e '/^import .*;$$/d' \
		-e 's/^export //' -e 's/^[[:space:]]*//' -e '/^$$/d' $(WEB_JS); } >$@
$(BUILD)/gen/report.css: web/style.css web/drawings.css
	@mkdir -p $(@D)
	$(Q)cat $^ >$@
$(BUILD)/gen/report_css.h: $(BUILD)/gen/report.css
	$(call as_string,REPORT_CSS)
$(BUILD)/gen/report_js.h: $(BUILD)/gen/report.js
	$(call as_lines,REPORT_JS)
$(BUILD)/gen/report_hash.h: $(BUILD)/gen/report.js
	$(Q)echo "#define REPORT_HASH \"$$(sha256sum $< | cut -c1-64 | tr a-f A-F | basenc -d --base16 | base64)\"" >$@
$(BUILD)/obj/src/write/html.o: $(BUILD)/gen/report_js.h $(BUILD)/gen/report_css.h $(BUILD)/gen/report_hash.h

# The schema, with its comments from the first statement on.
$(BUILD)/gen/sqlite_sql.h: src/write/sqlite.sql Makefile
	@mkdir -p $(@D) && { echo '#define SQLITE_SQL \'; sed -e '1,/^$$/d' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n" \\/' $<; \
		echo '""'; } >$@
$(BUILD)/obj/src/write/sqlite.o: $(BUILD)/gen/sqlite_sql.h

$(BUILD)/kscope: $(OBJ)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) $(PIE) $(LDFLAGS) $^ -o $@ $(LIBS) -lm

-include $(OBJ:.o=.d)

# Completions of shells: the program prints them, from its tables of options.
.PHONY: completions
completions: $(BUILD)/completions/kscope.bash $(BUILD)/completions/_kscope \
	$(BUILD)/completions/kscope.fish
$(BUILD)/completions/kscope.bash: SHELL_NAME := bash
$(BUILD)/completions/_kscope: SHELL_NAME := zsh
$(BUILD)/completions/kscope.fish: SHELL_NAME := fish
$(BUILD)/completions/%: $(BUILD)/kscope
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)$< completion $(SHELL_NAME) >$@.new && mv $@.new $@

# The plugin for QEMU: needs nothing of src/, and neither QEMU nor GLib to be built.
PLUGIN_SRC := $(sort $(wildcard plugin/*.c))
PLUGIN_OBJ := $(PLUGIN_SRC:%.c=$(BUILD)/obj/%.o)
# QEMU loads it, and QEMU has no sanitizers in it.
$(PLUGIN_OBJ) $(BUILD)/kscope-qemu.so: override CFLAGS := $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS))
$(PLUGIN_OBJ): KSCOPE_CFLAGS += -ftls-model=initial-exec
$(BUILD)/kscope-qemu.so: $(PLUGIN_OBJ)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -shared -pthread $^ -o $@ -ldl

-include $(PLUGIN_OBJ:.o=.d)

# The filter for perf script: what it needs of src/, which is everything but the readers and verbs.
DLFILTER_SRC := $(sort $(wildcard dlfilter/*.c))
DLFILTER_OBJ := $(DLFILTER_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/dlfilter/format.o
$(BUILD)/obj/dlfilter/format.o: src/format.c Makefile $(BUILD)/libs
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KSCOPE_CFLAGS) -DKSCOPE_NO_READERS $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(BUILD)/libkscope.a: $(LIBOBJ)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
# perf loads it, and perf has no sanitizers in it; they do not hurt if perf is started with them.
$(BUILD)/libkscope-dlfilter.so: $(DLFILTER_OBJ) $(BUILD)/libkscope.a
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -shared -Wl,--gc-sections,--as-needed,--exclude-libs,ALL $^ -o $@ $(LIBS) -lm

-include $(DLFILTER_OBJ:.o=.d)

# Programs that only the tests use: tools in tests/tools, tests of a module in tests/unit.
TEST_SRC := $(wildcard tests/tools/*.c tests/unit/*.c)
ifneq ($(HAVE_LIBIPT),yes)
TEST_SRC := $(filter-out %/pt_oracle.c,$(TEST_SRC))
endif
TEST_BIN := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(TEST_SRC)))

.PHONY: test-tools
.SECONDARY:
test-tools: $(TEST_BIN)

define test_binary
$(BUILD)/tests/$(basename $(notdir $(1))): $(BUILD)/obj/$(1:.c=.o) $(LIBOBJ)
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) $$^ -o $$@ $$(LIBS) -lm
endef
TARGET_TEST_SRC := $(wildcard tests/*/target_*.c)
$(foreach src,$(filter-out %/movetool.c %/pt_oracle.c $(TARGET_TEST_SRC),$(TEST_SRC)),$(eval $(call test_binary,$(src))))

# The plugin's decoder of instructions, without anything of src/.
$(BUILD)/tests/movetool: $(filter $(BUILD)/obj/plugin/insn%,$(PLUGIN_OBJ)) \
		$(BUILD)/obj/tests/tools/movetool.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@

# The sampler for kernels, in kernels that are made up, without anything of src/.
TARGET_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out target/pmu_%,$(wildcard target/*.c)))
$(TARGET_OBJ): KSCOPE_CFLAGS += -Itarget
$(BUILD)/libtarget.a: $(TARGET_OBJ)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
define target_binary
$(BUILD)/tests/$(basename $(notdir $(1))): $(BUILD)/obj/$(1:.c=.o) $(BUILD)/libtarget.a
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) $$^ -o $$@ -pthread
endef
$(foreach src,$(TARGET_TEST_SRC),$(eval $(call target_binary,$(src))))

-include $(TARGET_OBJ:.o=.d)

# What libipt says about a trace, without anything of src/, and so without sanitizers.
$(BUILD)/tests/pt_oracle $(BUILD)/obj/tests/tools/pt_oracle.o: override CFLAGS := \
	$(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS))
$(BUILD)/tests/pt_oracle: $(BUILD)/obj/tests/tools/pt_oracle.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ -lipt

# Hosts that load the plugin: it looks their functions up by name.
HOST_BIN := $(filter $(BUILD)/tests/qemu_host_%,$(TEST_BIN))
$(HOST_BIN): LDFLAGS += -rdynamic -pthread
$(HOST_BIN:$(BUILD)/tests/%=$(BUILD)/obj/tests/unit/%.o): KSCOPE_CFLAGS += -fvisibility=default
$(HOST_BIN): | $(BUILD)/kscope-qemu.so

-include $(TEST_SRC:%.c=$(BUILD)/obj/%.d)

# Set-up comes first and make starts anew after it: what is installed decides what is built.
.PHONY: demo test test-quick run-tests install deb check bench fuzz clean
demo:
	@tools/install-deps build demo
	@$(MAKE) --no-print-directory all demo-elfs
	@demo/run $(BUILD)

test:
	@tools/install-deps build demo deb test
	@$(MAKE) --no-print-directory -j2 all test-tools test-guests $(BUILD)/root.tar test-machines \
		demo-elfs porting-kernel tests/node_modules/.done $(BUILD)/python/.done
	@$(MAKE) --no-print-directory run-tests

# No guests, no browsers, no readers of the output but perf: about two minutes on two cores.
test-quick:
	@tools/install-deps build quick
	@$(MAKE) --no-print-directory -j2 all test-tools $(DEMO_ELFS)
	@$(MAKE) --no-print-directory run-tests TESTS='unit/ cli/ golden/ round/'

run-tests:
	@BUILD='$(abspath $(BUILD))' tests/run $(TESTS)

# Guests, and a second QEMU to boot them with; fetched from Debian, not installed.
.PHONY: test-guests
test-guests: $(BUILD)/guests/version $(BUILD)/qemu-backports/version
$(BUILD)/guests/version: tools/get-guests tools/debian.py $(wildcard tests/guests/*)
	@tools/get-guests $(@D)
$(BUILD)/qemu-backports/version: tools/get-qemu tools/debian.py
	@tools/get-qemu $(@D)

# A small Debian, to install kscope's package in.
$(BUILD)/root.tar: tools/get-root tools/debian.py
	@mkdir -p $(@D)
	@tools/get-root $@

# kscope for a big-endian machine and for one of 32 bits; qemu-user runs it. Not optimized: that would take longer.
MACHINES := s390x i386
MACHINE_LINKER_i386 := -fuse-ld=lld -Wno-unused-command-line-argument
.PHONY: test-machines $(MACHINES:%=machine-%)
test-machines: $(MACHINES:%=machine-%)
$(MACHINES:%=machine-%): machine-%: $(BUILD)/machines/%/sysroot
	$(Q)[ ! -d $< ] || $(MAKE) --no-print-directory BUILD=$(BUILD)/machines/$*/build \
		CC='clang --target=$*-linux-gnu --sysroot=$(abspath $<) $(MACHINE_LINKER_$*)' \
		CFLAGS=-O0 CPPFLAGS= LDFLAGS= $(BUILD)/machines/$*/build/kscope $(BUILD)/machines/$*/build/missing
$(MACHINES:%=$(BUILD)/machines/%/sysroot): $(BUILD)/machines/%/sysroot: tools/get-sysroot tools/debian.py
	@mkdir -p $(@D)
	@tools/get-sysroot $@ $* || echo "kscope is not tested on $*"

tests/node_modules/.done: tests/package.json
	cd tests && npm install --loglevel=error --no-audit --no-fund >/dev/null
	@touch $@

$(BUILD)/python/.done: tests/requirements.txt
	@rm -rf $(@D) && mkdir -p $(@D)
	$(call say,PIP)
	$(Q)python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $(@D) -r $< && \
		touch $@ || echo "kscope is not tested with DuckDB"

bench:
	@tools/install-deps build demo bench
	@$(MAKE) --no-print-directory all demo-elfs bench-tools tests/node_modules/.done
	@bench/run $(BUILD) $(BENCH)

# What is measured, and baselines to compare with. pt_load is built like most programs: it is what runs in traces.
BENCH_BIN := make_perfdata pt_load pt_nothing.so
ifeq ($(HAVE_LIBIPT),yes)
BENCH_BIN += pt_blocks
endif
.PHONY: bench-tools
bench-tools: $(BENCH_BIN:%=$(BUILD)/bench/%)
$(BUILD)/bench/pt_nothing.so: BENCH_CFLAGS := -shared -fPIC
$(BUILD)/bench/pt_blocks: BENCH_LIBS := -lipt
$(BUILD)/bench/%.so $(BUILD)/bench/%: bench/%.c src/abi/perf_file.h
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -O2 $(BENCH_CFLAGS) -Isrc $< -o $@ $(BENCH_LIBS)

# check: the layers, headers that stand alone, format and lint.
.PHONY: check-layers check-headers check-format check-tidy
check:
	@tools/install-deps build demo check
	@$(MAKE) --no-print-directory check-layers check-headers check-format check-tidy
check-layers:
	@tools/check-layers
# kscope_parts.h is the second half of kscope.h, which includes it.
HEADERS := $(filter-out target/kscope_parts.h,$(wildcard src/*.h src/*/*.h plugin/*.h dlfilter/*.h wire/*.h target/*.h))
check-headers:
	@for header in $(HEADERS); do \
		echo "#include \"$$header\"" | $(CC) $(KSCOPE_CFLAGS) -MF /dev/null -x c -fsyntax-only - || \
			exit 1; done
FORMATTED := $(SRC) $(PLUGIN_SRC) $(DLFILTER_SRC) $(HEADERS) $(wildcard target/*.c target/*/*.[ch] tests/*/*.[ch] fuzz/*.[ch] bench/*.c \
	demo/*/*.[ch] demo/kernel/*/*.[ch] target/microkit/*.[ch] target/microkit/demo/*.[ch])
check-format:
	@clang-format --dry-run -Werror $(FORMATTED)
check-tidy: $(BUILD)/gen/flame_js.h $(BUILD)/gen/flame_css.h $(BUILD)/gen/report_js.h $(BUILD)/gen/report_css.h \
		$(BUILD)/gen/report_hash.h $(BUILD)/gen/sqlite_sql.h
	@clang-tidy --quiet $(SRC) $(PLUGIN_SRC) -- $(KSCOPE_CFLAGS) 2>/dev/null

# Every reader of the table, and the flags it is fuzzed for: make fuzz FUZZ=sel4_json SECONDS=60
READERS := $(shell sed -n 's/^READER(\(.*\))/\1/p' src/formats.def)
# "kernel" is no reader: it is what --kernel takes; "archive" is what kscope archive writes; "pt" is the
# decoder of Intel PT; "http" is a request to kscope view; "target" is the sampler for kernels; "run" is a whole run; "unwind" the unwinder.
FUZZ ?= $(READERS) kernel archive pt target run unwind verb calls sym place frames http
FUZZ_OWN := kernel archive pt run unwind verb calls sym place frames http # these have their own files
SECONDS ?= 20
FUZZ_CFLAGS := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
fuzz:
	@tools/install-deps build demo fuzz
	@$(MAKE) --no-print-directory fuzz-build
	@for reader in $(FUZZ); do fuzz/run $(BUILD)/fuzz $$reader $(SECONDS) || exit 1; done

.PHONY: fuzz-build fuzz-coverage print-link print-objects
fuzz-build:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=clang \
		CFLAGS="-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined" \
		$(FUZZ:%=$(BUILD)/fuzz/fuzz_%)

# The lines that the fuzzers' inputs reach: doc/testing.md
fuzz-coverage:
	@tools/install-deps build demo fuzz
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/coverage CC=clang LDFLAGS=-fprofile-instr-generate \
		CFLAGS="-O1 -g -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping" \
		FUZZ_CFLAGS="-O1 -g -fsanitize=fuzzer -fprofile-instr-generate" $(FUZZ:%=$(BUILD)/coverage/fuzz_%)
	@tools/fuzz-coverage $(BUILD)/coverage

# For tests that build something more.
print-link:
	@echo $(CC) $(CFLAGS) $(LDFLAGS) $(LIBS) -lm
$(BUILD)/missing: $(BUILD)/libs
	@echo '$(strip $(MISSING))' >$(BUILD)/missing
print-objects:
	@echo $(OBJ)

FUZZ_HEADERS := $(wildcard fuzz/*.h) tests/unit/unwind_scene.h
$(BUILD)/fuzz_target: fuzz/fuzz_target.c $(TARGET_OBJ)
	$(call say,FUZZ)
	$(Q)$(CC) $(KSCOPE_CFLAGS) -MF $@.d $(FUZZ_CFLAGS) $^ -o $@

$(FUZZ_OWN:%=$(BUILD)/fuzz_%): $(BUILD)/fuzz_%: fuzz/fuzz_%.c $(LIBOBJ) $(FUZZ_HEADERS)
	$(call say,FUZZ)
	$(Q)$(CC) $(KSCOPE_CFLAGS) -MF $@.d $(FUZZ_CFLAGS) $(filter-out %.h,$^) -o $@ $(LIBS) -lm

# Its input is a folder.
$(BUILD)/fuzz_uftrace: FUZZ_INPUT := -DFOLDER
$(BUILD)/fuzz_%: fuzz/fuzz_reader.c $(LIBOBJ)
	$(call say,FUZZ)
	$(Q)$(CC) $(KSCOPE_CFLAGS) -MF $@.d $(FUZZ_CFLAGS) $(FUZZ_INPUT) -DREADER=read_$* $^ -o $@ $(LIBS) -lm

# The drop-ins work by their names.
DROP_INS := toperf netconn kprof2perf kern-profile
PLACE = $(DESTDIR)$(PREFIX)
# Where zsh looks: in site-functions for what is local, else where Debian's packages have theirs.
ZSH_PLACE = $(PLACE)/share/zsh/$(if $(filter /usr/local,$(PREFIX)),site-functions,vendor-completions)
BASH_PLACE = $(PLACE)/share/bash-completion/completions
FISH_PLACE = $(PLACE)/share/fish/vendor_completions.d
install: all
	install -d "$(PLACE)/bin" "$(PLACE)/lib/kscope" "$(PLACE)/share/man/man1"
	install -d "$(BASH_PLACE)" "$(ZSH_PLACE)" "$(FISH_PLACE)"
	install -m 755 $(BUILD)/kscope "$(PLACE)/bin/kscope"
	install -m 755 $(BUILD)/kscope-qemu.so "$(PLACE)/lib/kscope/kscope-qemu.so"
	install -m 755 $(BUILD)/libkscope-dlfilter.so "$(PLACE)/lib/kscope/libkscope-dlfilter.so"
	ln -sf libkscope-dlfilter.so "$(PLACE)/lib/kscope/libperf2perfetto.so"
	for name in $(DROP_INS); do ln -sf kscope "$(PLACE)/bin/$$name"; done
	install -m 644 man/*.1 "$(PLACE)/share/man/man1"
	install -m 644 $(BUILD)/completions/kscope.bash "$(BASH_PLACE)/kscope"
	install -m 644 $(BUILD)/completions/_kscope "$(ZSH_PLACE)/_kscope"
	install -m 644 $(BUILD)/completions/kscope.fish "$(FISH_PLACE)/kscope.fish"

# A package for Debian: it has what install installs.
deb:
	@tools/install-deps build deb
	@tools/build-deb $(BUILD)

clean:
	rm -rf $(BUILD) demo/out

# The demo's programs: AArch64, freestanding, with frame pointers, linked for 4 KiB and 64 KiB pages.
DEMO_ELF := $(patsubst demo/sel4/%.c,%.elf,$(wildcard demo/sel4/*.c))
DEMO_ELFS := $(DEMO_ELF:%=$(BUILD)/demo/64k/%) $(DEMO_ELF:%=$(BUILD)/demo/4k/%)
DEMO_CFLAGS := --target=aarch64-none-elf -O1 -g -ffreestanding -fno-omit-frame-pointer \
	-mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls

$(BUILD)/demo/%.o: demo/sel4/%.c
	@mkdir -p $(@D)
	$(call say,CLANG)
	$(Q)clang $(DEMO_CFLAGS) '-fdebug-prefix-map=$(CURDIR)=.' -c $< -o $@
define demo_elf
$(BUILD)/demo/$(1)/%.elf: $(BUILD)/demo/%.o
	@mkdir -p $$(@D)
	$$(call say,LLD)
	$$(Q)ld.lld -z max-page-size=$(2) --image-base=0x200000 --build-id $$< -o $$@
endef
$(eval $(call demo_elf,64k,65536))
$(eval $(call demo_elf,4k,4096))
.SECONDARY: $(DEMO_ELFS)
.PHONY: demo-elfs
demo-elfs: $(DEMO_ELFS) demo-kernels

# The demo's kernel: for several machines, with frame pointers and without, and its user programs.
KERNEL_SRC := $(wildcard demo/kernel/*.c)
# The sampler in it: all that is not for other processors.
KERNEL_TARGET_SRC := $(filter-out target/pmu_%,$(wildcard target/*.c))
KERNEL_PMU_aarch64 := target/pmu_armv8.c
KERNEL_PMU_x86_64 := target/pmu_x86.c
KERNEL_PMU_riscv64 := target/pmu_riscv.c
KERNEL_USER := $(patsubst demo/kernel/user/%.c,%,$(wildcard demo/kernel/user/*.c))
KERNEL_OPTIMIZATION := -O2
KERNEL_CFLAGS := -std=gnu11 $(KERNEL_OPTIMIZATION) -g -ffreestanding -fno-pic -fno-stack-protector -fno-unroll-loops \
	-fno-optimize-sibling-calls -fasynchronous-unwind-tables -Wall -Wextra -MMD -MP \
	'-fdebug-prefix-map=$(CURDIR)=.' -Idemo/kernel -I. -DKSCOPE_CPUS=8
KERNEL_CFLAGS_fp := -fno-omit-frame-pointer
KERNEL_CFLAGS_nofp := -fomit-frame-pointer
KERNEL_CFLAGS_x86_64 := -mno-sse -mno-mmx -msoft-float -mno-red-zone -mcmodel=kernel
KERNEL_CFLAGS_aarch64 := -mgeneral-regs-only
KERNEL_CFLAGS_cortex_m := -mcpu=cortex-m3 -mfloat-abi=soft -mno-omit-leaf-frame-pointer -fdata-sections
KERNEL_TARGET_cortex_m := armv7m-none-eabi
# Where user programs are linked to
KERNEL_USER_LINK := -Ttext=0x400000 -Tbss=0x401000
KERNEL_USER_LINK_cortex_m_dice := -T demo/kernel/cortex_m/user.lds --defsym=USER_TEXT=0x21000000
KERNEL_USER_LINK_cortex_m_knit := -T demo/kernel/cortex_m/user.lds --defsym=USER_TEXT=0x21010000
KERNEL_CFLAGS_riscv64 := -march=rv64imac -mabi=lp64 -mcmodel=medany -mno-relax -msmall-data-limit=0
# Of demo/kernel/shared
KERNEL_SHARED_x86_64 := one_timer read_checked
KERNEL_SHARED_aarch64 := device_tree read_checked virtio_line
KERNEL_SHARED_riscv64 := device_tree one_timer read_checked virtio_line

# demo_kernel MACHINE fp|nofp
define demo_kernel
KERNEL_DIR_$(1)_$(2) := $(BUILD)/demo/kernel/$(1)/$(2)
KERNEL_OBJ_$(1)_$(2) := $$(patsubst demo/kernel/%,$$(KERNEL_DIR_$(1)_$(2))/%.o,$(KERNEL_SRC) \
	$(KERNEL_SHARED_$(1):%=demo/kernel/shared/%.c) $$(filter-out %.lds.S,$$(wildcard demo/kernel/$(1)/*.[cS])))
KERNEL_OBJ_$(1)_$(2) += $$(patsubst %,$$(KERNEL_DIR_$(1)_$(2))/%.o,$$(KERNEL_TARGET_SRC) $$(wildcard $$(KERNEL_PMU_$(1))))
KERNEL_CC_$(1)_$(2) := clang --target=$(or $(KERNEL_TARGET_$(1)),$(1)-none-elf) $$(KERNEL_CFLAGS) $(KERNEL_CFLAGS_$(1)) \
	$(KERNEL_CFLAGS_$(2)) -Idemo/kernel/$(1)

$$(KERNEL_DIR_$(1)_$(2))/%.o: demo/kernel/%
	@mkdir -p $$(@D)
	$$(call say,CLANG)
	$$(Q)$$(KERNEL_CC_$(1)_$(2)) -Wa,-I$$(KERNEL_DIR_$(1)_$(2)) -c $$< -o $$@
$$(KERNEL_DIR_$(1)_$(2))/target/%.o: target/%
	@mkdir -p $$(@D)
	$$(call say,CLANG)
	$$(Q)$$(KERNEL_CC_$(1)_$(2)) -c $$< -o $$@
$$(KERNEL_DIR_$(1)_$(2))/work.c.o: $(KERNEL_USER:%=$$(KERNEL_DIR_$(1)_$(2))/%.bin)
$$(KERNEL_DIR_$(1)_$(2))/%.elf: $$(KERNEL_DIR_$(1)_$(2))/user/%.c.o $(wildcard demo/kernel/$(1)/user.lds)
	$$(call say,LLD)
	$$(Q)ld.lld -N $$(or $$(KERNEL_USER_LINK_$(1)_$$*),$$(KERNEL_USER_LINK)) --discard-locals --build-id $$< -o $$@
$$(KERNEL_DIR_$(1)_$(2))/%.bin: $$(KERNEL_DIR_$(1)_$(2))/user/%.c.o $(wildcard demo/kernel/$(1)/user.lds)
	$$(call say,LLD)
	$$(Q)ld.lld -N $$(or $$(KERNEL_USER_LINK_$(1)_$$*),$$(KERNEL_USER_LINK)) --oformat binary $$< -o $$@
$$(KERNEL_DIR_$(1)_$(2))/kernel.lds: \
		$(firstword $(wildcard demo/kernel/$(1)/kernel.lds.S) demo/kernel/kernel.lds.S) demo/kernel/$(1)/arch.h
	@mkdir -p $$(@D)
	$$(Q)$$(KERNEL_CC_$(1)_$(2)) -E -P -x assembler-with-cpp -MF /dev/null $$< -o $$@
$(BUILD)/demo/kernel/$(1)/kernel-$(2).elf: $$(KERNEL_DIR_$(1)_$(2))/kernel.lds \
		$$(KERNEL_OBJ_$(1)_$(2)) $(KERNEL_USER:%=$$(KERNEL_DIR_$(1)_$(2))/%.elf)
	$$(call say,LLD)
	$$(Q)ld.lld --discard-locals --build-id -z max-page-size=4096 -T $$< $$(KERNEL_OBJ_$(1)_$(2)) -o $$@
DEMO_KERNELS += $(BUILD)/demo/kernel/$(1)/kernel-$(2).elf
KERNEL_USER_OBJ_$(1)_$(2) := $(KERNEL_USER:%=$$(KERNEL_DIR_$(1)_$(2))/user/%.c.o)
.SECONDARY: $$(KERNEL_USER_OBJ_$(1)_$(2))
-include $$(KERNEL_OBJ_$(1)_$(2):.o=.d) $$(KERNEL_USER_OBJ_$(1)_$(2):.o=.d)
endef
$(foreach machine,x86_64 aarch64 riscv64 cortex_m,$(foreach frames,fp nofp,\
	$(eval $(call demo_kernel,$(machine),$(frames)))))
.PHONY: demo-kernels
demo-kernels: $(DEMO_KERNELS)

# A kernel in another style, with its own Makefile: doc/porting.md adds the profiler to it. What the user sets for
# this Makefile (CFLAGS) is not for that one.
.PHONY: porting-kernel
porting-kernel:
	$(Q)MAKEFLAGS= $(MAKE) --no-print-directory $(if $(V),,-s) -C tests/porting OUT='$(abspath $(BUILD))/porting'
