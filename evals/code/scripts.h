/* scripts.h - the Python programs that run in the sandbox, embedded by scripts.S as NUL-terminated
 * strings. real.py, lcb.py and unit.py start the judged program, twist.py changes assertions, and
 * probe.py checks the isolation. All of these except probe.py need the text of common.py before
 * them. */
#ifndef SNAPMLA_EVALS_CODE_SCRIPTS_H
#define SNAPMLA_EVALS_CODE_SCRIPTS_H

extern const char script_probe[], script_common[], script_real[], script_lcb[], script_unit[],
    script_twist[];

#endif
