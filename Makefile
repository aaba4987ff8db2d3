# The front door: `make` alone prints help.
# Everything is installed into .venv, from the pinned versions in .lock/requirements.txt, by the rule for $(STAMP) below.

.DEFAULT_GOAL := help
.PHONY: help run test fuzz-kept fuzz-surroundings demo-fair soak prove prove-induction spec follow-all mutants mutants-order reach lint format setup lock clean bench profile docs bench-explorer bench-spark test-slow test-night test-kill test-cluster test-million test-planted test-wheel crosscheck crosscheck-own crosscheck-columnar crosscheck-reading conform chaos planted right-systems matrix matrix-campaign data-races fuzz corpus endure

VENV  := .venv
BIN   := $(VENV)/bin
LOCK  := .lock/requirements.txt
STAMP := $(VENV)/.installed
ARGS  ?=

# Tests and tools start the project hundreds of times: without Python's caches each start would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

# How long `make soak` takes, and how many mutants `make mutants` tries (all, if not said).
SECONDS ?= 120
SAMPLE  ?=

# In how many processes `make test` runs.
WORKERS ?= auto

# How many generated programs must agree in `crosscheck`, and the file that remembers how far it got.
PROGRAMS   ?= 20000
CROSSCHECK := build/crosscheck/$(PROGRAMS).json

# How many histories `right-systems` judges, and from which seed on.
N     ?= 10000
FIRST ?= 0

# How often `test-kill` kills a stream and the log, and how many events `test-planted` makes.
KILLS  ?= 20
LOG_KILLS ?= 1000
DEPTH  ?= 4
EVENTS ?= 5000000

# Where `matrix-campaign` keeps its checkpoint log.
CAMPAIGN ?= build/matrix-campaign

# The interpreter that makes .venv. Say `make test PYTHON=python3.13` for another one.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

define HELP
seriatim: how a message queue's threads must behave, as code you can run, break and check others by.

  make run      check every program, show the published race and its repair, audit recordings of a
                real broker on Spark, and write build/report/index.html
  make test     run the tests
  make demo-fair  the fair consumer's two published tables, simulated side by side, and build/demo/fair.svg
  make soak     the machines for SECONDS (120): generated programs under the explorer and on real threads
  make spec     the Promela models under Spin (installed if you are root on Debian) against spec/manifest.json,
                their outcomes against those of the same programs in Python,
                and executions of the reference against the systems of spec/induction
  make follow-all  the schedules of every program of the queue, ten minutes of each at most, and the call matrix
                to depth 3, against those systems (for a night; stopped, it goes on where it was)
  make conform  real brokers and queues, each started, driven, judged and stopped; what is not there is
                installed if you are root on Debian. SYSTEM=rabbitmq takes those whose name begins so
  make chaos    real brokers killed, restarted, paused, cut off and out of disk while clients are at work, then
                drained and judged; CASE="beanstalkd redis/memory" takes those whose name begins so
  make planted  one right queue with single mistakes, driven with three seeds: what conform finds of them,
                written to spec/PLANTED.md (an hour; ARGS="--seeds 1" takes a third of it)
  make fuzz     what is read, of every format, mutated for SECONDS (120): declared ends and equal accounts only;
                ARGS="--seed N" repeats
  make fuzz-kept   what stream, campaign, matrix, audit and vectors keep between two runs, damaged, for SECONDS (120)
  make fuzz-surroundings   commands in odd variables, limits, streams and folders, and signals, for SECONDS (120)
  make endure   a stream for SECONDS (120) at 50,000 events a second, its driver and workers killed and paused, its disk
                full (as root), then compared with a batch audit; a matrix and a campaign in the same way;
                memory.svg and figures.json in build/endure; ARGS="--rate N"
  make right-systems  N (10000) drawn histories of systems that are right: no property may report one
  make prove    z3 on the systems of spec/induction, for any number of threads, entries and consumers,
                and CrossHair on every pure function that has a contract
  make prove-induction  the first half alone
  make matrix   every API call beside every other, from every state that DEPTH (4) calls lead to; stopped,
                it goes on where it was
  make matrix-campaign  the same on Spark, in isolated workers, results in CAMPAIGN (build/matrix-campaign):
                for DEPTH=5, or ARGS="--threads 3"; killed, it goes on where it was
  make data-races  every program with a look at plain attributes that two threads touch
  make mutants  wrong references by the hundred: how many are caught (slow; SAMPLE=60 takes that many)
  make mutants-order  mistakes of order by the hundred, judged by every schedule of the programs (slow)
  make reach    which lines, branches and outcomes of compare-and-set the programs never reach
  make docs     the documentation site in build/docs, its links checked
  make lint     ruff, formatting and mypy --strict, tests too
  make format   let ruff rewrite what it can
  make setup    only install into .venv
  make lock     choose the pinned versions anew
  make clean    delete .venv, build and caches

  make crosscheck       the explorer against brute force on 20,000 generated programs;
                        stopped, it goes on where it was
  make corpus           known bugs of released libraries, fetched from the package registry into a cache folder:
                        each found, each repaired version quiet (ARGS="--table spec/OWN_CODE.md" writes the table,
                        ARGS=--peers runs the same by frontrun and interleave-test)
  make crosscheck-columnar   columnar against row-based judging, on HISTORIES (10000) mutated ones
  make crosscheck-reading    reading files in blocks against reading by line, on FILES (2000) drawings
  make crosscheck-own   generated tests with plain threads: promotion against every access a step; with identical threads:
                        with and without symmetry; with loops that wait: against the same loops unfolded;
                        with asyncio: against all orders of timers on the real event loop
  make bench            us and our peers side by side, in rounds: numbers and a page in build/bench;
                        a peer that cannot be had is skipped with the reason
  make profile          where the time goes on the five hot paths
  make bench-spark      one check by plain Python, DuckDB, Polars and our Spark pipeline; ARGS="--largest 20000000"
  make test-slow        the tests that make test leaves out because each takes seconds
  make test-night       cases of those tests with many more seeds: ten minutes or more
  make test-kill        a stream, an ingest and an exhaustive campaign killed with SIGKILL at random moments, KILLS (20)
                        times, then compared with a batch audit; before that the log, LOG_KILLS (1000) times;
                        SEED=n replays the moments' seed
  make test-cluster     the pipeline through spark-submit on Spark's own master and two workers, on this machine
  make test-million     a million bad lines among good ones: each found again in quarantine, in bounded memory
  make test-wheel       the built wheel installed into clean environments: what works without extras, and what is said
                        where one is missing; needs a package registry
  make test-planted     EVENTS (5,000,000) synthetic events with known violations: all found, and nothing else
  make bench-explorer   only the explorer: frontrun, interleave-test, loom, shuttle, Lincheck, Spin

