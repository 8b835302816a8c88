#include "harness/record/field.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double kCountMax = 9007199254740991; /* 2^53 - 1: exact in a double */

/* Every list type (numbers, texts, bins, records) has this layout. */
typedef struct {
    const void *at;
    size_t n;
} list;

static void *member_of(const field *f, void *record) {
    return (char *)record + f->offset;
}

static const void *member_in(const field *f, const void *record) {
    return (const char *)record + f->offset;
}

static list list_in(const field *f, const void *record) {
    list l;
    memcpy(&l, member_in(f, record), sizeof l);
    return l;
}

static void set_list(const field *f, void *record, const void *at, size_t n) {
    const list l = {at, n};
    memcpy(member_of(f, record), &l, sizeof l);
}

static const char *text_in(const field *f, const void *record) {
    const char *s;
    memcpy(&s, member_in(f, record), sizeof s);
    return s ? s : "";
}

static void set_text(const field *f, void *record, const char *s) {
    s = s ? s : "";
    memcpy(member_of(f, record), &s, sizeof s);
}

static double number_in(const field *f, const void *record) {
    double x;
    memcpy(&x, member_in(f, record), sizeof x);
    return x;
}

static int64_t integer_in(const field *f, const void *record) {
    int64_t n;
    memcpy(&n, member_in(f, record), sizeof n);
    return n;
}

static bool bool_in(const field *f, const void *record) {
    bool b;
    memcpy(&b, member_in(f, record), sizeof b);
    return b;
}

static const js *open_in(const field *f, const void *record) {
    const js *const *at = member_in(f, record);
    return *at;
}

static unsigned parts_in(const record_type *type, const void *record) {
    unsigned parts = 0;
    if (type->parts)
        memcpy(&parts, (const char *)record + type->parts - 1, sizeof parts);
    return parts;
}

static void set_parts(const record_type *type, void *record, unsigned parts) {
    if (type->parts)
        memcpy((char *)record + type->parts - 1, &parts, sizeof parts);
}

/* A record without the member `exists` always exists. */
static bool exists_in(const record_type *type, const void *record) {
    bool exists = true;
    if (type->exists)
        memcpy(&exists, (const char *)record + type->exists - 1, sizeof exists);
    return exists;
}

static void set_exists(const record_type *type, void *record, bool exists) {
    if (type->exists)
        memcpy((char *)record + type->exists - 1, &exists, sizeof exists);
}

const field *record_find(const record_type *type, const char *key) {
    for (size_t i = 0; i < type->n; i++)
        if (strcmp(type->fields[i].key, key) == 0)
            return &type->fields[i];
    return NULL;
}

static const field *find_known(const record_type *type, const char *key) {
    const field *f = record_find(type, key);
    if (!f)
        SNAP_BUG("no such field in the record's table");
    return f;
}

const char *record_text(const record_type *type, const void *record, const char *key) {
    return text_in(find_known(type, key), record);
}

double record_number(const record_type *type, const void *record, const char *key) {
    const field *f = find_known(type, key);
    return f->type == FIELD_COUNT ? record_count(integer_in(f, record)) : number_in(f, record);
}

double record_count(int64_t n) {
    return n < 0 ? (double)NAN : (double)n;
}

/* ---- a struct without values ---- */

static void init_field(const field *f, void *record) {
    const double none[2] = {(double)NAN, (double)NAN};
    const int64_t no_count = RECORD_NO_COUNT;
    switch (f->type) {
    case FIELD_TEXT:
        set_text(f, record, "");
        break;
    case FIELD_NUMBER:
        memcpy(member_of(f, record), none, sizeof *none);
        break;
    case FIELD_INTERVAL:
        memcpy(member_of(f, record), none, sizeof none);
        break;
    case FIELD_COUNT:
        memcpy(member_of(f, record), &no_count, sizeof no_count);
        break;
    case FIELD_RECORD:
        record_init(f->of, member_of(f, record));
        break;
    case FIELD_INTEGER: /* record_init() has set the bytes to zero: no elements, no object, 0 or
                           false */
    case FIELD_BOOL:
    case FIELD_NUMBERS:
    case FIELD_TEXTS:
    case FIELD_BINS:
    case FIELD_RECORDS:
    case FIELD_OPEN:
        break;
    }
}

