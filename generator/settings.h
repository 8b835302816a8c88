/* settings.h - sampling and settings of a request as named values, for comparisons and files. */
#ifndef SNAPMLA_GENERATOR_SETTINGS_H
#define SNAPMLA_GENERATOR_SETTINGS_H

#include "base/json.h"
#include "generator/generator.h"

enum { GEN_SAMPLING_VALUES = 8 };

typedef struct {
    const char *name; /* "temperature", as in a request's JSON */
    double value;
    double off; /* the value that has no effect; NAN for a parameter that is always sent */
} gen_sampling_value;

/* The parameters without the seed: temperature, top_p, max_tokens, top_k, min_p, presence_penalty,
 * frequency_penalty, repetition_penalty. */
void gen_sampling_values(const gen_sampling *s, gen_sampling_value out[GEN_SAMPLING_VALUES]);

/* Whether the parameter is sent: always if `off` is NAN, else if its value has an effect. */
bool gen_sampling_is_on(const gen_sampling_value *v);

/* The messages of a request with the system message of its settings, numbered from 0. */
int gen_message_count(const gen_request *req);
gen_message gen_message_at(const gen_request *req, int i);

/* The settings that can change an answer, as an object with one member for each that is set. The
 * limit's name, the form of the content and the server's family are left out, because only the way
 * in which a server is asked depends on them. The caller owns it; NULL if memory is exhausted. */
js *gen_settings_json(const gen_settings *s);

/**
 * gen_settings_check - check that the settings can be sent
 *
 * SNAP_E_USAGE with the reason: `body` is no JSON object, is nested too deeply, has a member that
 * another option sets (some of these may be null), or one whose name is that of a secret; `prompt`
 * is malformed or given without `completions`; `parts` is given with `completions`; `server` is
 * unknown; a budget is given without `server`. SNAP_E_NOMEM.
 */
snap_status gen_settings_check(const gen_settings *s, snap_err *err) SNAP_CHECK_RESULT;

/* Adds the members of `body` and the field of the thinking budget to a request. Objects are merged.
 * A member that is null removes the request's own. False if memory is exhausted. */
bool gen_settings_apply(const gen_settings *s, js *request);

/* Merges one object into another, member by member: objects are merged in turn, other values
 * replace those of @to. With @removes, a null of @from removes the member instead. False if memory
 * is exhausted. */
bool gen_merge(js *to, js *from, bool removes);

/* The names of the families of servers, in a list for messages. */
const char *gen_server_names(void);

#endif
