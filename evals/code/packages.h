/* packages.h - the packages that judged programs may import in addition to Python's own modules.
 *
 * The list is part of the grader (a change of it changes the grader's id). No other package of the
 * machine can be imported (common.py), except mpmath, which sympy needs. A machine may lack a
 * package of the list. A program that imports it is then not judged: that it fails says nothing
 * about the program. */
#ifndef SNAPMLA_EVALS_CODE_PACKAGES_H
#define SNAPMLA_EVALS_CODE_PACKAGES_H

#include "base/buf.h"
#include "evals/pattern.h"

/* A set of packages: bit i stands for the i-th of the list. */
typedef unsigned package_set;

package_set packages_all(void);
package_set packages_named(span names);      /* those of the list that @names contains, separated by
                                              white space */
package_set packages_imported(span program); /* those that an import statement names, also in a
                                                comment or text of several lines */

/* Appends the names, separated by @between, each after @prefix. */
void packages_append(package_set set, const char *prefix, const char *between, buf *out);

#endif
