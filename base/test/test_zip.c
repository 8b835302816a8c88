#include "base/unpack.h"
#include "base/zip.h"

#include "base/test/zip_maker.h"

static const char kText[] = "id,text\n1,\"two\nlines\"\n";

static snap_status unpack_member(const buf *zip, const char *member, const char *password, buf *out,
                                 snap_err *err) {
    return zip_member_read(buf_str(zip), zip->len, "x.zip", member, password, out, err);
}

static void expect(const buf *zip, const char *member, const char *password, const char *message) {
    buf out = {0};
    snap_err err = {0};
    (void)buf_puts(&out, "before");
    CU_ASSERT_NOT_EQUAL(unpack_member(zip, member, password, &out, &err), SNAP_OK);
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
        CU_ASSERT_EQUAL(unpack_member(&zip, "a.csv", "secret", &out, NULL), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(buf_str(&out), kText);
        expect(&zip, "b.csv", "secret", "no member 'b.csv'");
        buf_release(&zip);
        buf_release(&out);
    }
}

/* On average, one of 256 wrong passwords passes the check of the cipher. None of the 2000 may pass
 * the checksum. */
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
    expect(&zip, "a.csv", NULL, "not a zip archive, or truncated");
    buf_release(&zip);
}

/* Whichever byte is changed, the result is an error or the right content. */
static void test_damaged(void) {
    for (int encrypted = 0; encrypted < 2; encrypted++) {
        buf zip = {0};
        make_zip(&zip, "a.csv", kText, strlen(kText), encrypted ? "secret" : NULL);
        for (size_t i = 0; i < zip.len; i++) {
            buf out = {.limit = 1 << 20};
            zip.data[i] ^= 0x41;
            if (unpack_member(&zip, "a.csv", "secret", &out, NULL) == SNAP_OK)
                CU_ASSERT_STRING_EQUAL(buf_str(&out), kText);
            zip.data[i] ^= 0x41;
            buf_release(&out);
        }
        buf_release(&zip);
    }
}

