# `make test` and `make demo` do everything from an empty clone; each step does nothing that is done already.
#   CUDA=1   with the CUDA kernels (needs nvcc), in build/cuda
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PRESET := $(if $(filter 1,$(CUDA)),cuda,release)
BUILD := $(if $(filter 1,$(CUDA)),build/cuda,build)

.PHONY: all setup build test browser-test demo bundle docs references format check-format check-includes clean

all: build

setup:
	@setup/run $(if $(filter 1,$(CUDA)),--cuda)

# Python packages for the scripts under tools/ that record fixtures and measure peers.
references:
	@setup/run --reference

build: setup
	@[ -e $(BUILD)/build.ninja ] || cmake --preset $(PRESET)
	@cmake --build $(BUILD) -j $(JOBS)

test: build
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure

# Report and dashboard in a real browser (setup/debian-browser.txt); says so and passes where there is none.
# SCREENSHOTS=docs takes the pictures of the README anew, of the real runs that tools/evidence_runs left in runs/evidence.
browser-test: build
	@python3 tools/browser_test.py $(BUILD)/antisd $(if $(SCREENSHOTS),--screenshots $(SCREENSHOTS))

# GRPO, SD and AntiSD from models/countdown; interrupted, it goes on where it was.
demo: build
	@$(BUILD)/antisd demo

bundle: build
	@tools/bundle $(BUILD) build/bundle

docs: build
	@$(BUILD)/antisd config --docs > docs/options.md

SOURCES = $(shell git ls-files '*.cpp' '*.h' '*.cu' '*.cuh')
format:
	@clang-format -i $(SOURCES)

check-format:
	@clang-format --dry-run --Werror $(SOURCES)

check-includes:
	@python3 tools/check_includes.py

clean:
	@rm -rf build
