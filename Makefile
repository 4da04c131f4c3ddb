# make demo     complete files with SmolLM2-135M (98 MB from PyPI; without a network the embedded model), in colour
# make test     run the tests, the files on two processes (WORKERS=0: on one)
# make test-train  run the tests of training (installs torch)
# make test-editors  run the tests in VS Code, Neovim, Emacs and Vim, which it installs (REPEAT=10: each of them ten times)
# make test-tools  run the tests that need llama.cpp's server, vocabularies or TypeScript's compiler, which it builds and installs
# make llama-server  build llama.cpp's server of the pinned version, for the tests of engines elsewhere (10 minutes)
# make test-vllm  run the tests with a real vLLM, which it installs (PLACES=20: 200 texts)
# make judges   what `python -m benchmarks gate` and `renames` judge by: TypeScript's compiler and libraries; tells of programs that are missing
# make fuzz     10,000 hostile grammars, 500 ways of nesting documents (an hour)
# make lint     ruff and mypy
# make docs     docs/ as a site, in site/
# make release  what others install, in dist/: wheel, source distribution, VS Code extension and SHA256SUMS, all of them checked
# make release-check  install the wheel of dist/ with all that it needs, without and with extras, and complete with it (builds llama.cpp: 10 minutes)
# make serve    run the language server over stdio
# make rpc-server  llama.cpp's rpc-server, for layers of a model on several machines, as $(VENV)/bin/rpc-server
# make clean    remove .venv, build, site and caches

PYTHON ?= python3
VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif

# GCC 12 drops stores that AMX needs, and the library then crashes on CPUs that have it: these two passes stay off.
# pip reuses a wheel that it built before, whatever the flags say now, so this one package bypasses its cache; the
# build of 5 to 10 minutes happens once a virtual environment.
LLAMA := llama-cpp-python==0.3.36
# Layers of a model may go to other machines (docs/remote.md), which is off by default in llama.cpp.
LLAMA_FLAGS := -DCMAKE_CXX_FLAGS='-fno-tree-dse -fno-dse' -DLLAVA_BUILD=OFF -DGGML_RPC=ON

.PHONY: demo test test-quick test-train test-editors test-tools llama-server rpc-server test-vllm judges fuzz attack lint format docs release release-check serve clean

# The settings stay as they are. Without a network, or a mirror of packages, the embedded model answers.
DEMO = smollm2-135m
demo: $(VENV)/installed
	@target="--target $(DEMO)"; \
	$(BIN)/codespec models pull $(DEMO) || { target=; echo "going on with the embedded model, which is far smaller: its words make little sense"; }; \
	echo; echo "1. Text that resembles what is there: drafts carry it, many tokens in a call of the target."; echo; \
	$(BIN)/codespec complete examples/figures.py:26 --show --time-budget 20000 $$target; \
	echo; echo "2. In the middle of a file: an adapter has taught the model to read what follows the cursor."; echo; \
	$(BIN)/codespec complete examples/shapes.py:22 --show --time-budget 20000 $$target; \
	echo; echo "3. Text held to a JSON Schema."; echo; \
	$(BIN)/codespec generate --json-schema examples/project.schema.json --temperature 0.8 --seed 2 --show $$target; \
	echo; echo "4. A larger model for this machine:"; echo; \
	$(BIN)/codespec models suggest | grep -v -e '--as draft' | tail -n 1

# The same tests whatever other targets have installed. Those of a file share servers and models, and stay together.
WORKERS ?= 2
test: $(VENV)/installed-test $(VENV)/json-schema-suite
	@$(BIN)/python tests/real_model.py
	$(BIN)/python -m pytest -m "not tools" --numprocesses $(WORKERS) --dist loadfile

# For a first look, in less than two minutes: the parts that have no process and no server.
QUICK := tests/speculative tests/contract tests/syntax tests/completion/ending tests/early_errors tests/grammar/lark tests/test_config.py tests/test_docs.py \
	tests/test_imports.py tests/test_languages_in_one_place.py
