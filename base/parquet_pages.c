/* parquet_pages.c - reads the pages of a column: levels, dictionaries and values. */
#include <stdio.h>
#include <string.h>

#include "base/parquet_parts.h"
#include "base/unpack.h"

/* The encodings that can be read, as the format numbers them. */
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };

/* What is being read. */
typedef struct {
    parquet_file *f;
    parquet_column *c;
    const parquet_node *node; /* of the column */
    int codec;
    bool has_dictionary;
} reading;

static snap_status damaged(const reading *r, const char *what, snap_err *err) {
    return err_set(err, SNAP_E_INPUT, "%s: a damaged Parquet file: %s of the column '%.80s'",
                   r->f->name, what, r->node->name);
}

static snap_status unsupported(const reading *r, const char *what, int which, snap_err *err) {
    return err_set(err, SNAP_E_UNSUPPORTED,
                   "%s: the %s %d of the column '%.80s' is not supported: pyarrow's default can be "
                   "read",
                   r->f->name, what, which, r->node->name);
}

/* ---- runs of small integers ---- */

/* A reader of RLE and bit-packed runs, which may follow each other in any order. */
typedef struct {
    const uint8_t *p, *end;
    int width;      /* bits of a value, 0..32 */
    uint64_t left;  /* values of the run that are left */
    bool packed;    /* the run is bit-packed */
    uint32_t value; /* the value that an RLE run repeats */
    uint64_t bits;  /* the n_bits bits of a packed run that are not used yet */
    int n_bits;
} runs;

static bool next_run(runs *r) {
    uint64_t head = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        if (r->p == r->end || shift > 35)
            return false;
        byte = *r->p++;
        head |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    r->packed = head & 1;
    r->left = r->packed ? (head >> 1) * 8 : head >> 1;
    r->n_bits = 0;
    r->bits = 0;
    if (r->packed)
        return true;
    int bytes = (r->width + 7) / 8;
    if (r->end - r->p < bytes)
        return false;
    r->value = 0;
    for (int i = 0; i < bytes; i++)
        r->value |= (uint32_t)*r->p++ << 8 * i;
    return true;
}

/* False if the data end, or if a value has more than `width` bits. */
static bool next_value(runs *r, uint32_t *out) {
    while (!r->left)
        if (!next_run(r))
            return false;
    r->left--;
    uint64_t mask = (UINT64_C(1) << r->width) - 1;
    if (!r->packed) {
        *out = r->value;
        return r->value <= mask;
    }
    while (r->n_bits < r->width) {
        if (r->p == r->end)
            return false;
        r->bits |= (uint64_t)*r->p++ << r->n_bits;
        r->n_bits += 8;
    }
    *out = (uint32_t)(r->bits & mask);
    r->bits >>= r->width;
    r->n_bits -= r->width;
    return true;
}

static int bits_of(int level) {
    int bits = 0;
    for (; level; level >>= 1)
        bits++;
    return bits;
}

/* ---- a part of a page ---- */

typedef struct {
    const uint8_t *p;
    size_t n;
} part;

/* Cuts @n bytes off the front. */
static bool cut(part *from, size_t n, part *out) {
    if (n > from->n)
        return false;
    *out = (part){from->p, n};
    from->p += n;
    from->n -= n;
    return true;
}

static uint64_t little_endian(const uint8_t *p, int bytes) {
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

/* Cuts off a part whose length is in the four bytes before it. */
static bool cut_counted(part *from, part *out) {
    part length;
    return cut(from, 4, &length) && cut(from, (size_t)little_endian(length.p, 4), out);
}

/* ---- values ---- */

static snap_status add_value(buf *values, uint64_t x, snap_err *err) {
    return buf_append(values, &x, sizeof x) ? SNAP_OK : buf_check(values, "a Parquet file", err);
}

static uint64_t value_at(const buf *values, size_t i) {
    uint64_t x;
    memcpy(&x, values->data + i * sizeof x, sizeof x);
    return x;
}

/* Reads @n texts. Their bytes are appended to `texts` unchanged, and their offsets to @out. */
static snap_status read_texts(reading *r, part from, size_t n, buf *out, snap_err *err) {
    part all = from, text;
    snap_status st = SNAP_OK;
    size_t at = r->c->texts.len;
    for (size_t i = 0; i < n && st == SNAP_OK; i++) {
        size_t offset = at + (size_t)(from.p - all.p);
        if (!cut_counted(&from, &text))
            return damaged(r, "the values", err);
        st = add_value(out, offset, err);
    }
    if (st == SNAP_OK && !buf_append(&r->c->texts, all.p, (size_t)(from.p - all.p)))
        st = buf_check(&r->c->texts, "a Parquet file", err);
    return st;
}

static int width_of(int type) {
    return type == PARQUET_INT32 || type == PARQUET_FLOAT ? 4 : 8;
}

static snap_status read_plain(reading *r, part from, size_t n, buf *out, snap_err *err) {
    snap_status st = SNAP_OK;
    int type = r->node->type, width = width_of(type);
    if (type == PARQUET_BYTE_ARRAY)
        return read_texts(r, from, n, out, err);
    if (type == PARQUET_BOOLEAN) {
        if (from.n < n / 8 + (n % 8 != 0))
            return damaged(r, "the values", err);
        for (size_t i = 0; i < n && st == SNAP_OK; i++)
            st = add_value(out, from.p[i / 8] >> i % 8 & 1, err);
        return st;
    }
    if (from.n / (size_t)width < n)
        return damaged(r, "the values", err);
    for (size_t i = 0; i < n && st == SNAP_OK; i++)
        st = add_value(out, little_endian(from.p + i * (size_t)width, width), err);
    return st;
}

/* Reads @n values of @width bits. They are indices into @dictionary or, without one, truth
 * values. */
static snap_status read_runs(reading *r, part from, int width, size_t n, const buf *dictionary,
                             snap_err *err) {
    runs values = {.p = from.p, .end = from.p + from.n, .width = width};
    size_t entries = dictionary ? dictionary->len / sizeof(uint64_t) : 2;
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n && st == SNAP_OK; i++) {
        uint32_t x;
        if (!next_value(&values, &x) || x >= entries)
            return damaged(r, "the values", err);
        st = add_value(&r->c->values, dictionary ? value_at(dictionary, x) : x, err);
    }
    return st;
}

