/* parquet_parts.h - what the files of the Parquet reader share (parquet.h). */
#ifndef SNAPMLA_BASE_PARQUET_PARTS_H
#define SNAPMLA_BASE_PARQUET_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/parquet.h"

/* ---- the schema ---- */

enum {
    PARQUET_NODES = 4096, /* most elements of a schema */
    PARQUET_DEPTH = 32,   /* most levels of a schema */
};

/* The physical types, as the format numbers them. */
typedef enum {
    PARQUET_BOOLEAN,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTE_ARRAY,
    PARQUET_FIXED,
    PARQUET_TYPES,
} parquet_type;

typedef enum { PARQUET_REQUIRED, PARQUET_OPTIONAL, PARQUET_REPEATED } parquet_repetition;

/* The annotations ("converted types") that matter, as the format numbers them; -1: none. */
enum {
    PARQUET_MAP = 1,
    PARQUET_LIST = 3,
    PARQUET_DECIMAL = 5,
    PARQUET_UINT_8 = 11,
    PARQUET_UINT_64 = 14
};

/* An element of the schema. The elements are stored in preorder, so the children of element i begin
 * at i + 1, and each one is followed by its own descendants. */
typedef struct {
    const char *name; /* in the arena of the file */
    int type;         /* parquet_type; -1: a group */
    int repetition;   /* parquet_repetition */
    int annotation;
    int32_t children;
    size_t end;           /* index after the last descendant */
    int max_def, max_rep; /* the largest definition and repetition level */
    size_t leaf, leaves;  /* the index of the first leaf below (of the element itself if it is a
                             leaf), and the number of these leaves */
} parquet_node;

/* Where the data of one column are in a row group. */
typedef struct {
    int64_t values, data_page, dictionary_page, packed_size;
    int type, codec;
} parquet_chunk;

typedef struct {
    int64_t rows;
    size_t chunk, chunks; /* the first chunk, and their number */
} parquet_group;

typedef struct {
    const char *name; /* of the file */
    const uint8_t *bytes;
    size_t n;
    arena names;
    parquet_node *nodes; /* [n_nodes]; nodes[0] is the root */
    size_t n_nodes, n_leaves;
    parquet_chunk *chunks; /* [n_chunks] */
    size_t n_chunks;
    parquet_group *groups; /* [n_groups] */
    size_t n_groups;
    parquet_limits left; /* what may still be read */
} parquet_file;

/* Reads the footer of f->bytes. */
snap_status parquet_read_footer(parquet_file *f, snap_err *err) SNAP_CHECK_RESULT;
void parquet_release(parquet_file *f);

snap_status parquet_damaged(const parquet_file *f, const char *what,
                            snap_err *err) SNAP_CHECK_RESULT;

/* ---- pages ---- */

typedef enum {
    PARQUET_DATA_PAGE,
    PARQUET_INDEX_PAGE,
    PARQUET_DICTIONARY_PAGE,
    PARQUET_DATA_PAGE_2
} parquet_page_type;

typedef struct {
    int type; /* parquet_page_type */
    int64_t unpacked, packed;
    bool has_crc;
    uint32_t crc;
    int64_t values;
    int encoding, def_encoding, rep_encoding;
    int64_t def_bytes, rep_bytes; /* second version only */
    bool is_packed;               /* second version only: the values are compressed */
} parquet_page;

/* Reads the header of a page. Returns its size in bytes; 0 if it is malformed. */
size_t parquet_read_page(const uint8_t *bytes, size_t n, parquet_page *out);

/* ---- a column of a row group ---- */

/* An entry is a value or a place where one is missing. */
typedef struct {
    const parquet_node *node;
    buf levels; /* definition and repetition level of each entry, one byte each */
    buf values; /* uint64_t for each value that exists: the bits of the number, or for a BYTE_ARRAY
                   the offset in `texts` */
    buf texts;  /* texts as PLAIN has them: four bytes with the length, then the bytes */
    buf dictionary;        /* as `values` */
    size_t entries, entry; /* their number, and how many have been read */
    size_t value;          /* the values that have been read */
} parquet_column;

/* Reads a column's pages. */
snap_status parquet_read_column(parquet_file *f, const parquet_chunk *chunk, parquet_column *out,
                                snap_err *err) SNAP_CHECK_RESULT;
void parquet_column_release(parquet_column *c);

#endif
