/* field.h - a row of a result file as a C struct, and the table that describes the struct.
 *
 * A record type is a struct with a table of its fields. Reading and writing JSON, the JSON Schema
 * of result files and most columns of the CSV file follow from the table. A new field therefore
 * needs two lines: the member of the struct, and its line in the table.
 *
 * A value may be missing. In C, a missing value is:
 *   text      ""          number   not finite    count     RECORD_NO_COUNT
 *   interval  an end is not finite              list      pointer NULL
 *   record    its member `exists` is false
 * In JSON it is null or its key is absent. Exception: a text or list with none of FIELD_NULLABLE,
 * FIELD_OPTIONAL and FIELD_OMITTED is written as "" or []. A writer may also leave a text NULL,
 * which counts as "". After record_read() no text is NULL.
 *
 * Parts. Rows of one type may have different keys: a gate writes other keys for a timed cell than
 * for an accuracy. The struct of such a type has a member `unsigned parts`. Each field of its table
 * names the parts that it belongs to, or none. A field that names parts is written only if the row
 * has one of them. */
#ifndef SNAPMLA_HARNESS_RECORD_FIELD_H
#define SNAPMLA_HARNESS_RECORD_FIELD_H

#include "base/arena.h"
#include "base/json.h"

/* The type of a field; the comment gives the type of its member in C. */
typedef enum {
    FIELD_TEXT,     /* const char * */
    FIELD_NUMBER,   /* double */
    FIELD_COUNT,    /* int64_t, 0 or more, or RECORD_NO_COUNT */
    FIELD_INTEGER,  /* int64_t of any sign; never missing */
    FIELD_BOOL,     /* bool; never missing */
    FIELD_INTERVAL, /* double[2]: lower and upper end */
    FIELD_NUMBERS,  /* record_numbers */
    FIELD_TEXTS,    /* record_texts */
    FIELD_BINS,     /* record_bins */
    FIELD_RECORD,   /* the struct of `of`, by value */
    FIELD_RECORDS,  /* { struct *at; size_t n; } with structs of type `of` */
    FIELD_OPEN,     /* const js *: an object with any keys, borrowed; NULL is written as null */
} field_type;

enum {
    /* Whether a row must have the key, and what is written for a missing value. */
    FIELD_NULLABLE = 1 << 0, /* null is allowed. It is written for a missing value, unless
                                FIELD_OMITTED is set. Without this flag the schema refuses null */
    FIELD_OPTIONAL = 1 << 1, /* a row may lack the key, as older rows do. A missing value is not
                                written if the field is not nullable */
    FIELD_OMITTED = 1 << 2,  /* a missing value is not written, even if null is allowed */
    /* The range of a number, or of each number of a list. */
    FIELD_FROM_0 = 1 << 3,  /* 0 or more */
    FIELD_ABOVE_0 = 1 << 4, /* more than 0 */
    FIELD_PERCENT = 1 << 5, /* 0 to 100 */
    /* The form of a text, or of each text of a list. */
    FIELD_NAME = 1 << 6,   /* one character or more */
    FIELD_SHA256 = 1 << 7, /* 64 characters */
    FIELD_UTC = 1 << 8,    /* 20 characters: "2026-01-31T12:00:00Z" */
    /* Older files hold a boolean instead of the word: true stands for words[0]. */
    FIELD_WAS_BOOL = 1 << 9,
};

#define RECORD_NO_COUNT ((int64_t)-1)

/* Lists. An empty array in JSON is read as a list with n = 0 whose pointer is not NULL. */
typedef struct {
    const double *at;
    size_t n;
} record_numbers;

typedef struct {
    const char *const *at;
    size_t n;
} record_texts;

/* One bin of a histogram: the share of the values v with 2^exponent <= |v| < 2^(exponent + 1). The
 * lowest bin may also hold smaller values. */
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
    const char *key; /* the key in JSON, equal to the name of the struct's member */
    size_t offset;
    field_type type;
    unsigned flags;
    unsigned parts;           /* the parts that the field belongs to; 0 = every row has it */
    const char *const *words; /* for a text: the allowed words, NULL-terminated; NULL = any text */
    int64_t low, high;        /* for a count: smallest and largest value; high 0 = 2^53 - 1 */
    const record_type *of;    /* for a record or a list of records: their type */
    /* Column of the CSV file; NULL = none. An interval has two columns, <csv>_lo and <csv>_hi. The
     * column of a list of numbers holds its length. */
    const char *csv;
    const char *about; /* description in the schema: meaning and unit; NULL = none */
} field;

