/* math_memory.h - memory for GMP and MPFR, whose allocation functions must not return NULL. */
#ifndef SNAPMLA_EVALS_MATH_MATH_MEMORY_H
#define SNAPMLA_EVALS_MATH_MATH_MEMORY_H

/* Must be called before a computation with MPFR. From then on, an allocation that fails notes a
 * fault (base/fault.h) and gets memory from a small reserve, so that the computation can come to an
 * end. Its result must not be used. */
void math_memory_prepare(void);

#endif