static snap_status read_values(reading *r, part from, int encoding, size_t n, snap_err *err) {
    part width, truths;
    if (encoding == PLAIN)
        return read_plain(r, from, n, &r->c->values, err);
    if (encoding == RLE && r->node->type == PARQUET_BOOLEAN) {
        if (!cut_counted(&from, &truths))
            return damaged(r, "the values", err);
        return read_runs(r, truths, 1, n, NULL, err);
    }
    if (encoding != PLAIN_DICTIONARY && encoding != RLE_DICTIONARY)
        return unsupported(r, "encoding", encoding, err);
    if (!n)
        return SNAP_OK;
    if (!r->has_dictionary || !cut(&from, 1, &width) || *width.p > 32)
        return damaged(r, "the dictionary", err);
    return read_runs(r, from, *width.p, n, &r->c->dictionary, err);
}

/* ---- levels ---- */

/* Reads the two levels of @n entries. *existing: the number of values that are not missing. */
static snap_status read_levels(reading *r, part def, part rep, size_t n, size_t *existing,
                               snap_err *err) {
    const parquet_node *node = r->node;
    runs defs = {.p = def.p, .end = def.p + def.n, .width = bits_of(node->max_def)};
    runs reps = {.p = rep.p, .end = rep.p + rep.n, .width = bits_of(node->max_rep)};
    *existing = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t d = 0, p = 0;
        if ((node->max_def && !next_value(&defs, &d)) || d > (uint32_t)node->max_def ||
            (node->max_rep && !next_value(&reps, &p)) || p > (uint32_t)node->max_rep)
            return damaged(r, "the levels", err);
        uint8_t both[2] = {(uint8_t)d, (uint8_t)p};
        if (!buf_append(&r->c->levels, both, sizeof both))
            return buf_check(&r->c->levels, "a Parquet file", err);
        *existing += d == (uint32_t)node->max_def;
    }
    r->c->entries += n;
    return SNAP_OK;
}

/* ---- pages ---- */

static snap_status decompress(reading *r, part from, size_t size, buf *out, snap_err *err) {
    static const struct {
        int codec;
        unpack_format format;
    } codecs[] = {{1, UNPACK_SNAPPY}, {2, UNPACK_GZIP}, {6, UNPACK_ZSTD}};
    char where[300];
    const size_t n_codecs = sizeof codecs / sizeof *codecs;
    size_t i = 0;
    while (i < n_codecs && codecs[i].codec != r->codec)
        i++;
    if (i == n_codecs)
        return unsupported(r, "compression", r->codec, err);
    (void)snprintf(where, sizeof where, "%.200s: column '%.80s'", r->f->name, r->node->name);
    snap_status st = unpack(codecs[i].format, from.p, from.n, size, where, out, err);
    return st == SNAP_OK && out->len != size ? damaged(r, "the length of a page", err) : st;
}

static snap_status read_data(reading *r, const parquet_page *page, part body, snap_err *err) {
    part def = {body.p, 0}, rep = {body.p, 0}; /* empty if the column has no such levels */
    const parquet_node *node = r->node;
    size_t existing, n = (size_t)page->values;
    if (page->type == PARQUET_DATA_PAGE) {
        if ((node->max_rep && page->rep_encoding != RLE) ||
            (node->max_def && page->def_encoding != RLE))
            return unsupported(r, "encoding of levels",
                               node->max_rep ? page->rep_encoding : page->def_encoding, err);
        if ((node->max_rep && !cut_counted(&body, &rep)) ||
            (node->max_def && !cut_counted(&body, &def)))
            return damaged(r, "the levels", err);
    } else if (!cut(&body, (size_t)page->rep_bytes, &rep) ||
               !cut(&body, (size_t)page->def_bytes, &def)) {
        return damaged(r, "the levels", err);
    }
    snap_status st = read_levels(r, def, rep, n, &existing, err);
    return st == SNAP_OK ? read_values(r, body, page->encoding, existing, err) : st;
}

