#include "harness/bench/arm_spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "harness/record/provenance.h"

enum { kLongestName = 40, kMostThreads = 1024 };
static const char kPlugin[] = "plugin:", kPython[] = "python:";

static const char *const backends[] = {"cpu", "cuda", "opencl", "plugin:PATH", "python:FILE", NULL};
static const char *const keys[] = {"precision", "isa", "threads", "scale", "unit", "format", NULL};

static snap_status check_name(const char *name, snap_err *err) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);
    if (n && n <= kLongestName && strspn(name, allowed) == n)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "--arm: '%.60s' is not the name of an arm: it must have 1..%d letters, digits, "
                   "'.', '_' or '-', and '=BACKEND' must follow",
                   name, kLongestName);
}

/* Whether the backend is a file that the user names. */
static bool is_loaded(const char *backend) {
    return (text_starts(backend, kPlugin) && backend[sizeof kPlugin - 1]) ||
           (text_starts(backend, kPython) && backend[sizeof kPython - 1]);
}

static snap_status set_backend(arm_spec *arm, const char *backend, snap_err *err) {
    char hint[NEAREST_HINT];
    arm->device.backend = backend;
    if (is_loaded(backend))
        return SNAP_OK;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(backend, backends[i]) == 0)
            return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "--arm %s: the backend must be cpu, cuda, opencl, plugin:PATH or python:FILE, "
                   "got '%.80s'%s",
                   arm->name, backend, nearest_hint(backend, backends, "", hint));
}

static snap_status refuse(const arm_spec *arm, const char *key, const char *must, const char *got,
                          snap_err *err) {
    return err_set(err, SNAP_E_USAGE, "--arm %s: '%s' must be %s, got '%.80s'", arm->name, key,
                   must, got);
}

static snap_status set_key(arm_spec *arm, const char *key, const char *value, snap_err *err) {
    char hint[NEAREST_HINT];
    if (strcmp(key, "precision") == 0) {
        bool known = bench_kind_parse(value, &arm->kind) && arm->kind < BENCH_COMPARED;
        arm->has_precision = true;
        return known ? SNAP_OK : refuse(arm, key, "bf16 or fp8", value, err);
    }
    if (strcmp(key, "isa") == 0) {
        arm->device.isa = value;
        return *value ? SNAP_OK
                      : refuse(arm, key, "an instruction set or a device's name", value, err);
    }
    if (strcmp(key, "threads") == 0) {
        int64_t *n = &arm->device.threads;
        bool ok = text_to_int(value, n) && *n >= 0 && *n <= kMostThreads;
        return ok ? SNAP_OK : refuse(arm, key, "an integer within 0..1024", value, err);
    }
    if (strcmp(key, "scale") == 0) {
        mla_scale rule;
        arm->device.scale = value;
        return mla_scale_parse(value, &rule) ? SNAP_OK
                                             : refuse(arm, key, "max or pow2", value, err);
    }
    if (strcmp(key, "unit") == 0) {
        arm->unit = value;
        bool known = text_equal(value, "kept") || text_equal(value, "page");
        return known ? SNAP_OK : refuse(arm, key, "kept or page", value, err);
    }
    if (strcmp(key, "format") == 0) {
        arm->format = value;
        return *value ? SNAP_OK : refuse(arm, key, "a format's name or file", value, err);
    }
    return err_set(err, SNAP_E_USAGE,
                   "--arm %s: unknown key '%.40s'%s; known: precision, isa, threads, scale, unit, "
                   "format",
                   arm->name, key, nearest_hint(key, keys, "", hint));
}

