/* zip_maker.h - creates archives with one member in memory, for tests. */
#ifndef SNAPMLA_BASE_TEST_ZIP_MAKER_H
#define SNAPMLA_BASE_TEST_ZIP_MAKER_H

#include <CUnit/CUnit.h>
#include <string.h>
#include <zip.h>

#include "base/buf.h"

/* @password: NULL for a plain member, else the password for ZipCrypto. */
static inline void make_zip(buf *out, const char *member, const void *bytes, size_t n,
                            const char *password) {
    zip_source_t *store = zip_source_buffer_create(NULL, 0, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    zip_source_keep(store);
    zip_t *archive = zip_open_from_source(store, ZIP_TRUNCATE, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(archive);
    zip_source_t *content = zip_source_buffer(archive, bytes, n, 0);
    zip_int64_t index = zip_file_add(archive, member, content, 0);
    CU_ASSERT_FATAL(index >= 0);
    if (password)
        CU_ASSERT_EQUAL_FATAL(
            zip_file_set_encryption(archive, (zip_uint64_t)index, ZIP_EM_TRAD_PKWARE, password), 0);
    CU_ASSERT_EQUAL_FATAL(zip_close(archive), 0);
    zip_stat_t about;
    CU_ASSERT_EQUAL_FATAL(zip_source_stat(store, &about), 0);
    CU_ASSERT_EQUAL_FATAL(zip_source_open(store), 0);
    char chunk[4096];
    for (zip_int64_t got; (got = zip_source_read(store, chunk, sizeof chunk)) > 0;)
        CU_ASSERT_FATAL(buf_append(out, chunk, (size_t)got));
    (void)zip_source_close(store);
    zip_source_free(store);
    CU_ASSERT_EQUAL_FATAL(out->len, about.size);
}

#endif
