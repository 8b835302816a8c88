/* parquet_footer.c - the metadata of a Parquet file, which are in Thrift's compact protocol. */
#include <stdlib.h>
#include <string.h>

#include "base/parquet_parts.h"
#include "base/parquet_thrift.h"
#include "base/text.h"

/* ---- headers of pages ---- */

static void read_dictionary_header(thrift *t, int type, parquet_page *out) {
    t->bad = t->bad || type != T_STRUCT;
    for (int id = 0; thrift_field(t, &id, &type);) {
        switch (id) {
        case 1:
            out->values = thrift_int(t, type);
            break;
        case 2:
            out->encoding = thrift_int32(t, type);
            break;
        default:
            thrift_skip(t, type);
        }
    }
}

static void read_data_header(thrift *t, int type, parquet_page *out) {
    t->bad = t->bad || type != T_STRUCT;
    for (int id = 0; thrift_field(t, &id, &type);) {
        switch (id) {
        case 1:
            out->values = thrift_int(t, type);
            break;
        case 2:
            out->encoding = thrift_int32(t, type);
            break;
        case 3:
            out->def_encoding = thrift_int32(t, type);
            break;
        case 4:
            out->rep_encoding = thrift_int32(t, type);
            break;
        default:
            thrift_skip(t, type);
        }
    }
}

static void read_data_header_2(thrift *t, int type, parquet_page *out) {
    t->bad = t->bad || type != T_STRUCT;
    for (int id = 0; thrift_field(t, &id, &type);) {
        switch (id) {
        case 1:
            out->values = thrift_int(t, type);
            break;
        case 4:
            out->encoding = thrift_int32(t, type);
            break;
        case 5:
            out->def_bytes = thrift_int(t, type);
            break;
        case 6:
            out->rep_bytes = thrift_int(t, type);
            break;
        case 7:
            out->is_packed = thrift_bool(t, type);
            break;
        default:
            thrift_skip(t, type);
        }
    }
}

size_t parquet_read_page(const uint8_t *bytes, size_t n, parquet_page *out) {
    thrift t = {.p = bytes, .end = bytes + n};
    *out = (parquet_page){
        .type = -1, .values = -1, .unpacked = -1, .packed = -1, .encoding = -1, .is_packed = true};
    for (int id = 0, type; thrift_field(&t, &id, &type);) {
        switch (id) {
        case 1:
            out->type = thrift_int32(&t, type);
            break;
        case 2:
            out->unpacked = thrift_int(&t, type);
            break;
        case 3:
            out->packed = thrift_int(&t, type);
            break;
        case 4:
            out->crc = (uint32_t)thrift_int(&t, type);
            out->has_crc = true;
            break;
        case 7:
            read_dictionary_header(&t, type, out);
            break;
        case 5:
            read_data_header(&t, type, out);
            break;
        case 8:
            read_data_header_2(&t, type, out);
            break;
        default:
            thrift_skip(&t, type);
        }
    }
    bool valid = out->values >= 0 && out->unpacked >= 0 && out->packed >= 0 &&
                 out->def_bytes >= 0 && out->rep_bytes >= 0;
    return t.bad || (!valid && out->type != PARQUET_INDEX_PAGE) || out->packed < 0
               ? 0
               : (size_t)(t.p - bytes);
}

/* ---- the schema ---- */

static snap_status no_memory(const parquet_file *f, snap_err *err) {
    return err_set(err, SNAP_E_NOMEM, "%s: out of memory", f->name);
}

snap_status parquet_damaged(const parquet_file *f, const char *what, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s: a damaged Parquet file: %s", f->name, what);
}

