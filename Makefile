PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BROKER := $(VENV)/.broker
READY := $(VENV)/.ready
SEEDS ?= 200
MINUTES ?= 20
SPARKS ?= 4.0 4.1 4.2 4.3

NEW_VENV = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Ottla needs Python 3.11 or newer; set PYTHON=...")' && $(PYTHON) -m venv $(VENV)
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: run test test-fast test-spark-versions extras kill-matrix faults check sim docs site monitoring bench bench-spark bench-spark-versions clean

run: $(BROKER)  ## Start a broker on localhost:9092 with its data in ./data, and HTTP on localhost:8080.
	@$(BIN)/ottla serve --data ./data --http 8080

test: check  ## Every check and every test; Spark's have the machine for themselves.
	$(BIN)/python -m pytest -n 5 --dist loadgroup --ignore tests/spark
	$(BIN)/python -m pytest -n 2 --dist loadgroup tests/spark

test-fast: $(READY)  ## The tests that need neither Spark nor other processes; about two minutes.
	$(BIN)/python -m pytest -n 4 --dist loadgroup --ignore tests/spark -m "not process"

test-spark-versions:  ## The tests of Spark on the newest release of each minor version, or of those in SPARKS.
	@for version in $(SPARKS); do $(MAKE) .venv-spark-$$version/.ready && \
	    .venv-spark-$$version/bin/python -m pytest -n 2 --dist loadgroup tests/pyspark_ottla tests/spark \
	        || exit 1; done

extras: $(READY)  ## Install each extra alone, from the package index, and do what its page says.
	PYTHONPATH=. $(BIN)/python -m tests.extras.trial

kill-matrix: $(READY)  ## Kill whoever takes part in a write from Spark, at every point.
	$(BIN)/python -m pytest -m kill_matrix tests/spark

faults: $(READY)  ## Disturb a cluster of real processes for MINUTES, and check what clients were promised.
	PYTHONPATH=. $(BIN)/python -m tests.network.bad_handshakes
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.absence --minutes 2 --gone 1
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.absence --minutes 2 --gone 2
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.stops --rounds 3
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.stalled
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.slow_machine --seconds 120 --sync-ms 300
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.pauses
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.flipped_bits
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.lost_disk --rounds 2
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.flipped_metadata --flips 3
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.gateway --minutes 10
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.tasks --minutes 5
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.streams --minutes 3
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.trial --minutes 5 --locked passwords
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.trial --minutes 5 --locked certificates
	PYTHONPATH=. $(BIN)/python -m tests.cluster.faults.trial --minutes $(MINUTES)

check: $(READY)  ## Style, types, import rules.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

sim: $(READY)  ## Run SEEDS clusters in simulation, each from another seed.
	$(BIN)/ottla-sim --count $(SEEDS)

docs: $(READY)  ## Regenerate the documents that come from code.
	$(BIN)/python -m ottla.node.config_reference > docs/config.md
	$(BIN)/python -m ottla.cli.api_reference docs/compatibility.md
	$(BIN)/python -m ottla.node.metrics.reference > docs/metrics.md
	$(BIN)/python -m ottla.node.log_reference > docs/logs.md

site: $(READY)  ## Build the documents as a site, in .site/index.html.
	$(BIN)/python -m mkdocs build --strict --quiet

monitoring: $(READY)  ## Regenerate the alerts and dashboards in deploy/monitoring.
	$(BIN)/python -m deploy.monitoring.generate

bench: $(READY)  ## Measure, beside Apache Kafka where it can be had; writes benchmarks/RESULTS-*.md.
	$(BIN)/python -m benchmarks

bench-spark: $(READY)  ## Measure the Spark part, beside Spark's own; writes benchmarks/RESULTS-SPARK.md.
	$(BIN)/python -m benchmarks.spark

bench-spark-versions:  ## Rows/s beside Spark's own connector on each minor version, or on those in SPARKS.
	@for version in $(SPARKS); do $(MAKE) .venv-spark-$$version/.ready && \
	    .venv-spark-$$version/bin/python -m benchmarks.spark --version-row || exit 1; done

# What `make run` needs: the broker and the gateway. Python compiles what is imported, when it is.
$(BROKER): pyproject.toml constraints.txt
	$(NEW_VENV)
	$(INSTALL) --no-compile --editable '.[gateway]'
	@touch $(BROKER)

# What everything else needs: Spark, a JDK, the clients and the tools of the tests as well.
$(READY): pyproject.toml constraints.txt
	$(NEW_VENV)
	$(INSTALL) --editable '.[dev]'
	@touch $(BROKER) $(READY)

.venv-spark-%/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-spark-$*
	grep -vE '^(pyspark|py4j)==' constraints.txt > .venv-spark-$*/constraints.txt
	.venv-spark-$*/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint .venv-spark-$*/constraints.txt --editable '.[dev]' 'pyspark==$*.*'
	@touch $@

clean:
	rm -rf $(VENV) .venv-spark-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
