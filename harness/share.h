/* share.h - where the program's own data files are: configs/ and datasets/ as shipped. */
#ifndef SNAPMLA_HARNESS_SHARE_H
#define SNAPMLA_HARNESS_SHARE_H

/* The path of a shipped file or folder, e.g. "configs/suites/aime.json": the first that exists of
 * the name as it is, $SNAPMLA_SHARE, the folder above the program's (a build tree) and
 * ../share/snapmla beside it (an installation, a bundle). Owned (free()); NULL when nowhere. */
char *share_find(const char *name);

#endif
