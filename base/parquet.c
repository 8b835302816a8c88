#include "base/parquet.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/parquet_parts.h"

enum {
    kMostInRow = 1 << 22,   /* values of a row */
    kLeastValues = 1 << 20, /* limit of the values in a file of 0 bytes */
    kRatio = 1000,          /* values by which each byte of the file raises this limit */
};

/* A row group while its rows are assembled. */
typedef struct {
    parquet_file *f;
    parquet_column *columns; /* [f->n_leaves] */
    size_t in_row;           /* values of this row so far */
} assembly;

static js *no_memory(const assembly *a, snap_err *err) {
    (void)err_set(err, SNAP_E_NOMEM, "%s: out of memory for a row", a->f->name);
    return NULL;
}

static js *inconsistent(const assembly *a, const parquet_node *node, snap_err *err) {
    (void)err_set(err, SNAP_E_INPUT,
                  "%s: a damaged Parquet file: the columns of '%.80s' do not fit together",
                  a->f->name, node->name);
    return NULL;
}

/* ---- entries ---- */

static bool at_end(const parquet_column *c) {
    return c->entry == c->entries;
}

/* The levels of the next entry; -1 at the end. */
static int next_def(const parquet_column *c) {
    return at_end(c) ? -1 : (uint8_t)c->levels.data[2 * c->entry];
}

static int next_rep(const parquet_column *c) {
    return at_end(c) ? -1 : (uint8_t)c->levels.data[2 * c->entry + 1];
}

/* Tells whether @node has a value here: whether the definition level of the next entry, in all
 * columns below @node, is at least that of @node. 1: yes. 0: no, and the next entry of each column
 * is skipped. -1: the columns differ, or one has ended. */
static int is_there(assembly *a, const parquet_node *node) {
    parquet_column *c = &a->columns[node->leaf];
    bool there = next_def(c) >= node->max_def;
    for (size_t i = 0; i < node->leaves; i++)
        if (at_end(&c[i]) || (next_def(&c[i]) >= node->max_def) != there)
            return -1;
    for (size_t i = 0; i < node->leaves && !there; i++)
        c[i].entry++;
    return there;
}

/* Whether the next entries of all columns below @node continue a list of its level: 1 or 0. -1 if
 * they differ or continue a deeper list. */
static int continues(const assembly *a, const parquet_node *node) {
    const parquet_column *c = &a->columns[node->leaf];
    bool more = next_rep(c) == node->max_rep;
    for (size_t i = 0; i < node->leaves; i++)
        if ((next_rep(&c[i]) == node->max_rep) != more || next_rep(&c[i]) > node->max_rep)
            return -1;
    return more;
}

/* ---- values ---- */

static js *text_value(assembly *a, const parquet_column *c, uint64_t offset, snap_err *err) {
    const uint8_t *text = (const uint8_t *)c->texts.data + offset;
    size_t n =
        (size_t)text[0] | (size_t)text[1] << 8 | (size_t)text[2] << 16 | (size_t)text[3] << 24;
    if (n > a->f->left.bytes) {
        (void)err_set(err, SNAP_E_INPUT, "%s: more text than can be read: the column '%.80s'",
                      a->f->name, c->node->name);
        return NULL;
    }
    a->f->left.bytes -= n;
    js *v = js_new_strn((const char *)text + 4, n);
    return v ? v : no_memory(a, err);
}

static js *number_value(const parquet_node *node, uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    bool is_unsigned = node->annotation >= PARQUET_UINT_8 && node->annotation <= PARQUET_UINT_64;
    double d;
    float s;
    int32_t i;
    switch (node->type) {
    case PARQUET_BOOLEAN:
        return js_new_bool(bits != 0);
    case PARQUET_INT32:
        memcpy(&i, &low, sizeof i);
        return js_new_int(is_unsigned ? (int64_t)low : i);
    case PARQUET_INT64:
        return is_unsigned && bits > INT64_MAX ? js_new_num((double)bits)
                                               : js_new_int((int64_t)bits);
    case PARQUET_FLOAT:
        memcpy(&s, &low, sizeof s);
        return js_new_num((double)s);
    default:
        memcpy(&d, &bits, sizeof d);
        return js_new_num(d);
    }
}

static js *read_leaf(assembly *a, const parquet_node *node, snap_err *err) {
    parquet_column *c = &a->columns[node->leaf];
    uint64_t bits;
    if (next_def(c) != node->max_def)
        return inconsistent(a, node, err);
    memcpy(&bits, c->values.data + c->value++ * sizeof bits, sizeof bits);
    c->entry++;
    if (node->type == PARQUET_BYTE_ARRAY)
        return text_value(a, c, bits, err);
    js *v = number_value(node, bits);
    return v ? v : no_memory(a, err);
}

/* ---- structs and lists ---- */

static js *read_node(assembly *a, size_t i, snap_err *err);