A fresh machine needs Python 3.11 or newer, make and a network. Each target installs what it needs, once.

Examples
  make test ARGS="tests/cli -k usage"         some of the tests, with any option of pytest
  make run ARGS="--engine local"              the same tour without Spark
  make test PYTHON=python3.13                 make .venv with another Python (after make clean)
  make crosscheck PROGRAMS=500                as many generated programs as you like
  .venv/bin/seriatim --help                   the command itself, once it is installed
endef
export HELP

help:
	@echo "$$HELP"

run: $(STAMP)
	@$(BIN)/seriatim tour $(ARGS)

test: $(STAMP)
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  echo "No chromium on this machine: pages are not tested in a browser (Debian: apt install chromium)" >&2
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) $(ARGS)

demo-fair: $(STAMP)
	@mkdir -p build/demo
	@$(BIN)/seriatim demo fair --svg build/demo/fair.svg $(ARGS)

soak: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.soak $(SECONDS) $(ARGS)

fuzz: $(STAMP)
	$(BIN)/python -m seriatim_workshop.fuzz --seconds $(SECONDS) $(ARGS)

fuzz-kept: $(STAMP)
	$(BIN)/python -m seriatim_workshop.fuzz_kept --seconds $(SECONDS) $(ARGS)

fuzz-surroundings: $(STAMP)
	$(BIN)/python -m seriatim_workshop.fuzz_surroundings --seconds $(SECONDS) $(ARGS)

corpus: $(STAMP)
	$(BIN)/python -m seriatim_workshop.corpus.run $(ARGS)

endure: $(STAMP)
	$(BIN)/python -m seriatim_workshop.endure --seconds $(SECONDS) $(ARGS)

right-systems: $(STAMP)
	$(BIN)/python -m seriatim_workshop.right --n $(N) --first $(FIRST) $(ARGS)

conform: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.systems.run $(SYSTEM) $(ARGS)

chaos: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.systems.chaos $(CASE) $(ARGS)

planted: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.planted.run --table spec/PLANTED.md $(ARGS)

