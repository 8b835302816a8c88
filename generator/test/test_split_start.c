/* Tests how the ranks of a split model start: what is refused, and what they compare. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/test/failing_alloc.h"
#include "base/test/sanitized.h"
#include "base/test/temp_folder.h"
#include "generator/local/local.h"
#include "generator/local/split_order.h"
#include "generator/test/split_ranks.h"
#include "generator/test/tiny_model.h"

static const char kShipped[] = "models/snapmla-10m";

static void test_rank(void) {
    split_ranks_follow();
    split_ranks_prepare("split_start");
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refused(const char *dir, const char *layout, snap_status st, const char *text) {
    local_model m;
    snap_err err = {0};
    local_options how = {.layout = layout, .threads = 1};
    CU_ASSERT_EQUAL(local_open(&m, dir, &how, &err), st);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
    if (!strstr(err.text, text))
        (void)fprintf(stderr, "%s\n", err.text);
    local_close(&m);
    split_ranks_expect_none();
}

static void test_refusals(void) {
    static char no_rank[] = "false", suite[] = "--list";
    static char *argv[] = {no_rank, suite, NULL}; /* a process that ends at once */
    expect_refused(kShipped, "TP3", SNAP_E_UNSUPPORTED,
                   "3 ranks do not divide num_attention_heads");
    expect_refused(kShipped, "DP2/TP3", SNAP_E_UNSUPPORTED,
                   "3 ranks do not divide num_attention_heads");
    expect_refused(kShipped, "EP16", SNAP_E_UNSUPPORTED,
                   "16 ranks do not divide n_routed_experts 8");
    expect_refused(kShipped, "TP17", SNAP_E_USAGE, "the layout must be DPn");
    split_set_program(&(split_program){0});
    expect_refused(kShipped, "TP2", SNAP_E_UNSUPPORTED, "cannot start the ranks");
    split_set_program(&(split_program){.argv = argv});
    expect_refused(kShipped, "TP2", SNAP_E_NET, "rank 1: its process has ended");
    split_ranks_prepare("split");
}

static void facts_of(buf *out, const split_order *o) {
    buf_clear(out);
    CU_ASSERT_EQUAL(split_facts(out, o, NULL), SNAP_OK);
}

/* The facts that ranks compare depend on the layout, the folder, and each file of the
 * checkpoint. */
static void test_facts(void) {
    char dir[64], path[128];
    buf one = {0}, other = {0};
    split_order o = {.layout = {1, 2, false}}, random = {.layout = {1, 2, false}, .random = true};
    split_ranks_model(dir, "v3");
    (void)snprintf(o.dir, sizeof o.dir, "%s", dir);
    facts_of(&one, &o);
    facts_of(&other, &o);
    CU_ASSERT_STRING_EQUAL(buf_str(&one), buf_str(&other));
    o.layout.parts = 4;
    facts_of(&other, &o);
    CU_ASSERT_STRING_NOT_EQUAL(buf_str(&one), buf_str(&other));
    o.layout.parts = 2;
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    CU_ASSERT_EQUAL(truncate(path, 100), 0);
    facts_of(&other, &o);
    CU_ASSERT_STRING_NOT_EQUAL(buf_str(&one), buf_str(&other));
    facts_of(&one, &o);
    (void)snprintf(path, sizeof path, "%s/model.safetensors", dir);
    CU_ASSERT_EQUAL(truncate(path, 100), 0);
    facts_of(&other, &o);
    CU_ASSERT_STRING_NOT_EQUAL(buf_str(&one), buf_str(&other));
    facts_of(&one, &random);
    CU_ASSERT_STRING_NOT_EQUAL(buf_str(&one), buf_str(&other));
    tiny_remove(dir);
    snap_err err = {0};
    CU_ASSERT_EQUAL(split_facts(&other, &o, &err), SNAP_E_IO);
    buf_release(&one);
    buf_release(&other);
}

