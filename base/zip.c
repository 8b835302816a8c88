#include "base/zip.h"

#include <string.h>
#include <zip.h>

/* What a failed call means to the owner of the archive. */
static snap_status explain(const zip_error_t *why, const char *name, const char *member,
                           snap_err *err) {
    switch (why->zip_err) {
    case ZIP_ER_MEMORY:
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", name);
    case ZIP_ER_NOZIP:
    case ZIP_ER_INCONS:
        return err_set(err, SNAP_E_INPUT, "%s: no zip archive, or a truncated one", name);
    case ZIP_ER_NOENT:
        return err_set(err, SNAP_E_INPUT, "%s: no member '%s'", name, member);
    case ZIP_ER_NOPASSWD:
    case ZIP_ER_WRONGPASSWD:
        return err_set(err, SNAP_E_INPUT, "%s: wrong password for '%s'", name, member);
    default:
        return err_set(err, SNAP_E_INPUT, "%s: '%s' is damaged", name, member);
    }
}

/* One wrong password in 256 passes ZipCrypto's own check and shows as damage. */
static snap_status explain_read(const zip_error_t *why, bool encrypted, const char *name,
                                const char *member, snap_err *err) {
    if (encrypted && why->zip_err != ZIP_ER_MEMORY)
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
            return err_set(err, SNAP_E_INPUT, "%s: '%s' unpacks to more than %zu MiB", name, member,
                           (out->limit ? out->limit : BUF_DEFAULT_LIMIT) >> 20);
    if (n < 0)
        return explain_read(zip_file_get_error(file), encrypted, name, member, err);
    return SNAP_OK;
}

/* Anything else is refused before libzip tries: 1.7.3 loses memory where it gives up half-way. */
static bool is_readable(const zip_stat_t *about) {
    bool packing = about->comp_method == ZIP_CM_STORE || about->comp_method == ZIP_CM_DEFLATE;
    return packing && (about->encryption_method == ZIP_EM_NONE ||
                       about->encryption_method == ZIP_EM_TRAD_PKWARE);
}

static snap_status read_member(zip_t *archive, const char *name, const char *member,
                               const char *password, buf *out, snap_err *err) {
    zip_stat_t about = {0};
    zip_int64_t index = zip_name_locate(archive, member, ZIP_FL_NODIR);
    if (index < 0 || zip_stat_index(archive, (zip_uint64_t)index, 0, &about) != 0)
        return explain(zip_get_error(archive), name, member, err);
    if (!is_readable(&about))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%s: '%s' is packed or encrypted in a way that is not read here", name,
                       member);
    zip_file_t *file = zip_fopen_index_encrypted(archive, (zip_uint64_t)index, 0, password);
    if (!file)
        return explain(zip_get_error(archive), name, member, err);
    bool encrypted = about.encryption_method != ZIP_EM_NONE;
    snap_status st = read_all(file, encrypted, name, member, out, err);
    (void)zip_fclose(file);
    return st;
}

/* A failed append leaves its mark; the content from before is still whole. */
static void undo(buf *out, size_t len) {
    out->len = len;
    out->failed = false;
    if (out->data)
        out->data[len] = '\0';
}

snap_status zip_member_read(const void *bytes, size_t n, const char *name, const char *member,
                            const char *password, buf *out, snap_err *err) {
    zip_error_t why;
    size_t before = out->len;
    zip_error_init(&why);
    zip_source_t *source = zip_source_buffer_create(bytes, n, 0, &why);
    zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY, &why) : NULL;
    snap_status st;
    if (archive) {
        st = read_member(archive, name, member, password, out, err);
        zip_discard(archive); /* frees the source too */
    } else {
        st = explain(&why, name, member, err);
        zip_source_free(source);
    }
    zip_error_fini(&why);
    if (st != SNAP_OK)
        undo(out, before);
    return st;
}
