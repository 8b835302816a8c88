/* field.h - a row of a result file as a C struct, and the table that describes the struct.
 *
 * A record type is a struct with a table of its fields. Reading and writing JSON, the JSON Schema
 * of result files and the columns of the CSV file all follow from the table. A new field therefore
 * needs two lines: the member of the struct, and its line in the table.
 *
 * What does not exist (null in JSON, or an absent key) is in C:
 *   text      ""          number   NAN           count     RECORD_NO_COUNT
 *   interval  two NANs    list     no elements   record    its member `exists` is false
 * A writer may also leave a text NULL: it counts as "". After record_read() no text is NULL.
 *
 * Parts. Some rows have different keys from row to row: what a gate writes of a timed cell is not
 * what it writes of an accuracy. Such a struct has a member `unsigned parts`, and its table says of
 * each field which parts it belongs to. A field is written only where the row has one of these
 * parts. */
#ifndef SNAPMLA_HARNESS_RECORD_FIELD_H
#define SNAPMLA_HARNESS_RECORD_FIELD_H

#include "base/arena.h"
#include "base/json.h"

/* The type in C follows each type of a field. */
typedef enum {
    FIELD_TEXT,     /* const char * */
    FIELD_NUMBER,   /* double */
    FIELD_COUNT,    /* int64_t, from 0 */
    FIELD_INTEGER,  /* int64_t, any; it must exist */
    FIELD_BOOL,     /* bool; it must exist */
    FIELD_INTERVAL, /* double[2]: lower and upper end */
    FIELD_NUMBERS,  /* record_numbers */
    FIELD_TEXTS,    /* record_texts */
    FIELD_BINS,     /* record_bins */
    FIELD_RECORD,   /* the struct of `of`, by value */
    FIELD_RECORDS,  /* { struct *at; size_t n; } of structs of `of` */
    FIELD_OPEN,     /* const js *: any object, borrowed; NULL is null */
} field_type;

enum {
    /* Which rows have the key, and what it holds where the value does not exist. */
    FIELD_NULLABLE = 1 << 0, /* null is admitted and written; without it, null is refused */
    FIELD_OPTIONAL = 1 << 1, /* older rows lack the key. Not written where the value does not exist
                                and the field is not nullable */
    FIELD_OMITTED =
        1 << 2, /* not written where the value does not exist, even if null is admitted */
    /* The range of a number, or of each number of a list. */
    FIELD_FROM_0 = 1 << 3,  /* 0 or more */
    FIELD_ABOVE_0 = 1 << 4, /* more than 0 */
    FIELD_PERCENT = 1 << 5, /* 0 to 100 */
    /* The form of a text, or of each text of a list. */
    FIELD_NAME = 1 << 6,   /* one character or more */
    FIELD_SHA256 = 1 << 7, /* 64 characters */
    FIELD_UTC = 1 << 8,    /* 20 characters: "2026-01-31T12:00:00Z" */
    /* Older files have a boolean in place of the word: true stands for the first one of `words`. */
    FIELD_WAS_BOOL = 1 << 9,
};

#define RECORD_NO_COUNT ((int64_t)-1)

/* Lists. A list without elements that exists (an empty array) has a pointer that is not NULL. */
typedef struct {
    const double *at;
    size_t n;
} record_numbers;

typedef struct {
    const char *const *at;
    size_t n;
} record_texts;

/* The share of values whose magnitude lies from 2^exponent up to 2^(exponent + 1). */
typedef struct {
    int64_t exponent;
    double share;
} record_bin;

typedef struct {
    const record_bin *at;
    size_t n;
} record_bins;

typedef struct record_type record_type;

