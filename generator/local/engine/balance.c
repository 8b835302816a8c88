#include "generator/local/engine/balance.h"

/* Whether rule 2 of balance.h prefers @a. */
static bool is_better(const replica_use *a, const replica_use *b) {
    bool room = balance_has_room(a->held, a->most);
    if (a->broken != b->broken)
        return b->broken;
    if (room != balance_has_room(b->held, b->most))
        return room;
    if (a->tokens != b->tokens)
        return a->tokens < b->tokens;
    return a->held != b->held ? a->held < b->held : a->given < b->given;
}

int balance_choose(const replica_use *of, int n, int sequences, int ahead) {
    int best = 0, same = -1;
    for (int i = 0; i < n; i++) {
        const replica_use *u = &of[i];
        if (is_better(u, &of[best]))
            best = i;
        if (u->has_same && !u->broken && u->held + sequences <= u->most &&
            (same < 0 || is_better(u, &of[same])))
            same = i;
    }
    return same >= 0 && of[same].held < of[best].held + ahead ? same : best;
}
