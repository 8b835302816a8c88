/* Compares sentences with NLTK's, on texts and parameters of this project (fixtures/make_punkt.py).
 * Also tests reading parameters from a folder, an archive and a data folder, and malformed
 * parameters. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/zip.h"
#include "evals/ifeval/words.h"
#include "evals/task.h"

static const char kFolder[] = "evals/test/fixtures/punkt";
static const char kFixture[] = "evals/test/fixtures/punkt.jsonl";

enum { FILES = 4 };
static const char *const names[FILES] = {"abbrev_types.txt", "sent_starters.txt",
                                         "collocations.tab", "ortho_context.tab"};

static span text_of(const char *s) {
    return (span){s, strlen(s)};
}

/* ---- against NLTK ---- */

typedef struct {
    const char *text;
    buf ends; /* "4 12 " */
} found;

static void add_end(void *ctx, span sentence) {
    found *f = ctx;
    CU_ASSERT(sentence.n > 0);
    (void)buf_printf(&f->ends, "%zu ", (size_t)(sentence.s + sentence.n - f->text));
}

typedef struct {
    const punkt_params *params;
    size_t rows, wrong;
} comparison;

static snap_status compare_row(void *ctx, js *row, long line, snap_err *err) {
    comparison *c = ctx;
    size_t n;
    const char *s = js_get_strn(row, "text", &n);
    const js *ends = js_get_array(row, "ends");
    found f = {.text = s};
    buf want = {0};
    (void)err;
    for (size_t i = 0; i < js_len(ends); i++)
        (void)buf_printf(&want, "%lld ", (long long)js_num(js_at(ends, i)));
    const span text = {s, n};
    punkt_each(c->params, text, add_end, &f);
    size_t capitals = words_count_capital(c->params, text);
    bool same = strcmp(buf_str(&f.ends), buf_str(&want)) == 0 &&
                capitals == (size_t)js_get_int(row, "capitals", -1) &&
                punkt_count(c->params, text) == js_len(ends);
    if (!same)
        printf("\n%s:%ld: %s, not %s; %zu capitals\n", kFixture, line, buf_str(&f.ends),
               buf_str(&want), capitals);
    c->rows++;
    c->wrong += !same;
    buf_release(&f.ends);
    buf_release(&want);
    return SNAP_OK;
}

