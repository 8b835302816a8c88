/* Tests which ranks of `bench model --layout` refuse each other. They are real processes, which a
 * launcher has started by RANK, WORLD_SIZE and MASTER_ADDR. Each joins the group as the command
 * does, and ends before it needs a GPU. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/test/temp_folder.h"
#include "generator/local/ranks/ranks.h"
#include "harness/cmd/model_layout.h"

volatile sig_atomic_t cmd_cancelled; /* main.c of the program defines it */

enum { kRanks = 2 };
/* environment variables of a rank */
static const char kConfig[] = "MODEL_RANKS_CONFIG", kLayout[] = "MODEL_RANKS_LAYOUT";

/* ---- a rank ---------------------------------------------------------------------------------- */

static model_bench_options o = {
    .arms = "bf16,fp8", .batches = "8", .contexts = "8192", .one_shot_kib = -1, .seconds = 0.25};

/* Stands in for the measurement. */
static snap_status gather(opt_shared *shared, bool shows, snap_err *err) {
    int mine = ranks_rank(o.group), all[kRanks] = {0};
    (void)shared;
    snap_status st = ranks_all_gather(o.group, "numbers", &mine, sizeof mine, all, err);
    if (st == SNAP_OK && (all[1] != 1 || shows != (mine == 0)))
        st = err_set(err, SNAP_E_WRONG, "rank %d got %d", mine, all[1]);
    return st;
}

