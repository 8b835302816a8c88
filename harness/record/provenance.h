/* provenance.h - collects where a result comes from: program, build, machine, command line,
 * configuration, seed and start time.
 *
 * Sources are the build, uname(), sysconf(), the environment, and files of Linux in /proc, /sys,
 * /etc and /run, and /.dockerenv. The host's name is stored only as a SHA-256. The user's name is
 * not looked up. */
#ifndef SNAPMLA_HARNESS_RECORD_PROVENANCE_H
#define SNAPMLA_HARNESS_RECORD_PROVENANCE_H

#include <stdint.h>

#include "base/json.h"
#include "harness/record/plugin.h"

/* Collects the `provenance` object of a result file; "gpu", "backend" and "ended" are null. @config
 * is copied; NULL = empty. The caller owns *out, which is NULL after an error. SNAP_E_NOMEM. */
snap_status provenance_collect(js **out, const char *command, const js *config, int64_t seed,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Name and hash of the file of the backend "plugin:PATH" or "python:FILE"; @mem owns the texts. For
 * any other backend and for NULL, out->exists is false. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status provenance_plugin(const char *backend, arena *mem, plugin_record *out,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Copies the value of a key: from the first line "key : value" of /proc/cpuinfo (@separator ':') or
 * KEY=value of os-release (@separator '='). Spaces and quotes around the value are removed. Returns
 * false if there is no such line or its value is empty. */
bool provenance_field(const char *text, const char *key, char separator, char *out, size_t size);

/* Those words of a "flags" or "Features" line of /proc/cpuinfo that name a vector or matrix
 * extension of provenance.c's list. @mem owns the list. Returns false when out of memory. */
bool provenance_isa(const char *flags, arena *mem, record_texts *out);

/* Shortens every absolute path in @text to its last name. A path begins at the start of the text,
 * after "=", ":" or ",", or, in a text that begins with "-", after the letter of the option. It
 * ends before the next ",". Relative paths and http addresses stay as they are. The caller owns the
 * text (free()). NULL: out of memory. */
char *provenance_cut_folders(const char *text);

/* A deep copy of a JSON value in which provenance_cut_folders() shortened every string, but no key.
 * The caller owns it. NULL: out of memory. */
js *provenance_cut_copy(js *v);

/* Sets @key of a row to the shortened path @text, or to null if @text is NULL. Returns false when
 * out of memory. */
bool provenance_set_path(js *o, const char *key, const char *text);

/* How many leading bytes of a command-line argument a result may hold. The value of a "--" option
 * with "password" in its name is left out, after "=" or as the next argument. *next must be false
 * before the first argument; it is set while the next argument is such a value. */
size_t provenance_public_part(const char *argument, bool *next);

#endif
