/* browser.h - controls a headless Chromium through a pipe, for tests that check pages in a browser.
 *
 * It uses the DevTools protocol: JSON messages that end in NUL, on the browser's descriptors 3 and
 * 4. */
#ifndef SNAPMLA_HARNESS_TEST_BROWSER_H
#define SNAPMLA_HARNESS_TEST_BROWSER_H

#include "base/json.h"

typedef struct browser browser;

/* Starts a browser. Returns NULL, with the reason in *why, if none is installed or none starts.
 * Close it with browser_close(). */
browser *browser_open(const char **why);
void browser_close(browser *b); /* NULL is allowed */

/* Calls a method of the page's session. @params is freed; NULL = none. Returns the result, owned by
 * the caller. The test fails if there is none. */
js *browser_call(browser *b, const char *method, js *params);

/* Calls browser_call() with @params made from a format and its arguments, which give JSON. */
js *browser_callf(browser *b, const char *method, const char *params, ...) SNAP_PRINTF(3, 4);

/* Opens the page and waits until it is loaded. */
void browser_go(browser *b, const char *url);

/* The value of a JavaScript expression in the page, owned by the caller. For a promise, it is the
 * value with which the promise is fulfilled. */
js *browser_value(browser *b, const char *expression);

/* The events since the last browser_go(): an array of {"method", "params"}; borrowed. */
const js *browser_events(const browser *b);

#endif
