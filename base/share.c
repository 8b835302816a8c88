#include "base/share.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"

static char *under(const char *dir, const char *name) {
    char *path = fs_join(dir, name);
    if (path && fs_exists(path))
        return path;
    free(path);
    return NULL;
}

static char *beside_program(const char *relative, const char *name) {
    char exe[PATH_MAX];
    /* where /proc is not mounted, the name by which the program was started is used */
    const char *started = (const char *)getauxval(AT_EXECFN);
    if (!realpath("/proc/self/exe", exe) && !(started && realpath(started, exe))) {
        if (errno == ENOMEM)
            fault_note(SNAP_E_NOMEM, "out of memory in realpath()");
        return NULL;
    }
    char *dir = fs_join(dirname(exe), relative);
    char *path = dir ? under(dir, name) : NULL;
    free(dir);
    return path;
}

char *share_find(const char *name) {
    if (fs_exists(name))
        return strdup(name);
    const char *home = getenv("SNAPMLA_SHARE");
    char *path = home ? under(home, name) : NULL;
    if (!path)
        path = beside_program("..", name);
    if (!path)
        path = beside_program("../share/snapmla", name);
    if (!path)
        path = beside_program(".", name);
    return path;
}
