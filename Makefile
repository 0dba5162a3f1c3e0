# The front door. Every target first makes sure that the system has what tools/packages.txt names.
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
SWEEP_EVERY ?= 4
SWEEP_FS ?= --fs tmpfs --fs ext4 --fs btrfs --fs xfs
PYTHON := python3

export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: bootstrap
bootstrap: ## install missing Debian packages (every other target does this first)
	@tools/bootstrap

# $(call build,PRESET,TARGETS): configure and build; without targets, everything. Configuring again costs nothing when
# nothing changed.
define build
@cmake --preset $(1) --log-level=WARNING >/dev/null
@cmake --build build/$(1) --parallel $(JOBS) $(if $(2),--target $(2))
endef

.PHONY: demo
demo: build ## commands in a world rewrite and delete a project, undo brings it back; the same with the library
	@build/release/bin/sandglass_demo
	@examples/world_demo.sh

.PHONY: build
build: bootstrap ## release build: build/sandglass and the libraries in build/lib
	$(call build,release,sandglass sandglass-shim sandglass_demo sandglass_undo)
	@ln -sfn release/lib build/lib
	@if [ -e build/release/bin/sandglass ]; then ln -sf release/bin/sandglass build/sandglass; fi

.PHONY: install
install: build ## install the release build to PREFIX (/usr/local), below DESTDIR if that is set
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

.PHONY: test
test: bootstrap ## everything a change must pass; ends with the counts
	@$(PYTHON) tools/make_test.py --jobs $(JOBS)

.PHONY: test-all
test-all: bootstrap ## test, and the full model, crash and kill runs, mutants, sanitizers (hours)
	@$(PYTHON) tools/make_test.py --jobs $(JOBS) --all

.PHONY: bench
bench: bootstrap ## benchmarks on ext4 as ratios to the same work done plainly; worlds next to bindfs and bubblewrap
	$(call build,release,undo_bench sandglass sandglass-shim workload warm_command search_files)
	@$(PYTHON) tools/bench.py
	@$(PYTHON) tools/bench_world.py
	@$(PYTHON) tools/bench_files.py
	@$(PYTHON) tools/bench_api.py
	@worse=0; for part in "" world_ api_; do \
	  recorded=bench/recorded$${part:+_$${part%_}}.json; \
	  tools/bench_compare --now build/bench/$${part}ratios.json --recorded $$recorded || worse=1; done; exit $$worse

.PHONY: fuzz
fuzz: bootstrap ## each fuzz target for FUZZ_SECONDS (60), then coverage of each decoder by its corpus
	$(call build,fuzz,fuzzers)
	@$(PYTHON) tools/fuzz.py run --seconds $(FUZZ_SECONDS)
	$(call build,coverage,fuzzers)
	@$(PYTHON) tools/fuzz.py coverage

.PHONY: crash-sweep
crash-sweep: bootstrap ## kill the program around system calls (SWEEP_EVERY=1: all of them); a broken build must be caught
	$(call build,dev)
	@tools/crash_sweep --full --every $(SWEEP_EVERY) $(SWEEP_FS)
	@cmake --preset dev -B build/mutant -DSANDGLASS_MUTANT=journal_after_operation --log-level=ERROR >/dev/null
	@cmake --build build/mutant --parallel $(JOBS) --target crash_sweep
	@tools/crash_sweep --broken

.PHONY: mutants
mutants: bootstrap ## build each deliberate fault and show which test catches it
	@$(PYTHON) tools/mutants.py --jobs $(JOBS)

.PHONY: coverage
coverage: bootstrap ## line coverage of src/ by tests and corpora
	$(call build,coverage)
	@$(PYTHON) tools/coverage.py

.PHONY: lint
lint: bootstrap ## layers, format and clang-tidy of what changed (LINT=--all: of everything)
	$(call build,dev)
	@$(PYTHON) tools/lint.py --jobs $(JOBS) $(LINT)

.PHONY: format
format: bootstrap ## clang-format every source in place
	@$(PYTHON) tools/format.py

.PHONY: clean
clean: ## remove build/
	@rm -rf build
