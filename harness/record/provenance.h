/* provenance.h - where a result comes from: program, build, machine, command line, configuration.
 *
 * Linux's /proc and /sys; what they don't tell is null. No host or user name in plain. */
#ifndef SNAPMLA_HARNESS_RECORD_PROVENANCE_H
#define SNAPMLA_HARNESS_RECORD_PROVENANCE_H

#include <stdint.h>

#include "base/json.h"

/* The `provenance` object of a result file, "backend" and "ended" null. Caller owns *out.
 * @config: copied, NULL = empty. SNAP_E_NOMEM. */
snap_status provenance_collect(js **out, const char *command, const js *config, int64_t seed,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Of the backend "plugin:PATH" what a result keeps of the file: {"file": its name without folders, "sha256"};
 * null of any other and of NULL. Caller owns *out. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status provenance_plugin(const char *backend, js **out, snap_err *err) SNAP_CHECK_RESULT;

/* The value of the first "key : value" line of a /proc/cpuinfo text, or of a KEY=value line of an
 * os-release text without its quotes; false when there is none. @separator: ':' or '='. */
bool provenance_field(const char *text, const char *key, char separator, char *out, size_t size);

/* Those of the words of a "flags" line that decide which kernels run, as an array of strings. */
js *provenance_isa(const char *flags);

/* @text with the folders cut off every absolute path in it: at its start, behind "=", ":", "," or an option's
 * letter, up to the next ",". What is relative stays, and http addresses. Caller owns the text (free()). NULL: out
 * of memory. */
char *provenance_cut_folders(const char *text);

/* A copy of objects, arrays and scalars with every string so treated; caller owns it. NULL: out of memory. */
js *provenance_cut_copy(js *v);

/* Sets @key of a row to such a text; null for NULL. False: out of memory. */
bool provenance_set_path(js *o, const char *key, const char *text);

/* How many bytes of a command line's argument a result may hold: not the value of an option with
 * "password" in its name, be it behind "=" or the next argument. *next: the next one is such a value;
 * false before the first. */
size_t provenance_public_part(const char *argument, bool *next);

#endif
