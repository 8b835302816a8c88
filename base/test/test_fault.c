/* Tests faults, and that operations of base/ report a failed allocation. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/test/failing_alloc.h"
#include "base/text.h"
#include "base/zip.h"

static void test_scopes(void) {
    snap_err err = {0};
    fault_mark outer = fault_begin();
    CU_ASSERT_EQUAL(fault_result(outer, SNAP_E_INPUT, &err), SNAP_E_INPUT);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    fault_note(SNAP_E_NOMEM, "out of memory for %d bytes", 7);
    fault_mark inner = fault_begin();
    CU_ASSERT_FALSE(fault_since(inner));
    CU_ASSERT(fault_since(outer));
    (void)err_set(&err, SNAP_E_INPUT, "a consequence");
    CU_ASSERT_EQUAL(fault_result(outer, SNAP_E_INPUT, &err), SNAP_E_NOMEM);
    CU_ASSERT_STRING_EQUAL(err.text, "out of memory for 7 bytes");
    err = (snap_err){SNAP_E_NOMEM, "out of memory for the row"};
    CU_ASSERT_EQUAL(fault_result(outer, SNAP_E_NOMEM, &err), SNAP_E_NOMEM);
    CU_ASSERT_STRING_EQUAL(err.text, "out of memory for the row");
    CU_ASSERT_EQUAL(fault_result(outer, SNAP_OK, NULL), SNAP_E_NOMEM);
    fault_forget();
}

static void *note_two(void *unused) {
    fault_note(SNAP_E_NOMEM, "out of memory for the first");
    fault_note(SNAP_E_NOMEM, "out of memory for the second");
    return unused;
}

/* After a fault in any thread, no file is written, because it might be incomplete or wrong. */
static void test_no_output_after_a_fault(void) {
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/snapmla-fault-%ld", (long)getpid());
    snap_err err = {0};
    fs_log log;
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(fs_log_open(&log, path, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(fault_of_process(SNAP_E_OPEN, &err), SNAP_E_OPEN);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, note_two, NULL), 0);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(fault_of_process(SNAP_E_OPEN, &err), SNAP_E_NOMEM);
    CU_ASSERT_STRING_EQUAL(err.text, "out of memory for the first");
    CU_ASSERT_EQUAL(fs_log_append(&log, "line\n", 5, NULL), SNAP_E_NOMEM);
    CU_ASSERT_EQUAL(fs_write_atomic(path, "text", 4, NULL), SNAP_E_NOMEM);
    fault_forget();
    CU_ASSERT_EQUAL(fs_log_append(&log, "line\n", 5, NULL), SNAP_OK);
    fs_log_close(&log);
    (void)unlink(path);
}

/* Calls one of the functions of libc that note a fault. Returns memory, or NULL if the call has
 * failed. */
typedef void *(*libc_function)(void);

static void *call_malloc(void) {
    return malloc(1);
}

static void *call_calloc(void) {
    return calloc(1, 1);
}

static void *call_realloc(void) {
    return realloc(NULL, 1);
}

static void *call_strdup(void) {
    return strdup("x");
}

static void *call_strndup(void) {
    return strndup("xy", 1);
}

static void *call_fopen(void) {
    FILE *f = fopen("/dev/null", "r");
    return f && fclose(f) == 0 ? malloc(1) : NULL;
}

static void *call_fdopen(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FILE *f = fdopen(fd, "r");
    if (f)
        return fclose(f) == 0 ? malloc(1) : NULL;
    (void)close(fd);
    return NULL;
}

