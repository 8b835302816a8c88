# snapmla - build, test, install. `make help` lists the targets.
#
# Variables for the command line or the environment:
BUILD ?= build# folder of all build products
V ?= 0# 1 shows the commands
DEVELOPER ?= 0# 1 turns warnings into errors
SANITIZE ?=# address,undefined or thread
CUDA_HOME ?= /usr/local/cuda
NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard $(CUDA_HOME)/bin/nvcc))
CUDA ?= $(if $(NVCC),1,0)# 1 builds the CUDA backend, which needs nvcc; 0 needs no toolkit
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
CFLAGS ?= -O2 -g
TEST_CFLAGS ?=# more flags for the sources of tests
PKG_CONFIG ?= pkg-config

VERSION := 0.2.0
PACKAGES := libcurl libmicrohttpd jansson libpcre2-8 libcrypto libzip gmp mpfr zlib libseccomp libzstd
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DIRTY := $(if $(shell git status --porcelain --untracked-files=no 2>/dev/null | head -n 1),1,0)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wformat=2 -Wundef -Wcast-qual -Wwrite-strings -Wdouble-promotion
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -I. $(WARN) $(HARDEN) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP
ALL_LDFLAGS = $(HARDEN_LD) $(LDFLAGS)
ifeq ($(DEVELOPER),1)
ALL_CFLAGS += -Werror
endif
ifneq ($(SANITIZE),)
ALL_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
ALL_LDFLAGS += -fsanitize=$(SANITIZE)
# A workaround for the leak checker up to GCC 13. It may mistake thread-local memory of a loaded
# library that begins 16 bytes into a page for memory with the header of an old glibc. Then it reads
# the bytes before it as a header and sometimes crashes at exit.
export ASAN_OPTIONS := intercept_tls_get_addr=0:$(ASAN_OPTIONS)
endif
# ---- hardening; ci/hardened.sh checks it in what is installed. The checks of the C library need
# optimisation, and sanitizers would not see the calls that they replace. CET exists on x86 only; the
# linker marks a program as ready for it if all object files are, so also those of .S files. ----
CET := $(shell $(CC) -fcf-protection -x c -c -o /dev/null /dev/null 2>/dev/null && echo -fcf-protection)
FORTIFY = $(if $(SANITIZE),,$(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
HARDEN = -fPIE -fstack-protector-strong $(CET) $(FORTIFY)
HARDEN_LD := -Wl,-z,relro,-z,now,-z,noexecstack
# Unicode's normalisation forms. Few tokenizers need them; without the library those are refused.
UTF8PROC := $(shell $(PKG_CONFIG) --exists libutf8proc 2>/dev/null && echo libutf8proc)
# The first use of these variables replaces them by their values, so pkg-config does not run for each file.
PKG_CFLAGS = $(eval PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) $(UTF8PROC)) $(if $(UTF8PROC),-DSNAPMLA_UTF8PROC))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES) $(UTF8PROC)))$(PKG_LIBS)
LIBS = $(PKG_LIBS) -lsnappy $(CUDA_LIBS) -lpthread -lm
Q := $(if $(filter 1,$(V)),,@)

# ---- CUDA: kernels are compiled for sm_90a, and for 8.0 and newer unless they use instructions of
# sm_90a. The runtime is linked statically and loads the driver at its first use, so the program
# starts without a driver. Device code is not compressed, so that its hash can be computed from the
# program.
ifeq ($(CUDA),1)
ifeq ($(NVCC),)
$(error CUDA=1 needs nvcc: put it on PATH, set NVCC or CUDA_HOME, or build with CUDA=0)
endif
CUDA_LIBS = -L$(dir $(NVCC))../lib64 -lcudart_static -lstdc++ -ldl -lrt
CUDA_SOURCE := cu
SM_90A := -gencode arch=compute_90a,code=sm_90a
SM_80 := -gencode arch=compute_80,code=[sm_80,compute_80]
NVCC_FLAGS = -std=c++17 -O3 -I. -lineinfo --no-compress -Xcompiler=-Wall $(HARDEN:%=-Xcompiler=%) \
	-Xptxas=-warn-spills -MMD -MP
ifeq ($(DEVELOPER),1)
NVCC_FLAGS += -Xcompiler=-Werror --Werror=cross-execution-space-call,reorder
endif
CUDA_VERSION := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
endif
# These kernels run on Hopper only.
HOPPER_ONLY := kernels/cuda/sm90_% kernels/cuda/ceilings/sm90_% generator/local/cuda/sm90_%
arch_of = $(SM_90A) $(if $(filter $(HOPPER_ONLY),$(1)),,$(SM_80))

