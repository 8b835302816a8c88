/* scripts.h - the Python drivers that run in the sandbox and start the judged program (embedded by
 * scripts.S). real.py, lcb.py, unit.py and twist.py each need the text of common.py before them.
 * NUL-terminated. */
#ifndef SNAPMLA_EVALS_CODE_SCRIPTS_H
#define SNAPMLA_EVALS_CODE_SCRIPTS_H

extern const char script_probe[], script_common[], script_real[], script_lcb[], script_unit[],
    script_twist[];

#endif
