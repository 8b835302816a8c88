#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/record/field.h"

enum { kNameMax = 64 };

/* Writes the texts separated by ", ". */
static void join(const record_texts *list, buf *out) {
    for (size_t i = 0; i < list->n; i++)
        (void)buf_printf(out, "%s%s", i ? ", " : "", list->at[i]);
}

static double number_of(const field *f, const void *member) {
    if (f->type == FIELD_NUMBER)
        return *(const double *)member;
    if (f->type == FIELD_COUNT)
        return record_count(*(const int64_t *)member);
    if (f->type == FIELD_INTEGER)
        return (double)*(const int64_t *)member;
    return (double)((const record_numbers *)member)->n;
}

static void visit_interval(const field *f, const double *ends, record_column_fn visit, void *ctx) {
    static const char *const suffixes[] = {"lo", "hi"};
    char name[kNameMax];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(name, sizeof name, "%s_%s", f->csv, suffixes[i]);
        visit(ctx, name, NULL, ends ? ends[i] : (double)NAN);
    }
}

/* @member: the value, or NULL to visit the column as empty. */
static bool visit_column(const field *f, const void *member, record_column_fn visit, void *ctx) {
    buf text = {0};
    bool ok = true;
    switch (f->type) {
    case FIELD_TEXT:
        visit(ctx, f->csv, member ? *(const char *const *)member : "", (double)NAN);
        break;
    case FIELD_TEXTS:
        if (member)
            join(member, &text);
        visit(ctx, f->csv, buf_str(&text), (double)NAN);
        ok = !text.failed;
        break;
    case FIELD_BOOL:
        visit(ctx, f->csv, !member ? "" : *(const bool *)member ? "true" : "false", (double)NAN);
        break;
    case FIELD_INTERVAL:
        visit_interval(f, member, visit, ctx);
        break;
    case FIELD_NUMBER:
    case FIELD_COUNT:
    case FIELD_INTEGER:
    case FIELD_NUMBERS:
        visit(ctx, f->csv, NULL, member ? number_of(f, member) : (double)NAN);
        break;
    case FIELD_BINS:
    case FIELD_RECORD:
    case FIELD_RECORDS:
    case FIELD_OPEN:
        SNAP_BUG("no column of the sheet can hold such a field");
    }
    buf_release(&text);
    return ok;
}

bool record_columns(const record_type *type, const void *record, record_column_fn visit,
                    void *ctx) {
    bool ok = true;
    for (size_t i = 0; i < type->n && ok; i++) {
        const field *f = &type->fields[i];
        const void *member = record ? (const char *)record + f->offset : NULL;
        if (f->type == FIELD_RECORD)
            ok = record_columns(f->of, member, visit, ctx);
        else if (f->csv)
            ok = visit_column(f, member, visit, ctx);
    }
    return ok;
}
