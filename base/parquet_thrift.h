/* parquet_thrift.h - reads the compact protocol of Thrift, the format of Parquet's metadata. */
#ifndef SNAPMLA_BASE_PARQUET_THRIFT_H
#define SNAPMLA_BASE_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THRIFT_DEPTH = 32 }; /* most levels of a value that is skipped */

typedef enum {
    T_TRUE = 1,
    T_FALSE,
    T_BYTE,
    T_I16,
    T_I32,
    T_I64,
    T_DOUBLE,
    T_BINARY,
    T_LIST,
    T_SET,
    T_MAP,
    T_STRUCT,
} thrift_type;

/* A reader. A malformed value sets `bad`; from then on, all functions return 0, false or NULL. A
 * value whose @type is not the one of the function is malformed too. */
typedef struct {
    const uint8_t *p, *end;
    bool bad;
    int depth; /* nesting depth of the values that are being skipped */
} thrift;

/* Reads the header of a struct's next field. *id: 0 at first, then the last field's id. False at
 * the end of the struct. */
bool thrift_field(thrift *t, int *id, int *type);

int64_t thrift_int(thrift *t, int type); /* of 16, 32 or 64 bits */
int thrift_int32(thrift *t, int type);   /* thrift_int() that fits 32 bits */
bool thrift_bool(thrift *t, int type);   /* a field of a struct */
const uint8_t *thrift_binary(thrift *t, int type, size_t *n);

/* The number of a list's elements, which must be structs. Each takes at least one byte, so the
 * number is at most that of the bytes that are left. */
size_t thrift_structs(thrift *t, int type);

/* Skips a field of a struct. */
void thrift_skip(thrift *t, int type);

#endif
