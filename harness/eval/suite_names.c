#include "harness/eval/suite_names.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "base/text.h"

static int is_json(const struct dirent *e) {
    return e->d_name[0] != '.' && text_ends(e->d_name, ".json");
}

void suite_names(arena *mem, const char *out[SUITE_NAMES + 1]) {
    char *folder = share_find("configs/suites");
    struct dirent **entries = NULL;
    int n = folder ? scandir(folder, &entries, is_json, alphasort) : 0, kept = 0;
    for (int i = 0; i < n; i++) {
        entries[i]->d_name[strlen(entries[i]->d_name) - strlen(".json")] = '\0';
        const char *name = kept < SUITE_NAMES ? arena_strdup(mem, entries[i]->d_name) : NULL;
        if (name)
            out[kept++] = name;
        free(entries[i]);
    }
    out[kept] = NULL;
    free(entries);
    free(folder);
}
