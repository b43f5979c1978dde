# SPDX-License-Identifier: GPL-3.0-or-later
#
# The native parts: `make` builds them for this machine into build/<machine>/, `make arm64` for arm64 where its compiler is
# installed (gcc-aarch64-linux-gnu), `make machines` for both. hatch_build.py puts what is there into the wheel.
# `make musl` builds the tracer against musl (musl-tools; MUSL_CC names another compiler) into build/<machine>/musl/,
# `make sanitized` with ASan and UBSan into build/<machine>/sanitized/; DROIDDECK_TEST_BUILD=musl|sanitized has the native
# tests of the tracer run that one.

MACHINE ?= $(shell uname -m)
CC_aarch64 ?= aarch64-linux-gnu-gcc
# musl-gcc keeps the kernel's headers out of reach; they come last, so that no header of glibc's is taken for one of musl's.
MUSL_CC ?= musl-gcc -idirafter /usr/include -idirafter /usr/include/$(MACHINE)-linux-gnu
BUILD = build/$(MACHINE)

# bubblewrap's list (its meson.build), as errors.
WARNINGS = -Wall -Wextra -Werror \
	-Wshadow -Wempty-body -Wstrict-prototypes -Wmissing-prototypes -Wstrict-aliasing=2 -Wundef -Wunused -Wformat=2 -Winit-self \
	-Wmissing-include-dirs -Wmissing-declarations -Wnested-externs -Wold-style-definition -Wpointer-arith -Wredundant-decls \
	-Wswitch-default -Wswitch-enum -Wint-conversion -Wimplicit -Wreturn-type -Wno-missing-field-initializers
CFLAGS ?= -O2 -g0
ALL_CFLAGS = -std=c11 -fvisibility=hidden -D_FILE_OFFSET_BITS=64 $(WARNINGS) $(CFLAGS)

PROBE = backends/probe
PROBE_SOURCES = $(PROBE)/confinement.c $(PROBE)/path_calls.c