spec: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.formal.spin $(ARGS)
	@$(if $(ARGS),,$(BIN)/python -m seriatim_workshop.formal.outcomes)
	@$(if $(ARGS),,$(BIN)/python -m seriatim_workshop.formal.traces)
	@$(if $(ARGS),,$(BIN)/python -m seriatim_workshop.formal.follow_matrix pull push --sample 60)

follow-all: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.formal.traces --all --seconds 600 --journal build/follow/programs.jsonl $(ARGS)
	@$(BIN)/python -m seriatim_workshop.formal.follow_matrix pull push --depth 3 --journal build/follow/matrix.jsonl

prove: prove-induction
	@$(BIN)/python -m seriatim_workshop.proofs.run $(ARGS)

prove-induction: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.formal.induction

matrix-campaign: $(STAMP)
	@$(BIN)/seriatim matrix --depth $(DEPTH) --campaign $(CAMPAIGN) $(ARGS)

data-races: $(STAMP)
	@$(BIN)/seriatim check --attributes $(ARGS)

matrix: $(STAMP)
	@$(BIN)/seriatim matrix --depth $(DEPTH) $(ARGS)

mutants: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.mutation.run $(if $(SAMPLE),--sample $(SAMPLE)) $(ARGS)

mutants-order: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.mutation.order_run $(if $(SAMPLE),--sample $(SAMPLE)) $(ARGS)

reach: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.reach $(ARGS)

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy tests

docs: $(STAMP)
	@rm -rf build/docs
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees -c spec/guide . build/docs $(ARGS)
	@$(BIN)/python -m seriatim_workshop.site_links build/docs
	@$(BIN)/python -m seriatim_workshop.site_heights build/docs

crosscheck-columnar: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.crosscheck.columnar --histories $(or $(HISTORIES),10000) $(ARGS)

crosscheck-reading: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.crosscheck.reading --files $(or $(FILES),2000) $(ARGS)

crosscheck-own: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.crosscheck.own --programs $(PROGRAMS) $(ARGS)

crosscheck: $(STAMP)
	@mkdir -p $(dir $(CROSSCHECK))
	@$(BIN)/python -m seriatim_workshop.crosscheck.run --programs $(PROGRAMS) --resume $(CROSSCHECK) $(ARGS)

bench: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.bench $(ARGS)

profile: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.bench.profile $(ARGS)

bench-explorer: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.bench explorer $(ARGS)

bench-spark: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.bench pipeline $(ARGS)

test-slow: $(STAMP)
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) -m 'slow and not scale and not night' --timeout 400 $(ARGS)

test-night: $(STAMP)
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) -m night --timeout 3000 $(ARGS)

test-kill: $(STAMP)
	@KILLS=$(LOG_KILLS) $(BIN)/python -m pytest tests/log/test_kill.py --numprocesses 0 --timeout 3000 -s
	@KILLS=$(KILLS) $(BIN)/python -m pytest tests/pipeline/test_kill.py -m slow -s $(ARGS)

test-cluster: $(STAMP)
	@$(BIN)/python -m pytest tests/pipeline/test_cluster.py -m slow $(ARGS)

test-million: $(STAMP)
	@$(BIN)/python -m pytest tests/pipeline/test_bad_million.py -m slow -s $(ARGS)

test-wheel: $(STAMP)
	@$(BIN)/python -m pytest tests/packaging --numprocesses 0 -m '' $(ARGS)

test-planted: $(STAMP)
	@$(BIN)/python -m seriatim_workshop.detection_recall --events $(EVENTS) $(ARGS)

format: $(STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

setup: $(STAMP)

$(STAMP): pyproject.toml $(LOCK)
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	  echo "seriatim needs Python 3.11 or newer; install one, or name it: make PYTHON=/path/to/python3.12 run" >&2; exit 2; fi
	@"$(BIN)/python" -c '' 2>/dev/null || "$(PYTHON)" -m venv --clear "$(VENV)" || { \
	  echo "Python could not make .venv: install its venv module (Debian: python3-venv) and try again" >&2; exit 2; }
	@echo "Installing into $(VENV): 1.8 GB, a few minutes the first time"
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK)
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# One file for every supported Python: the resolver writes environment markers where versions must differ.
lock:
	@"$(PYTHON)" -m venv build/lock
	@build/lock/bin/python -m pip install --quiet uv
	@build/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --generate-hashes pyproject.toml --output-file $(LOCK)
	@rm -rf build/lock
	@echo "$(LOCK): $$(grep -c == $(LOCK)) pinned versions, with hashes; the next target installs them"

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find reference models tests -name __pycache__ -type d -prune -exec rm -rf {} +
