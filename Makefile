# snapmla - build, test, install. `make help` lists the targets.
#
# Knobs, on the command line or in the environment:
BUILD ?= build# where everything that is made goes
V ?= 0# 1 shows the commands
DEVELOPER ?= 0# 1 turns warnings into errors
SANITIZE ?=# address,undefined or thread
CUDA ?= auto# 0 builds without a CUDA toolkit, 1 insists on one, auto takes one if found
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config

VERSION := 0.1.0
PACKAGES := libcurl jansson libpcre2-8 libcrypto
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DIRTY := $(if $(shell git status --porcelain --untracked-files=no 2>/dev/null | head -n 1),1,0)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wformat=2 -Wundef -Wcast-qual -Wwrite-strings -Wdouble-promotion
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -I. $(WARN) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP
ALL_LDFLAGS = $(LDFLAGS)
ifeq ($(DEVELOPER),1)
ALL_CFLAGS += -Werror
endif
ifneq ($(SANITIZE),)
ALL_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
ALL_LDFLAGS += -fsanitize=$(SANITIZE)
endif
PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PACKAGES))
PKG_LIBS = $(shell $(PKG_CONFIG) --libs $(PACKAGES))
LIBS = $(PKG_LIBS) -lpthread -lm
Q := $(if $(filter 1,$(V)),,@)

# One library a folder, in the order of the layers: a library may use those before it only.
LAYERS := base kernels generator evals harness
sources = $(sort $(filter-out $(wildcard $(1)/test/*),$(wildcard $(1)/*.[cS] $(1)/*/*.[cS] $(1)/*/*/*.[cS])))
objects = $(patsubst %,$(BUILD)/obj/%.o,$(1))
MAIN := harness/main.c

# $(call libs,LAYER): the archives of a layer and those below it, topmost first
below = $(if $(filter $(1),$(firstword $(2))),$(1),$(firstword $(2)) $(call below,$(1),$(wordlist 2,9,$(2))))
reverse = $(if $(1),$(call reverse,$(wordlist 2,9,$(1))) $(firstword $(1)))
libs = $(patsubst %,$(BUILD)/lib%.a,$(call reverse,$(call below,$(1),$(LAYERS))))

.PHONY: all
all: $(BUILD)/snapmla

$(BUILD)/snapmla: $(call objects,$(MAIN)) $(call libs,harness)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

define layer
$(BUILD)/lib$(1).a: $(call objects,$(filter-out $(MAIN),$(call sources,$(1))))
	@echo "  AR      $$@"
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call layer,$(l))))

$(BUILD)/obj/%.c.o: %.c
	@echo "  CC      $<"
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CFLAGS_$(subst /,_,$(basename $<))) -c -o $@ $<

$(BUILD)/obj/%.S.o: %.S
	@echo "  AS      $<"
	$(Q)mkdir -p $(@D) && $(CC) -I. -MMD -MP -c -o $@ $<

# The build's own facts: a stamp that changes only when they do, so that a commit relinks one file.
$(BUILD)/build_info.h: FORCE
	$(Q)mkdir -p $(@D) && printf '%s\n' '#define BUILD_VERSION "$(VERSION)"' \
	    '#define BUILD_COMMIT "$(COMMIT)"' '#define BUILD_DIRTY $(DIRTY)' \
	    '#define BUILD_FLAGS "$(strip $(CFLAGS))$(if $(SANITIZE), -fsanitize=$(SANITIZE))"' > $@.new
	$(Q)cmp -s $@.new $@ && rm $@.new || mv $@.new $@
.PHONY: FORCE
FORCE:
$(BUILD)/obj/harness/results/provenance.c.o: $(BUILD)/build_info.h
CFLAGS_harness_results_provenance := -I$(BUILD)

# ---- tests: one program a folder, from every test_*.c beside what it tests ----
TEST_LAYERS := $(foreach l,$(LAYERS),$(if $(wildcard $(l)/test/test_*.c),$(l)))
tests_of = $(sort $(wildcard $(1)/test/test_*.c))
CUNIT_LIBS = $(shell $(PKG_CONFIG) --libs cunit)

define layer_test
$(BUILD)/test/$(1)_main.c: $(call tests_of,$(1)) ci/test_main.sh
	$$(Q)mkdir -p $$(@D) && sh ci/test_main.sh $(1) $(call tests_of,$(1)) > $$@
$(BUILD)/test/$(1)_main.o: $(BUILD)/test/$(1)_main.c
	$$(Q)$$(CC) $$(ALL_CFLAGS) -c -o $$@ $$<
$(BUILD)/test/$(1): $(BUILD)/test/$(1)_main.o $(call objects,$(sort $(wildcard $(1)/test/*.c))) $(call libs,$(1))
	@echo "  LINK    $$@"
	$$(Q)$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(CUNIT_LIBS) $$(LIBS)
endef
$(foreach l,$(TEST_LAYERS),$(eval $(call layer_test,$(l))))
TEST_PROGRAMS := $(patsubst %,$(BUILD)/test/%,$(TEST_LAYERS))

.PHONY: test-units
test-units: $(TEST_PROGRAMS)
	$(Q)for t in $(TEST_PROGRAMS); do $$t || exit 1; done

-include $(shell find $(BUILD)/obj $(BUILD)/test -name '*.d' 2>/dev/null)
