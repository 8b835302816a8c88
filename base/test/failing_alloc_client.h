/* failing_alloc_client.h - for ci/alloc_fail.sh: a client of a server whose allocations fail. */
#ifndef SNAPMLA_BASE_TEST_FAILING_ALLOC_CLIENT_H
#define SNAPMLA_BASE_TEST_FAILING_ALLOC_CLIENT_H

/* Starts a process that is a client of the calling process. It waits until the file behind the
 * standard output of the caller has the server's URL, http://127.0.0.1:PORT. Then it sends the
 * bytes of the file @request, which are a whole HTTP/1.0 request. It appends to standard output a
 * line "status N" and the body of the answer, or "no answer" if the connection ends without one, or
 * "timeout" if nothing arrives for 200 seconds. Then it sends SIGTERM to the server. If the server
 * has not printed the URL after five minutes, it does nothing. */
void failing_alloc_client(const char *request);

#endif
