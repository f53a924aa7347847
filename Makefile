# Targets create `.venv`, with the versions pinned in constraints.txt, when they need it: the
# demonstration installs what it needs, everything else all that the tests need.

PYTHON  ?= python3
WORKERS ?= 2
PIP_VERSION := 26.3

BIN := .venv/bin
# Stamps, each written last, so that an interrupted set-up starts again.
CREATED := .venv/.venv-created
DEMO    := .venv/.demo
READY   := .venv/.ready
RELEASE := .venv/.release

# Python compiles a module when it first imports it, so installing need not compile all of them.
# PySpark has no wheel: pip builds one, in a third of the time if it does not compress it.
PIP     := $(BIN)/python -m pip --disable-pip-version-check -qq
INSTALL := $(PIP) install --no-compile -c constraints.txt --build-constraint constraints.txt \
  --config-settings=--build-option=--compression=stored

# Some tests need an MQTT broker, some a browser, and one a PostGIS server. These are installed if
# possible (as root, with apt-get); otherwise the tests are skipped, with a message.
MOSQUITTO := [ -x /usr/sbin/mosquitto ] || command -v mosquitto >/dev/null \
  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
       && timeout 180 sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends mosquitto' >/dev/null 2>&1; } \
  || echo "mosquitto is missing and cannot be installed: its tests will be skipped"
CHROMIUM := command -v chromium >/dev/null \
  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
       && timeout 300 sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium' >/dev/null 2>&1; } \
  || echo "chromium is missing and cannot be installed: the tests of the console will be skipped"
POSTGIS := dpkg -s postgresql-15-postgis-3 >/dev/null 2>&1 \
  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
       && timeout 180 sh -c 'apt-get -qq update && apt-get -qq install -y postgresql-15-postgis-3' >/dev/null 2>&1; } \
  || echo "PostGIS is missing and cannot be installed: its test will be skipped"
QEMU := command -v qemu-x86_64 >/dev/null \
  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
       && timeout 180 sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends qemu-user' >/dev/null 2>&1; } \
  || echo "qemu-user is missing and cannot be installed: the test of an older processor will be skipped"

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all check format-check lint types layers docs fmt bench wheel release-check clean distclean

help:  ## Show this list
	@echo "Fencepost targets (the first one that needs .venv creates it):"
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	  | awk -F'|' '{ printf "%-22s%s\n", $$1, $$2 }'
	@echo "Variables: PYTHON=$(PYTHON) (3.11 or newer), WORKERS=$(WORKERS) (test processes)"

setup: $(READY)  ## Create .venv with pinned versions

demo: $(DEMO)  ## Run the demonstration, which writes demo-out/
	@echo "== running the demonstration on local Spark"
	@$(BIN)/fencepost demo

# The longest groups of tests start first, so that both workers end together.
PYTEST := $(BIN)/python -m pytest -q -rs -n $(WORKERS) --dist loadgroup --compile-kernels

test: $(READY)  ## Run the tests of the engine (minutes); kernels compile meanwhile
	@$(MOSQUITTO)
	@echo "== tests of the engine, and kernels compiled meanwhile if they are not cached"
	@$(PYTEST) -m "not slow"

test-all: $(READY)  ## Run all tests, including clusters, browsers, kills, papers at scale
	@$(MOSQUITTO)
	@$(CHROMIUM)
	@$(POSTGIS)
	@$(QEMU)
	@echo "== all tests, and kernels compiled meanwhile if they are not cached"
	@$(PYTEST)

check: format-check lint types layers docs test-all  ## Run the gate: format, lint, types, import layers, docs, all tests

fmt: $(READY)  ## Format the code and fix what can be fixed
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: $(READY)  ## Time the exact relations of two geometries
	@$(BIN)/fencepost bench relate

format-check: $(READY)
	@echo "== format"
	@$(BIN)/ruff format --check .

lint: $(READY)
	@echo "== lint"
	@$(BIN)/ruff check .

types: $(READY)
	@echo "== types"
	@$(BIN)/mypy

layers: $(READY)
	@echo "== layers"
	@$(BIN)/lint-imports --no-logo

# The variable silences an advertisement, which would look like a warning.
docs: $(READY)  ## Build the documentation in site/; a broken link or anchor is an error
	@echo "== documentation"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

wheel: $(RELEASE)  ## Build the source distribution, and a wheel with compiled kernels, in dist/
	@rm -rf dist
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m tools.build_wheel --out dist

release-check: wheel  ## Install dist/ in fresh environments, and try what users do first
	@$(BIN)/python -m tools.release_check dist

clean:  ## Remove caches and generated files, but not .venv
	rm -rf demo-out build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find bench src tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## Remove .venv, too
	rm -rf .venv

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Fencepost needs Python 3.11 or newer; '$(PYTHON) --version' printed: $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "Choose another Python: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@echo "== creating .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install pip==$(PIP_VERSION)
	@touch $@

# The kernels of the demonstration are compiled while PySpark is downloaded and built.
$(DEMO): pyproject.toml constraints.txt | $(CREATED)
	@echo "== installing Fencepost"
	@$(INSTALL) -e .
	@echo "== installing PySpark (450 MB) and matplotlib, and compiling kernels meanwhile"
	@$(BIN)/fencepost warmup --demo & kernels=$$!; \
	  $(INSTALL) -e '.[spark,plot]'; installed=$$?; \
	  wait $$kernels && exit $$installed
	@touch $@

$(READY): pyproject.toml constraints.txt | $(CREATED)
	@echo "== installing the packages of all extras and of the tests (a minute or more, once)"
	@$(INSTALL) --group dev --group docs -e '.[spark,server,plot,bench]'
	@touch $(DEMO) $@
	@echo "   $$($(BIN)/python --version), $$($(BIN)/fencepost --version)"

$(RELEASE): $(READY)
	@echo "== installing the tools that build and check distributions"
	@$(INSTALL) --group release
	@touch $@
