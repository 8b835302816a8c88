#!/bin/sh
# Installs into a temporary root and unpacks the bundle elsewhere, then runs both from a foreign folder
# with an empty environment, the bundle's libraries only.
#   test_install.sh BUILD
set -eu
build=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "test-install: $1" >&2
    exit 1
}

make -s BUILD="$1" install DESTDIR="$dir/root" PREFIX=/opt/snapmla >/dev/null
(cd "$dir" && env -i root/opt/snapmla/bin/snapmla --version >/dev/null) || fail 'installed program does not start'
(cd "$dir" && env -i root/opt/snapmla/bin/snapmla eval --suite demo --print-config >/dev/null) ||
    fail 'installed program does not find its suites'
[ -s "$dir/root/opt/snapmla/share/man/man1/snapmla.1" ] || fail 'no man page'
[ -s "$dir/root/opt/snapmla/share/bash-completion/completions/snapmla" ] || fail 'no completion'
manual=root/opt/snapmla/share/doc/snapmla
[ -s "$dir/$manual/docs/plugin.md" ] || fail 'no manual of plugins'
for example in example minimal; do
    (cd "$dir" && cc -std=c17 -D_GNU_SOURCE -Iroot/opt/snapmla/include/snapmla -fPIC -shared -O2 \
        -o plugin.so $manual/kernels/plugin/example/$example.c -lm &&
        root/opt/snapmla/bin/snapmla roofline --backend plugin:plugin.so --rounds 1 --seconds 0.01 >/dev/null) ||
        fail "$example.c, built against the installed headers, does not run"
done
make -s BUILD="$1" uninstall DESTDIR="$dir/root" PREFIX=/opt/snapmla >/dev/null
[ -z "$(find "$dir/root" -type f)" ] || fail 'uninstall leaves files'

bundle=$(make -s BUILD="$1" dist | tail -n 1)
mkdir "$dir/far away"
tar -C "$dir/far away" -xzf "$bundle"
program=$(echo "$dir/far away"/*/bin/snapmla)
foreign=$(env -i ldd "$program" | awk '$2 == "=>" {print $3}' | grep -v "^$dir" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' || true)
[ -z "$foreign" ] || fail "the bundle uses the system's $foreign"
(cd / && env -i "$program" info >/dev/null) || fail 'the bundle does not run'
[ -n "$build" ] && echo 'test-install: installation and bundle run'