typedef struct {
    const char *key; /* in JSON; also the name of the struct's member */
    size_t offset;
    field_type type;
    unsigned flags;
    unsigned parts;           /* the parts that the field belongs to; 0 = every row has it */
    const char *const *words; /* of a text: the words admitted, NULL at the end; NULL = any text */
    int64_t low, high;        /* of a count: its range; high 0 = 0 to 2^53 - 1 */
    const record_type *of;    /* of a record or a list of records */
    const char *csv;          /* column of the CSV file; NULL = it is not in it. An interval has the
                                 columns <csv>_lo and <csv>_hi, a list of numbers its length */
    const char *about; /* meaning and unit: the schema's description; NULL = the key says it */
} field;

/* Key and offset of a table line; the member is named as the key. */
#define FIELD_OF(record, member) .key = #member, .offset = offsetof(record, member)

/* `key` exists exactly where the text `decides` is `word`, or where it is null if `word` is
 * NULL. */
typedef struct {
    const char *key, *decides, *word;
} record_rule;

/* Rows whose field "kind" is `word` have `parts`, and must have all fields of these. */
typedef struct {
    const char *word;
    unsigned parts;
} record_kind;

struct record_type {
    const char *name; /* the name of its definition in the schema */
    const char *about;
    size_t size; /* bytes of the struct */
    const field *fields;
    size_t n;
    size_t parts;    /* offset of the member `unsigned parts` + 1; 0 = it has none */
    unsigned always; /* the parts that every row of a result file must have */
    size_t exists;   /* offset of the member `bool exists` + 1; 0 = it has none */
    const record_rule *rules;
    size_t n_rules;
    const record_kind *kinds;
    size_t n_kinds;
    bool open; /* the schema admits any key and any value */
};

#define RECORD_FIELDS(table)          .fields = (table), .n = sizeof(table) / sizeof *(table)
#define RECORD_MEMBER(record, member) (offsetof(record, member) + 1)

/* Sets every field to "does not exist", `parts` to 0, `exists` to false. */
void record_init(const record_type *type, void *record);

/**
 * record_read - fill a struct from a JSON object
 *
 * @record: of @type; set completely, whatever @from is
 * @mem:    owns the lists. Texts and open objects are borrowed from @from
 *
 * Only form is read: a value of another type than the field's does not exist. Whether the row keeps
 * to the schema was checked when its file was read (results_load()). `parts` gets each part of
 * which the row has all fields. False: out of memory.
 */
bool record_read(const record_type *type, const js *from, arena *mem, void *record);

/* The same for an array: *at is the array of structs, in @mem. Elements that are no objects are
 * read as rows without fields. False: out of memory. */
bool record_read_all(const record_type *type, const js *rows, arena *mem, void *at, size_t *n);

/* The JSON object of a record; the caller owns it. NULL: out of memory. */
js *record_write(const record_type *type, const void *record);

/* The JSON of one field by its key, null where the value does not exist; the caller owns it. The
 * field must exist in the table. NULL: out of memory. */
js *record_value(const record_type *type, const void *record, const char *key);

/* Do two records have the same values? What does not exist equals what does not exist. */
bool record_equal(const record_type *type, const void *a, const void *b);

/* The field of that key; NULL where there is none. */
const field *record_find(const record_type *type, const char *key);

/* The value of a field of type text by its key: "" where it does not exist. The field must exist in
 * the table. */
const char *record_text(const record_type *type, const void *record, const char *key);

/* The value of a field of type number or count by its key: NAN where it does not exist. */
double record_number(const record_type *type, const void *record, const char *key);

/* A count as a number: NAN for RECORD_NO_COUNT. */
double record_count(int64_t n);

/* Called for each column of the CSV file: @text of a text, else NULL and @number, NAN = empty. */
typedef void (*record_column_fn)(void *ctx, const char *column, const char *text, double number);

/* Visits the columns of a record, those of its nested records included; lists of records have none.
 * @record: NULL visits the columns alone, all empty. False: out of memory. */
bool record_columns(const record_type *type, const void *record, record_column_fn visit, void *ctx);

/* The schema of a document of that type; the caller owns it. NULL: out of memory. */
js *record_schema(const record_type *type, const char *title);

#endif
