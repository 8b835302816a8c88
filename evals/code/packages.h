/* packages.h - the packages that judged programs may import in addition to Python's own modules.
 *
 * The list is part of the grader (a change of it changes the grader's id). No other package of the
 * machine can be imported (common.py), except mpmath, which sympy needs. A machine may lack a
 * package of the list. A program that fails because it cannot import the package is then not
 * judged, because its failure says nothing about the program. */
#ifndef SNAPMLA_EVALS_CODE_PACKAGES_H
#define SNAPMLA_EVALS_CODE_PACKAGES_H

#include "base/buf.h"
#include "evals/pattern.h"

/* A set of packages: bit i stands for package i of the list, counted from 0. */
typedef unsigned package_set;

package_set packages_all(void);

/* The packages of the list whose names are words of the text @names. */
package_set packages_named(span names);

/* The packages of the list that Python's messages "No module named .." name. */
package_set packages_not_found(span errors);

/* Appends the names, separated by @between, each after @prefix. */
void packages_append(package_set set, const char *prefix, const char *between, buf *out);

#endif