static void *call_scandir(void) {
    struct dirent **names = NULL;
    int n = scandir("/proc/self/fdinfo", &names, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(names[i]);
    return n > 0 ? names : NULL;
}

static void test_functions_of_libc(void) {
    static const libc_function all[] = {call_malloc,  call_calloc, call_realloc, call_strdup,
                                        call_strndup, call_fopen,  call_fdopen,  call_scandir};
    for (size_t i = 0; failing_alloc_works() && i < sizeof all / sizeof *all; i++) {
        failing_alloc_arm(0, false);
        free(all[i]());
        size_t n = failing_alloc_disarm();
        CU_ASSERT(n > 0);
        for (size_t k = 1; k <= n; k++) {
            fault_mark before = fault_begin();
            failing_alloc_arm(k, false);
            void *p = all[i]();
            (void)failing_alloc_disarm();
            if (!p && !fault_since(before))
                printf("\n    function %zu, allocation %zu\n", i, k);
            CU_ASSERT(p || fault_since(before));
            free(p);
        }
    }
    fault_forget();
}

/* ---- every allocation fails once ---- */

/* An operation writes its result to @out. Its status must not be SNAP_OK if the result is
 * incomplete. */
typedef snap_status (*operation)(buf *out, snap_err *err);

static const char kJson[] =
    "{\"b\": [1, 2.5, \"x\", null, true], \"a\": {\"k\": \"\\u00e9\"}, \"long\": \"0123456789\"}";

static snap_status parse_and_write(buf *out, snap_err *err) {
    js *v = js_parse(kJson, strlen(kJson), "some.json", err);
    if (!v)
        return err->code;
    snap_status st = js_write(v, JS_ROWS, out, err);
    js_free(v);
    return st;
}

static snap_status count_row(void *ctx, js *object, long line, snap_err *err) {
    buf *out = ctx;
    (void)buf_printf(out, "%ld: %s;", line, js_get_str(object, "k"));
    return buf_check(out, "rows", err);
}

static snap_status read_lines(buf *out, snap_err *err) {
    static const char lines[] = "{\"k\": \"one\"}\n\n{\"k\": \"two\"}\n";
    return js_each_line(lines, strlen(lines), "some.jsonl", count_row, out, err);
}

static snap_status build(buf *out, snap_err *err) {
    fault_mark before = fault_begin();
    js *o = js_new_object(), *list = js_new_array();
    bool ok = o && list &&
              js_push_new(list, js_new_str("a\xff"
                                           "b")) &&
              js_set_num(o, "x", 0.5) && js_set_str(o, "s", "text");
    ok = js_set_new(o, "list", list) && ok;
    snap_status st = ok ? js_write(o, JS_PRETTY, out, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for an object");
    js_free(o);
    return fault_result(before, st, err);
}

static snap_status keep_field(void *ctx, const csv_field *fields, size_t n, long line,
                              snap_err *err) {
    buf *out = ctx;
    (void)line;
    for (size_t i = 0; i < n; i++)
        (void)buf_append(out, fields[i].s, fields[i].n);
    return buf_check(out, "fields", err);
}

static snap_status read_csv(buf *out, snap_err *err) {
    static const char rows[] = "a,b\n1,\"x,y\"\n2,z\n";
    return csv_each_row(rows, strlen(rows), "some.csv", keep_field, out, err);
}

static snap_status hash(buf *out, snap_err *err) {
    char digest[HASH_HEX];
    snap_status st = hash_bytes("abc", 3, digest, err);
    if (st == SNAP_OK)
        (void)buf_puts(out, digest);
    return st == SNAP_OK ? buf_check(out, "a digest", err) : st;
}

static snap_status write_and_read(buf *out, snap_err *err) {
    char path[64], digest[HASH_HEX];
    (void)snprintf(path, sizeof path, "/tmp/snapmla-fault-%ld", (long)getpid());
    snap_status st;
    TRY(fs_write_atomic(path, kJson, strlen(kJson), err));
    TRY(fs_read(path, out, err));
    TRY(hash_file(path, digest, err));
    (void)buf_puts(out, digest);
    TRY(buf_check(out, "a file", err));
cleanup:
    (void)unlink(path);
    return st;
}

static snap_status print(buf *out, snap_err *err) {
    for (int i = 0; i < 200; i++)
        (void)buf_printf(out, "line %d\n", i);
    text_append_xml(out, "<&>");
    text_append_utf8_lossy(out, "\xff", 1);
    return buf_check(out, "some lines", err);
}

static snap_status allocate(buf *out, snap_err *err) {
    arena mem = {0};
    fault_mark before = fault_begin();
    for (int i = 0; i < 5; i++)
        (void)arena_alloc(&mem, 1 << 16, 1);
    const char *s = arena_strdup(&mem, "kept");
    (void)buf_puts(out, s ? s : "");
    arena_release(&mem);
    return fault_result(before, buf_check(out, "a text", err), err);
}

/* The unpacked member is larger than the first allocation of a buffer. */
static snap_status pack_and_unpack(buf *out, snap_err *err) {
    char text[400];
    memset(text, 'x', sizeof text);
    const zip_entry entry = {"a.txt", text, sizeof text};
    buf archive = {0};
    snap_status st;
    TRY(zip_pack(&entry, 1, &archive, err));
    TRY(zip_member_read(archive.data, archive.len, "x.zip", "a.txt", NULL, out, err));
cleanup:
    buf_release(&archive);
    return st;
}

/* Fails the n-th allocation (@all: and the later ones), for every n. The operation must fail with a
 * message that names memory, or have the same result as without a failure. */
static void fail_each(operation run, bool all) {
    buf want = {0};
    snap_err err = {0};
    failing_alloc_arm(0, false);
    snap_status st = run(&want, &err);
    size_t n = failing_alloc_disarm();
    CU_ASSERT_EQUAL(st, SNAP_OK);
    CU_ASSERT(n > 0);
    for (size_t i = 1; i <= n; i++) {
        buf got = {0};
        err = (snap_err){0};
        failing_alloc_arm(i, all);
        st = run(&got, &err);
        (void)failing_alloc_disarm();
        fault_forget();
        bool same = st == SNAP_OK && got.len == want.len && strcmp(got.data, want.data) == 0;
        bool clear = st != SNAP_OK && err.code != SNAP_OK && strstr(err.text, "memory");
        if (!same && !clear)
            printf("\n    allocation %zu: status %d, '%s'\n", i, (int)st, err.text);
        CU_ASSERT(same || clear);
        buf_release(&got);
    }
    buf_release(&want);
}

static void test_every_allocation(void) {
    static const operation operations[] = {parse_and_write, read_lines, build,    read_csv,
                                           write_and_read,  print,      allocate, pack_and_unpack};
    if (!failing_alloc_works())
        return;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        fail_each(operations[i], false);
        fail_each(operations[i], true);
    }
}

static void test_hash_needs_no_memory(void) {
    buf out = {0};
    snap_err err = {0};
    CU_ASSERT(buf_puts(&out, "room for the digest, which the buffer keeps after it is cleared"));
    buf_clear(&out);
    failing_alloc_arm(1, true);
    snap_status st = hash(&out, &err);
    (void)failing_alloc_disarm();
    CU_ASSERT_EQUAL(st, SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&out),
                           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    buf_release(&out);
}

static void test_libraries_that_are_not_loaded(void) {
    fault_mark before = fault_begin();
    CU_ASSERT_PTR_NULL(dlopen("/nonexistent/library.so", RTLD_NOW));
    CU_ASSERT_EQUAL(fault_of_dlopen(dlerror()), SNAP_E_UNSUPPORTED);
    CU_ASSERT_FALSE(fault_since(before));
    CU_ASSERT_EQUAL(fault_of_dlopen("libOpenCL.so.1: cannot allocate symbol search list: "
                                    "Cannot allocate memory"),
                    SNAP_E_NOMEM);
    CU_ASSERT(fault_since(before));
    CU_ASSERT_EQUAL(fault_of_dlopen("libOpenCL.so.1: cannot create shared object descriptor"),
                    SNAP_E_NOMEM);
    fault_forget();
}

CU_TestInfo tests_fault[] = {{"a fault counts only for scopes that began before it", test_scopes},
                             {"no output after a fault", test_no_output_after_a_fault},
                             {"functions of libc note faults", test_functions_of_libc},
                             {"every failed allocation is reported", test_every_allocation},
                             {"hashing needs no memory", test_hash_needs_no_memory},
                             {"libraries that are not loaded", test_libraries_that_are_not_loaded},
                             CU_TEST_INFO_NULL};
