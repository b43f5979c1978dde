# SPDX-License-Identifier: GPL-3.0-or-later
#
# The native parts: `make` builds them for this machine into build/<machine>/, `make arm64` for arm64 where its compiler is
# installed (gcc-aarch64-linux-gnu), `make machines` for both. hatch_build.py puts what is there into the wheel.

MACHINE ?= $(shell uname -m)
CC_aarch64 ?= aarch64-linux-gnu-gcc
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

.PHONY: all arm64 machines clean
all: $(BUILD)/confinement-probe

arm64:
	$(MAKE) MACHINE=aarch64 CC=$(CC_aarch64) all

machines: all
	@if command -v $(CC_aarch64) >/dev/null; then $(MAKE) arm64; else echo "no $(CC_aarch64): arm64 is left out"; fi

# Written beside and renamed: a probe of another process may be reading the old one.
$(BUILD)/confinement-probe: $(PROBE_SOURCES) $(PROBE)/probe.h Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -static -s -o $@.$$$$ $(PROBE_SOURCES) && mv $@.$$$$ $@

clean:
	rm -rf $(BUILD)