static snap_status read_node(thrift *t, parquet_file *f, parquet_node *out, snap_err *err) {
    const uint8_t *name = NULL;
    size_t n = 0;
    *out = (parquet_node){.type = -1, .annotation = -1};
    for (int id = 0, type; thrift_field(t, &id, &type);) {
        switch (id) {
        case 1:
            out->type = thrift_int32(t, type);
            break;
        case 3:
            out->repetition = thrift_int32(t, type);
            break;
        case 4:
            name = thrift_binary(t, type, &n);
            break;
        case 5:
            out->children = thrift_int32(t, type);
            break;
        case 6:
            out->annotation = thrift_int32(t, type);
            break;
        default:
            thrift_skip(t, type);
        }
    }
    bool group = out->children > 0;
    if (t->bad || !name || !text_is_utf8((const char *)name, n) || memchr(name, 0, n) ||
        out->children < 0 || out->repetition < PARQUET_REQUIRED ||
        out->repetition > PARQUET_REPEATED || (group ? out->type != -1 : out->type < 0) ||
        out->type >= PARQUET_TYPES)
        return parquet_damaged(f, "its schema", err);
    out->name = arena_strndup(&f->names, (const char *)name, n);
    return out->name ? SNAP_OK : no_memory(f, err);
}

/* Refuses the types that have no counterpart in JSON: INT96, byte arrays of fixed length, and
 * decimals. */
static snap_status check_type(const parquet_file *f, const parquet_node *node, snap_err *err) {
    if (node->type == PARQUET_INT96 || node->type == PARQUET_FIXED ||
        (node->type >= 0 && node->annotation == PARQUET_DECIMAL))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%s: the type of the column '%.80s' is not supported: write it as a text or "
                       "an integer",
                       f->name, node->name);
    return SNAP_OK;
}

/* Completes the element at index *at and its descendants: their leaves, levels and ends. *at
 * becomes the index after them. */
static snap_status link_node(parquet_file *f, size_t *at, int depth, snap_err *err) {
    size_t i = (*at)++;
    parquet_node *node = &f->nodes[i];
    if (depth > PARQUET_DEPTH)
        return parquet_damaged(f, "its schema is too deep", err);
    node->leaf = f->n_leaves;
    f->n_leaves += node->type >= 0;
    snap_status st = check_type(f, node, err);
    for (int32_t k = 0; k < node->children && st == SNAP_OK; k++) {
        if (*at >= f->n_nodes)
            return parquet_damaged(f, "its schema is incomplete", err);
        parquet_node *child = &f->nodes[*at];
        child->max_def = node->max_def + (child->repetition != PARQUET_REQUIRED);
        child->max_rep = node->max_rep + (child->repetition == PARQUET_REPEATED);
        st = link_node(f, at, depth + 1, err);
    }
    node->end = *at;
    node->leaves = f->n_leaves - node->leaf;
    return st;
}

static snap_status read_schema(thrift *t, int type, parquet_file *f, snap_err *err) {
    size_t n = thrift_structs(t, type), at = 0;
    if (f->nodes || n < 2 || n > PARQUET_NODES)
        return parquet_damaged(f, "its schema is empty, too large or there twice", err);
    f->nodes = calloc(n, sizeof *f->nodes);
    if (!f->nodes)
        return no_memory(f, err);
    for (size_t i = 0; i < n; i++) {
        snap_status st = read_node(t, f, &f->nodes[f->n_nodes++], err);
        if (st != SNAP_OK)
            return st;
    }
    f->nodes[0].repetition = PARQUET_REQUIRED;
    snap_status st = link_node(f, &at, 0, err);
    if (st == SNAP_OK && (at != n || !f->n_leaves || !f->nodes[0].children))
        st = parquet_damaged(f, "its schema", err);
    return st;
}

/* ---- row groups ---- */

static void read_chunk_data(thrift *t, int type, parquet_chunk *out) {
    t->bad = t->bad || type != T_STRUCT;
    for (int id = 0; thrift_field(t, &id, &type);) {
        switch (id) {
        case 1:
            out->type = thrift_int32(t, type);
            break;
        case 4:
            out->codec = thrift_int32(t, type);
            break;
        case 5:
            out->values = thrift_int(t, type);
            break;
        case 7:
            out->packed_size = thrift_int(t, type);
            break;
        case 9:
            out->data_page = thrift_int(t, type);
            break;
        case 11:
            out->dictionary_page = thrift_int(t, type);
            break;
        default:
            thrift_skip(t, type);
        }
    }
}

/* Makes room for @more elements after the first @n of an array, and clears them. */
static bool grow(void **array, size_t size, size_t n, size_t more) {
    void *new = realloc(*array, (n + more) * size);
    if (!new)
        return false;
    *array = new;
    memset((char *)new + n *size, 0, more * size);
    return true;
}