static snap_status check_keys(arm_spec *arm, snap_err *err) {
    if (arm->format && !is_loaded(arm->device.backend))
        return err_set(
            err, SNAP_E_USAGE,
            "--arm %s: 'format' is for plugin:PATH and python:FILE: %s reads the caches of "
            "its two precisions only",
            arm->name, arm->device.backend);
    if (arm->device.scale && (arm->format || arm->kind != BENCH_FP8))
        return err_set(err, SNAP_E_USAGE,
                       "--arm %s: 'scale' is for arms with precision=fp8, whose rows the program "
                       "quantises",
                       arm->name);
    if (arm->has_precision && (arm->format || text_starts(arm->device.backend, kPython)))
        return err_set(err, SNAP_E_USAGE,
                       "--arm %s: 'precision' is for arms without a format, whose cache is that of "
                       "the precision",
                       arm->name);
    if (arm->unit && (arm->kind != BENCH_FP8 || !text_equal(arm->device.backend, "cuda")))
        return err_set(
            err, SNAP_E_USAGE,
            "--arm %s: 'unit' is for cuda with precision=fp8, which rounds probabilities "
            "to FP8",
            arm->name);
    if (arm->unit && text_equal(arm->unit, "page"))
        arm->kind = BENCH_PAGE_UNITS;
    return SNAP_OK;
}

/* Handles one part after the first comma: "key=value". */
static snap_status take_key(void *ctx, const char *part, snap_err *err) {
    struct {
        arm_spec *arm;
        arena *mem;
    } *to = ctx;
    char *text = arena_strdup(to->mem, part);
    if (!text)
        return err_set(err, SNAP_E_NOMEM, "out of memory for --arm");
    char *equals = strchr(text, '=');
    if (!equals)
        return err_set(err, SNAP_E_USAGE, "--arm %s: '%.80s' is not key=value", to->arm->name,
                       text);
    *equals = '\0';
    return set_key(to->arm, text, equals + 1, err);
}

/* Stores the options without folders, because result files must not show the folders of the
 * machine. */
static snap_status keep_options(arm_spec *arm, const char *text, arena *mem, snap_err *err) {
    char *cut = provenance_cut_folders(text);
    arm->options = cut ? arena_strdup(mem, cut) : NULL;
    free(cut);
    return arm->options ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for --arm");
}

static snap_status parse_one(const char *item, arena *mem, arm_spec *arm, snap_err *err) {
    struct {
        arm_spec *arm;
        arena *mem;
    } to = {arm, mem};
    *arm = (arm_spec){.device = {.isa = "auto"}, .kind = BENCH_BF16};
    if (!text_is_utf8(item, strlen(item)))
        return err_set(err, SNAP_E_USAGE, "--arm: the text is not UTF-8");
    char *name = arena_strdup(mem, item), *equals = name ? strchr(name, '=') : NULL;
    if (!name)
        return err_set(err, SNAP_E_NOMEM, "out of memory for --arm");
    if (!equals)
        return err_set(err, SNAP_E_USAGE, "--arm: '%.80s' is not NAME=BACKEND[,key=value...]",
                       item);
    *equals = '\0';
    arm->name = name;
    snap_status st = SNAP_OK;
    TRY(check_name(name, err));
    TRY(keep_options(arm, equals + 1, mem, err));
    char *backend = arena_strdup(mem, equals + 1);
    if (!backend)
        return err_set(err, SNAP_E_NOMEM, "out of memory for --arm");
    char *comma = strchr(backend, ',');
    if (comma)
        *comma = '\0';
    TRY(set_backend(arm, backend, err));
    if (comma)
        TRY(text_split(comma + 1, ',', "--arm", take_key, &to, err));
    TRY(check_keys(arm, err));
cleanup:
    return st;
}

snap_status arm_specs_parse(const opt_list *list, arena *mem, arm_spec *out, snap_err *err) {
    if (list->n > SWEEP_ARMS)
        return err_set(err, SNAP_E_USAGE, "--arm is given %d times, at most %d arms are possible",
                       list->n, SWEEP_ARMS);
    for (int i = 0; i < list->n; i++) {
        snap_status st = parse_one(list->items[i], mem, &out[i], err);
        if (st != SNAP_OK)
            return st;
        for (int k = 0; k < i; k++)
            if (text_equal(out[k].name, out[i].name))
                return err_set(err, SNAP_E_USAGE, "--arm: two arms have the name '%s'",
                               out[i].name);
    }
    return SNAP_OK;
}
