#include "base/zip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zip.h>

#include "base/text.h"
#include "base/unpack.h"

/* Translates a libzip error into a status and a message. libzip reports some failed allocations as
 * damage, but then malloc() has set errno, which open_bytes() sets to 0 first. */
static snap_status explain(const zip_error_t *why, const char *name, const char *member,
                           snap_err *err) {
    switch (errno == ENOMEM ? ZIP_ER_MEMORY : why->zip_err) {
    case ZIP_ER_MEMORY:
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", name);
    case ZIP_ER_NOZIP:
    case ZIP_ER_INCONS:
        return err_set(err, SNAP_E_INPUT, "%s: not a zip archive, or truncated", name);
    case ZIP_ER_NOENT:
        return err_set(err, SNAP_E_INPUT, "%s: no member '%s'", name, member);
    case ZIP_ER_NOPASSWD:
    case ZIP_ER_WRONGPASSWD:
        return err_set(err, SNAP_E_INPUT, "%s: wrong password for '%s'", name, member);
    default:
        return err_set(err, SNAP_E_INPUT, "%s: '%s' is damaged", name, member);
    }
}

/* Translates an error while reading a member. Of 256 wrong passwords, one on average passes the
 * check of ZipCrypto and then looks like damaged content, so the message names both causes. */
static snap_status explain_read(const zip_error_t *why, bool encrypted, const char *name,
                                const char *member, snap_err *err) {
    if (encrypted && why->zip_err != ZIP_ER_MEMORY && errno != ENOMEM)
        return err_set(err, SNAP_E_INPUT, "%s: '%s' is damaged, or the password is wrong", name,
                       member);
    return explain(why, name, member, err);
}

static snap_status read_all(zip_file_t *file, bool encrypted, const char *name, const char *member,
                            buf *out, snap_err *err) {
    char chunk[1 << 14];
    zip_int64_t n;
    while ((n = zip_fread(file, chunk, sizeof chunk)) > 0)
        if (!buf_append(out, chunk, (size_t)n))
            return out->too_long
                       ? err_set(err, SNAP_E_INPUT, "%s: '%s' unpacks to more than %zu MiB", name,
                                 member, (out->limit ? out->limit : BUF_DEFAULT_LIMIT) >> 20)
                       : buf_check(out, name, err);
    if (n < 0)
        return explain_read(zip_file_get_error(file), encrypted, name, member, err);
    return SNAP_OK;
}

/* The number of Zstandard among zip's compressions. Not every libzip has a name for it. */
enum { kZstd = 93 };

/* True for the compressions and encryptions that are supported. Others are refused before libzip
 * tries them, because libzip 1.7.3 leaks memory if it fails half-way. */
static bool is_readable(const zip_stat_t *about) {
    bool packing = about->comp_method == ZIP_CM_STORE || about->comp_method == ZIP_CM_DEFLATE;
    bool plain = about->encryption_method == ZIP_EM_NONE;
    return about->comp_method == kZstd
               ? plain
               : packing && (plain || about->encryption_method == ZIP_EM_TRAD_PKWARE);
}

/* Unpacks a member that was compressed with Zstandard, and compares its length and checksum with
 * the archive's. @max: bytes that may be appended. */
static snap_status read_zstd(zip_t *archive, zip_uint64_t index, const zip_stat_t *about,
                             const char *name, size_t max, buf *out, snap_err *err) {
    enum { kNeeded = ZIP_STAT_SIZE | ZIP_STAT_CRC };
    buf packed = {0};
    char where[400];
    size_t before = out->len;
    snap_status st = SNAP_OK;
    zip_file_t *file = zip_fopen_index(archive, index, ZIP_FL_COMPRESSED);
    (void)snprintf(where, sizeof where, "%.200s: '%.160s'", name, about->name);
    if (!file)
        return explain(zip_get_error(archive), name, about->name, err);
    TRY(read_all(file, false, name, about->name, &packed, err));
    TRY(unpack(UNPACK_ZSTD, buf_str(&packed), packed.len, max, where, out, err));
    if ((about->valid & kNeeded) != kNeeded || about->size != out->len - before ||
        about->crc != unpack_crc32(buf_str(out) + before, out->len - before))
        st = err_set(err, SNAP_E_INPUT, "%s is damaged", where);
cleanup:
    (void)zip_fclose(file);
    buf_release(&packed);
    return st;
}