# One library for each layer, in order: a library may use only those before it.
LAYERS := base kernels generator evals harness
sources = $(sort $(filter-out $(wildcard $(1)/test/* $(1)/*/test/* $(1)/test/*/* $(1)/*/example/* $(1)/*/sm100_sketch/*),$(foreach e,c S $(CUDA_SOURCE),\
	$(wildcard $(1)/*.$(e) $(1)/*/*.$(e) $(1)/*/*/*.$(e)))))
objects = $(patsubst %,$(BUILD)/obj/%.o,$(1))
MAIN := harness/main.c

# ---- sanitized builds ----
# Compiling takes longer than testing, so sanitized code is not optimised (`make sanitize` has -O0),
# except the code that computes with many numbers: the kernels and their checks, random numbers
# (base), models on the CPU (generator/local) and statistics of simulated servers (harness/serving).
# The plugins below contain kernels, so they are compiled with -O2, too. avx512.c has -O1: GCC 12
# compiles it in 17 s of processor time instead of 36 s.
ifneq ($(SANITIZE),)
$(BUILD)/obj/kernels/%.c.o $(BUILD)/obj/base/%.c.o $(BUILD)/obj/generator/local/%.c.o \
    $(BUILD)/obj/harness/serving/%.c.o: ALL_CFLAGS += -O2
CFLAGS_kernels_cpu_avx512 := -O1
# In these loops, three checks of pointers take a third of the time to compile and a sixth of the time to
# run. The address sanitizer reports most of the accesses that they would report.
$(BUILD)/obj/kernels/cpu/%.c.o $(BUILD)/obj/generator/local/gemm/%.c.o: ALL_CFLAGS += -fno-sanitize=null,object-size,pointer-overflow
endif
$(LAYERS:%=$(BUILD)/obj/%/test/%.c.o): ALL_CFLAGS += $(TEST_CFLAGS)

# $(call libs,LAYER): the archives of a layer and those below it, topmost first
below = $(if $(filter $(1),$(firstword $(2))),$(1),$(firstword $(2)) $(call below,$(1),$(wordlist 2,9,$(2))))
reverse = $(if $(1),$(call reverse,$(wordlist 2,9,$(1))) $(firstword $(1)))
libs = $(patsubst %,$(BUILD)/lib%.a,$(call reverse,$(call below,$(1),$(LAYERS))))

# In programs, failures of these functions are noted (base/fault.h).
WRAPPED := malloc calloc realloc strdup strndup fopen fdopen scandir
WRAP := $(WRAPPED:%=-Wl,--wrap=%)

.PHONY: all
all: $(BUILD)/snapmla $(BUILD)/plugins/example.so $(BUILD)/plugins/minimal.so $(BUILD)/plugins/attend.so $(BUILD)/plugins/packed.so

$(BUILD)/snapmla: $(call objects,$(MAIN)) $(call libs,harness)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -pie $(WRAP) -o $@ $^ $(LIBS)

define layer
$(BUILD)/lib$(1).a: $(call objects,$(filter-out $(MAIN),$(call sources,$(1))))
	@echo "  AR      $$@"
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach l,$(LAYERS),$(eval $(call layer,$(l))))

$(BUILD)/obj/%.c.o: %.c
	@echo "  CC      $<"
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CFLAGS_$(subst /,_,$(basename $<))) -c -o $@ $<

$(BUILD)/obj/%.S.o: %.S
	@echo "  AS      $<"
	$(Q)mkdir -p $(@D) && $(CC) -I. $(CET:%=% -include cet.h) -MMD -MP -c -o $@ $<

# The log has the registers and spills of each kernel, for ci/audit.sh. Only its other lines are printed.
$(BUILD)/obj/%.cu.o: %.cu
	@echo "  NVCC    $<"
	$(Q)mkdir -p $(@D) && $(NVCC) $(NVCC_FLAGS) $(NVCC_FLAGS_$(subst /,_,$(basename $<))) $(call arch_of,$<) \
	    -Xptxas=-v -c -o $@ $< 2> $@.log || { cat $@.log >&2; exit 1; }
	$(Q)grep -vE '^ptxas info|^ +[0-9]+ bytes stack frame' $@.log >&2 || true

