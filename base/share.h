/* share.h - finds the data files that are shipped with the program, such as configs/ and
 * datasets/. */
#ifndef SNAPMLA_BASE_SHARE_H
#define SNAPMLA_BASE_SHARE_H

/* Finds a shipped file or folder, for example "configs/suites/aime.json". It tries these folders
 * and returns the first path that exists:
 *   1. the working directory (or @name itself if it is absolute)
 *   2. $SNAPMLA_SHARE
 *   3. the parent of the program's folder: a build tree
 *   4. ../share/snapmla from the program's folder: an installation or a bundle
 *   5. the program's folder: objects that a build tree holds beside the program
 * The caller frees the path with free(). NULL if none exists, or when out of memory. */
char *share_find(const char *name);

#endif