void record_init(const record_type *type, void *record) {
    memset(record, 0, type->size);
    for (size_t i = 0; i < type->n; i++)
        init_field(&type->fields[i], record);
}

/* ---- reading fields ---- */

static const char *word_of(const field *f, const js *v) {
    if ((f->flags & FIELD_WAS_BOOL) && js_true(v))
        return f->words[0];
    return js_str(v);
}

/* JSON Schema counts 8.0 as an integer, so a count may be written that way. */
static int64_t count_of(const js *v) {
    double x = js_num(v);
    bool is_count = js_is_num(v) && x >= 0 && x <= kCountMax && floor(x) == x;
    return is_count ? (int64_t)x : RECORD_NO_COUNT;
}

static int64_t integer_of(const js *v) {
    double x = js_num(v);
    if (js_is_int(v))
        return js_int(v);
    return fabs(x) <= kCountMax ? (int64_t)x : 0;
}

static void read_interval(const field *f, const js *v, void *record) {
    double ends[2] = {(double)NAN, (double)NAN};
    bool is_pair = js_len(v) == 2 && js_is_num(js_at(v, 0)) && js_is_num(js_at(v, 1));
    for (size_t i = 0; i < 2 && is_pair; i++)
        ends[i] = js_num(js_at(v, i));
    memcpy(member_of(f, record), ends, sizeof ends);
}

static bool read_numbers(const field *f, const js *v, arena *mem, void *record) {
    size_t n = js_len(v);
    double *at = arena_alloc(mem, n + 1, sizeof *at);
    for (size_t i = 0; at && i < n; i++)
        at[i] = js_num(js_at(v, i));
    set_list(f, record, at, at ? n : 0);
    return at != NULL;
}

static bool read_texts(const field *f, const js *v, arena *mem, void *record) {
    size_t n = js_len(v);
    const char **at = arena_alloc(mem, n + 1, sizeof *at);
    for (size_t i = 0; at && i < n; i++) {
        const char *s = js_str(js_at(v, i));
        at[i] = s ? s : "";
    }
    set_list(f, record, at, at ? n : 0);
    return at != NULL;
}

static bool read_bins(const field *f, const js *v, arena *mem, void *record) {
    size_t n = js_len(v);
    record_bin *at = arena_alloc(mem, n + 1, sizeof *at);
    for (size_t i = 0; at && i < n; i++)
        at[i] = (record_bin){integer_of(js_at(js_at(v, i), 0)), js_num(js_at(js_at(v, i), 1))};
    set_list(f, record, at, at ? n : 0);
    return at != NULL;
}

static bool read_records(const field *f, const js *v, arena *mem, void *record) {
    void *at = NULL;
    size_t n = 0;
    bool ok = record_read_all(f->of, v, mem, &at, &n);
    set_list(f, record, at, n);
    return ok;
}

/* @v: not NULL. After a value of another type the field is as record_init() leaves it. */
static bool read_field(const field *f, js *v, arena *mem, void *record) {
    const double number = js_num(v);
    const int64_t count = count_of(v), integer = integer_of(v);
    const bool is_true = js_true(v);
    bool is_list = js_is_array(v);
    switch (f->type) {
    case FIELD_TEXT:
        set_text(f, record, word_of(f, v));
        return true;
    case FIELD_NUMBER:
        if (js_is_num(v))
            memcpy(member_of(f, record), &number, sizeof number);
        return true;
    case FIELD_COUNT:
        memcpy(member_of(f, record), &count, sizeof count);
        return true;
    case FIELD_INTEGER:
        memcpy(member_of(f, record), &integer, sizeof integer);
        return true;
    case FIELD_BOOL:
        memcpy(member_of(f, record), &is_true, sizeof is_true);
        return true;
    case FIELD_INTERVAL:
        read_interval(f, v, record);
        return true;
    case FIELD_NUMBERS:
        return !is_list || read_numbers(f, v, mem, record);
    case FIELD_TEXTS:
        return !is_list || read_texts(f, v, mem, record);
    case FIELD_BINS:
        return !is_list || read_bins(f, v, mem, record);
    case FIELD_RECORD:
        return !js_is_object(v) || record_read(f->of, v, mem, member_of(f, record));
    case FIELD_RECORDS:
        return !is_list || read_records(f, v, mem, record);
    case FIELD_OPEN:
        if (js_is_object(v))
            memcpy(member_of(f, record), &v, sizeof(const js *));
        return true;
    }
    return true;
}

