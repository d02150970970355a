# The long tests, which CI runs for a release (`make test-release`), and those that are too long for any CI.

test-from-clone: $(VENV)/ready # from a clone to a first ID, in each language
	@tools/need node nodejs npm npm php php-cli pkg-config pkg-config
	@tools/need gradle gradle || true # without it, its test is skipped
	$(PYTEST) --timeout 3600 tests/test_from_clone.py

test-store-builds: $(VENV)/ready tools-ready # the bindings with one store, and with none
	@tools/need node nodejs
	$(PYTEST) --timeout 3600 tests/test_stores.py

test-cli-packages: $(VENV)/ready inspector # the command as pip, npm and cargo install it
	POLYFLAKE_INSPECTOR=$(INSPECTOR) cli/tests/packages.sh

test-clients: $(VENV)/ready inspector # the service, by clients in ten languages, a fuzzer and a browser
	cli/tests/clients/run.sh

test-recipes: $(VENV)/installed c-prefix node-package store-servers # recipes/ in their frameworks, on real databases
	$(C_ENVIRONMENT) recipes/test.sh

test-site: docs # every link and anchor on the site, and its pages in Chromium
	@tools/need chromium chromium
	HYPERLINK="$$(tools/cargo-tool hyperlink 0.3.2 hyperlink)" \
	  node --test --test-reporter=./bindings-node/tests/reporter.js tools/site/test.mjs

test-runtimes: node-package # the npm package in Bun and Deno
	bindings-node/tests/runtimes/run.sh

soak: tools-ready ## 200 rounds of killed processes that share a state file; millions of strings that are not public IDs
	cargo test --locked -p polyflake --test crash -- --ignored --exact --nocapture two_hundred_rounds_repeat_nothing
	cargo test --locked -p polyflake --test fairness -- --ignored --nocapture
	cargo test --locked -p polyflake --release --features public-ids --test public_ids -- --ignored

test-fuzz-longer: tools-ready # a minute of fuzzing for each target
	tools/fuzz 60

test-miri: tools-ready # the core in an interpreter that notices undefined behaviour
	tools/miri

test-mutants: tools-ready # the models fail on each mutant of the core
	tools/models --mutants

test-python-longer: $(VENV)/installed # tens of thousands of random cases
	cd bindings-python && POLYFLAKE_PROPERTY_CASES=20000 $(CURDIR)/$(PYTEST) tests/test_property.py

test-service-longer: tools-ready # `polyflake serve`: a minute of killed servers, 10,000 connections
	@tools/need redis-server redis-server redis-cli redis-tools
	cargo test --locked -p polyflake-cli --test cli serve:: -- --ignored --nocapture --test-threads=1

test-histories-longer: store-servers # random histories over every store; each prints its seed
	cargo test --locked -p polyflake-coordination --test histories longer -- --ignored --nocapture --test-threads=3

test-counter-models: tools-ready # the larger models of the counters' protocol: two minutes and 4 GB
	cargo test --locked --release -p polyflake-coordination --lib counter::protocol:: -- --ignored

test-leases-longer: store-servers ## 1,000 simulated hours of leases, larger models, a minute of kills and two of outage
	cargo test --locked --release -p polyflake-coordination --lib lease:: -- --include-ignored --nocapture
	cargo test --locked -p polyflake-coordination --test counters killed_for_a_minute -- \
	  --ignored --nocapture --test-threads=1
	cargo test --locked -p polyflake-coordination --test counters two_minutes -- \
	  --ignored --nocapture --test-threads=12

fuzz: tools-ready ## fuzzes each target for five minutes
	tools/fuzz 300
