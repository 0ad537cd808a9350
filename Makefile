# `make test` and `make demo` work from an empty clone; steps that are already done are skipped.
#   CUDA=1   with the CUDA kernels (needs nvcc), in build/cuda
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PRESET := $(if $(filter 1,$(CUDA)),cuda,release)
BUILD := $(if $(filter 1,$(CUDA)),build/cuda,build)

.PHONY: all setup configure program build test night browser-test demo bundle wheel docs references peers browser
.PHONY: format check-format check-includes clean

all: build

setup:
	@setup/run $(if $(filter 1,$(CUDA)),--cuda)

# Python packages that some tests compare with; without them those tests skip.
references:
	@setup/run --reference

# Python packages that fixtures are recorded with and that benchmarks measure against: 5 GB.
peers:
	@setup/run --peers

# The browser for browser-test.
browser:
	@setup/run --browser

configure: setup
	@[ -e $(BUILD)/build.ninja ] || cmake --preset $(PRESET)

# build/antisd and the library that it loads for Parquet files, no tests.
program: configure
	@cmake --build $(BUILD) -j $(JOBS) --target program

# The program, the tests and the benchmarks.
build: configure
	@cmake --build $(BUILD) -j $(JOBS)

test: configure
	@cmake --build $(BUILD) -j $(JOBS) --target program tests
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure

# Checks that take too long for every change: kills, faults at every call, long fuzz runs, the
# adversary. At most 150 minutes.
night:
	@tools/night

# Report and dashboard in a real browser (setup/debian-browser.txt); passes with a message if there
# is none. SCREENSHOTS=docs retakes the README's screenshots, of the runs that tools/evidence_runs
# left in runs/evidence.
browser-test: program
	@python3 tools/browser_test.py $(BUILD)/antisd $(if $(SCREENSHOTS),--screenshots $(SCREENSHOTS))

# GRPO, SD and AntiSD from models/countdown; if interrupted, it continues when started again.
demo: program
	@$(BUILD)/antisd demo

bundle: build
	@tools/bundle $(BUILD) build/bundle

# dist/antisd-VERSION-py3-none-linux_x86_64.whl for pip, uv or pipx: for CPUs and, where there is an
# nvcc (CUDA=1 fetches one), for every card.
wheel: setup
	@[ -e build/build.ninja ] || cmake --preset release
	@cmake --build build -j $(JOBS) --target program
	@if command -v nvcc >/dev/null || [ "$(CUDA)" = 1 ]; then \
	  { [ -e build/cuda/build.ninja ] || cmake --preset cuda; } && \
	  cmake --build build/cuda -j $(JOBS) --target program && \
	  python3 tools/make_wheel.py build --cuda build/cuda; \
	else \
	  echo "wheel: without kernels, because there is no nvcc; make wheel CUDA=1 fetches it" >&2; \
	  python3 tools/make_wheel.py build; \
	fi

docs: program
	@$(BUILD)/antisd config --docs > docs/options.md

SOURCES = $(shell git ls-files '*.cpp' '*.h' '*.cu' '*.cuh')
format:
	@clang-format -i $(SOURCES)

check-format:
	@clang-format --dry-run --Werror $(SOURCES)

# Checks includes against the layers, and the documents against both.
check-includes:
	@python3 tools/check_includes.py
	@python3 tools/check_docs.py
	@python3 tools/check_names.py

clean:
	@rm -rf build
