# Each target sets up what it needs in .venv; PYTHON names the interpreter, 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first imported: most of them never are.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
INSTALL = $(PIP) --editable
# There is a process for each core; threads of linear algebra would only wait for each other.
ONE_THREAD = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# An editable installation compiles them; it is made anew when they change.
NATIVE := hatch_build.py $(wildcard src/ordinalrisk/growth/kernels/native/*.[ch])

.PHONY: demo test native sanitize coverage fuzz docs linkcheck lint check dist wheels bench reproduce clean

demo: $(VENV)/.demo
	$(BIN)/ordinalrisk demo

test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m pytest --numprocesses auto --dist worksteal

native: $(BIN)/python # the C kernels anew, with warnings for errors
	$(BIN)/python hatch_build.py --strict

sanitize: $(VENV)/.test # the kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(ONE_THREAD) $(BIN)/python tests/sanitize.py

coverage: $(VENV)/.test # a quarter slower, so not part of every test run
	$(ONE_THREAD) $(BIN)/python -m pytest --numprocesses auto --dist worksteal --cov --cov-report term-missing:skip-covered

SECONDS ?= 60
SEED ?= 0
fuzz: $(VENV)/.test # attacks; what is found is kept in fuzz/regressions, which the tests run again
	$(ONE_THREAD) $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

docs: $(VENV)/.docs # the site in docs/_build/html; needs no network once installed
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	$(BIN)/python -m pytest --quiet docs/test_site.py

linkcheck: $(VENV)/.docs # links to other sites, which needs the network
	$(BIN)/python -m sphinx --builder linkcheck --quiet docs docs/_build/linkcheck

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

check: $(VENV)/.check
	$(MAKE) lint native test docs dist

dist: $(VENV)/.dist # sdist and wheel in dist/, each installed in a new environment and used there
	rm -rf dist
	$(BIN)/python -m build --no-isolation > /dev/null
	$(BIN)/python tests/dist_check.py dist

wheels: $(VENV)/.wheels # a wheel for each platform in dist/wheels, from any machine
	$(BIN)/python tests/wheels_check.py dist/wheels

bench: $(VENV)/.bench # with the kernels as the wheels have them
	CC="$(BIN)/python -m ziglang cc" $(BIN)/python hatch_build.py
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.paper

reproduce: $(VENV)/.test # the paper's experiments on the scores in docs/scores and, where ORDINALRISK_DATA has them, on the authors'
	$(BIN)/python -m reproduction all $(addprefix --scores ,$(wildcard docs/scores/*.csv.gz $(ORDINALRISK_DATA)/paper_scores/*.csv))

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(INSTALL) ".[plots,report]"
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(INSTALL) ".[test]"
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(INSTALL) ".[docs]"
	@touch $@

$(VENV)/.check: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(INSTALL) ".[test,docs]" # at once, which is quicker than one after the other
	@touch $@ $(VENV)/.test $(VENV)/.docs $(VENV)/.demo

$(VENV)/.dist: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) build hatchling hatch-fancy-pypi-readme $$($(BIN)/python hatch_build.py --needs)
	@touch $@

$(VENV)/.wheels: constraints.txt | $(BIN)/python
	$(PIP) build hatchling hatch-fancy-pypi-readme ziglang
	@touch $@

$(VENV)/.bench: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(INSTALL) ".[bench]"
	$(PIP) ziglang
	$(PIP) --no-deps torchcp # one of the packages it asks for can't be built everywhere, and is not needed here
	@touch $@

clean:
	rm -rf $(VENV) dist src/ordinalrisk/growth/kernels/native/_kernels.* demo docs/_build docs/tutorial docs/concepts docs/gallery docs/pages/tutorial/*.html docs/pages/tutorial/*.json .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
