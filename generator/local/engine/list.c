#include "generator/local/engine/engine_parts.h"

void list_push(sequence_list *l, sequence *s) {
    s->next = NULL;
    s->prev = l->last;
    if (l->last)
        l->last->next = s;
    else
        l->first = s;
    l->last = s;
    l->n++;
}

void list_push_front(sequence_list *l, sequence *s) {
    s->prev = NULL;
    s->next = l->first;
    if (l->first)
        l->first->prev = s;
    else
        l->last = s;
    l->first = s;
    l->n++;
}

void list_take_out(sequence_list *l, sequence *s) {
    if (s->prev)
        s->prev->next = s->next;
    else
        l->first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        l->last = s->prev;
    l->n--;
}