# Facts about the build. The file changes only when they do, so that a commit recompiles one file. Two
# makes may run at the same time, so each writes to a file of its own first.
$(BUILD)/build_info.h: FORCE
	$(Q)mkdir -p $(@D) && printf '%s\n' '#define BUILD_VERSION "$(VERSION)"' \
	    '#define BUILD_COMMIT "$(COMMIT)"' '#define BUILD_DIRTY $(DIRTY)' \
	    '#define BUILD_CUDA "$(CUDA_VERSION)"' \
	    '#define BUILD_FLAGS "$(strip $(CFLAGS))$(if $(SANITIZE), -fsanitize=$(SANITIZE))"' > $@.$$$$ && \
	    { cmp -s $@.$$$$ $@ && rm $@.$$$$ || mv $@.$$$$ $@; }
# This file changes when the backends of the build change.
$(BUILD)/backends: FORCE
	$(Q)mkdir -p $(@D) && echo 'CUDA=$(CUDA)' | cmp -s - $@ || echo 'CUDA=$(CUDA)' > $@
.PHONY: FORCE
FORCE:
$(BUILD)/obj/kernels/registry.c.o $(BUILD)/obj/kernels/plugin/attend.c.o $(BUILD)/obj/kernels/plugin/attend_lab.c.o $(BUILD)/libkernels.a: $(BUILD)/backends
$(BUILD)/obj/generator/local/cuda/absent.c.o $(BUILD)/libgenerator.a: $(BUILD)/backends
# rounds rows to the same bits as the host, which does not fuse products and sums
NVCC_FLAGS_generator_local_cuda_round := -fmad=false
CFLAGS_kernels_registry := $(if $(filter 1,$(CUDA)),-DSNAPMLA_CUDA)
CFLAGS_generator_local_cuda_absent := $(CFLAGS_kernels_registry)
CFLAGS_kernels_plugin_attend := $(CFLAGS_kernels_registry)
CFLAGS_kernels_plugin_attend_lab := $(CFLAGS_kernels_registry)
$(BUILD)/obj/harness/record/provenance.c.o: $(BUILD)/build_info.h
CFLAGS_harness_record_provenance := -I$(BUILD)
# files read by .incbin, which -MMD does not find
$(BUILD)/obj/harness/view/assets.S.o: harness/view/page.css harness/view/figure.css harness/view/page.js \
    harness/view/paper.json