# Every source of these folders belongs to the program.
FASTPATH = backends/fastpath
FASTPATH_HEADERS = $(wildcard $(FASTPATH)/*.h $(FASTPATH)/*/*.h $(FASTPATH)/*/*/*.h)
TRACER_SOURCES = $(sort $(wildcard $(FASTPATH)/resolver/*.c $(FASTPATH)/tracer/*.c))
TRACER_CFLAGS = $(ALL_CFLAGS) -I$(FASTPATH) -DDD_VERSION='"$(VERSION)"'
LOADER_SOURCES = $(sort $(wildcard $(FASTPATH)/loader/*.c $(FASTPATH)/loader/*.S))
# Freestanding, at a fixed address far above 2 GiB, and without vector registers: what it leaves in them a program would see.
LOADER_BASE = $(shell echo DD_LOADER_BASE | $(CC) -E -P -include $(FASTPATH)/abi.h - | sed -n '$$s/ULL//p')
LOADER_CFLAGS = $(ALL_CFLAGS) -I$(FASTPATH) -ffreestanding -fno-stack-protector -fno-pic -fno-pie -fno-asynchronous-unwind-tables
LOADER_CFLAGS_x86_64 = -mcmodel=large -mgeneral-regs-only -fcf-protection=none
LOADER_LDFLAGS = -nostdlib -static -no-pie -Wl,-z,max-page-size=65536,-z,noexecstack,--build-id=none \
	-Wl,--defsym=LOADER_BASE=$(LOADER_BASE),-T,$(FASTPATH)/loader/loader.ld
# For guests of any glibc from 2.31 on: no version of a symbol is asked for, so nothing newer than the guest's can be.
# Two segments and no start files: each costs every exec of the guest.
LIBRARY = $(FASTPATH)/library
LIBRARY_SOURCES = $(sort $(wildcard $(LIBRARY)/*.c $(LIBRARY)/*_$(MACHINE).S)) \
	$(addprefix $(FASTPATH)/resolver/,components.c guest_name.c proc_links.c view.c walk.c)
LIBRARY_CFLAGS = $(filter-out -D_FILE_OFFSET_BITS=64,$(ALL_CFLAGS)) -std=gnu11 -I$(FASTPATH) -DDD_PATH_BUFFER=512 -fPIC \
	-fno-stack-protector -fno-asynchronous-unwind-tables -U_FORTIFY_SOURCE
LIBRARY_CFLAGS_x86_64 = -mno-red-zone
LIBRARY_LDFLAGS = -shared -nostdlib -nostartfiles -Wl,-z,noseparate-code,-z,norelro,-z,now,--hash-style=gnu,--build-id=none
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' droiddeck_session/__init__.py)
SANITIZERS = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

PROGRAMS = $(BUILD)/confinement-probe
ifeq ($(MACHINE),x86_64)
PROGRAMS += $(BUILD)/droiddeck-tracer $(BUILD)/droiddeck-loader $(BUILD)/libblfastpath.so
endif

.PHONY: all arm64 machines musl sanitized bench clean
all: $(PROGRAMS)

arm64:
	$(MAKE) MACHINE=aarch64 CC=$(CC_aarch64) all

machines: all
	@if command -v $(CC_aarch64) >/dev/null; then $(MAKE) arm64; else echo "no $(CC_aarch64): arm64 is left out"; fi

# Written beside and renamed: a probe of another process may be reading the old one.
$(BUILD)/confinement-probe: $(PROBE_SOURCES) $(PROBE)/probe.h Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -static -s -o $@.$$$$ $(PROBE_SOURCES) && mv $@.$$$$ $@

$(BUILD)/droiddeck-tracer: $(TRACER_SOURCES) $(FASTPATH_HEADERS) Makefile
	@mkdir -p $(@D)
	$(CC) $(TRACER_CFLAGS) -static -s -o $@.$$$$ $(TRACER_SOURCES) && mv $@.$$$$ $@

$(BUILD)/droiddeck-loader: $(LOADER_SOURCES) $(FASTPATH)/loader/loader.ld $(FASTPATH_HEADERS) Makefile
	@mkdir -p $(@D)
	$(CC) $(LOADER_CFLAGS) $(LOADER_CFLAGS_$(MACHINE)) $(LOADER_LDFLAGS) -s -o $@.$$$$ $(LOADER_SOURCES) && mv $@.$$$$ $@

$(BUILD)/libblfastpath.so: $(LIBRARY_SOURCES) $(FASTPATH_HEADERS) Makefile
	@mkdir -p $(@D)
	$(CC) $(LIBRARY_CFLAGS) $(LIBRARY_CFLAGS_$(MACHINE)) $(LIBRARY_LDFLAGS) -s -o $@.$$$$ $(LIBRARY_SOURCES) && mv $@.$$$$ $@

# What ./dev bench runs inside guests; one folder deeper, so that no wheel has it.
bench: $(BUILD)/bench/calls
$(BUILD)/bench/calls: $(FASTPATH)/bench/calls.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -D_GNU_SOURCE -static -pthread -s -o $@.$$$$ $< && mv $@.$$$$ $@

# Not static: the sanitizers' runtime is not.
sanitized: $(BUILD)/droiddeck-loader
	@mkdir -p $(BUILD)/sanitized
	$(CC) $(TRACER_CFLAGS) -O1 -g $(SANITIZERS) -o $(BUILD)/sanitized/droiddeck-tracer $(TRACER_SOURCES)
	cp $(BUILD)/droiddeck-loader $(BUILD)/sanitized/

musl: $(BUILD)/musl/droiddeck-tracer
$(BUILD)/musl/droiddeck-tracer: $(TRACER_SOURCES) $(FASTPATH_HEADERS) $(BUILD)/droiddeck-loader Makefile
	@mkdir -p $(@D)
	$(MUSL_CC) $(TRACER_CFLAGS) -static -s -o $@ $(TRACER_SOURCES)
	cp $(BUILD)/droiddeck-loader $(@D)

clean:
	rm -rf $(BUILD)
