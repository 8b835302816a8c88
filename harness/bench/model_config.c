#include "harness/bench/model_config.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/share.h"

snap_status model_config_open(model_shape *out, const char *name, snap_err *err) {
    snap_status st;
    buf path = {0}, text = {0};
    char *shipped = NULL;
    (void)buf_printf(&path, "configs/models/%s.json", name);
    TRY(buf_check(&path, "a path", err));
    if (!fs_exists(name))
        shipped = share_find(buf_str(&path));
    TRY(fs_read(shipped ? shipped : name, &text, err));
    TRY(model_shape_parse(out, text.data, text.len, name, err));
cleanup:
    free(shipped);
    buf_release(&path);
    buf_release(&text);
    return st;
}