static js *read_group(assembly *a, size_t i, snap_err *err) {
    const parquet_node *nodes = a->f->nodes;
    js *o = js_new_object();
    if (!o)
        return no_memory(a, err);
    for (size_t k = i + 1; k < nodes[i].end; k = nodes[k].end) {
        js *v = read_node(a, k, err);
        if (v && js_set_new(o, nodes[k].name, v))
            continue;
        js_free(o);
        return v ? no_memory(a, err) : NULL;
    }
    return o;
}

/* A list has a repeated group with one field, which is the element. Without such a group, as in old
 * files, the repeated field is the element itself. */
static js *read_element(assembly *a, size_t i, bool in_list, snap_err *err) {
    const parquet_node *node = &a->f->nodes[i];
    if (node->type >= 0)
        return read_leaf(a, node, err);
    return in_list && node->children == 1 ? read_node(a, i + 1, err) : read_group(a, i, err);
}

static js *read_repeated(assembly *a, size_t i, bool in_list, snap_err *err) {
    const parquet_node *node = &a->f->nodes[i];
    js *list = js_new_array();
    int more = is_there(a, node);
    if (!list)
        return no_memory(a, err);
    while (more == 1) {
        js *v = ++a->in_row > kMostInRow ? NULL : read_element(a, i, in_list, err);
        if (a->in_row > kMostInRow)
            (void)err_set(err, SNAP_E_INPUT, "%s: a row with more than %d values", a->f->name,
                          kMostInRow);
        if (!v || !js_push_new(list, v)) {
            js_free(list);
            return v ? no_memory(a, err) : NULL;
        }
        more = continues(a, node);
    }
    if (more == 0)
        return list;
    js_free(list);
    return inconsistent(a, node, err);
}

/* Reads the next value of element @i of the schema: null, a list, an object or a value. NULL on
 * failure. */
static js *read_node(assembly *a, size_t i, snap_err *err) {
    const parquet_node *node = &a->f->nodes[i];
    bool list = node->annotation == PARQUET_LIST || node->annotation == PARQUET_MAP;
    if (node->repetition == PARQUET_REPEATED)
        return read_repeated(a, i, false, err);
    int there = node->repetition == PARQUET_OPTIONAL ? is_there(a, node) : 1;
    if (there < 0)
        return inconsistent(a, node, err);
    if (!there)
        return js_new_null();
    if (node->type >= 0)
        return read_leaf(a, node, err);
    if (list && node->children == 1 && node[1].repetition == PARQUET_REPEATED)
        return read_repeated(a, i + 1, node->annotation == PARQUET_LIST, err);
    return read_group(a, i, err);
}

/* ---- rows ---- */

static snap_status read_rows(assembly *a, int64_t rows, long *number, parquet_row_fn fn, void *ctx,
                             snap_err *err) {
    const parquet_node *root = &a->f->nodes[0];
    snap_err why = {0};
    snap_status st = SNAP_OK;
    for (int64_t i = 0; i < rows && st == SNAP_OK; i++) {
        a->in_row = 0;
        bool begins = true;
        for (size_t k = 0; k < root->leaves; k++)
            begins = begins && next_rep(&a->columns[k]) == 0;
        js *row = begins ? read_group(a, 0, &why) : inconsistent(a, root, &why);
        st = row ? fn(ctx, row, ++*number, err) : err_set(err, why.code, "%s", why.text);
        js_free(row);
    }
    for (size_t k = 0; k < root->leaves && st == SNAP_OK; k++)
        if (!at_end(&a->columns[k])) {
            (void)inconsistent(a, root, err);
            st = SNAP_E_INPUT;
        }
    return st;
}

static snap_status read_row_group(parquet_file *f, const parquet_group *group, long *number,
                                  parquet_row_fn fn, void *ctx, snap_err *err) {
    assembly a = {.f = f, .columns = calloc(f->n_leaves, sizeof *a.columns)};
    snap_status st = SNAP_OK;
    if (!a.columns)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory", f->name);
    for (size_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].type >= 0)
            a.columns[f->nodes[i].leaf].node = &f->nodes[i];
    for (size_t i = 0; i < f->n_leaves; i++)
        TRY(parquet_read_column(f, &f->chunks[group->chunk + i], &a.columns[i], err));
    st = read_rows(&a, group->rows, number, fn, ctx, err);
cleanup:
    for (size_t i = 0; i < f->n_leaves; i++)
        parquet_column_release(&a.columns[i]);
    free(a.columns);
    return st;
}

snap_status parquet_each_row(const void *bytes, size_t n, const char *name, parquet_limits limits,
                             parquet_row_fn fn, void *ctx, snap_err *err) {
    fault_mark before = fault_begin();
    parquet_file f = {.name = name, .bytes = bytes, .n = n, .left = limits};
    size_t most = kLeastValues + n * kRatio;
    long number = 0;
    f.left.values = most < limits.values ? most : limits.values;
    snap_status st = parquet_read_footer(&f, err);
    for (size_t i = 0; i < f.n_groups && st == SNAP_OK; i++)
        st = read_row_group(&f, &f.groups[i], &number, fn, ctx, err);
    parquet_release(&f);
    return fault_result(before, st, err);
}
