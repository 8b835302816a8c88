/* completion.h - scripts that let a shell complete the commands, verbs and options of the program.
 * They are generated from the tables that the parser uses. */
#ifndef SNAPMLA_HARNESS_COMPLETION_H
#define SNAPMLA_HARNESS_COMPLETION_H

#include "harness/opt.h"

/**
 * completion_write - append the script for one shell
 *
 * @shell:    "bash", "zsh" or "fish"
 * @commands: the program's commands, NULL-terminated
 *
 * SNAP_E_USAGE for another shell, SNAP_E_NOMEM.
 */
snap_status completion_write(const char *shell, const opt_command *const *commands, buf *out,
                             snap_err *err) SNAP_CHECK_RESULT;

#endif
