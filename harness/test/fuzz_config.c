/* Reads random bytes as a configuration, suite, manifest or result file, or as the option of an
 * arm; the first byte selects which. They must be read, or refused with a message. */
#include <stdint.h>
#include <string.h>

#include "base/term.h"
#include "base/test/fuzz_file.h"
#include "generator/http/chat_request.h"
#include "generator/settings.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/suite.h"
#include "harness/fetch/manifest.h"
#include "harness/opt.h"
#include "harness/record/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool flag;
static int64_t count;
static double number;
static const char *text;
static opt_list list;

static const opt options[] = {{OPT_FLAG, "flag", 'f', &flag, NULL, "yes or no", 0, 0},
                              {OPT_INT, "count", 'n', &count, "N", "how many", 1, 1024},
                              {OPT_NUM, "number", 0, &number, "X", "how much", 0, 100},
                              {OPT_STR, "text", 0, &text, "TEXT", "what", 0, 0},
                              {OPT_LIST, "arm", 0, &list, "ARM", "which", 0, 0},
                              {.type = OPT_END}};
static const opt_command command = {.name = "try",
                                    .synopsis = "[options]",
                                    .about = "Tries.",
                                    .examples = "  snapmla try",
                                    .options = options};

static snap_status read_options(const char *path, snap_err *err) {
    opt_shared shared = {0};
    const char *argv[] = {"--config", path};
    count = 1;
    number = 0;
    text = NULL;
    list.n = 0;
    snap_status st = opt_parse(&command, 2, argv, &shared, err);
    if (st == SNAP_OK && (count < 1 || count > 1024 || !(number >= 0 && number <= 100)))
        __builtin_trap();
    for (int i = 0; i < list.n && st == SNAP_OK; i++)
        if (!list.items[i] || strlen(list.items[i]) > 1 << 20)
            __builtin_trap();
    opt_release(&shared);
    return st;
}

static snap_status read_suite(const char *path, snap_err *err) {
    suite s;
    arena mem = {0};
    snap_status st = suite_resolve(path, &mem, &s, err);
    for (size_t i = 0; i < s.n && st == SNAP_OK; i++)
        if (s.tasks[i].samples < 1 || s.tasks[i].sampling.max_tokens < 1)
            __builtin_trap();
    arena_release(&mem);
    return st;
}

static snap_status read_manifest(const char *path, snap_err *err) {
    manifest m;
    snap_status st = manifest_load(&m, path, err);
    for (size_t i = 0; i < m.n && st == SNAP_OK; i++)
        for (size_t k = 0; k < m.sets[i].n_files; k++)
            if (strstr(m.sets[i].files[k].path, "..") || m.sets[i].files[k].path[0] == '/')
                __builtin_trap();
    manifest_release(&m);
    return st;
}

static snap_status read_results(const char *path, snap_err *err) {
    results *r = NULL;
    snap_status st = results_load(&r, path, err);
    results_free(r);
    return st;
}

/* Settings that passed the check can be sent, and described. */
static void write_request(const gen_settings *settings) {
    static const gen_message message = {"user", "why?"};
    const gen_request req = {.messages = &message, .n_messages = 1, .settings = settings};
    buf body = {0};
    js *described = gen_settings_json(settings);
    if (!described || chat_request_write(&req, "m", true, &body, NULL) != SNAP_OK)
        __builtin_trap();
    js_free(described);
    buf_release(&body);
}

static snap_status read_arm(const uint8_t *data, size_t size, snap_err *err) {
    arena mem = {0};
    eval_arm arm;
    char *spec = strndup((const char *)data, size);
    snap_status st = spec ? arm_parse("--arm", spec, true, &mem, &arm, err) : SNAP_OK;
    if (spec && st == SNAP_OK && gen_settings_check(&arm.settings, NULL) == SNAP_OK)
        write_request(&arm.settings);
    free(spec);
    arena_release(&mem);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static snap_status (*const readers[])(const char *, snap_err *) = {read_options, read_suite,
                                                                       read_manifest, read_results};
    enum { READERS = sizeof readers / sizeof *readers };
    snap_err err = {0};
    if (!size)
        return 0;
    term_set_quiet(true);
    size_t which = data[0] % (READERS + 1);
    snap_status st = which < READERS
                         ? readers[which](fuzz_file("file.json", data + 1, size - 1), &err)
                         : read_arm(data + 1, size - 1, &err);
    if (st != SNAP_OK && !err.text[0])
        __builtin_trap();
    return 0;
}
