/* browser.h - a headless Chromium at the end of a pipe, for tests that ask a browser about a page.
 *
 * Speaks the DevTools protocol: messages of JSON that end in NUL, on the browser's descriptors 3
 * and 4. */
#ifndef SNAPMLA_HARNESS_TEST_BROWSER_H
#define SNAPMLA_HARNESS_TEST_BROWSER_H

#include "base/json.h"

typedef struct browser browser;

/* NULL where none is installed, or none starts: *why says which. The caller closes it. */
browser *browser_open(const char **why);
void browser_close(browser *b); /* NULL is allowed */

/* A method of the page's session; @params is taken over, NULL = none. The result, owned by the
 * caller; fails the test where there is none. */
js *browser_call(browser *b, const char *method, js *params);

/* @params as JSON with printf's conversions. */
js *browser_callf(browser *b, const char *method, const char *params, ...) SNAP_PRINTF(3, 4);

/* Opens the page and waits until it is there. */
void browser_go(browser *b, const char *url);

/* The value of an expression in the page; owned. */
js *browser_value(browser *b, const char *expression);

/* What the page did so far: an array of {"method", "params"}; borrowed. */
const js *browser_events(const browser *b);

#endif
