# wenlei: `make demo` closes the loop on real texts, `make test` checks everything. `make help` lists the rest.

PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
EXTRAS := cpu,train,fast,postgres,dev
STAMP := $(VENV)/.installed
# Tests wait for servers and databases a quarter of their time: one process more than there are cores.
TEST_PROCESSES ?= $(shell $(PYTHON) -c 'import os; print(min(4, 1 + os.cpu_count()))')

.PHONY: help setup demo test check serve format clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP)  ## make the virtual environment with everything the project needs

# torch goes first: PyPI's Linux wheel is a CUDA build of several GB, PyTorch's own index has the CPU build.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@torch=$$(grep '^torch==' constraints.txt); \
	if curl --silent --fail --head --max-time 5 --output /dev/null $(TORCH_CPU_INDEX)/torch/; then \
	  $(BIN)/pip install --index-url $(TORCH_CPU_INDEX) "$$torch"; \
	else \
	  $(BIN)/pip install "$$torch"; \
	fi
	$(BIN)/pip install --quiet -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

demo: $(STAMP)  ## real reviews → library → BERT → ONNX → server → table, into var/demo
	$(BIN)/wenlei demo

check: $(STAMP)  ## lint, types, directions of import
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check  ## check, then every test
	$(BIN)/pytest --numprocesses $(TEST_PROCESSES) --dist worksteal

serve: $(STAMP)  ## serve the demo's bundle on http://127.0.0.1:8000
	$(BIN)/wenlei serve --bundle var/demo/bundle

format: $(STAMP)  ## rewrite the code in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what can be made again (var/ stays)
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