/* Runs split_follow() in a child process, sends it @n bytes as its order, and expects its error. */
static void expect_order(const void *order, size_t n, const char *message) {
    int ends[2], errors[2];
    char text[700];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CU_ASSERT_EQUAL_FATAL(pipe(errors), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        snap_err err = {0};
        (void)close(ends[0]);
        (void)dup2(ends[1], STDIN_FILENO);
        bool followed = split_follow(NULL, &err);
        _exit(!followed || write(errors[1], err.text, strlen(err.text)) < 0);
    }
    (void)close(ends[1]);
    (void)close(errors[1]);
    channel c = channel_of(ends[0], 1);
    wire_message hello;
    CU_ASSERT_EQUAL(channel_receive(&c, WIRE_HELLO, 20, &hello, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(channel_send(&c, WIRE_ORDER, order, n, NULL), SNAP_OK);
    ssize_t got = read(errors[0], text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    CU_ASSERT_STRING_EQUAL(text, message);
    CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
    channel_close(&c);
    (void)close(errors[0]);
}

static void test_malformed_orders(void) {
    static const char malformed[] = "the order from rank 0 is malformed";
    const split_order good = {.rank = 1,
                              .layout = {1, 2, false},
                              .port = 1,
                              .hidden_size = 8,
                              .max_rows = 1,
                              .dir = "/nonexistent"};
    split_order o = good;
    expect_order(&o, sizeof o, "cannot read the folder /nonexistent: No such file or directory");
    expect_order(&o, sizeof o - 1, malformed);
    expect_order(&o, 0, malformed);
    o.rank = 2;
    expect_order(&o, sizeof o, malformed);
    o = good;
    o.port = 70000;
    expect_order(&o, sizeof o, malformed);
    o = good;
    memset(o.precision, 'x', sizeof o.precision);
    expect_order(&o, sizeof o, malformed);
}

/* The address space of one rank is smaller than its cache. The others have room. */
static void check_no_memory(const char *layout, int rank) {
    local_model m;
    char named[16];
    snap_err err = {0};
    local_options how = {.layout = layout,
                         .threads = 1,
                         .context = 32768,
                         .sequences = 64,
                         .cache_bytes = (int64_t)2 << 30};
    int64_t begun_ns = clock_now_ns();
    (void)snprintf(named, sizeof named, "rank %d: ", rank);
    split_ranks_limit(rank, (int64_t)256 << 20);
    CU_ASSERT_EQUAL(local_open(&m, kShipped, &how, &err), SNAP_E_NOMEM);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, named));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "memory"));
    if (!strstr(err.text, named))
        (void)fprintf(stderr, "%s, rank %d: %s\n", layout, rank, err.text);
    local_close(&m);
    split_ranks_limit(rank, 0);
    fault_forget(); /* of rank 0 */
    split_ranks_expect_none();
    CU_ASSERT((double)(clock_now_ns() - begun_ns) < 30e9);
}

static void test_no_memory(void) {
    if (kSanitized)
        return;
    check_no_memory("EP2", 0); /* the first one, because rank 0 keeps freed address space */
    check_no_memory("TP2", 1);
    check_no_memory("EP2", 1);
    check_no_memory("DP2/TP2/EP4", 1);
    check_no_memory("DP2/TP2/EP4", 3);
}

/* Rank 1 runs in another folder, so the same path is another checkpoint for it. */
static void test_other_checkpoint(void) {
    char folder[TEMP_FOLDER], command[300];
    temp_folder_open(folder, "other-checkpoint");
    (void)snprintf(command, sizeof command, "mkdir -p %s/%s && cp %s/*.json %s/*.safetensors %s/%s",
                   folder, kShipped, kShipped, kShipped, folder, kShipped);
    CU_ASSERT_EQUAL_FATAL(system(command), 0);
    split_ranks_folder(folder);
    expect_refused(kShipped, "TP2", SNAP_E_USAGE,
                   "rank 1: its checkpoint is 'models/snapmla-10m, files ");
    expect_refused(kShipped, "EP2", SNAP_E_USAGE,
                   "', and that of rank 0 is 'models/snapmla-10m, files ");
    split_ranks_folder(NULL);
    temp_folder_remove(folder);
}

/* The message that rank 0 sends is longer than the buffer of the other side. */
static void test_no_memory_for_a_message(void) {
    static const char bytes[100000];
    int ends[2];
    snap_err err = {0};
    wire_message m;
    if (!failing_alloc_works())
        return;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    channel from = channel_of(ends[0], 1), to = channel_of(ends[1], 0);
    CU_ASSERT_EQUAL(channel_send(&from, WIRE_CALL, bytes, sizeof bytes, NULL), SNAP_OK);
    failing_alloc_arm(2, true);
    snap_status st = channel_receive(&to, WIRE_CALL, 20, &m, &err);
    (void)failing_alloc_disarm();
    fault_forget();
    CU_ASSERT_EQUAL(st, SNAP_E_NOMEM);
    CU_ASSERT_STRING_EQUAL(err.text, "out of memory for a message from rank 0");
    channel_close(&from);
    channel_close(&to);
}

CU_TestInfo tests_split_start[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"layouts that cannot be run are refused", test_refusals},
    {"what ranks compare depends on layout and files", test_facts},
    {"malformed orders from rank 0 are refused", test_malformed_orders},
    {"a rank without memory", test_no_memory},
    {"no memory for a message", test_no_memory_for_a_message},
    {"a rank with another checkpoint", test_other_checkpoint},
    CU_TEST_INFO_NULL,
};
