/* Compares a checkpoint's digest with coreutils. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/local/checkpoint/digest.h"

static void write_file(const char *dir, const char *name, const char *text) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, text, strlen(text), NULL), SNAP_OK);
}

static void make_dir(char dir[64]) {
    (void)snprintf(dir, 64, "/tmp/snapmla-digest-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
}

static void remove_dir(const char *dir) {
    char command[160];
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    CU_ASSERT_EQUAL(system(command), 0);
}

static void by_coreutils(const char *dir, char hex[HASH_HEX]) {
    char command[400];
    (void)snprintf(command, sizeof command,
                   "cd %s && LC_ALL=C sha256sum B.json a.safetensors merges.txt | sha256sum", dir);
    FILE *f = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fscanf(f, "%64s", hex), 1);
    (void)pclose(f);
}

static void test_as_coreutils(void) {
    char dir[64], mine[HASH_HEX], theirs[HASH_HEX], path[128];
    make_dir(dir);
    write_file(dir, "a.safetensors", "weights");
    write_file(dir, "B.json", "{}");
    write_file(dir, "merges.txt", "");
    write_file(dir, "README.md", "does not count");
    write_file(dir, ".hidden.json", "nor does this");
    (void)snprintf(path, sizeof path, "%s/folder.json", dir);
    CU_ASSERT_EQUAL(fs_mkdirs(path, NULL), SNAP_OK); /* a folder is ignored, too */
    CU_ASSERT_EQUAL(checkpoint_digest(dir, mine, NULL), SNAP_OK);
    by_coreutils(dir, theirs);
    CU_ASSERT_STRING_EQUAL(mine, theirs);
    write_file(dir, "a.safetensors", "Weights");
    CU_ASSERT_EQUAL(checkpoint_digest(dir, mine, NULL), SNAP_OK);
    CU_ASSERT_STRING_NOT_EQUAL(mine, theirs);
    remove_dir(dir);
}

/* A name that ends in ".json" may be a pipe without a writer, or a link to an endless device.
 * Neither is read. */
static void test_no_files(void) {
    char dir[64], hex[HASH_HEX], path[128];
    snap_err err = {0};
    make_dir(dir);
    (void)snprintf(path, sizeof path, "%s/pipe.json", dir);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    CU_ASSERT_EQUAL(hash_file(path, hex, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a regular file"));
    (void)snprintf(path, sizeof path, "%s/device.json", dir);
    CU_ASSERT_EQUAL_FATAL(symlink("/dev/zero", path), 0);
    CU_ASSERT_EQUAL(hash_file(path, hex, NULL), SNAP_E_IO);
    CU_ASSERT_EQUAL(checkpoint_digest(dir, hex, NULL), SNAP_E_INPUT);
    remove_dir(dir);
}

static void test_refusals(void) {
    char dir[64], hex[HASH_HEX];
    snap_err err = {0};
    make_dir(dir);
    CU_ASSERT_EQUAL(checkpoint_digest(dir, hex, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no files of a checkpoint"));
    remove_dir(dir);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(checkpoint_digest(dir, hex, &err), SNAP_E_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, dir));
}

CU_TestInfo tests_digest[] = {
    {"the digest equals that of sha256sum", test_as_coreutils},
    {"pipes and devices are not read", test_no_files},
    {"folders without a checkpoint are refused", test_refusals},
    CU_TEST_INFO_NULL,
};
