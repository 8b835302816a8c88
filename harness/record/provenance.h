/* provenance.h - collects where a result comes from: program, build, machine, command line,
 * configuration.
 *
 * Sources are the build, uname(), sysconf(), and the files of Linux in /proc, /sys and /etc. What
 * they do not contain is null. Of the host's name only a SHA-256 is collected. The user's name is
 * not collected. */
#ifndef SNAPMLA_HARNESS_RECORD_PROVENANCE_H
#define SNAPMLA_HARNESS_RECORD_PROVENANCE_H

#include <stdint.h>

#include "base/json.h"
#include "harness/record/plugin.h"

/* Collects the `provenance` object of a result file; "gpu", "backend" and "ended" are null. The
 * caller owns *out.
 * @config: copied, NULL = empty. SNAP_E_NOMEM. */
snap_status provenance_collect(js **out, const char *command, const js *config, int64_t seed,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Name and hash of the file of the backend "plugin:PATH"; @mem owns the texts. For any other
 * backend and for NULL, out->exists is false. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status provenance_plugin(const char *backend, arena *mem, plugin_record *out,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Copies the value of a key from a file of the kernel or of the distribution: the first line
 * "key : value" of /proc/cpuinfo (@separator ':'), or the line KEY=value of os-release without its
 * quotes (@separator '='). Returns false if there is none. */
bool provenance_field(const char *text, const char *key, char separator, char *out, size_t size);

/* The words of a "flags" line that decide which kernels run. @mem owns the list. Returns false when
 * out of memory. */
bool provenance_isa(const char *flags, arena *mem, record_texts *out);

/* Shortens every absolute path in @text to its last name. A path begins at the start of the text,
 * after "=", ":" or ",", or after the letter of a short option. It ends before the next ",".
 * Relative paths and http addresses stay as they are. The caller owns the text (free()). NULL: out
 * of memory. */
char *provenance_cut_folders(const char *text);

/* A deep copy of a JSON value in which provenance_cut_folders() shortened every string. The caller
 * owns it. NULL: out of memory. */
js *provenance_cut_copy(js *v);

/* Sets @key of a row to the shortened path @text, or to null if @text is NULL. Returns false when
 * out of memory. */
bool provenance_set_path(js *o, const char *key, const char *text);

/* How many bytes of a command-line argument a result may hold. The value of an option with
 * "password" in its name is left out, both after "=" and as the next argument. *next must be false
 * before the first argument; it is set if the next argument is such a value. */
size_t provenance_public_part(const char *argument, bool *next);

#endif
