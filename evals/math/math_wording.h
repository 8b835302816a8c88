/* math_wording.h - answers in words, for MATH_TRUTH: "three", "two thirds", "the empty set".
 *
 * Each function with @out writes another wording of an answer to it, and the length to @len. @out
 * has room for @cap bytes and need not be NUL-terminated. The result is false if there is no other
 * wording, or if @out is too small. The texts come from math_rewrite(). */
#ifndef SNAPMLA_EVALS_MATH_MATH_WORDING_H
#define SNAPMLA_EVALS_MATH_MATH_WORDING_H

#include <stdbool.h>
#include <stddef.h>

/* Number words become digits ("forty-two" is 42, "two thirds" is \frac{2}{3}), "minus" a sign, "in
 * base 8" a subscript, and phrases such as "all real numbers" the sign for them. */
bool math_read_words(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Reads C(20,10) and _{20}C_{10} as a binomial, "3 (mod 7)" as 3 \pmod{7}, floor(x) as
 * \lfloor x \rfloor, and "5 dollars and 20 cents" as \$5.20. Units such as m s^{-2} get a \text.
 * Drops conditions such as ", x \in \mathbb{R}" and "for all x". */
bool math_read_notations(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Keeps only what a derivation concludes: 2x = 4 \implies x = 2 becomes x = 2, AB^2 + CD^2 = 3R^2
 * becomes 3R^2, and 12^{th} becomes 12. Drops ", remainder 3" and "\approx 6.28 cm". */
bool math_read_conclusion(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* a_n = 2n \qquad (n \ge 1) becomes a_n = 2n. */
bool math_drop_condition(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* x + 2, \quad x \neq 2 becomes x + 2. */
bool math_drop_exclusion(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* 2x\,\mathbf{i} + 3\,\mathbf{j} becomes \langle 2x, 3 \rangle. */
bool math_read_vector(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Calls the values of a function y: 2 \le f(x) \le 7 becomes 2 \le y \le 7. False if there is
 * another variable. */
bool math_read_range(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* 2:00 p.m. becomes 2 p.m. */
bool math_read_hour(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* A quantity of several units, "4 hours and 30 minutes", becomes one of the last unit. */
bool math_read_compound(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* "noon" and "12:00 noon" become 12:00 p.m., and "midnight" 12:00 a.m. */
bool math_read_noon(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* True if one answer has a word for a change or a direction, and the other has the opposite: "a 4\%
 * increase", "a 4\% decrease". */
bool math_are_opposite(const char *g, size_t gn, const char *a, size_t an);

/* [1 2; 3 4] becomes a matrix: semicolons separate rows, and commas or spaces the entries. */
bool math_read_rows(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* "3 to 5" becomes 3:5. */
bool math_read_ratio(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* 1+2+\cdots+n = \frac{n(n+1)}{2} becomes its right side. */
bool math_drop_left_side(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* \frac{3}{7} = 0.43 becomes \frac{3}{7}. If 0.43 is the gold answer @g rounded to two decimals,
 * then the value of @check, \lfloor (g) 10^2 + 1/2 \rfloor, is the whole number @digits. Both have
 * room for @cap bytes and are NUL-terminated. */
bool math_drop_rounding(const char *s, size_t n, const char *g, size_t gn, char *out, char *check,
                        char *digits, size_t cap, size_t *len);

/* 3 \quad 5 becomes 3, 5. */
bool math_read_wide_spaces(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* The LaTeX for a phrase such as "the empty set" or "all real numbers"; NULL if the answer is no
 * such phrase. */
const char *math_find_phrase(const char *s, size_t n);

/* True if both answers are the same words, except for case, articles and a noun such as "function":
 * "an even function" is even. Words after "all" may have another order. At least one word has three
 * letters. */
bool math_phrases_equal(const char *g, size_t gn, const char *a, size_t an);

/* True if both are the same letters of options: \text{B, D} and BD. */
bool math_letters_equal(const char *g, size_t gn, const char *a, size_t an);

/* Renames the parameter of a family of solutions to k: "x = n\pi with any integer n" becomes
 * x = k\pi, k \in \mathbb{Z}, unless k occurs already. The gold is reworded in the same way before
 * they are compared, or the name is then changed to the gold's (math_rename_parameter()). */
bool math_read_parameter(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Drops the index of each name before an equals sign: x_1 = 6, x_2 = 1 becomes x = 6, x = 1. */
bool math_drop_index(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Calls the parameter of a family @s as in the gold @g, if the gold does not say what its parameter
 * is: x = k\pi, k \in \mathbb{Z} becomes x = n\pi. @s comes from math_read_parameter(). */
bool math_rename_parameter(const char *g, size_t gn, const char *s, size_t n, char *out, size_t cap,
                           size_t *len);

/* Calls the constants of a general solution @s as in the gold @g: A e^x + B e^{-x} becomes
 * c_1 e^x + c_2 e^{-x} if @way is 0, and c_2 e^x + c_1 e^{-x} if it is 1. False if either has no
 * such constants, or another number of them. */
bool math_rename_constants(const char *g, size_t gn, int way, const char *s, size_t n, char *out,
                           size_t cap, size_t *len);

/* Calls the argument of a function @s as in the gold @g: f(t) = 2t becomes f(x) = 2x. */
bool math_rename_argument(const char *g, size_t gn, const char *s, size_t n, char *out, size_t cap,
                          size_t *len);

/* I(0) becomes I_{0}, so that it is no product. */
bool math_read_start_value(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Drops a unit at the end that is written in a \text or \mathrm, such as that of
 * 4 \cdot 10^{3}\ \mathrm{erg\,s^{-1}}. */
bool math_drop_unit(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Drops the word "all" before a condition: "all n \ge 3" becomes n \ge 3. */
bool math_drop_quantifier(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* 6:4:2 becomes 3:2:1. */
bool math_reduce_ratio(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* x = 23 + 105k becomes 23 \pmod{105}. */
bool math_read_residue(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Replaces the name of a matrix by its rows and columns, as many as the gold @g has: -2I becomes a
 * diagonal matrix, and \mathbf{0} one of zeros. False if the gold is no matrix, or @s is no such
 * name. */
bool math_read_matrix_name(const char *g, size_t gn, const char *s, size_t n, char *out, size_t cap,
                           size_t *len);

/* Keeps the right side of an equation whose left side only names a value: \varphi(100) = 40 becomes
 * 40, and |z| = \sqrt{9 + 16} = 5 becomes 5. */
bool math_drop_call(const char *s, size_t n, char *out, size_t cap, size_t *len);

#endif