bool record_read(const record_type *type, const js *from, arena *mem, void *record) {
    bool ok = true;
    unsigned lacking = 0, named = 0;
    record_init(type, record);
    set_exists(type, record, js_is_object(from));
    for (size_t i = 0; i < type->n && ok; i++) {
        const field *f = &type->fields[i];
        js *v = js_get(from, f->key);
        named |= f->parts;
        if (v)
            ok = read_field(f, v, mem, record);
        else if (!js_has(from, f->key) && !(f->flags & FIELD_OPTIONAL))
            lacking |= f->parts;
    }
    set_parts(type, record, named & ~lacking);
    return ok;
}

bool record_read_all(const record_type *type, const js *rows, arena *mem, void *at, size_t *n) {
    size_t len = js_len(rows);
    char *all = arena_alloc(mem, len + 1, type->size);
    bool ok = all != NULL;
    for (size_t i = 0; i < len && ok; i++)
        ok = record_read(type, js_at(rows, i), mem, all + i * type->size);
    *n = ok ? len : 0;
    memcpy(at, &all, sizeof all);
    return ok;
}

/* ---- writing ---- */

/* Returns @v if @ok, else frees it and returns NULL. */
static js *whole(js *v, bool ok) {
    if (ok)
        return v;
    js_free(v);
    return NULL;
}

static js *numbers_json(const field *f, const void *record) {
    list l = list_in(f, record);
    return js_new_nums(l.at, l.n);
}

static js *texts_json(const field *f, const void *record) {
    list l = list_in(f, record);
    const char *const *at = l.at;
    js *a = js_new_array();
    bool ok = a != NULL;
    for (size_t i = 0; i < l.n && ok; i++)
        ok = js_push_new(a, js_new_str(at[i]));
    return whole(a, ok);
}

static js *bins_json(const field *f, const void *record) {
    list l = list_in(f, record);
    const record_bin *at = l.at;
    js *a = js_new_array();
    bool ok = a != NULL;
    for (size_t i = 0; i < l.n && ok; i++) {
        js *bin = js_new_array();
        ok = bin && js_push_new(bin, js_new_int(at[i].exponent)) &&
             js_push_new(bin, js_new_num(at[i].share));
        ok = js_push_new(a, bin) && ok;
    }
    return whole(a, ok);
}

static js *records_json(const field *f, const void *record) {
    list l = list_in(f, record);
    js *a = js_new_array();
    bool ok = a != NULL;
    for (size_t i = 0; i < l.n && ok; i++)
        ok = js_push_new(a, record_write(f->of, (const char *)l.at + i * f->of->size));
    return whole(a, ok);
}

static bool has_ends(const double ends[2]) {
    return isfinite(ends[0]) && isfinite(ends[1]);
}

/* Whether the field has a value. */
static bool is_there(const field *f, const void *record) {
    double ends[2];
    switch (f->type) {
    case FIELD_TEXT:
        return text_in(f, record)[0] != '\0';
    case FIELD_NUMBER:
        return isfinite(number_in(f, record));
    case FIELD_COUNT:
        return integer_in(f, record) >= 0;
    case FIELD_INTERVAL:
        memcpy(ends, member_in(f, record), sizeof ends);
        return has_ends(ends);
    case FIELD_NUMBERS:
    case FIELD_TEXTS:
    case FIELD_BINS:
    case FIELD_RECORDS:
        return list_in(f, record).at != NULL;
    case FIELD_RECORD:
        return exists_in(f->of, member_in(f, record));
    case FIELD_OPEN:
        return open_in(f, record) != NULL;
    case FIELD_INTEGER:
    case FIELD_BOOL:
        return true;
    }
    return true;
}

/* The JSON of a field that has a value. */
static js *value_json(const field *f, const void *record) {
    double ends[2];
    switch (f->type) {
    case FIELD_TEXT:
        return js_new_str(text_in(f, record));
    case FIELD_NUMBER:
        return js_new_num(number_in(f, record));
    case FIELD_COUNT:
    case FIELD_INTEGER:
        return js_new_int(integer_in(f, record));
    case FIELD_BOOL:
        return js_new_bool(bool_in(f, record));
    case FIELD_INTERVAL:
        memcpy(ends, member_in(f, record), sizeof ends);
        return js_new_nums(ends, 2);
    case FIELD_NUMBERS:
        return numbers_json(f, record);
    case FIELD_TEXTS:
        return texts_json(f, record);
    case FIELD_BINS:
        return bins_json(f, record);
    case FIELD_RECORD:
        return record_write(f->of, member_in(f, record));
    case FIELD_RECORDS:
        return records_json(f, record);
    case FIELD_OPEN:
        return js_copy(open_in(f, record));
    }
    return NULL;
}

