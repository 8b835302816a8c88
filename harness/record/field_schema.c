/* field_schema.c - makes the JSON Schema from the tables of fields. It uses only keywords that
 * record/schema.c knows. */
#include <string.h>

#include "harness/record/field.h"

enum { kCountMax53 = 53 };

/* ---- making the schema's nodes ---- */

/* Returns @node if @ok, else frees it and returns NULL. */
static js *whole(js *node, bool ok) {
    if (ok)
        return node;
    js_free(node);
    return NULL;
}

static js *type_json(const char *type, bool nullable) {
    js *types = nullable ? js_new_array() : js_new_str(type);
    bool ok = types != NULL;
    if (nullable)
        ok = ok && js_push_new(types, js_new_str(type)) && js_push_new(types, js_new_str("null"));
    return whole(types, ok);
}

/* {"type": type} */
static js *type_node(const char *type, bool nullable) {
    js *o = js_new_object();
    return whole(o, o && js_set_new(o, "type", type_json(type, nullable)));
}

/* {key: value} */
static js *pair(const char *key, js *value) {
    js *o = js_new_object();
    bool ok = js_set_new(o, key, value); /* frees the value if there is no object */
    return whole(o, ok);
}

static js *ref_node(const record_type *of) {
    char pointer[80] = "#/$defs/";
    (void)strncat(pointer, of->name, sizeof pointer - strlen(pointer) - 1);
    return pair("$ref", js_new_str(pointer));
}

/* {"anyOf": [node, {"type": "null"}]} */
static js *or_null(js *node) {
    js *any = js_new_array();
    bool ok = js_push_new(any, node);
    ok = js_push_new(any, type_node("null", false)) && ok;
    return pair("anyOf", whole(any, ok));
}

/* ---- the node of a value ---- */

static bool set_range(js *o, unsigned flags) {
    if (flags & FIELD_ABOVE_0)
        return js_set_int(o, "exclusiveMinimum", 0);
    if (!(flags & (FIELD_FROM_0 | FIELD_PERCENT)))
        return true;
    return js_set_int(o, "minimum", 0) &&
           (!(flags & FIELD_PERCENT) || js_set_int(o, "maximum", 100));
}

static js *number_node(unsigned flags, bool nullable) {
    js *o = type_node("number", nullable);
    return whole(o, o && set_range(o, flags));
}

static js *count_node(const field *f, bool nullable) {
    int64_t high = f->high ? f->high : ((int64_t)1 << kCountMax53) - 1;
    js *o = type_node("integer", nullable);
    return whole(o, o && js_set_int(o, "minimum", f->low) && js_set_int(o, "maximum", high));
}

static bool set_length(js *o, unsigned flags) {
    int64_t exact = flags & FIELD_SHA256 ? 64 : flags & FIELD_UTC ? 20 : 0;
    if (exact)
        return js_set_int(o, "minLength", exact) && js_set_int(o, "maxLength", exact);
    return !(flags & FIELD_NAME) || js_set_int(o, "minLength", 1);
}

static js *text_node(unsigned flags, bool nullable) {
    if (nullable && (flags & (FIELD_SHA256 | FIELD_UTC)))
        return or_null(text_node(flags, false));
    js *o = type_node("string", nullable);
    return whole(o, o && set_length(o, flags));
}

static js *word_node(const field *f, bool nullable) {
    js *words = js_new_array();
    bool ok = words != NULL;
    for (size_t i = 0; f->words[i] && ok; i++)
        ok = js_push_new(words, js_new_str(f->words[i]));
    if (nullable)
        ok = ok && js_push_new(words, js_new_null());
    if (f->flags & FIELD_WAS_BOOL)
        ok = ok && js_push_new(words, js_new_bool(false)) && js_push_new(words, js_new_bool(true));
    return pair("enum", whole(words, ok));
}

static js *list_node(js *items, bool nullable) {
    js *o = type_node("array", nullable);
    bool ok = js_set_new(o, "items", items);
    return whole(o, ok);
}

static js *two_numbers(bool nullable) {
    js *o = list_node(type_node("number", false), nullable);
    return whole(o, o && js_set_int(o, "minItems", 2) && js_set_int(o, "maxItems", 2));
}

static js *value_node(const field *f, bool nullable) {
    switch (f->type) {
    case FIELD_TEXT:
        return f->words ? word_node(f, nullable) : text_node(f->flags, nullable);
    case FIELD_NUMBER:
        return number_node(f->flags, nullable);
    case FIELD_COUNT:
        return count_node(f, nullable);
    case FIELD_INTEGER:
        return type_node("integer", nullable);
    case FIELD_BOOL:
        return type_node("boolean", nullable);
    case FIELD_INTERVAL:
        return two_numbers(nullable);
    case FIELD_NUMBERS:
        return list_node(number_node(f->flags, false), nullable);
    case FIELD_TEXTS:
        return list_node(text_node(f->flags, false), nullable);
    case FIELD_BINS:
        return list_node(two_numbers(false), nullable);
    case FIELD_RECORD:
        return nullable ? or_null(ref_node(f->of)) : ref_node(f->of);
    case FIELD_RECORDS:
        return list_node(ref_node(f->of), nullable);
    case FIELD_OPEN:
        return type_node("object", nullable);
    }
    return NULL;
}

