# Builds what users install, in dist/, for this machine or for every platform. See RELEASING.md.

packages: ## builds what users install, in dist/
	rm -rf dist
	$(MAKE) --no-print-directory python-package
	$(MAKE) --no-print-directory install PREFIX=/usr/local DESTDIR=$(CARGO_TARGET_DIR)/c-package
	tar -C $(CARGO_TARGET_DIR)/c-package \
	  -czf dist/polyflake-c-$(shell tools/metadata version)-$(shell uname -m)-linux.tar.gz usr
	$(MAKE) --no-print-directory inspector
	cd bindings-node && npm pack --silent --pack-destination ../dist . ./npm/linux-x64-gnu
	POLYFLAKE_INSPECTOR=$(INSPECTOR) cli/build.sh dist
	@ls -l dist

# The tools that build a release, in a separate environment: zig is the compiler and linker.
# PLATFORMS="linux-x64-gnu win32-x64-gnu" builds only those; all are in packages/platforms.toml.
RELEASE := $(CARGO_TARGET_DIR)/packages/venv
PLATFORMS ?=

$(RELEASE)/ready: packages/requirements.txt tools/venv
	tools/venv $(RELEASE) packages/requirements.txt
	touch $@

packages-all: $(RELEASE)/ready inspector ## builds what users install on every platform, in dist/: see RELEASING.md
	@tools/need mvn maven
	@bindings-c/java/jdk >/dev/null || { echo "packages-all needs a JDK of Java 22 or later" >&2; exit 1; }
	rm -rf dist
	PATH=$(RELEASE)/bin:$$PATH packages/build.py platform $(PLATFORMS)
	PATH=$(RELEASE)/bin:$$PATH POLYFLAKE_INSPECTOR=$(INSPECTOR) packages/build.py command $(PLATFORMS)
	PATH=$(RELEASE)/bin:$$PATH packages/build.py common

test-packages-all: $(RELEASE)/ready $(VENV)/ready ## checks what packages-all has built, and runs it: also under qemu and Wine
	@tools/need qemu-aarch64 qemu-user wine wine64 /usr/bin/wine wine composer composer php php-cli pkg-config pkg-config \
	  /lib/ld-musl-x86_64.so.1 musl '/etc/php/*/mods-available/zip.ini' php-zip curl curl gpg gnupg mvn maven zip zip
	packages/sysroot arm64 $(CARGO_TARGET_DIR)/packages/arm64 python3 nodejs musl
	PATH=$(RELEASE)/bin:$$PATH packages/test.py $(PLATFORMS)

publish: $(RELEASE)/ready ## uploads dist/ to PyPI, npm, crates.io and Maven Central: see RELEASING.md
	@tools/need curl curl gpg gnupg zip zip
	PATH=$(RELEASE)/bin:$$PATH packages/publish pypi npm crates maven