static snap_status read_chunks(thrift *t, int type, parquet_file *f, parquet_group *group,
                               snap_err *err) {
    size_t n = thrift_structs(t, type);
    if (group->chunks || !n || n != f->n_leaves)
        return parquet_damaged(f, "a row group", err);
    if (!grow((void **)&f->chunks, sizeof *f->chunks, f->n_chunks, n))
        return no_memory(f, err);
    group->chunk = f->n_chunks;
    group->chunks = n;
    for (size_t i = 0; i < n; i++) {
        parquet_chunk *chunk = &f->chunks[f->n_chunks++];
        *chunk = (parquet_chunk){.type = -1,
                                 .codec = -1,
                                 .values = -1,
                                 .packed_size = -1,
                                 .data_page = -1,
                                 .dictionary_page = -1};
        for (int id = 0, kind; thrift_field(t, &id, &kind);) {
            if (id == 3)
                read_chunk_data(t, kind, chunk);
            else
                thrift_skip(t, kind);
        }
        if (t->bad || chunk->values < 0 || chunk->packed_size < 0 || chunk->data_page < 0)
            return parquet_damaged(f, "a column of a row group", err);
    }
    return SNAP_OK;
}

static snap_status read_groups(thrift *t, int type, parquet_file *f, snap_err *err) {
    enum { kMostGroups = 1 << 20 };
    size_t n = thrift_structs(t, type);
    if (f->groups || n > kMostGroups)
        return parquet_damaged(f, "its row groups", err);
    if (n && !grow((void **)&f->groups, sizeof *f->groups, 0, n))
        return no_memory(f, err);
    for (size_t i = 0; i < n && !t->bad; i++) {
        parquet_group *group = &f->groups[f->n_groups++];
        group->rows = -1;
        for (int id = 0, kind; thrift_field(t, &id, &kind);) {
            snap_status st = SNAP_OK;
            if (id == 1)
                st = read_chunks(t, kind, f, group, err);
            else if (id == 3)
                group->rows = thrift_int(t, kind);
            else
                thrift_skip(t, kind);
            if (st != SNAP_OK)
                return st;
        }
    }
    return SNAP_OK;
}

/* ---- reading the footer of a file ---- */

static snap_status read_metadata(thrift *t, parquet_file *f, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int id = 0, type; st == SNAP_OK && thrift_field(t, &id, &type);) {
        switch (id) {
        case 2:
            st = read_schema(t, type, f, err);
            break;
        case 4:
            st = read_groups(t, type, f, err);
            break;
        default:
            thrift_skip(t, type);
        }
    }
    if (st == SNAP_OK && (t->bad || !f->nodes))
        st = parquet_damaged(f, "its metadata", err);
    for (size_t i = 0; i < f->n_groups && st == SNAP_OK; i++)
        if (f->groups[i].rows < 0 || f->groups[i].chunks != f->n_leaves)
            st = parquet_damaged(f, "a row group", err);
    return st;
}

snap_status parquet_read_footer(parquet_file *f, snap_err *err) {
    static const char plain[] = "PAR1", encrypted[] = "PARE";
    enum { kMagic = 4, kLength = 4, kLeast = kMagic + kLength + kMagic };
    const uint8_t *end = f->bytes + f->n;
    if (f->n >= kLeast && memcmp(end - kMagic, encrypted, kMagic) == 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "%s: an encrypted Parquet file", f->name);
    if (f->n < kLeast || memcmp(f->bytes, plain, kMagic) != 0 ||
        memcmp(end - kMagic, plain, kMagic) != 0)
        return err_set(err, SNAP_E_INPUT, "%s: not a Parquet file, or truncated", f->name);
    const uint8_t *length = end - kMagic - kLength;
    size_t n = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 |
               (size_t)length[3] << 24;
    if (n > f->n - kLeast)
        return parquet_damaged(f, "its footer is longer than the file", err);
    thrift t = {.p = length - n, .end = length};
    return read_metadata(&t, f, err);
}

void parquet_release(parquet_file *f) {
    arena_release(&f->names);
    free(f->nodes);
    free(f->chunks);
    free(f->groups);
}
