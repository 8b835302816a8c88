/* arm_file.h - the file of a named arm, a plugin or a Python file, in a run's folder and in a
 * bundle. */
#ifndef SNAPMLA_HARNESS_RECORD_ARM_FILE_H
#define SNAPMLA_HARNESS_RECORD_ARM_FILE_H

#include <stdbool.h>

enum { ARM_FILE_NAME = 256 };

/* Writes the name of the copy, "arm-NAME=FILE". @name and @options: those of a row (cell.h).
 * Returns false if the arm's backend is part of the program, or if the name would be too long. */
bool arm_file_name(const char *name, const char *options, char out[ARM_FILE_NAME]);

/* Replaces each character that is no letter, digit or one of ._-+= by '_'. */
void arm_file_clean(char *name);

#endif