/* In a process that start() has started: runs the rank, and ends the process. */
static void test_rank(void) {
    rank_layout l;
    snap_err err = {0};
    o.model_config = getenv(kConfig);
    o.layout = getenv(kLayout);
    if (!o.model_config || !o.layout)
        return;
    snap_status st = rank_layout_parse(&l, o.layout, &err);
    if (st == SNAP_OK)
        st = model_layout_run(&o, NULL, &l, NULL, gather, &err);
    if (st != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    _exit(err_exit_code(st));
}

/* ---- two ranks ------------------------------------------------------------------------------- */

/* What each rank gets. */
typedef struct {
    const char *program[kRanks], *config[kRanks], *layout[kRanks];
} setup;

static void set_number(const char *name, int number) {
    char text[16];
    (void)snprintf(text, sizeof text, "%d", number);
    (void)setenv(name, text, 1);
}

/* Starts a rank. Returns its process; *from: its standard error. */
static pid_t start(const setup *s, int rank, int port, int *from) {
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        int nothing = open("/dev/null", O_WRONLY);
        (void)dup2(nothing, STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        set_number("RANK", rank);
        set_number("WORLD_SIZE", kRanks);
        set_number("MASTER_PORT", port);
        (void)setenv("MASTER_ADDR", "127.0.0.1", 1);
        (void)setenv(kConfig, s->config[rank], 1);
        (void)setenv(kLayout, s->layout[rank], 1);
        (void)execl(s->program[rank], "rank", "--suite", "model_ranks", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    *from = ends[0];
    return pid;
}

static int free_port(void) {
    int port = 0, listener;
    CU_ASSERT_EQUAL_FATAL(ranks_listen("127.0.0.1", &port, &listener, NULL), SNAP_OK);
    (void)close(listener);
    return port;
}

/* Whether the text is one line that contains both parts, or, without parts, nothing. */
static bool is_one_message(const char *text, const char *const parts[2]) {
    if (!parts)
        return text[0] == '\0';
    const char *end = strchr(text, '\n');
    return end && end[1] == '\0' && strstr(text, parts[0]) && strstr(text, parts[1]);
}

/* Runs both ranks. Both must end with @code. Rank 0 must print one message, which contains the
 * @parts (NULL = no message). Rank 1 must print none, because it got that message from rank 0. */
static void expect(const setup *s, snap_status code, const char *const parts[2]) {
    pid_t pid[kRanks];
    int from[kRanks], port = free_port();
    for (int r = kRanks - 1; r >= 0; r--)
        pid[r] = start(s, r, port, &from[r]);
    for (int r = 0; r < kRanks; r++) {
        int status = 0;
        buf text = {0};
        char some[500];
        for (ssize_t n; (n = read(from[r], some, sizeof some)) > 0;)
            (void)buf_append(&text, some, (size_t)n);
        CU_ASSERT_EQUAL(waitpid(pid[r], &status, 0), pid[r]);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == err_exit_code(code));
        bool right = is_one_message(buf_str(&text), r == 0 ? parts : NULL);
        CU_ASSERT(right);
        if (!right)
            (void)fprintf(stderr, "rank %d: %s", r, buf_str(&text));
        buf_release(&text);
        (void)close(from[r]);
    }
}

/* The configuration of a small model, with @hidden as its size, in @folder. */
static void write_config(const char *folder, const char *name, int hidden) {
    buf text = {0};
    (void)buf_printf(&text,
                     "{\"architectures\": [\"DeepseekV2ForCausalLM\"], \"vocab_size\": 100,"
                     "\"hidden_size\": %d, \"num_hidden_layers\": 3, \"num_attention_heads\": 4,"
                     "\"max_position_embeddings\": 512, \"kv_lora_rank\": 64,"
                     "\"qk_nope_head_dim\": 16, \"qk_rope_head_dim\": 8, \"v_head_dim\": 16,"
                     "\"intermediate_size\": 64}",
                     hidden);
    temp_folder_put(folder, name, "config.json", text.data, text.len);
    buf_release(&text);
}

static void test_refusals(void) {
    char folder[TEMP_FOLDER], one[100], same[100], other[100], none[100], copy[100], command[400];
    temp_folder_open(folder, "model-ranks");
    write_config(folder, "one", 64);
    write_config(folder, "same", 64);
    write_config(folder, "other", 128);
    (void)snprintf(one, sizeof one, "%s/one/config.json", folder);
    (void)snprintf(same, sizeof same, "%s/same/config.json", folder);
    (void)snprintf(other, sizeof other, "%s/other/config.json", folder);
    (void)snprintf(none, sizeof none, "%s/none/config.json", folder);
    (void)snprintf(copy, sizeof copy, "%s/program", folder);
    static const char self[] = "/proc/self/exe";

    expect(&(setup){{self, self}, {one, same}, {"TP2", "TP2"}}, SNAP_OK, NULL);
    expect(
        &(setup){{self, self}, {one, other}, {"TP2", "TP2"}}, SNAP_E_USAGE,
        (const char *[]){"rank 1: its model-config is '3 layers, hidden_size 128, 0 experts, hash ",
                         "', and that of rank 0 is '3 layers, hidden_size 64, 0 experts, hash "});
    expect(&(setup){{self, self}, {one, none}, {"TP2", "TP2"}}, SNAP_E_USAGE,
           (const char *[]){"rank 1: its model-config is '", "No such file or directory"});
    expect(&(setup){{self, self}, {one, one}, {"TP2", "DP2"}}, SNAP_E_USAGE,
           (const char *[]){"rank 1: its layout is 'DP2', and that of rank 0 is 'TP2'", ""});

    /* a copy of the program, and then the copy with one more byte */
    (void)snprintf(command, sizeof command, "cp /proc/%d/exe %s", (int)getpid(), copy);
    CU_ASSERT_EQUAL_FATAL(system(command), 0);
    expect(&(setup){{self, copy}, {one, one}, {"TP2", "TP2"}}, SNAP_OK, NULL);
    (void)snprintf(command, sizeof command, "printf x >>%s", copy);
    CU_ASSERT_EQUAL_FATAL(system(command), 0);
    expect(&(setup){{self, copy}, {one, one}, {"TP2", "TP2"}}, SNAP_E_USAGE,
           (const char *[]){"rank 1: its executable is '", "', and that of rank 0 is '"});
    temp_folder_remove(folder);
}

CU_TestInfo tests_model_ranks[] = {
    {"a rank of the tests below", test_rank}, /* must be the first one */
    {"ranks that differ refuse each other", test_refusals},
    CU_TEST_INFO_NULL,
};
