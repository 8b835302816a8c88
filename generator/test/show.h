/* show.h - prints how a client reacts to each failure of a server, as table rows, if SHOW_FIGURES
 * is set. */
#ifndef SNAPMLA_GENERATOR_TEST_SHOW_H
#define SNAPMLA_GENERATOR_TEST_SHOW_H

#include "generator/test/scripted_server.h"

/* Prints a row: the running test, what the server did (NULL: it had no script), the client's
 * message, and the number of attempts (0: not counted). */
void show_row(const reply *r, const char *outcome, int attempts);

#endif
