# Every target makes what it needs: a fresh machine needs Python >= 3.11, make and a package index, no Java.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
UV     := 0.13.7
DEMO   := examples/smart-plugs

# Kept whatever the user's settings: without it every worker compiles all of Headrace and its libraries again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check deep spark bench bench-windows soak lock clean
.DEFAULT_GOAL := check

# uv installs the hash-checked lock in seconds; pip, slower, knows index settings that uv does not read.
# The stamp makes every later call instant.
$(VENV)/.ready: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Headrace needs Python >= 3.11; set one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Making $(VENV): some minutes, once."
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check uv==$(UV)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-}}" \
		$(PY) -m uv pip install --quiet --require-hashes -r requirements.lock \
		|| $(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

# The planners' kernels are compiled once (about a minute) and cached beside their sources.
$(VENV)/.kernels: $(VENV)/.ready $(wildcard headrace/planners/*/*.py)
	@echo "Compiling the planners' kernels: a minute, once."
	@$(PY) -c 'import time; from headrace.planners.sharing import solve as sharing; \
		from headrace.planners.placement import solve as placement; clock = time.perf_counter; \
		took = sharing.warm(clock) + placement.warm("exact", clock) + placement.warm("joint", clock); \
		print(f"compiled or loaded in {took:.1f} s")'
	@touch $@

demo: $(VENV)/.kernels
	$(VENV)/bin/headrace check $(DEMO)
	$(VENV)/bin/headrace plan $(DEMO) --brief
	$(VENV)/bin/headrace run $(DEMO) --drain --fresh
	$(VENV)/bin/headrace queries $(DEMO)
	$(VENV)/bin/headrace results house_sum_5m $(DEMO) --limit 6
	$(VENV)/bin/headrace results near_peak_1m $(DEMO) --limit 6
	$(VENV)/bin/headrace results near_peak_1m $(DEMO) --verify

# Everything that needs no JVM; under a minute.
check: $(VENV)/.kernels
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest -m "not spark and not soak" -n 2 --dist worksteal --ignore tests/spark --ignore tests/deep \
		--hypothesis-profile light

spark: $(VENV)/.kernels
	$(PY) -m pytest -m spark

# Searches against oracles, and those of `check` with all their examples: no JVM, a minute.
deep: $(VENV)/.kernels
	$(PY) -m pytest tests/deep $$(grep -rlE --include='test_*.py' 'tests.searches|from hypothesis' tests/unit) \
		-n 2 --dist worksteal

test: check deep spark

bench: $(VENV)/.kernels
	$(PY) -m benchmarks.run

# Flink has its own environment: its dependencies do not fit ours. Made once, 850 MB.
FLINK := 2.3.0
BENCH := .bench
$(BENCH)/flink/.ready-$(FLINK): $(VENV)/.ready
	$(PY) -m venv $(BENCH)/flink
	echo '*' > $(BENCH)/.gitignore
	$(BENCH)/flink/bin/python -m pip install --quiet --disable-pip-version-check apache-flink==$(FLINK)
	@touch $@

# Window queries on five engines; hours. ARGS=--quick takes about five minutes, ARGS=--help says what else there is.
bench-windows: $(VENV)/.kernels $(BENCH)/flink/.ready-$(FLINK)
	$(PY) -m benchmarks.windows --cache $(BENCH) $(or $(ARGS),--publish)

# The long runs: random queries against the reference, and kill -9 at random moments.
soak: $(VENV)/.ready
	$(PY) -m tests.soak
	$(PY) -m pytest -m soak tests/spark

# Only when pyproject.toml's dependencies change. No index address may enter the lock.
lock: $(VENV)/.ready
	$(PY) -m uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
		--no-emit-index-url --group dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis artifacts dist spark-warehouse
	rm -rf $(DEMO)/.headrace $(DEMO)/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