static snap_status read_dictionary(reading *r, const parquet_page *page, part body, snap_err *err) {
    if (r->has_dictionary || (page->encoding != PLAIN && page->encoding != PLAIN_DICTIONARY))
        return damaged(r, "the dictionary", err);
    r->has_dictionary = true;
    return read_plain(r, body, (size_t)page->values, &r->c->dictionary, err);
}

/* Unpacks a page. In the second version the levels, which come first, are never compressed. */
static snap_status unpack_page(reading *r, const parquet_page *page, part body, buf *out,
                               snap_err *err) {
    part levels = {body.p, 0};
    size_t size = (size_t)page->unpacked;
    if (page->type == PARQUET_DATA_PAGE_2) {
        size_t n = (size_t)page->rep_bytes + (size_t)page->def_bytes;
        if (page->rep_bytes > page->packed || page->def_bytes > page->packed ||
            !cut(&body, n, &levels) || n > size)
            return damaged(r, "the levels", err);
        size -= n;
    }
    bool packed = r->codec && (page->type != PARQUET_DATA_PAGE_2 || page->is_packed);
    buf plain = {0};
    snap_status st = SNAP_OK;
    /* Pages without values may have no compressed data at all. */
    if (packed && (body.n || size))
        TRY(decompress(r, body, size, &plain, err));
    if (!packed && body.n != size)
        TRY(damaged(r, "the length of a page", err));
    (void)buf_append(out, levels.p, levels.n);
    (void)(packed ? buf_append(out, buf_str(&plain), plain.len) : buf_append(out, body.p, body.n));
    st = buf_check(out, r->f->name, err);
cleanup:
    buf_release(&plain);
    return st;
}

static snap_status read_page(reading *r, const parquet_page *page, part body, snap_err *err) {
    parquet_limits *left = &r->f->left;
    buf plain = {0};
    snap_status st = SNAP_OK;
    if (page->type != PARQUET_DATA_PAGE && page->type != PARQUET_DATA_PAGE_2 &&
        page->type != PARQUET_DICTIONARY_PAGE)
        return page->type == PARQUET_INDEX_PAGE ? SNAP_OK : damaged(r, "a page", err);
    if (page->has_crc && page->crc != unpack_crc32(body.p, body.n))
        return damaged(r, "the checksum of a page", err);
    if ((uint64_t)page->values > left->values || (uint64_t)page->unpacked > left->bytes)
        return err_set(err, SNAP_E_INPUT, "%s: more data than can be read: the column '%.80s'",
                       r->f->name, r->node->name);
    left->values -= (size_t)page->values;
    left->bytes -= (size_t)page->unpacked;
    TRY(unpack_page(r, page, body, &plain, err));
    body = (part){(const uint8_t *)buf_str(&plain), plain.len};
    st = page->type == PARQUET_DICTIONARY_PAGE ? read_dictionary(r, page, body, err)
                                               : read_data(r, page, body, err);
cleanup:
    buf_release(&plain);
    return st;
}

snap_status parquet_read_column(parquet_file *f, const parquet_chunk *chunk, parquet_column *out,
                                snap_err *err) {
    reading r = {.f = f, .c = out, .node = out->node, .codec = chunk->codec};
    bool first_dictionary = chunk->dictionary_page > 0 && chunk->dictionary_page < chunk->data_page;
    int64_t begin = first_dictionary ? chunk->dictionary_page : chunk->data_page;
    snap_status st = SNAP_OK;
    if (chunk->type != out->node->type || begin < 0 || (uint64_t)begin > f->n ||
        (uint64_t)chunk->packed_size > f->n - (uint64_t)begin)
        return damaged(&r, "the place", err);
    part rest = {f->bytes + begin, (size_t)chunk->packed_size};
    while (rest.n && out->entries < (uint64_t)chunk->values && st == SNAP_OK) {
        parquet_page page;
        part head, body;
        size_t n = parquet_read_page(rest.p, rest.n, &page);
        if (!n || !cut(&rest, n, &head) || !cut(&rest, (size_t)page.packed, &body))
            return damaged(&r, "a page", err);
        st = read_page(&r, &page, body, err);
    }
    if (st == SNAP_OK && out->entries != (uint64_t)chunk->values)
        st = damaged(&r, "the number of values", err);
    return st;
}

void parquet_column_release(parquet_column *c) {
    buf_release(&c->levels);
    buf_release(&c->values);
    buf_release(&c->texts);
    buf_release(&c->dictionary);
}
