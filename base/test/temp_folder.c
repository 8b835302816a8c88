#include "base/test/temp_folder.h"

#include <CUnit/CUnit.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"

void temp_folder_open(char out[TEMP_FOLDER], const char *name) {
    (void)snprintf(out, TEMP_FOLDER, "/tmp/snapmla-%.20s-XXXXXX", name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(out));
}

void temp_folder_put(const char *folder, const char *sub, const char *name, const void *bytes,
                     size_t n) {
    char *dir = fs_join(folder, sub), *path = fs_join(dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_mkdirs(dir, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, bytes, n, NULL), SNAP_OK);
    free(path);
    free(dir);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

void temp_folder_remove(const char *folder) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