/* A missing value as JSON: [] or "" for a list or text that must not be null, else null. */
static js *missing_json(const field *f, const void *record) {
    bool may_be_empty = f->type == FIELD_TEXT || f->type == FIELD_NUMBERS ||
                        f->type == FIELD_TEXTS || f->type == FIELD_BINS || f->type == FIELD_RECORDS;
    if (may_be_empty && !(f->flags & FIELD_NULLABLE))
        return value_json(f, record);
    return js_new_null();
}

static bool write_field(const field *f, const void *record, js *to) {
    if (is_there(f, record))
        return js_set_new(to, f->key, value_json(f, record));
    if ((f->flags & FIELD_OMITTED) || ((f->flags & FIELD_OPTIONAL) && !(f->flags & FIELD_NULLABLE)))
        return true;
    return js_set_new(to, f->key, missing_json(f, record));
}

js *record_write(const record_type *type, const void *record) {
    js *o = js_new_object();
    unsigned parts = parts_in(type, record);
    bool ok = o != NULL;
    for (size_t i = 0; i < type->n && ok; i++) {
        const field *f = &type->fields[i];
        if (!f->parts || (f->parts & parts))
            ok = write_field(f, record, o);
    }
    return whole(o, ok);
}

js *record_value(const record_type *type, const void *record, const char *key) {
    const field *f = find_known(type, key);
    return is_there(f, record) ? value_json(f, record) : missing_json(f, record);
}

/* ---- comparing ---- */

static bool same_numbers(const double *a, const double *b, size_t n) {
    bool same = true;
    for (size_t i = 0; i < n && same; i++)
        same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));
    return same;
}

static bool same_list(const field *f, list a, list b) {
    const char *const *x = a.at, *const *y = b.at;
    const record_bin *bins = a.at, *others = b.at;
    bool same = a.n == b.n;
    if (f->type == FIELD_NUMBERS)
        return same && same_numbers(a.at, b.at, a.n);
    for (size_t i = 0; i < a.n && same; i++) {
        size_t at = f->type == FIELD_RECORDS ? i * f->of->size : 0;
        if (f->type == FIELD_TEXTS)
            same = strcmp(x[i], y[i]) == 0;
        else if (f->type == FIELD_BINS)
            same = bins[i].exponent == others[i].exponent && bins[i].share == others[i].share;
        else
            same = record_equal(f->of, (const char *)a.at + at, (const char *)b.at + at);
    }
    return same;
}

static bool same_field(const field *f, const void *a, const void *b) {
    double x[2], y[2];
    if (is_there(f, a) != is_there(f, b))
        return false;
    if (!is_there(f, a))
        return true;
    switch (f->type) {
    case FIELD_TEXT:
        return strcmp(text_in(f, a), text_in(f, b)) == 0;
    case FIELD_NUMBER:
        return number_in(f, a) == number_in(f, b);
    case FIELD_COUNT:
    case FIELD_INTEGER:
        return integer_in(f, a) == integer_in(f, b);
    case FIELD_BOOL:
        return bool_in(f, a) == bool_in(f, b);
    case FIELD_INTERVAL:
        memcpy(x, member_in(f, a), sizeof x);
        memcpy(y, member_in(f, b), sizeof y);
        return same_numbers(x, y, 2);
    case FIELD_NUMBERS:
    case FIELD_TEXTS:
    case FIELD_BINS:
    case FIELD_RECORDS:
        return same_list(f, list_in(f, a), list_in(f, b));
    case FIELD_RECORD:
        return record_equal(f->of, member_in(f, a), member_in(f, b));
    case FIELD_OPEN:
        return js_equal(open_in(f, a), open_in(f, b));
    }
    return false;
}

bool record_equal(const record_type *type, const void *a, const void *b) {
    bool same = exists_in(type, a) == exists_in(type, b);
    for (size_t i = 0; i < type->n && same; i++)
        same = same_field(&type->fields[i], a, b);
    return same;
}
