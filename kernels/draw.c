#include "kernels/draw.h"

#include <string.h>

void draw_row(const draw_source *s, uint64_t index, uint16_t *row) {
    size_t d_c = (size_t)s->d_c, d_r = (size_t)s->d_r, width = d_c + d_r;
    draw_parts p = draw_parts_of(s->seed, index, s->d_c);
    const uint16_t *content = s->pool + p.content * width;
    memcpy(row, content + p.turn, (d_c - p.turn) * sizeof *row);
    memcpy(row + d_c - p.turn, content, p.turn * sizeof *row);
    memcpy(row + d_c, s->pool + p.rope * width + d_c, d_r * sizeof *row);
}