/* 64 MiB of one letter, packed into less than 128 KiB. */
static void test_bomb(void) {
    buf letters = {0}, zip = {0}, out = {.limit = 1 << 20};
    char block[4096];
    snap_err err = {0};
    memset(block, 'a', sizeof block);
    for (int i = 0; i < 16384; i++)
        (void)buf_append(&letters, block, sizeof block);
    make_zip(&zip, "a.csv", letters.data, letters.len, NULL);
    CU_ASSERT(zip.len < 1 << 17);
    CU_ASSERT_EQUAL(unpack_member(&zip, "a.csv", NULL, &out, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.zip: 'a.csv' unpacks to more than 1 MiB");
    CU_ASSERT_EQUAL(out.len, 0);
    buf_release(&letters);
    buf_release(&zip);
    buf_release(&out);
}

/* PKWARE's strong encryption (setting its flags is enough) and LZMA are not supported. */
static void test_other_methods(void) {
    buf zip = {0};
    make_zip(&zip, "a.csv", kText, strlen(kText), NULL);
    char *central = memmem(zip.data, zip.len, "PK\1\2", 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(central);
    central[8] |= 0x41;
    expect(&zip, "a.csv", "secret", "encryption that is not supported");
    central[8] = 0;
    central[10] = 14; /* LZMA */
    expect(&zip, "a.csv", "secret", "uses a compression or encryption");
    buf_release(&zip);
}

static snap_status collect(void *ctx, const char *member, const buf *content, snap_err *err) {
    buf *all = ctx;
    (void)buf_printf(all, "%s=%s;", member, buf_str(content));
    return buf_check(all, "a test", err);
}

/* ---- Zstandard, which not every libzip can write ---- */

static void little_endian(buf *out, size_t x, int bytes) {
    for (int i = 0; i < bytes; i++, x >>= 8)
        (void)buf_append(out, &(char){(char)x}, 1);
}

/* The fields that a member's local header and its entry in the central directory have in common.
 * @packed: size of the compressed content */
static void put_header(buf *out, size_t packed, size_t size, uint32_t crc) {
    enum { kVersion = 20, kMethod = 93, kName = 5 };
    little_endian(out, kVersion, 2);
    little_endian(out, 0, 2); /* flags */
    little_endian(out, kMethod, 2);
    little_endian(out, 0, 4); /* time */
    little_endian(out, crc, 4);
    little_endian(out, packed, 4);
    little_endian(out, size, 4);
    little_endian(out, kName, 2);
    little_endian(out, 0, 2); /* extra field */
}

/* An archive with the member "a.csv", whose compressed content is @frame (Zstandard). */
static void put_zstd(buf *out, const void *frame, size_t packed, size_t size, uint32_t crc) {
    buf_clear(out);
    (void)buf_append(out, "PK\3\4", 4);
    put_header(out, packed, size, crc);
    (void)buf_puts(out, "a.csv");
    (void)buf_append(out, frame, packed);
    size_t central = out->len;
    (void)buf_append(out, "PK\1\2\24\0", 6);
    put_header(out, packed, size, crc);
    little_endian(out, 0, 14); /* comment, disk, attributes, place of the member */
    (void)buf_puts(out, "a.csv");
    size_t n = out->len - central;
    (void)buf_append(out, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    little_endian(out, n, 4);
    little_endian(out, central, 4);
    little_endian(out, 0, 2);
}

/* A skippable frame, a frame that holds "abc" uncompressed, and one that repeats 'd' 128 times. */
static const char kFrames[] = "\x50\x2a\x4d\x18\1\0\0\0x"
                              "\x28\xb5\x2f\xfd\x20\3\x19\0\0abc"
                              "\x28\xb5\x2f\xfd\x20\x80\x03\x04\0d";

static void test_zstd(void) {
    char text[132] = "abc";
    buf zip = {0}, out = {0}, all = {0};
    memset(text + 3, 'd', 128);
    const size_t packed = sizeof kFrames - 1, size = strlen(text);
    const uint32_t crc = unpack_crc32(text, size);
    put_zstd(&zip, kFrames, packed, size, crc);
    CU_ASSERT_EQUAL(unpack_member(&zip, "a.csv", NULL, &out, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), text);
    CU_ASSERT_EQUAL(
        zip_each_member(zip.data, zip.len, "x.zip", (zip_limits){1, size}, collect, &all, NULL),
        SNAP_OK);
    CU_ASSERT_EQUAL(all.len, strlen("a.csv=;") + size);
    CU_ASSERT_EQUAL(
        zip_each_member(zip.data, zip.len, "x.zip", (zip_limits){1, size - 1}, collect, &all, NULL),
        SNAP_E_INPUT);
    for (size_t n = 1; n < packed; n++) { /* truncated content */
        put_zstd(&zip, kFrames, n, size, crc);
        expect(&zip, "a.csv", NULL, "damaged");
    }
    put_zstd(&zip, kFrames, packed, size - 1, crc);
    expect(&zip, "a.csv", NULL, "damaged");
    put_zstd(&zip, kFrames, packed, size, crc ^ 1);
    expect(&zip, "a.csv", NULL, "damaged");
    buf_release(&zip);
    buf_release(&out);
    buf_release(&all);
}

/* Each block of the frame has four bytes and repeats a letter 64 KiB times, so the 256 blocks are
 * 16 MiB. The archive's header says that it is one byte. */
static void test_zstd_bomb(void) {
    buf frame = {0}, zip = {0}, out = {.limit = 1 << 20};
    snap_err err = {0};
    (void)buf_append(&frame, "\x28\xb5\x2f\xfd\0\x58", 6);
    for (int i = 0; i < 256; i++) {
        little_endian(&frame, (size_t)1 << 19 | 1 << 1 | (i == 255), 3);
        (void)buf_puts(&frame, "a");
    }
    put_zstd(&zip, frame.data, frame.len, 1, 0);
    CU_ASSERT_EQUAL(unpack_member(&zip, "a.csv", NULL, &out, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.zip: 'a.csv': unpacks to more than 1048576 bytes");
    CU_ASSERT_EQUAL(out.len, 0);
    buf_release(&frame);
    buf_release(&zip);
    buf_release(&out);
}

/* ---- reading all members ---- */

static const zip_limits kLimits = {4, 1 << 20};

static snap_status each(const buf *zip, buf *all, snap_err *err) {
    return zip_each_member(zip->data, zip->len, "x.zip", kLimits, collect, all, err);
}

static void test_pack(void) {
    static const zip_entry entries[] = {{"b.json", "{}", 2}, {"a.txt", "hello", 5}, {"c", "", 0}};
    buf zip = {0}, again = {0}, all = {0};
    CU_ASSERT(zip_pack(entries, 3, &zip, NULL) == SNAP_OK);
    CU_ASSERT(zip_pack(entries, 3, &again, NULL) == SNAP_OK);
    CU_ASSERT(zip.len == again.len && memcmp(zip.data, again.data, zip.len) == 0);
    CU_ASSERT(each(&zip, &all, NULL) == SNAP_OK);
    CU_ASSERT_STRING_EQUAL(buf_str(&all), "b.json={};a.txt=hello;c=;");
    for (size_t n = 1; n < zip.len; n++) { /* a truncated archive is refused at every length */
        buf cut = {.data = zip.data, .len = n};
        CU_ASSERT(each(&cut, &all, NULL) == SNAP_E_INPUT);
    }
    buf_release(&zip);
    buf_release(&again);
    buf_release(&all);
}

static void refuse_names(const char *a, const char *b, const char *why) {
    const zip_entry entries[] = {{a, "1", 1}, {b, "2", 1}};
    buf zip = {0}, all = {0};
    snap_err err = {0};
    CU_ASSERT_FATAL(zip_pack(entries, 2, &zip, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(each(&zip, &all, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
    buf_release(&zip);
    buf_release(&all);
}

static void test_hostile_names(void) {
    static const char *const names[] = {"../a", "a/../../b", "/etc/passwd", "a//b", "./a",
                                        "a\\b", "a\nb",      "c:a",         "d/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refuse_names("good", names[i], "an unsafe name");
}

/* Edits the packed archive: the file mode of the first member, then both copies of the second
 * member's name. */
static void test_hostile_entries(void) {
    static const zip_entry entries[] = {{"aa", "1", 1}, {"ab", "2", 1}};
    buf zip = {0}, all = {0};
    snap_err err = {0};
    CU_ASSERT_FATAL(zip_pack(entries, 2, &zip, NULL) == SNAP_OK);
    char *central = memmem(zip.data, zip.len, "PK\1\2", 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(central);
    char mode[2] = {central[40], central[41]};
    central[40] = (char)0xff; /* file mode 0120777 = a symbolic link */
    central[41] = (char)0xa1;
    CU_ASSERT_EQUAL(each(&zip, &all, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.zip: 'aa' is a link or a device");
    memcpy(central + 40, mode, 2);
    CU_ASSERT_EQUAL(each(&zip, &all, NULL), SNAP_OK);
    for (char *at = zip.data; (at = memmem(at, zip.len - (size_t)(at - zip.data), "ab", 2)); at++)
        at[1] = 'a';
    err = (snap_err){0};
    CU_ASSERT_EQUAL(each(&zip, &all, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.zip: 'aa' occurs twice");
    buf_release(&zip);
    buf_release(&all);
}

static void test_limits(void) {
    buf letters = {0}, zip = {0}, all = {0};
    snap_err err = {0};
    for (int i = 0; i < 1 << 16; i++)
        (void)buf_puts(&letters, "aaaaaaaaaaaaaaaa");
    const zip_entry bomb[] = {{"a", letters.data, 600000}, {"b", letters.data, 600000}};
    CU_ASSERT_FATAL(zip_pack(bomb, 2, &zip, NULL) == SNAP_OK);
    CU_ASSERT(zip.len < 5000);
    CU_ASSERT_EQUAL(each(&zip, &all, &err), SNAP_E_INPUT); /* together more than 1 MiB */
    buf_clear(&zip);
    const zip_entry many[] = {{"a", "", 0}, {"b", "", 0}, {"c", "", 0}, {"d", "", 0}, {"e", "", 0}};
    CU_ASSERT_FATAL(zip_pack(many, 5, &zip, NULL) == SNAP_OK);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(each(&zip, &all, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.zip: more than 4 members");
    buf_clear(&zip);
    make_zip(&zip, "a.csv", kText, strlen(kText), "secret");
    CU_ASSERT_EQUAL(each(&zip, &all, NULL), SNAP_E_INPUT);
    buf_release(&letters);
    buf_release(&zip);
    buf_release(&all);
}

CU_TestInfo tests_zip[] = {
    {"a member is unpacked, with or without a password", test_members},
    {"wrong passwords", test_wrong_passwords},
    {"truncated archives", test_truncated},
    {"damaged archives", test_damaged},
    {"an archive that unpacks to too much", test_bomb},
    {"other compression and encryption methods are refused", test_other_methods},
    {"Zstandard", test_zstd},
    {"an archive in Zstandard that unpacks to too much", test_zstd_bomb},
    {"packed files are unpacked again", test_pack},
    {"hostile names", test_hostile_names},
    {"links and duplicate names", test_hostile_entries},
    {"limits of all members", test_limits},
    CU_TEST_INFO_NULL,
};
