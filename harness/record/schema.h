/* schema.h - checks JSON values against the part of JSON Schema 2020-12 that our own schema uses.
 *
 * Keywords: type const enum required properties additionalProperties items minItems maxItems
 * minLength maxLength minimum maximum exclusiveMinimum anyOf allOf if/then/else $ref (#/...).
 * title, description, $schema, $defs and $comment check nothing. Any other keyword in a schema is a
 * bug of this program, not of the file that is checked. */
#ifndef SNAPMLA_HARNESS_RECORD_SCHEMA_H
#define SNAPMLA_HARNESS_RECORD_SCHEMA_H

#include "base/json.h"

typedef struct {
    js *root;  /* the whole schema, borrowed; each $ref is a path from here */
    bool open; /* accept unknown keys, because the document has a newer minor version */
} schema;

/**
 * schema_check - check a value against the schema
 *
 * @at:    the part of the schema to check against, e.g. "#" or "#/properties/bench/items"
 * @value: not changed
 * @path:  name of the value in messages: "" for the document, or e.g. "bench[3]"
 *
 * SNAP_E_INPUT with the path of the first violation: "bench[3].performance.median_ns: must be
 * number, got null".
 */
snap_status schema_check(const schema *s, const char *at, js *value, const char *path,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The schema of result files, made from the tables of fields. The caller owns it. NULL: out of
 * memory. */
js *schema_of_results(snap_err *err);

#endif
