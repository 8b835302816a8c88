#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/test/sanitized.h"
#include "base/text.h"
#include "generator/test/drive.h"
#include "generator/test/tiny_model.h"

enum { kRequests = 9 };

static generator *open_local(const char *dir, const generator_options *opt, snap_err *err) {
    char spec[128];
    generator *g = NULL;
    (void)snprintf(spec, sizeof spec, "local:%s", dir);
    snap_status st = generator_open(&g, spec, opt, err);
    CU_ASSERT_EQUAL(st == SNAP_OK, g != NULL);
    return g;
}

static void run(const char *dir, const char *precision, int in_flight, int threads, drive *d) {
    generator_options opt = {.threads = threads, .precision = precision, .in_flight = in_flight};
    snap_err err = {0};
    generator *g = open_local(dir, &opt, &err);
    *d = (drive){0};
    if (!g)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(drive_run(d, g, kRequests), SNAP_OK);
    CU_ASSERT_EQUAL(d->n_kept, kRequests);
    generator_close(g);
}

static void test_answers_do_not_depend_on_the_batch(void) {
    static drive one, many;
    static const char *const precisions[] = {"bf16", "fp8", "A"};
    char dir[64];
    tiny_folder(dir, "v3");
    for (int p = 0; p < 3; p++) {
        if (kThreadSanitized && p != 1) /* those have one thread for the model */
            continue;
        run(dir, precisions[p], 1, 1, &one);
        run(dir, precisions[p], 5, p == 1 ? 2 : 1, &many);
        int differ = 0;
        for (int i = 0; i < kRequests; i++) {
            const kept *a = drive_result(&one, i), *b = drive_result(&many, i);
            CU_ASSERT_FATAL(a && b);
            CU_ASSERT_FALSE(a->failed);
            CU_ASSERT_STRING_EQUAL(a->text, b->text);
            CU_ASSERT_STRING_EQUAL(a->finish_reason, b->finish_reason);
            CU_ASSERT_EQUAL(a->res.completion_tokens, b->res.completion_tokens);
            CU_ASSERT(a->res.prompt_tokens > 3);
            CU_ASSERT(a->res.total_ns >= a->res.first_token_ns);
            CU_ASSERT(text_is_utf8(a->text, strlen(a->text)));
            bool full = strcmp(a->finish_reason, "length") == 0;
            CU_ASSERT(full ? a->res.completion_tokens == 100
                           : strcmp(a->finish_reason, "stop") == 0);
            differ += strcmp(a->text, drive_result(&one, 0)->text) != 0;
        }
        CU_ASSERT(differ > kRequests / 2); /* the seeds make a difference */
        drive_release(&one);
        drive_release(&many);
    }
    tiny_remove(dir);
}

static void test_a_run_that_ends_early(void) {
    static drive d;
    volatile sig_atomic_t cancel = 0;
    generator_options opt = {.threads = 1, .in_flight = 4, .cancel = &cancel};
    char dir[64];
    tiny_folder(dir, "minicpm3");
    generator *g = open_local(dir, &opt, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    d = (drive){.fail_after = 2};
    CU_ASSERT_EQUAL(drive_run(&d, g, kRequests), SNAP_E_IO);
    CU_ASSERT_EQUAL(d.n_kept, 2);
    drive_release(&d);
    cancel = 1;
    CU_ASSERT_EQUAL(drive_run(&d, g, kRequests), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(d.n_kept, 0);
    drive_release(&d);
    cancel = 0;
    CU_ASSERT_EQUAL(drive_run(&d, g, kRequests), SNAP_OK);
    CU_ASSERT_EQUAL(d.n_kept, kRequests);
    drive_release(&d);
    generator_close(g);
    tiny_remove(dir);
}

/* Opening a pipe that nothing writes to would block. */
static void test_pipes_as_files(void) {
    static const char *const names[] = {
        "config.json",        "generation_config.json", "model.safetensors.index.json",
        "model.safetensors",  "tokenizer.json",         "tokenizer_config.json",
        "chat_template.jinja"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char dir[64];
        snap_err err = {0};
        generator_options opt = {.threads = 1};
        tiny_folder(dir, "v2-lite");
        char *path = fs_join(dir, names[i]);
        (void)unlink(path);
        CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
        CU_ASSERT_PTR_NULL(open_local(dir, &opt, &err));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a regular file"));
        (void)unlink(path);
        free(path);
        tiny_remove(dir);
    }
}

/* A request whose logits are not finite fails, and it does not become an answer. */
static void test_damaged_weights(void) {
    static drive d;
    char dir[64];
    generator_options opt = {.threads = 1, .in_flight = 3};
    tiny_folder(dir, "v3");
    tiny_spoil(dir, "model.layers.1.self_attn.o_proj.weight", 7, 1, NAN);
    generator *g = open_local(dir, &opt, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(drive_run(&d, g, kRequests), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(d.n_kept, kRequests);
    for (int i = 0; i < kRequests; i++) {
        CU_ASSERT_TRUE(d.kept[i].failed);
        CU_ASSERT_PTR_NULL(d.kept[i].finish_reason);
        CU_ASSERT_STRING_EQUAL(d.kept[i].text, "");
        CU_ASSERT_PTR_NOT_NULL(strstr(d.kept[i].error, "NaN or infinite (precision bf16"));
    }
    drive_release(&d);
    generator_close(g);
    tiny_remove(dir);
}

static void test_refusals(void) {
    static drive d;
    snap_err err = {0};
    char dir[64];
    tiny_folder(dir, "v2-lite");
    generator_options opt = {.threads = 1, .precision = "int5"};
    CU_ASSERT_PTR_NULL(open_local(dir, &opt, &err));
    CU_ASSERT_EQUAL(err.code, SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "int5"));
    err = (snap_err){0};
    opt = (generator_options){.threads = 1, .context = 4096};
    CU_ASSERT_PTR_NULL(open_local(dir, &opt, &err));
    CU_ASSERT_EQUAL(err.code, SNAP_E_SHAPE);
    err = (snap_err){0};
    opt = (generator_options){.threads = 1, .cache_bytes = 1000};
    CU_ASSERT_PTR_NULL(open_local(dir, &opt, &err));
    CU_ASSERT_EQUAL(err.code, SNAP_E_NOMEM);
    err = (snap_err){0};
    opt = (generator_options){.threads = 1, .chat_template = "none"};
    CU_ASSERT_PTR_NULL(open_local("/nonexistent", &opt, &err));
    CU_ASSERT_EQUAL(err.code, SNAP_E_IO);
    /* With a context shorter than the prompt the request fails, but not the run. */
    opt.context = 4;
    generator *g = open_local(dir, &opt, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(drive_run(&d, g, 2), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(d.n_kept, 2);
    CU_ASSERT_TRUE(d.kept[0].failed);
    CU_ASSERT_PTR_NOT_NULL(strstr(d.kept[0].error, "a prompt of"));
    drive_release(&d);
    generator_close(g);
    tiny_remove(dir);
}

CU_TestInfo tests_local[] = {
    {"answers do not depend on the batch", test_answers_do_not_depend_on_the_batch},
    {"a run that ends early", test_a_run_that_ends_early},
    {"pipes instead of files", test_pipes_as_files},
    {"samples of a model with damaged weights fail", test_damaged_weights},
    {"bad options of a local model are refused", test_refusals},
    CU_TEST_INFO_NULL,
};