static snap_status read_member(zip_t *archive, const char *name, const char *member,
                               const char *password, buf *out, snap_err *err) {
    zip_stat_t about = {0};
    zip_int64_t index = zip_name_locate(archive, member, strchr(member, '/') ? 0 : ZIP_FL_NODIR);
    if (index < 0 || zip_stat_index(archive, (zip_uint64_t)index, 0, &about) != 0)
        return explain(zip_get_error(archive), name, member, err);
    if (!is_readable(&about))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%s: '%s' uses a compression or encryption that is not supported", name,
                       member);
    if (about.comp_method == kZstd)
        return read_zstd(archive, (zip_uint64_t)index, &about, name,
                         (out->limit ? out->limit : BUF_DEFAULT_LIMIT) - out->len, out, err);
    zip_file_t *file = zip_fopen_index_encrypted(archive, (zip_uint64_t)index, 0, password);
    if (!file)
        return explain(zip_get_error(archive), name, member, err);
    bool encrypted = about.encryption_method != ZIP_EM_NONE;
    snap_status st = read_all(file, encrypted, name, member, out, err);
    (void)zip_fclose(file);
    return st;
}

/* Cuts @out back to its old length, without a failure. An append never changes the bytes before
 * it. */
static void undo(buf *out, size_t len) {
    out->len = len;
    out->failed = out->too_long = false;
    if (out->data)
        out->data[len] = '\0';
}

/* Opens an archive in memory; the caller closes it with zip_discard(). NULL on failure, with the
 * reason in *err. */
static zip_t *open_bytes(const void *bytes, size_t n, const char *name, const char *member,
                         snap_err *err) {
    zip_error_t why;
    errno = 0;
    zip_error_init(&why);
    zip_source_t *source = zip_source_buffer_create(bytes, n, 0, &why);
    zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY, &why) : NULL;
    if (!archive) {
        (void)explain(&why, name, member, err);
        zip_source_free(source);
    }
    zip_error_fini(&why);
    return archive;
}

snap_status zip_member_read(const void *bytes, size_t n, const char *name, const char *member,
                            const char *password, buf *out, snap_err *err) {
    snap_err why = {0};
    size_t before = out->len;
    zip_t *archive = open_bytes(bytes, n, name, member, &why);
    if (!archive)
        return err_set(err, why.code, "%s", why.text);
    snap_status st = read_member(archive, name, member, password, out, err);
    zip_discard(archive); /* also frees the source */
    if (st != SNAP_OK)
        undo(out, before);
    return st;
}

/* ---- reading all members ---- */

/* True for names such as "a/b.json": at most 255 bytes of UTF-8, no absolute path, no part that is
 * empty, "." or "..", no ASCII control character, backslash or colon. */
static bool is_safe_name(const char *name) {
    size_t n = strlen(name);
    if (!n || n > 255 || name[0] == '/' || name[n - 1] == '/' || !text_is_utf8(name, n))
        return false;
    for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        size_t len = strcspn(part, "/");
        if (!len || (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
    }
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == '\\' || *c == ':')
            return false;
    return true;
}

/* False for links, devices and other special files, and if the attributes cannot be read. A
 * member's type is checked only if the member was made on Unix. */
static bool is_plain_file(zip_t *archive, zip_uint64_t index) {
    enum { kTypeMask = 0170000, kRegular = 0100000 };
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    if (zip_file_get_external_attributes(archive, index, 0, &system, &attributes) != 0)
        return false;
    unsigned type = (attributes >> 16) & kTypeMask;
    return system != ZIP_OPSYS_UNIX || type == 0 || type == kRegular;
}

static snap_status check_member(zip_t *archive, zip_uint64_t index, const char *name,
                                const zip_stat_t *about, snap_err *err) {
    bool named = (about->valid & ZIP_STAT_NAME) && about->name;
    if (!named || !is_safe_name(about->name))
        return err_set(err, SNAP_E_INPUT, "%s: member %llu has an unsafe name", name,
                       (unsigned long long)index);
    if (zip_name_locate(archive, about->name, ZIP_FL_ENC_RAW) != (zip_int64_t)index)
        return err_set(err, SNAP_E_INPUT, "%s: '%s' occurs twice", name, about->name);
    if (!is_plain_file(archive, index))
        return err_set(err, SNAP_E_INPUT, "%s: '%s' is a link or a device", name, about->name);
    if (!is_readable(about) || about->encryption_method != ZIP_EM_NONE)
        return err_set(err, SNAP_E_INPUT,
                       "%s: '%s' is encrypted or uses a compression that is not supported", name,
                       about->name);
    return SNAP_OK;
}

