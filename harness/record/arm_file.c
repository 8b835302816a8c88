#include "harness/record/arm_file.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

void arm_file_clean(char *name) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=";
    for (; *name; name++)
        if (!strchr(allowed, *name))
            *name = '_';
}

bool arm_file_name(const char *name, const char *options, char out[ARM_FILE_NAME]) {
    static const char kPlugin[] = "plugin:", kPython[] = "python:";
    if (!text_starts(options, kPlugin) && !text_starts(options, kPython))
        return false;
    const char *path = options + sizeof kPlugin - 1; /* "plugin:" and "python:" are equally long */
    int n = (int)strcspn(path, ",");
    for (int i = 0; i < n; i++)
        if (path[i] == '/') {
            path += i + 1;
            n -= i + 1;
            i = -1;
        }
    int length = n > 0 ? snprintf(out, ARM_FILE_NAME, "arm-%s=%.*s", name, n, path) : ARM_FILE_NAME;
    if (!name[0] || length >= ARM_FILE_NAME)
        return false;
    arm_file_clean(out);
    return true;
}
