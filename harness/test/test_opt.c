#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/opt.h"

static bool verbose;
static int64_t batch;
static double margin;
static const char *out;
static opt_list arms;

static const opt options[] = {
    {OPT_GROUP, NULL, 0, NULL, NULL, "Things", 0, 0},
    {OPT_FLAG, "verbose", 'v', &verbose, NULL, "say more", 0, 0},
    {OPT_INT, "batch", 'b', &batch, "N", "how many", 1, 1024},
    {OPT_NUM, "margin", 0, &margin, "PP", "how far", 0, 100},
    {OPT_STR, "out-file", 'o', &out, "FILE", "where to", 0, 0},
    {OPT_LIST, "arm", 0, &arms, "ARM", "what", 0, 0},
    {OPT_END, NULL, 0, NULL, NULL, NULL, 0, 0},
};
static const opt_command command = {.name = "try",
                                    .synopsis = "[options] [X]",
                                    .about = "Tries.",
                                    .examples = "  snapmla try",
                                    .options = options,
                                    .max_args = 1};

static opt_shared shared;

static snap_status parse(const char *line, snap_err *err) {
    static char words[400];
    const char *argv[40];
    int argc = 0;
    (void)snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    opt_release(&shared);
    verbose = false;
    batch = 8;
    margin = 2;
    out = "here";
    arms = (opt_list){0};
    return opt_parse(&command, argc, argv, &shared, err);
}