$(BUILD)/obj/kernels/opencl/source.S.o: kernels/opencl/mla.cl
$(BUILD)/obj/evals/code/scripts.S.o: $(wildcard evals/code/*.py)

# ---- plugins: the examples, and the plugins of the tests. Those come from three sources, with one
# fault each. The loader must refuse the first, the checks must find the second, and of the third,
# which have one function, the loader must refuse some and report what the others do. They are built
# without sanitizers, which would report that they define the same global variable. ----
FAULTS := abi headers open name impostor nothing refuses copy
PLUGINS := $(BUILD)/plugins/example.so $(BUILD)/plugins/minimal.so $(BUILD)/plugins/attend.so $(BUILD)/plugins/packed.so
FAULTY := $(FAULTS:%=$(BUILD)/test/plugins/%.so)
WRONGS := WRONG_DROP_4096 WRONG_DROP_40000 WRONG_PAGE_64 WRONG_REMEMBERS
WRONG := $(WRONGS:%=$(BUILD)/test/plugins/%.so)
ATTENTIONS := $(addprefix ATTEND_,RIGHT ABI BYTES NAME NULL PRECISIONS DEVICE LIMIT ERROR CANCELS PLAN AFTER BEFORE INPUTS TABLE HANGS CACHE FAR READS CRASHES PLANS SHORT INTERRUPTS)
ATTENTION := $(ATTENTIONS:%=$(BUILD)/test/plugins/%.so)
plugin = $(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(if $(SANITIZE),-O2) $(ALL_LDFLAGS) -fPIC -shared -fvisibility=default
$(PLUGINS): $(BUILD)/plugins/%.so: kernels/plugin/example/%.c kernels/plugin/plugin.h kernels/plugin/attention.h kernels/backend.h kernels/mla.h kernels/lab.h
	@echo "  PLUGIN  $@"
	$(plugin) -o $@ $< -lm
$(FAULTY): $(BUILD)/test/plugins/%.so: kernels/test/plugins/faulty.c kernels/plugin/plugin.h kernels/backend.h kernels/mla.h kernels/lab.h
	$(plugin) -fno-sanitize=all -DFAULT_$* -o $@ $<
$(WRONG): $(BUILD)/test/plugins/%.so: kernels/test/plugins/wrong.c kernels/test/plugins/wrong.h kernels/plugin/example/example.c kernels/plugin/plugin.h kernels/backend.h kernels/mla.h kernels/lab.h
	$(plugin) -fno-sanitize=all -DFAULT=$* -o $@ $< -lm
WARM := $(BUILD)/test/plugins/warm.so
$(WARM): kernels/test/plugins/warm.c kernels/plugin/example/minimal.c kernels/plugin/plugin.h kernels/backend.h kernels/mla.h kernels/lab.h
	$(plugin) -fno-sanitize=all -o $@ $< -lm
$(ATTENTION): $(BUILD)/test/plugins/%.so: kernels/test/plugins/attention.c kernels/plugin/attention.h kernels/plugin/plugin.h kernels/backend.h kernels/mla.h kernels/lab.h
	$(plugin) -fno-sanitize=all -DFAULT=$* -o $@ $<
# ---- stand-ins for NCCL, each with one fault ----
NCCL_STUBS := $(addprefix $(BUILD)/test/nccl/,$(addsuffix .so,RIGHT MISSING OLD NEXT FAILS))
$(NCCL_STUBS): $(BUILD)/test/nccl/%.so: generator/test/nccl_stub.c
	$(plugin) -fno-sanitize=all -DFAULT=$* -DFAULT_$* -o $@ $<
# ---- the object that runs Python files (python:FILE). It is built on demand, needs no Python, and is
# no part of the program. ----
.PHONY: python-arm
python-arm: $(BUILD)/plugins/python-arm.so
$(BUILD)/plugins/python-arm.so: adapters/python_arm.c adapters/host.py kernels/plugin/attention.h kernels/plugin/plugin.h kernels/backend.h kernels/mla.h kernels/lab.h
	@echo "  PLUGIN  $@"
	$(plugin) -fno-sanitize=all -o $@ $< -ldl -lpthread

CFLAGS_kernels_test_test_plugin := -DPLUGINS='"$(BUILD)"'
CFLAGS_kernels_test_test_conformance := $(CFLAGS_kernels_test_test_plugin)
CFLAGS_harness_test_test_gate_worker := $(CFLAGS_kernels_test_test_plugin)
CFLAGS_generator_test_test_device := $(CFLAGS_kernels_test_test_plugin)
CFLAGS_kernels_test_test_attention := $(CFLAGS_kernels_test_test_plugin)
$(BUILD)/test/kernels: | $(PLUGINS) $(FAULTY) $(ATTENTION)
CFLAGS_generator_test_test_nccl := -DNCCL='"$(BUILD)/test/nccl"'
$(BUILD)/test/generator: | $(PLUGINS) $(NCCL_STUBS)
CFLAGS_harness_test_test_packed := $(CFLAGS_kernels_test_test_plugin)
CFLAGS_harness_test_test_bench_run := $(CFLAGS_kernels_test_test_plugin)
CFLAGS_harness_test_test_forecast_run := $(CFLAGS_kernels_test_test_plugin)
$(BUILD)/test/harness: | $(WRONG) $(PLUGINS) $(BUILD)/plugins/python-arm.so $(BUILD)/test/plugins/ATTEND_INTERRUPTS.so

# ---- tests: one program for each layer, from all its test_*.c ----
TEST_LAYERS := $(foreach l,$(LAYERS),$(if $(wildcard $(l)/test/test_*.c),$(l)))
# THREADED: a folder with notes of an earlier run (--note). Then the programs have only the suites in
# which a test started a thread.
THREADED ?=
noted := $(if $(THREADED),$(notdir $(shell find $(THREADED) -name '*.threads' -size +0)))
suites_of = $(sort $(wildcard $(1)/test/test_*.c))
tests_of = $(if $(THREADED),$(filter $(patsubst $(1).%.threads,$(1)/test/test_%.c,$(noted)),$(suites_of)),$(suites_of))
helpers_of = $(filter-out $(addprefix $(1)/test/,test_% fuzz_% nccl_stub.c),$(sort $(wildcard $(1)/test/*.c)))
CUNIT_LIBS = $(shell $(PKG_CONFIG) --libs cunit libssl)

# more sources for the tests of a layer: an allocator that fails; temporary folders; the scripted server, tiny checkpoints
TEST_ALSO_evals := base/test/failing_alloc.c base/test/temp_folder.c
TEST_ALSO_generator := base/test/failing_alloc.c base/test/temp_folder.c
TEST_ALSO_harness := base/test/failing_alloc.c base/test/temp_folder.c generator/test/score.c generator/test/scripted_server.c generator/test/split_ranks.c generator/test/tiny_model.c

# The tests of the generator stop the thread that calls one of these functions.
TEST_WRAP_generator := -Wl,--wrap=runner_answer,--wrap=kv_cache_read_page,--wrap=kv_cache_write_page

define layer_test
$(BUILD)/test/$(1)_main.c: FORCE # changes only when the list of suites or the script does
	$$(Q)mkdir -p $$(@D) && sh ci/test_main.sh $(1) $(call tests_of,$(1)) > $$@.$$$$$$$$ && \
	    { cmp -s $$@.$$$$$$$$ $$@ && rm $$@.$$$$$$$$ || mv $$@.$$$$$$$$ $$@; }
$(BUILD)/test/$(1)_main.o: $(BUILD)/test/$(1)_main.c
	$$(Q)$$(CC) $$(ALL_CFLAGS) -c -o $$@ $$<
$(BUILD)/test/$(1): $(BUILD)/test/$(1)_main.o $(call objects,$(call tests_of,$(1)) $(helpers_of) $(TEST_ALSO_$(1))) $(call libs,$(1))
	@echo "  LINK    $$@"
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $$(WRAP) $(TEST_WRAP_$(1)) -Wl,--wrap=pthread_create -o $$@ $$^ $$(CUNIT_LIBS) $$(LIBS)
endef
$(foreach l,$(TEST_LAYERS),$(eval $(call layer_test,$(l))))
# a server that streams tokens at a fixed rate, for measuring the client of bench serving
$(BUILD)/test/load_server: $(call objects,harness/test/load/load_server.c) $(BUILD)/libbase.a
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) $(WRAP) -o $@ $^ $(LIBS)
# how often the intervals of bench serving hold the truth, on simulated queues
$(BUILD)/test/coverage: $(call objects,harness/test/load/coverage.c harness/test/serving_sim.c) $(call libs,harness)
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) $(WRAP) -o $@ $^ $(LIBS)
# the processor time of the server's engine thread for each token, beside the model
$(BUILD)/test/engine_cost: $(call objects,harness/test/load/engine_cost.c) $(call libs,harness)
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) $(WRAP) -o $@ $^ $(LIBS)
# Number of test suites that run at the same time. It is one more than the processors, because some
# suites wait for a timeout or for another process.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
TEST_PROGRAMS := $(patsubst %,$(BUILD)/test/%,$(TEST_LAYERS))

# tests the host code of the CUDA backend
GRID_TEST := $(if $(filter 1,$(CUDA)),$(BUILD)/test/cuda/test_grid)

.PHONY: test-units test-programs
test-programs: $(TEST_PROGRAMS) $(GRID_TEST)
test-units: $(TEST_PROGRAMS) $(GRID_TEST)
	$(Q)sh ci/units.sh $(TEST_JOBS) '$(TEST_FLAGS)' $(TEST_PROGRAMS)
	$(Q)$(GRID_TEST)

# ---- programs that check the CUDA kernels on a device: built with CUDA=1, run by hand ----
CUDA_CHECK_SOURCES := $(wildcard kernels/cuda/test/check_*.cu generator/test/cuda/check_*.cu)
CUDA_CHECKS := $(if $(filter 1,$(CUDA)),$(patsubst %.cu,$(BUILD)/test/cuda/%,$(notdir $(CUDA_CHECK_SOURCES))))
$(BUILD)/test/cuda/%: $(BUILD)/obj/kernels/cuda/test/%.cu.o $(call libs,kernels)
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/test/cuda/%: $(BUILD)/obj/generator/test/cuda/%.cu.o $(call libs,generator)
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
.PHONY: cuda-checks
cuda-checks: $(CUDA_CHECKS)
.SECONDARY: $(CUDA_CHECK_SOURCES:%=$(BUILD)/obj/%.o) $(patsubst $(BUILD)/test/cuda/%,$(BUILD)/obj/kernels/cuda/test/%.cu.o,$(GRID_TEST))

# ---- the two commands of README.md ----
.PHONY: demo test
demo:
	$(Q)sh ci/install-deps.sh build
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all
	$(Q)sh ci/demo.sh $(BUILD)

test:
	$(Q)sh ci/install-deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all $(TEST_PROGRAMS) $(GRID_TEST)
	$(Q)$(MAKE) --no-print-directory test-units goldens

JOBS := $(shell nproc 2>/dev/null || echo 2)

# ---- the program while memory runs out: one failed allocation at a time ----
FAILING_ALLOC := $(BUILD)/test/failing_alloc.so
$(FAILING_ALLOC): base/test/failing_alloc.c base/test/failing_alloc_client.c $(wildcard base/test/failing_alloc*.h)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -DFAILING_ALLOC_PRELOAD -fPIC -shared -o $@ $(filter %.c,$^)
# test-alloc-full runs more of the allocations of each command, which takes up to half an hour.
ALLOC_COMMANDS ?=
.PHONY: test-alloc test-alloc-full
test-alloc: $(BUILD)/snapmla $(FAILING_ALLOC) $(WARM)
	$(Q)sh ci/alloc_fail.sh --jobs $(JOBS) $(wordlist 1,2,$^) $(ALLOC_COMMANDS)
test-alloc-full: $(BUILD)/snapmla $(FAILING_ALLOC) $(WARM)
	$(Q)sh ci/alloc_fail.sh --all --jobs $(JOBS) $(wordlist 1,2,$^) $(ALLOC_COMMANDS)

# ---- a named pipe as every argument and as the value of every option ----
.PHONY: test-pipes
test-pipes: all $(BUILD)/plugins/python-arm.so
	$(Q)sh ci/named_pipes.sh $(BUILD)/snapmla

# ---- checks ----
.PHONY: check lint includes audit sanitize goldens golden-record format test-tutorial
# The steps run one after the other, because most of them use all processors. The lint measures nothing,
# so it runs with the lowest priority beside steps that do not measure times, either.
check:
	$(Q)$(MAKE) --no-print-directory check-step STEP=test
	$(Q)$(MAKE) --no-print-directory check-step STEP=test-tutorial
	$(Q)$(MAKE) --no-print-directory all $(BUILD)/snapmla.1
	$(Q)nice -n 19 $(MAKE) --no-print-directory lint & lint=$$!; code=0; \
	    for step in test-alloc sanitize-and-small; do $(MAKE) --no-print-directory check-step STEP=$$step || code=1; done; \
	    wait $$lint || code=1; exit $$code
	$(Q)$(MAKE) --no-print-directory check-step STEP=test-jobs
	@echo "check: all passed"

# Makes STEP and prints its time.
.PHONY: check-step
check-step:
	$(Q)began=$$(date +%s); $(MAKE) --no-print-directory $(STEP) && \
	    echo "check: $(STEP) took $$(($$(date +%s) - began)) s"

# The small checks end while the sanitizers' tests are still being compiled.
.PHONY: sanitize-and-small
sanitize-and-small:
	$(Q)$(MAKE) --no-print-directory small-checks & small=$$!; \
	    $(MAKE) --no-print-directory sanitize; code=$$?; wait $$small || code=1; exit $$code

# These steps use one processor for most of their time. So they run side by side.
.PHONY: small-checks
small-checks:
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target test-pipes test-install audit includes

lint:
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all $(BUILD)/snapmla.1
	$(Q)sh ci/lint.sh $(BUILD)
	$(Q)sh ci/completion.sh $(BUILD)/snapmla

includes:
	$(Q)sh ci/includes.sh

audit: $(if $(filter 1,$(CUDA)),$(call objects,$(filter kernels/cuda/%,$(call sources,kernels))))
	$(Q)NVCC="$(if $(filter 1,$(CUDA)),$(NVCC))" sh ci/audit.sh $(BUILD)

# The first build checks memory and arithmetic. The second build checks threads; it has only the
# suites, and runs only the tests, that started threads in the first. These builds have no warnings,
# because instrumented code confuses the compiler's range analysis. Undefined behaviour is checked in
# the program, and not in the code of its tests.
sanitize:
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) DEVELOPER=0 CUDA=0 BUILD=$(BUILD)/asan SANITIZE=address,undefined CFLAGS="-O0 -g1 -w" TEST_CFLAGS=-fno-sanitize=undefined \
	    TEST_FLAGS='--note $$$$t.$$$$suite.threads' test-units
	$(Q)test -s $(BUILD)/asan/test/kernels.conformance.threads # otherwise the next line would test nothing
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) DEVELOPER=0 CUDA=0 BUILD=$(BUILD)/tsan SANITIZE=thread CFLAGS="-O0 -g1 -w" TEST_CFLAGS= THREADED=$(BUILD)/asan/test \
	    TEST_FLAGS='--only $(BUILD)/asan/test/$$$${t##*/}.$$$$suite.threads' test-units

