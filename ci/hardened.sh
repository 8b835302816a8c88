#!/bin/sh
# Checks with readelf how programs and plugins were hardened, and exits 1 with a line for each
# protection that one of them lacks:
#   relocations that are read-only after start-up (full RELRO), a stack that is not executable, no
#   memory that is both writable and executable, and marks of branch targets (CET, on x86-64);
#   of programs, also addresses chosen at each start (PIE), canaries on the stack, and the C library's
#   checks of buffer sizes. A plugin may have no function that needs those two.
#   hardened.sh FILE...        a plugin's name ends in .so
#   hardened.sh --selftest     tests itself: a program that lacks one protection must be refused
set -eu
bad=0
lacks() {
    echo "hardened: $file: $1" >&2
    bad=1
}

# The bytes of endbr64, which begins every function that may be called through a pointer. Without
# CET, a program has up to four and a plugin two, from the compiler's own start files. The smallest
# plugin has one function. The property note of a program says nothing, because Debian's start files
# lack it.
branch_targets() {
    LC_ALL=C grep -aoP '\xf3\x0f\x1e\xfa' "$file" | wc -l
}

check() {
    file=$1
    headers=$(readelf -hldW "$file")
    has() {
        echo "$headers" | grep -qE "$1"
    }
    has '^ +GNU_RELRO ' || lacks 'no read-only relocations (-z relro)'
    has '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' || lacks 'relocations stay writable (-z now)'
    has '^ +GNU_STACK .* RW +0x' || lacks 'the stack is executable (-z noexecstack)'
    ! has '^ +LOAD .* RWE ' || lacks 'memory is both writable and executable'
    ! has '\(TEXTREL\)' || lacks 'code is relocated (-fPIC)'
    if has 'Machine: +Advanced Micro Devices X86-64'; then
        case $file in *.so) least=3 ;; *) least=10 ;; esac
        [ "$(branch_targets)" -ge "$least" ] || lacks 'branch targets are not marked (-fcf-protection)'
    fi
    case $file in *.so) return 0 ;; esac
    has '\(FLAGS_1\).*PIE' || lacks 'fixed addresses (-fPIE, -pie)'
    imports=$(readelf --dyn-syms -W "$file")
    echo "$imports" | grep -q ' __stack_chk_fail' || lacks 'no canaries on the stack (-fstack-protector-strong)'
    # Level 2 checks no memset() of memory whose size is known at run time only.
    echo "$imports" | grep -q ' __memset_chk' || lacks 'buffer sizes are not checked (-D_FORTIFY_SOURCE=3)'
}

# A program that has all protections passes. Without one of them, the line of that one is printed.
selftest() {
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    cat >"$dir/program.c" <<'END'
#include <stdlib.h>
#include <string.h>
#define F(n) void f##n(char *p) { char b[64]; memcpy(b, p, 64); p[n] = b[p[n] & 63]; }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
int main(int argc, char **argv) {
    char *p = malloc((size_t)argc);
    if (p)
        memset(p, 0, strlen(argv[0]));
    return p ? *p : 1;
}
END
    build() {
        cc -O2 -fPIE -pie -fstack-protector-strong -fcf-protection -U_FORTIFY_SOURCE \
            -D_FORTIFY_SOURCE=3 -Wl,-z,relro,-z,now,-z,noexecstack "$@" -w -o "$dir/program" \
            "$dir/program.c"
    }
    build
    sh ci/hardened.sh "$dir/program" || { echo 'hardened: a program with all is refused' >&2; exit 1; }
    for flag in -Wl,-z,norelro -Wl,-z,lazy -Wl,-z,execstack '-no-pie -fno-pie' \
        -fno-stack-protector -fcf-protection=none '-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2'; do
        # shellcheck disable=SC2086
        build $flag
        if lines=$(sh ci/hardened.sh "$dir/program" 2>&1) || [ "$(echo "$lines" | wc -l)" != 1 ]; then
            echo "hardened: with $flag: one line is missing or too many: $lines" >&2
            bad=1
        else
            echo "  $flag: ${lines##*: }"
        fi
    done
    plugin() {
        echo 'static int f(void) { return 1; } int (*const p)(void) = f;' >"$dir/plugin.c"
        cc -O2 -fPIC -shared -Wl,-z,relro,-z,now,-z,noexecstack "$1" -o "$dir/plugin.so" "$dir/plugin.c"
        sh ci/hardened.sh "$dir/plugin.so" 2>/dev/null
    }
    plugin -fcf-protection || { echo 'hardened: a plugin of one function is refused' >&2; bad=1; }
    ! plugin -fcf-protection=none || { echo 'hardened: a plugin without branch targets passes' >&2; bad=1; }
}

if [ "$1" = --selftest ]; then
    selftest
else
    for f in "$@"; do
        check "$f"
    done
fi
exit $bad