/* Whether @f is a record, and a rule decides if it exists. */
static bool is_decided(const record_type *type, const field *f) {
    bool decided = false;
    for (size_t i = 0; i < type->n_rules; i++)
        decided |= f->type == FIELD_RECORD && strcmp(type->rules[i].key, f->key) == 0;
    return decided;
}

/* The schema of one key. A record whose existence a rule decides gets no check of its own: the
 * message of the rule is clearer. */
static js *property_node(const record_type *type, const field *f) {
    js *o = is_decided(type, f) ? js_new_object() : value_node(f, (f->flags & FIELD_NULLABLE) != 0);
    return whole(o, o && (!f->about || js_set_str(o, "description", f->about)));
}

/* ---- the node of a record ---- */

/* The keys that rows with these parts must have, without optional ones. @all adds the keys that
 * belong to no part. */
static js *required_of(const record_type *type, unsigned parts, bool all) {
    js *keys = js_new_array();
    bool ok = keys != NULL;
    for (size_t i = 0; i < type->n && ok; i++) {
        const field *f = &type->fields[i];
        bool wanted = (f->parts & parts) || (all && !f->parts);
        if (wanted && !(f->flags & FIELD_OPTIONAL))
            ok = js_push_new(keys, js_new_str(f->key));
    }
    return whole(keys, ok);
}

static js *properties_of(const record_type *type) {
    js *all = js_new_object();
    bool ok = all != NULL;
    for (size_t i = 0; i < type->n && ok; i++)
        ok = js_set_new(all, type->fields[i].key, property_node(type, &type->fields[i]));
    return whole(all, ok);
}

/* {"properties": {key: node}} */
static js *one_property(const char *key, js *node) {
    return pair("properties", pair(key, node));
}

/* The node of a value that must exist. For a text, it does not repeat the allowed words, which its
 * property checks. */
static js *existing_node(const field *f) {
    return f->type == FIELD_TEXT ? text_node(f->flags, false) : value_node(f, false);
}

static js *rule_node(const record_type *type, const record_rule *r) {
    const field *f = record_find(type, r->key);
    js *o = js_new_object(),
       *is = r->word ? pair("const", js_new_str(r->word)) : type_node("null", false);
    bool ok = js_set_new(o, "if", one_property(r->decides, is));
    ok = js_set_new(o, "then", one_property(r->key, f ? existing_node(f) : NULL)) && ok;
    ok = js_set_new(o, "else", one_property(r->key, type_node("null", false))) && ok;
    return whole(o, ok);
}

static js *kind_node(const record_type *type, const record_kind *k) {
    js *o = js_new_object();
    bool ok = js_set_new(o, "if", one_property("kind", pair("const", js_new_str(k->word))));
    ok = js_set_new(o, "then", pair("required", required_of(type, k->parts, false))) && ok;
    return whole(o, ok);
}

static js *conditions_of(const record_type *type) {
    js *all = js_new_array();
    bool ok = all != NULL;
    for (size_t i = 0; i < type->n_rules && ok; i++)
        ok = js_push_new(all, rule_node(type, &type->rules[i]));
    for (size_t i = 0; i < type->n_kinds && ok; i++)
        ok = js_push_new(all, kind_node(type, &type->kinds[i]));
    return whole(all, ok);
}

static bool describe(const record_type *type, js *o) {
    bool ok = o && js_set_str(o, "type", "object");
    if (ok && type->about)
        ok = js_set_str(o, "description", type->about);
    if (!ok || type->open)
        return ok;
    ok = js_set_new(o, "required", required_of(type, type->always, true)) &&
         js_set_bool(o, "additionalProperties", false) &&
         js_set_new(o, "properties", properties_of(type));
    if (ok && type->n_rules + type->n_kinds)
        ok = js_set_new(o, "allOf", conditions_of(type));
    return ok;
}

/* Adds the definitions of the record types in @type's fields, and of those in their fields. */
static bool define_all(const record_type *type, js *defs) {
    bool ok = defs != NULL;
    for (size_t i = 0; i < type->n && ok; i++) {
        const record_type *of = type->fields[i].of;
        if (!of || js_has(defs, of->name))
            continue;
        ok = js_set_new(defs, of->name, js_new_object()) &&
             describe(of, js_get_object(defs, of->name)) && define_all(of, defs);
    }
    return ok;
}

js *record_schema(const record_type *type, const char *title) {
    js *o = js_new_object(), *defs = js_new_object();
    bool ok = o && js_set_str(o, "$schema", "https://json-schema.org/draft/2020-12/schema") &&
              js_set_str(o, "title", title) && describe(type, o) && define_all(type, defs);
    ok = js_set_new(o, "$defs", defs) && ok;
    return whole(o, ok);
}