static comparison compare(const punkt_params *p) {
    comparison c = {.params = p};
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(kFixture, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(js_each_line(buf_str(&text), text.len, kFixture, compare_row, &c, NULL),
                    SNAP_OK);
    buf_release(&text);
    return c;
}

static void test_sentences_of_nltk(void) {
    punkt_params *p;
    CU_ASSERT_EQUAL_FATAL(punkt_open(&p, kFolder, NULL), SNAP_OK);
    comparison c = compare(p);
    CU_ASSERT(c.rows > 2000 && c.wrong == 0);
    punkt_close(p);
}

static void test_words(void) {
    punkt_params *p;
    CU_ASSERT_EQUAL_FATAL(punkt_open(&p, kFolder, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(punkt_word(p, text_of("mr")), PUNKT_ABBREVIATION);
    CU_ASSERT_EQUAL(punkt_word(p, text_of("the")), PUNKT_STARTER | 126);
    CU_ASSERT_EQUAL(punkt_word(p, text_of("th")), 0);
    CU_ASSERT_EQUAL(punkt_word(p, (span){NULL, 0}), 0);
    CU_ASSERT(punkt_is_pair(p, text_of("south"), text_of("st")));
    CU_ASSERT_FALSE(punkt_is_pair(p, text_of("st"), text_of("south")));
    CU_ASSERT_FALSE(punkt_is_pair(p, text_of("south\tst"), text_of("")));
    punkt_close(p);
}

/* Without Punkt's parameters, the lists in punkt_english.c decide. */
static void test_without_parameters(void) {
    static const struct {
        const char *text;
        size_t sentences;
    } cases[] = {
        {"The engine... Bright light filled the room.", 2},
        {"The engine... of course.", 1},
        {"I met J. Day after day passed.", 2},
        {"I met J. Smith. He left.", 2},
        {"Mr. Smith met Dr. Jones in the U.S. embassy.", 1},
        {"They moved to the U.S. However, it rained.", 2},
        {"Movie A is longer than movie B. Movie B is short.", 2},
        {"It cost 3.50. They paid.", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = punkt_count(NULL, text_of(cases[i].text));
        if (n != cases[i].sentences)
            printf("\n%s: %zu sentences\n", cases[i].text, n);
        CU_ASSERT_EQUAL(n, cases[i].sentences);
    }
}

/* ---- reading the parameters ---- */

static char folder[] = "/tmp/snapmla-punkt-XXXXXX";

static char *path_in_folder(const char *name) {
    char *path = fs_join(folder, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    return path;
}

static void put(const char *name, const void *bytes, size_t n) {
    char *path = path_in_folder(name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, bytes, n, NULL), SNAP_OK);
    free(path);
}

static void drop(const char *name) {
    char *path = path_in_folder(name);
    (void)unlink(path);
    free(path);
}

static void make_folder(void) {
    memset(folder + sizeof folder - 7, 'X', 6);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
}

/* The archive in a data folder is found. This runs in a process of its own, because a process keeps
 * the first parameters that it finds. */
static void check_data_folder(const buf *zip) {
    int status = 1;
    char *sub = path_in_folder("punkt");
    CU_ASSERT_EQUAL_FATAL(fs_mkdirs(sub, NULL), SNAP_OK);
    put("punkt/punkt_tab.zip", zip->data, zip->len);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        const grader *g = NULL;
        bool ok = unsetenv("SNAPMLA_PUNKT") == 0 && punkt_installed(folder) &&
                  task_grader(&task_ifeval, NULL, &(task_options){0}, &g, NULL) == SNAP_OK &&
                  (g == &grader_ifeval_punkt || g == &grader_ifeval_plain_punkt);
        _exit(!ok);
    }
    CU_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    drop("punkt/punkt_tab.zip");
    (void)rmdir(sub);
    free(sub);
}

/* An archive like NLTK's, in which other languages have files of the same names. */
static void test_archive(void) {
    buf text[FILES] = {{0}}, zip = {0};
    zip_entry entries[2 * FILES];
    char member[2 * FILES][64];
    make_folder();
    for (int i = 0; i < 2 * FILES; i++) {
        char *path = fs_join(kFolder, names[i % FILES]);
        if (i < FILES)
            CU_ASSERT_EQUAL_FATAL(fs_read(path, &text[i], NULL), SNAP_OK);
        free(path);
        (void)snprintf(member[i], sizeof member[i], "punkt_tab/%s/%s",
                       i < FILES ? "czech" : "english", names[i % FILES]);
        entries[i] = (zip_entry){member[i], i < FILES ? "" : text[i % FILES].data,
                                 i < FILES ? 0 : text[i % FILES].len};
    }
    CU_ASSERT_EQUAL_FATAL(zip_pack(entries, 2 * FILES, &zip, NULL), SNAP_OK);
    check_data_folder(&zip);
    put("punkt_tab.zip", zip.data, zip.len);
    char *path = path_in_folder("punkt_tab.zip");
    punkt_params *p;
    CU_ASSERT_EQUAL_FATAL(punkt_open(&p, path, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(compare(p).wrong, 0);
    punkt_close(p);

    snap_err err = {0};
    put("punkt_tab.zip", zip.data, zip.len / 2);
    CU_ASSERT_EQUAL(punkt_open(&p, path, &err), SNAP_E_INPUT);
    CU_ASSERT(p == NULL && strstr(err.text, "punkt_tab.zip: not a zip archive, or truncated"));
    buf_clear(&zip);
    err = (snap_err){0};
    CU_ASSERT_EQUAL_FATAL(zip_pack(entries, FILES, &zip, NULL), SNAP_OK);
    put("punkt_tab.zip", zip.data, zip.len);
    CU_ASSERT_EQUAL(punkt_open(&p, path, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no member 'punkt_tab/english/abbrev_types.txt'"));
    for (int i = 0; i < FILES; i++)
        buf_release(&text[i]);
    buf_release(&zip);
    free(path);
    drop("punkt_tab.zip");
    (void)rmdir(folder);
}

static void test_bad_parameters(void) {
    static const struct {
        int file;
        const char *text, *message;
    } cases[] = {
        {0, "", "abbrev_types.txt: the file is empty"},
        {0, "mr\n\ndr\n", "abbrev_types.txt:2: a word is missing"},
        {0, "mr\nDr\n", "abbrev_types.txt:2: a word must be in lower case"},
        {0, "mr\ndr\t3\n", "abbrev_types.txt:2: a word must be in lower case without control"},
        {1, "the\n\xff\n", "sent_starters.txt: not UTF-8"},
        {1, "aaaaaaaabbbbbbbbccccccccddddddddaaaaaaaabbbbbbbbccccccccdddddddde\n",
         "sent_starters.txt:1: the word has more than 64 bytes"},
        {2, "a\tb\nab\n", "collocations.tab:2: two columns"},
        {2, "a\tb\na\t\n", "collocations.tab:2: a word is missing"},
        {2, "a\tb\tc\n", "collocations.tab:1: a word must be"},
        {3, "a\n", "ortho_context.tab:1: two columns"},
        {3, "a\t2\nb\t128\n", "ortho_context.tab:2: the second column must be an even number"},
        {3, "a\t3\n", "an even number, 0 to 126"},
        {3, "a\t-2\n", "an even number, 0 to 126"},
        {3, "a\t\n", "an even number, 0 to 126"},
        {3, "a\t2x\n", "an even number, 0 to 126"},
        {3, "a\t0000002\n", "an even number, 0 to 126"},
    };
    static const char *const good[FILES] = {"mr\r\ndr", "the\n", "a\tb\n", "a\t126\na\t0\n"};
    make_folder();
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        const bool bad = i < sizeof cases / sizeof *cases;
        snap_err err = {0};
        punkt_params *p;
        for (int f = 0; f < FILES; f++) {
            const char *text = bad && f == cases[i].file ? cases[i].text : good[f];
            put(names[f], text, strlen(text));
        }
        CU_ASSERT_EQUAL(punkt_open(&p, folder, &err), bad ? SNAP_E_INPUT : SNAP_OK);
        CU_ASSERT(!bad || (p == NULL && strstr(err.text, cases[i].message)));
        if (bad && !strstr(err.text, cases[i].message))
            printf("\n%s\n", err.text);
        punkt_close(p);
    }
    for (int f = 0; f < FILES; f++)
        drop(names[f]);
    snap_err err = {0};
    punkt_params *p;
    CU_ASSERT_EQUAL(punkt_open(&p, folder, &err), SNAP_E_IO);
    (void)rmdir(folder);
    CU_ASSERT_EQUAL(punkt_open(&p, folder, &err), SNAP_E_IO);
}

CU_TestInfo tests_punkt[] = {
    {"sentences equal those of NLTK", test_sentences_of_nltk},
    {"what is known about words", test_words},
    {"sentences are split without Punkt's parameters", test_without_parameters},
    {"parameters are found in NLTK's archive", test_archive},
    {"bad parameters", test_bad_parameters},
    CU_TEST_INFO_NULL,
};
