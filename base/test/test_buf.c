#include <CUnit/CUnit.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

static void test_append_and_print(void) {
    buf b = {0};
    CU_ASSERT_STRING_EQUAL(buf_str(&b), "");
    CU_ASSERT(buf_append(&b, "ab\0c", 4));
    CU_ASSERT(buf_printf(&b, "%d-%s", 42, "x"));
    CU_ASSERT_EQUAL(b.len, 8);
    CU_ASSERT_EQUAL(memcmp(b.data, "ab\0c42-x", 9), 0);
    char *s = buf_steal(&b);
    CU_ASSERT_EQUAL(b.len, 0);
    CU_ASSERT_PTR_NULL(b.data);
    CU_ASSERT_STRING_EQUAL(s, "ab");
    free(s);
}

static void test_ceiling_is_sticky_and_named(void) {
    buf b = {.limit = 10};
    snap_err err = {0};
    CU_ASSERT(buf_append(&b, "0123456789", 10));
    CU_ASSERT_EQUAL(buf_check(&b, "an answer", &err), SNAP_OK);
    CU_ASSERT_FALSE(buf_append(&b, "x", 1));
    CU_ASSERT_FALSE(buf_append(&b, "", 0));
    CU_ASSERT_EQUAL(b.len, 10);
    CU_ASSERT_EQUAL(buf_check(&b, "an answer", &err), SNAP_E_NOMEM);
    CU_ASSERT_STRING_EQUAL(err.text, "an answer does not fit in 10 bytes");
    buf_clear(&b);
    CU_ASSERT(buf_append(&b, "ok", 2));
    buf_release(&b);
}

static void test_arena_blocks_are_zeroed_and_apart(void) {
    arena a = {0};
    unsigned char *p = arena_alloc(&a, 100, 1), *q = arena_alloc(&a, 1 << 20, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(q);
    for (int i = 0; i < 100; i++)
        CU_ASSERT_EQUAL(p[i], 0);
    memset(p, 1, 100);
    memset(q, 2, 1 << 20);
    CU_ASSERT_EQUAL(p[99], 1);
    CU_ASSERT_PTR_NULL(arena_alloc(&a, SIZE_MAX / 2, 4));
    CU_ASSERT_STRING_EQUAL(arena_strndup(&a, "hello", 3), "hel");
    CU_ASSERT_EQUAL((uintptr_t)arena_alloc(&a, 1, 1) % 16, 0);
    arena_release(&a);
    CU_ASSERT_PTR_NULL(a.head);
}

CU_TestInfo tests_buf[] = {
    {"append and print", test_append_and_print},
    {"an append beyond the limit fails for good and names the content",
     test_ceiling_is_sticky_and_named},
    {"arena blocks are zeroed and do not overlap", test_arena_blocks_are_zeroed_and_apart},
    CU_TEST_INFO_NULL};