/* Sets key and offset in a line of the table. The JSON key is the member's name. */
#define FIELD_OF(record, member) .key = #member, .offset = offsetof(record, member)

/* The value of `key` must exist if the text `decides` equals `word`, and must be null otherwise.
 * With `word` NULL, the value must exist if `decides` is null, and must be null otherwise. */
typedef struct {
    const char *key, *decides, *word;
} record_rule;

/* A row whose field "kind" equals `word` must have the fields of `parts`, except optional ones. */
typedef struct {
    const char *word;
    unsigned parts;
} record_kind;

struct record_type {
    const char *name; /* name of the type's definition in the schema */
    const char *about;
    size_t size; /* bytes of the struct */
    const field *fields;
    size_t n;
    size_t parts;    /* offset of the member `unsigned parts` + 1; 0 = it has none */
    unsigned always; /* the schema requires the fields of these parts in each row, except optional
                        ones */
    size_t exists;   /* offset of the member `bool exists` + 1; 0 = it has none */
    const record_rule *rules;
    size_t n_rules;
    const record_kind *kinds;
    size_t n_kinds;
    bool open; /* the schema allows any key with any value */
};

#define RECORD_FIELDS(table)          .fields = (table), .n = sizeof(table) / sizeof *(table)
#define RECORD_MEMBER(record, member) (offsetof(record, member) + 1)

/* Sets every value to missing, and integers, booleans, `parts` and `exists` to 0 or false. */
void record_init(const record_type *type, void *record);

/**
 * record_read - fill a struct from a JSON object
 *
 * @from:   NULL or another JSON type is read as an object without keys
 * @mem:    owns the lists. Texts and open objects are borrowed from @from
 * @record: a struct of @type; all members are set
 *
 * A value whose JSON type does not fit the field counts as missing, as does a count that is
 * negative, too large or not whole. The rules of the schema are not checked here; results_load()
 * has checked the row. `exists` is set if @from is an object. `parts` gets each part of which @from
 * lacks no field that is not optional. Returns false when out of memory.
 */
bool record_read(const record_type *type, const js *from, arena *mem, void *record);

/* Reads each element of an array with record_read(). *at gets the array of structs, which @mem
 * owns, and *n their number. An element that is no object is read as a row without fields. Returns
 * false when out of memory. */
bool record_read_all(const record_type *type, const js *rows, arena *mem, void *at, size_t *n);

/* The record as a JSON object, owned by the caller. NULL: out of memory. */
js *record_write(const record_type *type, const void *record);

/* The field @key as JSON, owned by the caller. A missing value is null, or "" or [] if the field is
 * a text or list that is not nullable. The table must have the field. NULL: out of memory. */
js *record_value(const record_type *type, const void *record, const char *key);

/* Whether two records have the same values. A missing value equals a missing value. */
bool record_equal(const record_type *type, const void *a, const void *b);

/* The field with the key @key, or NULL. */
const field *record_find(const record_type *type, const char *key);

/* The value of the text field @key, "" if it does not exist. The table must have the field. */
const char *record_text(const record_type *type, const void *record, const char *key);

/* The value of the number or count field @key, NAN if it is missing. The table must have the
 * field. */
double record_number(const record_type *type, const void *record, const char *key);

/* A count as a number: NAN for RECORD_NO_COUNT. */
double record_count(int64_t n);

/* Called for each column of the CSV file. For a column of a text, of a list of texts or of a
 * boolean, @text is the value. Otherwise @text is NULL and @number is the value, NAN for an empty
 * cell. */
typedef void (*record_column_fn)(void *ctx, const char *column, const char *text, double number);

/* Calls @visit for the columns of a record and of its nested records. Lists of records have no
 * columns. With @record NULL all columns are visited as empty. Returns false when out of memory. */
bool record_columns(const record_type *type, const void *record, record_column_fn visit, void *ctx);

/* The JSON Schema of a document of type @type, owned by the caller. NULL: out of memory. */
js *record_schema(const record_type *type, const char *title);

#endif
