/* sanitized.h - does a sanitizer watch this build? Work is several times as slow then, and what it looks
 * for is found by one case of a kind. */
#ifndef SNAPMLA_BASE_TEST_SANITIZED_H
#define SNAPMLA_BASE_TEST_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kSanitized = 1 };
#else
enum { kSanitized = 0 };
#endif

#endif
