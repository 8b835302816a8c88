/* show.h - what a client made of each misbehaviour, as rows of a table, when SHOW_FIGURES is set. */
#ifndef SNAPMLA_GENERATOR_TEST_SHOW_H
#define SNAPMLA_GENERATOR_TEST_SHOW_H

#include "generator/test/scripted_server.h"

/* A row: the running test, what the server did (NULL: no script of a server), what the client said, and
 * after how many attempts (0: not counted). */
void show_row(const reply *r, const char *outcome, int attempts);

#endif