static void test_forms_of_an_option(void) {
    CU_ASSERT_EQUAL(parse("-v --batch 16 --margin=0.5 -ofile --arm a --arm b pos", NULL), SNAP_OK);
    CU_ASSERT(verbose);
    CU_ASSERT_EQUAL(batch, 16);
    CU_ASSERT_EQUAL(margin, 0.5);
    CU_ASSERT_STRING_EQUAL(out, "file");
    CU_ASSERT_EQUAL(arms.n, 2);
    CU_ASSERT_STRING_EQUAL(arms.items[1], "b");
    CU_ASSERT_EQUAL(shared.n_args, 1);
    CU_ASSERT_EQUAL(parse("--verbose --no-verbose --json -- --batch", NULL), SNAP_OK);
    CU_ASSERT_FALSE(verbose);
    CU_ASSERT(shared.json);
    CU_ASSERT_STRING_EQUAL(shared.args[0], "--batch");
    CU_ASSERT_EQUAL(parse("", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(batch, 8);
}

static void test_refusals_name_the_option(void) {
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--bogus", "unknown option '--bogus': see 'snapmla try --help'"},
        {"--bat 3", "unknown option '--bat': see 'snapmla try --help'"},
        {"--bacth 3",
         "unknown option '--bacth' (did you mean '--batch'?): see 'snapmla try --help'"},
        {"--jsom", "unknown option '--jsom' (did you mean '--json'?): see 'snapmla try --help'"},
        {"-x", "unknown option '-x': see 'snapmla try --help'"},
        {"--", NULL},
        {"--batch", "--batch needs a value: N"},
        {"--batch 0", "--batch must be 1..1024, got '0'"},
        {"--batch 1e3", "--batch must be an integer, got '1e3'"},
        {"--margin nan", "--margin must be a number, got 'nan'"},
        {"--verbose=maybe", "--verbose must be true or false, got 'maybe'"},
        {"--no-batch", "unknown option '--no-batch': see 'snapmla try --help'"},
        {"a b", "unexpected argument 'b': see 'snapmla try --help'"},
        {"--color blue", "--color must be auto, always or never, got 'blue'"},
        {"--config /nonexistent.json",
         "cannot open '/nonexistent.json': No such file or directory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err = {0};
        snap_status want = cases[i].message ? SNAP_E_USAGE : SNAP_OK;
        CU_ASSERT_EQUAL(parse(cases[i].line, &err), want);
        if (cases[i].message)
            CU_ASSERT_STRING_EQUAL(err.text, cases[i].message);
    }
}

static snap_status with_config(const char *json, const char *more, snap_err *err) {
    char line[200];
    const char *path = "/tmp/snapmla-opt-test.json";
    CU_ASSERT_EQUAL(fs_write_atomic(path, json, strlen(json), NULL), SNAP_OK);
    (void)snprintf(line, sizeof line, "--config %s %s", path, more);
    snap_status st = parse(line, err);
    (void)unlink(path);
    return st;
}

static void test_precedence(void) {
    const char *json =
        "{\"why\":\"x\",\"batch\":2,\"margin\":1,\"out-file\":[1,2,\"z\"],\"arm\":[\"c\"]}";
    CU_ASSERT_EQUAL(with_config(json, "", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(batch, 2);
    CU_ASSERT_STRING_EQUAL(out, "1,2,z");
    CU_ASSERT_STRING_EQUAL(arms.items[0], "c");
    CU_ASSERT_TRUE(arms.from_file);
    CU_ASSERT_EQUAL(with_config("{\"arm\": \"c\"}", "", NULL), SNAP_OK);
    CU_ASSERT_TRUE(arms.from_file);
    (void)setenv("SNAPMLA_ARM", "e", 1);
    CU_ASSERT_EQUAL(with_config(json, "", NULL), SNAP_OK);
    CU_ASSERT(arms.n == 1 && !arms.from_file);
    (void)unsetenv("SNAPMLA_ARM");
    (void)setenv("SNAPMLA_BATCH", "3", 1);
    (void)setenv("SNAPMLA_OUT_FILE", "env", 1);
    CU_ASSERT_EQUAL(with_config(json, "", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(batch, 3);
    CU_ASSERT_EQUAL(margin, 1);
    CU_ASSERT_STRING_EQUAL(out, "env");
    CU_ASSERT_EQUAL(with_config(json, "--batch 4 --arm d", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(batch, 4);
    CU_ASSERT_EQUAL(arms.n, 1);
    CU_ASSERT_STRING_EQUAL(arms.items[0], "d");
    CU_ASSERT_FALSE(arms.from_file);
    CU_ASSERT_EQUAL(js_get_int(shared.resolved, "batch", 0), 4);
    (void)setenv("SNAPMLA_BATCH", "x", 1);
    snap_err err = {0};
    CU_ASSERT_EQUAL(parse("", &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "SNAPMLA_BATCH must be an integer, got 'x'");
    (void)unsetenv("SNAPMLA_BATCH");
    (void)unsetenv("SNAPMLA_OUT_FILE");
}

static void test_bad_config_files(void) {
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{\"bach\": 1}", "key 'bach' is not an option of 'try' (did you mean 'batch'?)"},
        {"{\"batch\": \"x\"}", "key 'batch' must be an integer, got 'x'"},
        {"{\"batch\": 1.5}", "key 'batch' must be an integer, got '1.5'"},
        {"{\"batch\": [1]}", "key 'batch' does not take this array"},
        {"{\"batch\": {}}", "key 'batch' does not take a value of type object"},
        {"{\"batch\": null}", "does not take a value of type"},
        {"{\"out-file\": 3}", "key 'out-file' does not take a value of type integer"},
        {"{\"config\": \"x\"}", "key 'config' is not an option"},
        {"[1]", "a configuration must be a JSON object"},
        {"{\"batch\": 1,}", ".json:1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(with_config(cases[i].json, "", &err), SNAP_E_USAGE);
        CU_ASSERT_EQUAL(err.code, SNAP_E_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "snapmla-opt-test.json"));
    }
}

static void test_help_lists_every_option(void) {
    CU_ASSERT_EQUAL(parse("--help too many args", NULL), SNAP_OK);
    CU_ASSERT(shared.help);
    buf text = {0};
    opt_help(&command, &text);
    for (const opt *o = options; o->type != OPT_END; o++)
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), o->help));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "-b, --batch N"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "how many (default 8)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "--print-config"));
    buf_release(&text);
    opt_release(&shared);
}

/* ---- verbs ---- */

static int64_t depth;
static opt_gone gone_modes[] = {{"deep", "snapmla dig deep"}, {NULL, NULL}};
static const opt dig_options[] = {{OPT_INT, "batch", 0, &batch, "N", "how many", 1, 1024},
                                  {OPT_GONE, "mode", 0, gone_modes, "NAME", NULL, 0, 0},
                                  {.type = OPT_END}};
static const opt deep_options[] = {{OPT_INT, "depth", 0, &depth, "N", "how deep", 1, 9},
                                   {.type = OPT_END}};
static const opt_command dig;
static const opt_command dig_deep = {.name = "dig deep",
                                     .summary = "digs down",
                                     .synopsis = "[options]",
                                     .about = "Digs down.",
                                     .examples = "  snapmla dig deep",
                                     .options = deep_options,
                                     .of = &dig};
static const opt_command dig_wide = {.name = "dig wide",
                                     .summary = "digs along",
                                     .synopsis = "[options]",
                                     .about = "Digs along.",
                                     .examples = "  snapmla dig wide",
                                     .options = dig_options,
                                     .of = &dig};
static const opt_command *const dig_verbs[] = {&dig_wide, &dig_deep, NULL};
static const opt_command dig = {.name = "dig",
                                .synopsis = "[VERB] [options]",
                                .about = "Digs.",
                                .examples = "  snapmla dig",
                                .options = dig_options,
                                .verbs = dig_verbs};

/* Selects a verb and parses what is left of the line. @selected: the command that was parsed. */
static snap_status parse_verb(const char *first, const char *second, const char *third,
                              const opt_command **selected, snap_err *err) {
    const char *words[] = {first, second, third};
    const char **argv = words;
    int argc = 0;
    while (argc < 3 && words[argc])
        argc++;
    if (err)
        *err = (snap_err){0};
    opt_release(&shared);
    snap_status st = opt_select(&dig, &argc, &argv, selected, err);
    return st == SNAP_OK ? opt_parse(*selected, argc, argv, &shared, err) : st;
}

static void test_verbs(void) {
    const opt_command *selected = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(parse_verb("deep", "--depth", "3", &selected, &err), SNAP_OK);
    CU_ASSERT_PTR_EQUAL(selected, &dig_deep);
    CU_ASSERT_EQUAL(depth, 3);
    CU_ASSERT_EQUAL(parse_verb("--batch", "7", NULL, &selected, &err), SNAP_OK);
    CU_ASSERT_PTR_EQUAL(selected, &dig);
    CU_ASSERT_EQUAL(parse_verb("deep", "--batch", "7", &selected, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "--batch belongs to 'snapmla dig wide'");
    CU_ASSERT_EQUAL(parse_verb("down", NULL, NULL, &selected, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "'dig down' is unknown: use wide or deep");
    CU_ASSERT_EQUAL(parse_verb("--batch", "7", "deep", &selected, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "the verb comes first: write 'snapmla dig deep ...'");
    opt_release(&shared);
}

static void test_options_that_are_gone(void) {
    const char *path = "/tmp/snapmla-opt-gone.json", *text = "{\"mode\":\"deep\"}";
    const opt_command *selected = NULL;
    snap_err err = {0};
    buf help = {0};
    CU_ASSERT_EQUAL(parse_verb("--mode", "deep", NULL, &selected, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "--mode was removed: write 'snapmla dig deep' instead");
    CU_ASSERT_EQUAL(fs_write_atomic(path, text, strlen(text), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(parse_verb("--config", path, NULL, &selected, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "/tmp/snapmla-opt-gone.json: key 'mode' was removed: write "
                                     "'snapmla dig deep' instead");
    (void)unlink(path);
    opt_help(&dig, &help);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&help), "mode"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&help), "digs down"));
    buf_release(&help);
    opt_release(&shared);
}

/* A configuration may hold options of several verbs. */
static void test_config_of_another_verb(void) {
    const char *path = "/tmp/snapmla-opt-verbs.json", *text = "{\"batch\":5,\"depth\":4}";
    const opt_command *selected = NULL;
    CU_ASSERT_EQUAL(fs_write_atomic(path, text, strlen(text), NULL), SNAP_OK);
    CU_ASSERT_EQUAL(parse_verb("deep", "--config", path, &selected, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(depth, 4);
    CU_ASSERT_EQUAL(parse_verb("wide", "--config", path, &selected, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(batch, 5);
    (void)unlink(path);
    opt_release(&shared);
}

static void test_shipped_configurations(void) {
    snap_err err = {0};
    CU_ASSERT_EQUAL(parse("--config cpu", &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "configs/cpu.json: key '"));
    err = (snap_err){0};
    CU_ASSERT_EQUAL(parse("--config no-such-configuration", &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no configuration 'no-such-configuration'"));
    opt_release(&shared);
}

CU_TestInfo tests_opt[] = {
    {"forms of an option", test_forms_of_an_option},
    {"refusals name the option", test_refusals_name_the_option},
    {"the command line overrides a configuration file", test_precedence},
    {"bad config files", test_bad_config_files},
    {"help lists every option", test_help_lists_every_option},
    {"verbs of a command are read", test_verbs},
    {"options that were removed", test_options_that_are_gone},
    {"a configuration with another verb's options", test_config_of_another_verb},
    {"shipped configurations", test_shipped_configurations},
    CU_TEST_INFO_NULL};
