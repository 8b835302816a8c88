/* scripts.h - the Python that runs in the sandbox around a judged program (scripts.S):
 * the text of common.py goes before those of real.py, lcb.py and unit.py. NUL-terminated. */
#ifndef SNAPMLA_EVALS_CODE_SCRIPTS_H
#define SNAPMLA_EVALS_CODE_SCRIPTS_H

extern const char script_probe[], script_common[], script_real[], script_lcb[], script_unit[];

#endif
