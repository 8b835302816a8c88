#include "harness/view/script.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "harness/view/assets.h"

enum { kBytes = (HASH_HEX - 1) / 2 };

static unsigned digit(char c) {
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Appends kBytes bytes, given as hexadecimal digits, in base64. */
static void put_base64(buf *out, const char *hex) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < kBytes; i += 3) {
        uint32_t group = 0;
        for (size_t k = i; k < i + 3; k++)
            group = group << 8 | (k < kBytes ? digit(hex[2 * k]) << 4 | digit(hex[2 * k + 1]) : 0);
        for (size_t k = 0; k < 4; k++)
            (void)buf_printf(out, "%c", i + k > kBytes ? '=' : letters[group >> (18 - 6 * k) & 63]);
    }
}

void script_source(buf *out) {
    char hex[HASH_HEX];
    if (hash_bytes(asset_page_js, strlen(asset_page_js), hex, NULL) != SNAP_OK) {
        out->failed = true;
        return;
    }
    (void)buf_puts(out, "'sha256-");
    put_base64(out, hex);
    (void)buf_puts(out, "'");
}

void script_element(buf *out) {
    (void)buf_printf(out, "<script>%s</script>\n", asset_page_js);
}