test-quick: $(VENV)/installed-test
	$(BIN)/python -m pytest -m "not tools and not slow" --numprocesses $(WORKERS) --dist loadfile $(QUICK)

test-tools: llama-server judges
	@$(BIN)/python tests/real_model.py
	$(BIN)/python -m pytest -m tools

# The official tests of JSON Schema come with the source distribution of the validator that judges in other tests.
SUITE := jsonschema-4.26.0
$(VENV)/json-schema-suite: | $(VENV)/installed-test
	@rm -rf $@.new && mkdir -p $@.new
	@$(BIN)/python -m pip download --quiet --no-deps --no-binary jsonschema --dest $@.new $(subst -,==,$(SUITE)) \
		&& tar -xzf $@.new/$(SUITE).tar.gz -C $@.new --strip-components 3 $(SUITE)/json/tests && rm $@.new/*.tar.gz \
		&& mv $@.new $@ || { rm -rf $@.new; echo "no JSON-Schema-Test-Suite without a network: its tests are skipped"; }

# The tests of training need torch, which is large; TORCH chooses the build, such as "torch==2.13.0".
TORCH ?= torch
test-train: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[train]" "transformers>=4.51"
	$(BIN)/python -m pytest tests/train

# Pictures of what was on the screen go to the folder $CODESPEC_ARTIFACTS; CODESPEC_PICTURES=1 also makes those in docs/ anew.
EDITORS ?= $(abspath $(VENV))/editors
REPEAT ?= 1
test-editors: $(VENV)/installed-test
	tests/editors/install.sh $(EDITORS) $(BIN)/python
	CODESPEC_EDITORS=$(EDITORS) CODESPEC_REPEAT=$(REPEAT) $(BIN)/python -m pytest tests/editors

# Tests of engines elsewhere ask the server of the very llama.cpp that the package is built from (`make test-tools`).
# OPTIMISE=-O1 builds it in less time, for tests alone: benchmarks want -O3.
TOOLS := $(abspath $(VENV))/llama-tools
OPTIMISE ?= -O3
llama-server: $(TOOLS)/build/bin/llama-server

$(TOOLS)/build/bin/llama-server: | $(VENV)/llama
	rm -rf $(TOOLS)
	mkdir -p $(TOOLS)/source
	$(BIN)/python -m pip install --quiet cmake ninja
	$(BIN)/python -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest $(TOOLS) $(LLAMA)
	tar -xzf $(TOOLS)/llama_cpp_python-*.tar.gz -C $(TOOLS)/source --strip-components 1
	$(BIN)/cmake -S $(TOOLS)/source/vendor/llama.cpp -B $(TOOLS)/build -G Ninja \
		-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
		-DCMAKE_CXX_FLAGS='-fno-tree-dse -fno-dse' -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_UI=OFF \
		-DCMAKE_C_FLAGS_RELEASE='$(OPTIMISE) -DNDEBUG' -DCMAKE_CXX_FLAGS_RELEASE='$(OPTIMISE) -DNDEBUG' \
		-DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF
	@echo "building llama-server: about 10 minutes, once"
	$(BIN)/cmake --build $(TOOLS)/build --target llama-server llama-lookup llama-speculative-simple
	mkdir -p $(TOOLS)/vocabularies
	cp $(TOOLS)/source/vendor/llama.cpp/models/ggml-vocab-*.gguf $(TOOLS)/vocabularies
	rm -rf $(TOOLS)/source $(TOOLS)/*.tar.gz

# vLLM as a third party builds it for CPUs, 3 GB in an environment of its own; PLACES=20: 200 texts instead of 40.
VLLM ?= $(abspath $(VENV))/vllm
PLACES ?= 4
test-vllm: $(VENV)/installed-test
	tests/remote/install_vllm.sh $(VLLM) $(PYTHON)
	CODESPEC_VLLM=$(VLLM) CODESPEC_PLACES=$(PLACES) $(BIN)/python -m pytest -s tests/remote/test_vllm.py

judges: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --editable ".[judges]"
	npm install --silent --no-save --prefix $(VENV)/judges typescript@5
	@for each in node go gofmt rustfmt gcc g++ java bash; do command -v $$each >/dev/null || echo "missing: $$each"; done

fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz --count 10000
	$(BIN)/python -m tests.nesting

# What docs/security.md promises; all of it is part of `make test`, too.
ATTACKS = tests/hostile tests/patterns tests/privacy tests/test_config_workspace.py tests/test_settings_texts.py tests/test_terminal.py tests/models/test_hub.py \
	tests/completion/prompt/test_import_signatures.py tests/completion/test_language_version.py tests/lsp/test_histories.py \
	tests/daemon/test_daemon_hung.py tests/daemon/test_daemon_wire.py tests/lsp/connection/test_greetings.py
attack: $(VENV)/installed-test
	-$(BIN)/python -m pip install --quiet --no-deps "kingfisher-secret-scanner>=1.5"  # it judges what is recognised
	$(BIN)/python -m pytest $(ATTACKS)
	$(BIN)/python -m tests.fuzz models --count 30
	$(BIN)/python -m tests.fuzz hub --count 200

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Tools of their own versions, in an environment of their own.
RELEASE := build/release
RELEASE_BIN := $(RELEASE)/$(notdir $(BIN))
EXTRAS ?= bench,http,judges,remote,syntax,types
release: $(RELEASE)/installed
	$(RELEASE_BIN)/python -m tests.release

release-check: $(RELEASE)/wheels
	$(RELEASE_BIN)/python -m tests.release check $(EXTRAS)

$(RELEASE)/installed: Makefile
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE_BIN)/python -m pip install --quiet build==1.6.1 twine==7.0.0
	@touch $@

$(RELEASE)/wheels: | $(RELEASE)/installed
	CMAKE_ARGS="$(LLAMA_FLAGS)" $(RELEASE_BIN)/python -m pip wheel --quiet --no-cache-dir --no-deps --no-binary llama-cpp-python \
		--wheel-dir $@.new $(LLAMA)
	mv $@.new $@

serve: $(VENV)/installed
	@$(BIN)/codespec serve

$(VENV)/llama:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "building llama.cpp: 5 to 10 minutes, once"
	CMAKE_ARGS="$(LLAMA_FLAGS)" $(BIN)/python -m pip install --quiet --no-cache-dir --no-binary llama-cpp-python $(LLAMA)
	@touch $@

$(VENV)/installed: pyproject.toml | $(VENV)/llama
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(VENV)/llama
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@ $(VENV)/installed

$(VENV)/installed-dev: pyproject.toml | $(VENV)/llama
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@ $(VENV)/installed $(VENV)/installed-test

$(VENV)/installed-docs: pyproject.toml | $(VENV)/llama
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@ $(VENV)/installed

# An rpc-server has to be of the same llama.cpp as the library, whose source distribution has it. Beside this one file
# and ggml nothing is built; RPC_FLAGS=-DGGML_CUDA=ON makes it serve NVIDIA GPUs.
RPC_FLAGS ?=
rpc-server: $(VENV)/bin/rpc-server

$(VENV)/bin/rpc-server:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet cmake ninja
	$(BIN)/python -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest $(VENV)/llama-source $(LLAMA)
	cd $(VENV)/llama-source && tar --extract --gzip --strip-components 1 --file llama_cpp_python-*.tar.gz
	$(BIN)/cmake -G Ninja -S $(VENV)/llama-source/vendor/llama.cpp -B $(VENV)/llama-source/build-rpc $(LLAMA_FLAGS) $(RPC_FLAGS) \
		-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_OPENSSL=OFF
	$(BIN)/cmake --build $(VENV)/llama-source/build-rpc --target ggml-rpc-server
	cp $(VENV)/llama-source/build-rpc/bin/ggml-rpc-server $@

clean:
	rm -rf $(VENV) build site .mypy_cache .pytest_cache .ruff_cache
