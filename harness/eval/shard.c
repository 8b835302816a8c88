#include "harness/eval/shard.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

/* Parses the number before or after the slash. Returns false if it is not a number in range. */
static bool part(const char *from, size_t n, int *out) {
    char digits[8];
    int64_t value;
    if (n >= sizeof digits || strspn(from, "0123456789") < n)
        return false;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)n, from);
    if (!text_to_int(digits, &value) || value < 1 || value > SHARDS_MAX)
        return false;
    *out = (int)value;
    return true;
}

snap_status shard_parse(const char *text, eval_shard *out, snap_err *err) {
    *out = (eval_shard){0};
    if (!text)
        return SNAP_OK;
    const char *slash = strchr(text, '/');
    if (slash && part(text, (size_t)(slash - text), &out->index) &&
        part(slash + 1, strlen(slash + 1), &out->of) && out->index <= out->of)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "--shard '%s' is not I/N, the number of this part and of all parts: 1/4 to 4/4 "
                   "(at most %d parts)",
                   text, SHARDS_MAX);
}

static bool same_folder(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

snap_status shard_check_folders(const char *const *folders, size_t n, const char *out,
                                snap_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (same_folder(folders[i], out))
            return err_set(err, SNAP_E_USAGE, "--out '%s' is one of the shards", out);
        for (size_t k = 0; k < i; k++)
            if (same_folder(folders[i], folders[k]))
                return err_set(err, SNAP_E_USAGE, "'%s' and '%s' are the same folder", folders[k],
                               folders[i]);
    }
    return SNAP_OK;
}