goldens: $(BUILD)/snapmla
	$(Q)sh ci/golden.sh check $(BUILD)/snapmla

# The published schema of result files, from the tables of fields in harness/record.
.PHONY: schema
schema: $(BUILD)/test/harness
	$(Q)SNAPMLA_WRITE_SCHEMA=1 $(BUILD)/test/harness --suite records > /dev/null
golden-record: $(BUILD)/snapmla
	$(Q)sh ci/golden.sh record $(BUILD)/snapmla

format:
	clang-format-14 -i $$(git ls-files '*.c' '*.h')

# Runs the commands of these documents and compares their output with the document.
test-tutorial: all
	$(Q)sh ci/tutorial.sh $(BUILD)
	$(Q)sh ci/tutorial.sh $(BUILD) docs/evals.md
	$(Q)SNAPMLA_TIMEOUT=0.1 SNAPMLA_MIN_TIME=0.02 sh ci/tutorial.sh $(BUILD) docs/plugin.md

# ---- measurements in tests: coverage of intervals, the HTTP client's reactions to faults ----
.PHONY: figures
figures: $(BUILD)/test/evals $(BUILD)/test/generator
	$(Q)sh ci/figures.sh $(BUILD)

# ---- fuzzing: libFuzzer on every fuzz_X.c, FUZZ_SECONDS each, from seeds/fuzz_X beside it ----
FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang-14
FUZZ_OPTIMISATION ?= -O1# for runs of a few seconds, -O0 takes less time in all
FUZZ_FLAGS := -std=c17 -D_GNU_SOURCE -I. $(FUZZ_OPTIMISATION) -g1 -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
FUZZERS := $(patsubst %.c,$(BUILD)/fuzz/%,$(foreach l,$(LAYERS),$(wildcard $(l)/test/fuzz_*.c)))
# Code that no target needs is left out. The matrix products of models are not instrumented: clang takes
# as long for these four files as for 200 others, and `make sanitize` tests them with sanitizers.
FUZZ_NEEDS_NO := $(MAIN) %.cu harness/cmd/cmd_%.c $(wildcard evals/synth/*.c)
FUZZ_KERNELS := $(filter-out %/gemm.c,$(wildcard generator/local/gemm/*.c))
FUZZED := $(filter-out $(FUZZ_NEEDS_NO) $(FUZZ_KERNELS),$(foreach l,base kernels/format generator evals harness,$(call sources,$(l))))
.PHONY: fuzz
fuzz: $(FUZZERS)
	$(Q)printf '%s\n' $(FUZZERS) | xargs -P $(JOBS) -I % sh ci/fuzz.sh % $(FUZZ_SECONDS)
$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/%.c.o $(BUILD)/fuzz/all.a $(call objects,$(FUZZ_KERNELS)) $(BUILD)/libkernels.a
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D) && $(FUZZ_CC) $(FUZZ_FLAGS) $(WRAP) -fsanitize=fuzzer -o $@ $^ $(LIBS)
$(BUILD)/fuzz/all.a: $(patsubst %,$(BUILD)/fuzz/obj/%.o,$(FUZZED))
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/fuzz/obj/%.o: % | $(BUILD)/build_info.h
	@echo "  FUZZ    $<"
	$(Q)mkdir -p $(@D) && $(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -I$(BUILD) -MMD -MP \
	    $(if $(filter %.c,$<),,-Wno-unused-command-line-argument) -c -o $@ $<
.SECONDARY: $(patsubst $(BUILD)/fuzz/%,$(BUILD)/fuzz/obj/%.c.o,$(FUZZERS))

# ---- manual, installation, bundle ----
$(BUILD)/snapmla.1: $(BUILD)/snapmla harness/man/snapmla.1.head harness/man/snapmla.1.tail
	$(Q){ cat harness/man/snapmla.1.head; $(BUILD)/snapmla --man-options; cat harness/man/snapmla.1.tail; } > $@

# headers for compiling plugins, and their manual
PLUGIN_HEADERS := base/err.h kernels/mla.h kernels/backend.h kernels/lab.h kernels/draw.h kernels/ceilings.h \
	kernels/plugin/plugin.h kernels/plugin/attention.h
PLUGIN_MANUAL := docs/plugin.md kernels/plugin/README.md $(addprefix kernels/plugin/example/,README.md example.c minimal.c attend.c packed.c) \
	adapters/triton_mla.py adapters/compile_check.py
SHARED_FILES = $(shell git ls-files configs datasets models 2>/dev/null || find configs datasets models -type f)
.PHONY: install uninstall test-install test-jobs dist
install: all $(BUILD)/snapmla.1
	install -D -m 755 $(BUILD)/snapmla $(DESTDIR)$(PREFIX)/bin/snapmla
	install -D -m 644 $(BUILD)/snapmla.1 $(DESTDIR)$(PREFIX)/share/man/man1/snapmla.1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(BUILD)/snapmla --completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/snapmla
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(BUILD)/snapmla --completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_snapmla
	$(BUILD)/snapmla --completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/snapmla.fish
	$(Q)for f in $(PLUGIN_HEADERS); do install -D -m 644 $$f $(DESTDIR)$(PREFIX)/include/snapmla/$$f || exit 1; done
	$(Q)for f in $(PLUGIN_MANUAL); do install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/doc/snapmla/$$f || exit 1; done
	$(Q)for f in $(SHARED_FILES); do install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/snapmla/$$f || exit 1; done

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/bin/snapmla $(DESTDIR)$(PREFIX)/share/man/man1/snapmla.1 $(DESTDIR)$(PREFIX)/share/snapmla \
	    $(DESTDIR)$(PREFIX)/include/snapmla $(DESTDIR)$(PREFIX)/share/doc/snapmla \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/snapmla \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_snapmla \
	    $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/snapmla.fish

# The script runs make, which small-checks would otherwise tell to share its jobs.
test-install: all $(BUILD)/snapmla.1
	$(Q)MAKEFLAGS='$(filter-out -j% --jobserver-auth=%,$(MAKEFLAGS))' sh ci/test_install.sh $(BUILD)

test-jobs: all
	$(Q)sh ci/test_jobs.sh $(BUILD)
	$(Q)sh ci/test_sbatch.sh $(BUILD)
	$(Q)sh ci/test_vendor.sh $(BUILD)

dist: all $(BUILD)/snapmla.1
	$(Q)sh ci/dist.sh $(BUILD) $(VERSION)

# ---- packages: under BUILD/package/; `release` is all of them with checksums ----
.PHONY: deb wheel release test-packages
deb: all $(BUILD)/snapmla.1
	$(Q)sh ci/install-deps.sh package
	$(Q)sh ci/package/deb.sh $(BUILD) $(VERSION)

wheel: dist
	$(Q)mkdir -p $(BUILD)/package
	$(Q)SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	    python3 ci/package/wheel.py $(BUILD)/dist/snapmla-$(VERSION)-$$(uname -m) $(VERSION) $(BUILD)/package

release: deb wheel
	$(Q)cp $(BUILD)/dist/snapmla-$(VERSION)-$$(uname -m).tar.gz $(BUILD)/package/
	$(Q)cd $(BUILD)/package && rm -f SHA256SUMS && sha256sum snapmla*.* > SHA256SUMS && cat SHA256SUMS

# Installs each package in a fresh root and runs it there: needs root, debootstrap, PyPI's pip and a minute.
test-packages: release
	$(Q)sh ci/package/try.sh $(BUILD)/package

.PHONY: clean help
clean:
	rm -rf $(BUILD)

help:
	@echo 'make              build/snapmla'
	@echo 'make demo         install missing packages, build, run a small benchmark, an evaluation and two servers, report'
	@echo 'make test         install missing packages, build, run all tests'
	@echo 'make check        test, test-alloc, test-pipes, tutorial, lint, include order, audit, sanitizers, installation'
	@echo 'make test-alloc   runs commands while one memory allocation fails;  test-alloc-full: more of them, half an hour'
	@echo 'make test-pipes   gives a named pipe to every option and argument: no command may wait for it'
	@echo 'make test-tutorial  run the commands of docs/tutorial.md, evals.md and plugin.md and compare their output'
	@echo 'make dist         one relocatable bundle for machines without the development packages'
	@echo 'make deb, wheel   a Debian package, a Python wheel;  make release: both and the bundle, with checksums'
	@echo 'make test-packages  installs each package in a fresh root and runs it (root, debootstrap)'
	@echo 'make audit        registers, spills, shared memory and machine code of the Hopper kernels'
	@echo 'make cuda-checks  programs that check the CUDA kernels on a device: build/test/cuda/'
	@echo 'make install      PREFIX=/usr/local DESTDIR='
	@echo 'make fuzz         libFuzzer on every parser, FUZZ_SECONDS=60 each'
	@echo 'make figures      print measurements of tests: coverage of intervals, reactions to network faults'
	@echo 'make format       clang-format;  make golden-record: accept the new output of the commands'
	@echo 'make schema       write harness/record/snapmla.run.schema.json from the tables of fields'
	@echo 'Variables: BUILD V DEVELOPER SANITIZE CUDA NVCC PREFIX DESTDIR CC CFLAGS'

-include $(shell find $(BUILD)/obj $(BUILD)/test $(BUILD)/fuzz -name '*.d' 2>/dev/null)
