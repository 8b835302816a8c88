/* temp_folder.h - a temporary folder for tests. */
#ifndef SNAPMLA_BASE_TEST_TEMP_FOLDER_H
#define SNAPMLA_BASE_TEST_TEMP_FOLDER_H

#include <stddef.h>

enum { TEMP_FOLDER = 48 };

/* Makes the folder /tmp/snapmla-NAME-XXXXXX, with at most 20 characters of the name, and writes its
 * path to @out. */
void temp_folder_open(char out[TEMP_FOLDER], const char *name);

/* Writes the file @folder/@sub/@name, and makes the folder @sub, which may be "". */
void temp_folder_put(const char *folder, const char *sub, const char *name, const void *bytes,
                     size_t n);

/* Removes a folder with everything in it. It need not exist. */
void temp_folder_remove(const char *folder);

#endif
