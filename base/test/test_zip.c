#include "base/zip.h"

#include "base/test/zip_maker.h"

static const char kText[] = "id,text\n1,\"two\nlines\"\n";

static snap_status unpack(const buf *zip, const char *member, const char *password, buf *out,
                          snap_err *err) {
    return zip_member_read(buf_str(zip), zip->len, "x.zip", member, password, out, err);
}

static void expect(const buf *zip, const char *member, const char *password, const char *message) {
    buf out = {0};
    snap_err err = {0};
    (void)buf_puts(&out, "before");
    CU_ASSERT_NOT_EQUAL(unpack(zip, member, password, &out, &err), SNAP_OK);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "x.zip: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    CU_ASSERT_STRING_EQUAL(buf_str(&out), "before");
    buf_release(&out);
}

static void test_members(void) {
    for (int encrypted = 0; encrypted < 2; encrypted++) {
        buf zip = {0}, out = {0};
        make_zip(&zip, "folder/a.csv", kText, strlen(kText), encrypted ? "secret" : NULL);
        CU_ASSERT_EQUAL(unpack(&zip, "a.csv", "secret", &out, NULL), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(buf_str(&out), kText);
        expect(&zip, "b.csv", "secret", "no member 'b.csv'");
        buf_release(&zip);
        buf_release(&out);
    }
}

/* One of 256 wrong passwords passes the cipher's own check: none may pass the checksum. */
static void test_wrong_passwords(void) {
    buf zip = {0};
    char password[16];
    make_zip(&zip, "a.csv", kText, strlen(kText), "secret");
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(password, sizeof password, "no%d", i);
        expect(&zip, "a.csv", password, "password");
    }
    expect(&zip, "a.csv", "", "password");
    expect(&zip, "a.csv", NULL, "wrong password for 'a.csv'");
    buf_release(&zip);
}

static void test_truncated(void) {
    buf zip = {0};
    make_zip(&zip, "a.csv", kText, strlen(kText), NULL);
    size_t whole = zip.len;
    for (zip.len = 0; zip.len < whole; zip.len++)
        expect(&zip, "a.csv", NULL, "");
    zip.len = whole / 2;
    expect(&zip, "a.csv", NULL, "no zip archive, or a truncated one");
    buf_release(&zip);
}

/* Whatever byte is off: an error or the right content. */
static void test_damaged(void) {
    for (int encrypted = 0; encrypted < 2; encrypted++) {
        buf zip = {0};
        make_zip(&zip, "a.csv", kText, strlen(kText), encrypted ? "secret" : NULL);
        for (size_t i = 0; i < zip.len; i++) {
            buf out = {.limit = 1 << 20};
            zip.data[i] ^= 0x41;
            if (unpack(&zip, "a.csv", "secret", &out, NULL) == SNAP_OK)
                CU_ASSERT_STRING_EQUAL(buf_str(&out), kText);
            zip.data[i] ^= 0x41;
            buf_release(&out);
        }
        buf_release(&zip);
    }
}

/* 64 MiB of one letter in 64 KiB. */
static void test_bomb(void) {
    buf letters = {0}, zip = {0}, out = {.limit = 1 << 20};
    char block[4096];
    snap_err err = {0};
    memset(block, 'a', sizeof block);
    for (int i = 0; i < 16384; i++)
        (void)buf_append(&letters, block, sizeof block);
    make_zip(&zip, "a.csv", letters.data, letters.len, NULL);
    CU_ASSERT(zip.len < 1 << 17);
    CU_ASSERT_EQUAL(unpack(&zip, "a.csv", NULL, &out, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.zip: 'a.csv' unpacks to more than 1 MiB");
    CU_ASSERT_EQUAL(out.len, 0);
    buf_release(&letters);
    buf_release(&zip);
    buf_release(&out);
}

/* PKWARE's strong encryption, of which the flag is enough, and LZMA. */
static void test_other_methods(void) {
    buf zip = {0};
    make_zip(&zip, "a.csv", kText, strlen(kText), NULL);
    char *central = memmem(zip.data, zip.len, "PK\1\2", 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(central);
    central[8] |= 0x41;
    expect(&zip, "a.csv", "secret", "encrypted in a way that is not read here");
    central[8] = 0;
    central[10] = 14; /* LZMA */
    expect(&zip, "a.csv", "secret", "packed or encrypted in a way");
    buf_release(&zip);
}

CU_TestInfo tests_zip[] = {
    {"members", test_members},
    {"wrong passwords", test_wrong_passwords},
    {"truncated archives", test_truncated},
    {"damaged archives", test_damaged},
    {"a bomb", test_bomb},
    {"other methods", test_other_methods},
    CU_TEST_INFO_NULL,
};