static snap_status read_index(zip_t *archive, zip_uint64_t index, const char *name, size_t *left,
                              buf *out, zip_stat_t *about, snap_err *err) {
    snap_status st = SNAP_OK;
    zip_file_t *file = NULL;
    if (zip_stat_index(archive, index, ZIP_FL_ENC_RAW, about) != 0)
        return explain(zip_get_error(archive), name, "a member", err);
    TRY(check_member(archive, index, name, about, err));
    if (about->comp_method == kZstd) {
        TRY(read_zstd(archive, index, about, name, *left, out, err));
        *left -= out->len;
        return SNAP_OK;
    }
    file = zip_fopen_index(archive, index, 0);
    if (!file)
        TRY(explain(zip_get_error(archive), name, about->name, err));
    out->limit = *left + 1; /* plus 1, because a limit of 0 means the default */
    TRY(read_all(file, false, name, about->name, out, err));
    if (out->len > *left)
        TRY(err_set(err, SNAP_E_INPUT, "%s: the unpacked members exceed the size limit", name));
    *left -= out->len;
cleanup:
    if (file)
        (void)zip_fclose(file);
    return st;
}

snap_status zip_each_member(const void *bytes, size_t n, const char *name, zip_limits limits,
                            zip_member_fn fn, void *ctx, snap_err *err) {
    snap_err why = {0};
    buf content = {0};
    size_t left = limits.bytes;
    snap_status st = SNAP_OK;
    zip_t *archive = open_bytes(bytes, n, name, "a member", &why);
    if (!archive)
        return err_set(err, why.code, "%s", why.text);
    zip_int64_t members = zip_get_num_entries(archive, 0);
    if (members < 0 || (zip_uint64_t)members > limits.members)
        TRY(err_set(err, SNAP_E_INPUT, "%s: more than %zu members", name, limits.members));
    for (zip_uint64_t i = 0; i < (zip_uint64_t)members; i++) {
        zip_stat_t about = {0};
        buf_clear(&content);
        TRY(read_index(archive, i, name, &left, &content, &about, err));
        TRY(fn(ctx, about.name, &content, err));
    }
cleanup:
    zip_discard(archive);
    buf_release(&content);
    return st;
}

/* ---- writing an archive ---- */

static bool add_entry(zip_t *archive, const zip_entry *e) {
    enum { kMode = 0100644 };
    zip_source_t *content = zip_source_buffer(archive, e->n ? e->bytes : "", e->n, 0);
    zip_int64_t index = content ? zip_file_add(archive, e->name, content, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
        zip_source_free(content);
        return false;
    }
    return zip_file_set_external_attributes(archive, (zip_uint64_t)index, 0, ZIP_OPSYS_UNIX,
                                            (zip_uint32_t)kMode << 16) == 0 &&
           zip_file_set_dostime(archive, (zip_uint64_t)index, 0, 0x21, 0) == 0; /* 1980-01-01, so
                                                                                   that equal
                                                                                   entries give
                                                                                   equal bytes */
}

static bool read_back(zip_source_t *store, buf *out) {
    char chunk[1 << 14];
    zip_int64_t got = -1;
    if (zip_source_open(store) != 0)
        return false;
    bool ok = true;
    while (ok && (got = zip_source_read(store, chunk, sizeof chunk)) > 0)
        ok = buf_append(out, chunk, (size_t)got);
    (void)zip_source_close(store);
    return ok && got == 0;
}

snap_status zip_pack(const zip_entry *entries, size_t n, buf *out, snap_err *err) {
    zip_source_t *store = zip_source_buffer_create(NULL, 0, 0, NULL);
    if (!store)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an archive");
    zip_source_keep(store);
    zip_t *archive = zip_open_from_source(store, ZIP_TRUNCATE, NULL);
    bool ok = archive != NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = add_entry(archive, &entries[i]);
    if (archive && (!ok || zip_close(archive) != 0)) {
        zip_discard(archive);
        ok = false;
    } else if (!archive) {
        zip_source_free(store); /* releases the reference that the archive would have owned */
    }
    ok = ok && read_back(store, out);
    zip_source_free(store);
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for an archive");
}
