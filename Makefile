# A thin front: CMake does the work.
BUILD ?= build
TYPE  ?= Release
JOBS  ?= $(shell nproc)
MAKEFLAGS += --no-print-directory

all: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/CMakeCache.txt:
	@scripts/packages
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=$(TYPE) >/dev/null

# Build, fetch a small model, and let it answer.
demo:
	@scripts/demo

# Everything: the suite, again under the sanitizers, and the fuzz targets for a bounded time.
test:
	@scripts/test

# Ours and the peer side by side; needs the peer (see bench/README.md).
bench: all
	@bench/run

# The tensor library in one file: dist/arenite.c with its headers.
amalgamation:
	@python3 scripts/amalgamate.py dist

# Single kernels and ops, beside their bounds.
bench-micro: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS) --target bench-micro

install: all
	@cmake --install $(BUILD)

clean:
	@rm -rf $(BUILD) build-* dist

.PHONY: all demo test bench bench-micro amalgamation install clean
