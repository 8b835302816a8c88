/* sanitized.h - kSanitized is 1 if the compiler says that the address or thread sanitizer is on.
 * Tests then run several times slower, so some of them check less. */
#ifndef SNAPMLA_BASE_TEST_SANITIZED_H
#define SNAPMLA_BASE_TEST_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kSanitized = 1 };
#else
enum { kSanitized = 0 };
#endif

#endif
