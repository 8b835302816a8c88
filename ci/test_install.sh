#!/bin/sh
# Installs into a temporary root, and unpacks the bundle, the Debian package and the wheel. Runs each
# program from another folder with an empty environment. The bundle and the wheel must use their own
# libraries. Each of these programs and the plugins must be hardened. `make test-packages` tests the
# packages in fresh systems.
#   test_install.sh BUILD
set -eu
build=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "test-install: $1" >&2
    exit 1
}

sh ci/hardened.sh --selftest || fail 'ci/hardened.sh does not find what is missing'
make -s BUILD="$1" install DESTDIR="$dir/root" PREFIX=/opt/snapmla >/dev/null
sh ci/hardened.sh "$dir/root/opt/snapmla/bin/snapmla" "$build"/plugins/*.so || fail 'the installation is not hardened'
(cd "$dir" && env -i root/opt/snapmla/bin/snapmla --version >/dev/null) || fail 'installed program does not start'
(cd "$dir" && env -i root/opt/snapmla/bin/snapmla eval --suite demo --print-config >/dev/null) ||
    fail 'installed program does not find its suites'
(cd "$dir" && env -i root/opt/snapmla/bin/snapmla formats check snapmla >/dev/null) ||
    fail 'installed program does not find its cache formats'
[ -s "$dir/root/opt/snapmla/share/man/man1/snapmla.1" ] || fail 'no man page'
manual=root/opt/snapmla/share/doc/snapmla
[ -s "$dir/$manual/docs/plugin.md" ] || fail 'no manual of plugins'
for example in example minimal attend; do
    (cd "$dir" && cc -std=c17 -D_GNU_SOURCE -Iroot/opt/snapmla/include/snapmla -fPIC -shared -O2 \
        -o plugin.so $manual/kernels/plugin/example/$example.c -lm &&
        root/opt/snapmla/bin/snapmla roofline --backend plugin:plugin.so --rounds 1 --seconds 0.01 >/dev/null) ||
        fail "$example.c, built against the installed headers, does not run"
done
for f in bash-completion/completions/snapmla zsh/site-functions/_snapmla fish/vendor_completions.d/snapmla.fish; do
    [ -s "$dir/root/opt/snapmla/share/$f" ] || fail "no completion $f"
done
make -s BUILD="$1" uninstall DESTDIR="$dir/root" PREFIX=/opt/snapmla >/dev/null
[ -z "$(find "$dir/root" -type f)" ] || fail 'uninstall leaves files'

wheel=$(make -s BUILD="$1" wheel | tail -n 1)
bundle=$(echo "$1"/dist/*.tar.gz) # what the wheel was made of
mkdir "$dir/far away"
tar -C "$dir/far away" -xzf "$bundle"
program=$(echo "$dir/far away"/*/bin/snapmla)
foreign=$(env -i ldd "$dir/far away"/*/libexec/snapmla | awk '$2 == "=>" {print $3}' | grep -v "^$dir" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' || true)
[ -z "$foreign" ] || fail "the bundle uses the system's $foreign"
(cd / && env -i "$program" info >/dev/null) || fail 'the bundle does not run'
# Without /proc, and with a system library that cannot be loaded in place of the bundle's.
curl=$(realpath "$(ldd "$1/snapmla" | awk '/libcurl/ {print $3}')")
if bwrap --bind / / --tmpfs /proc true 2>/dev/null; then
    (cd / && env -i bwrap --bind / / --dev /dev --tmpfs /proc --ro-bind /dev/null "$curl" \
        "$program" eval --suite demo --print-config >/dev/null 2>"$dir/said") ||
        fail "the bundle does not run without /proc: $(cat "$dir/said")"
    grep -q '/proc is not mounted' "$dir/said" || fail 'the bundle does not say that /proc is missing'
else
    echo 'test-install: SKIPPED the bundle without /proc: bwrap cannot be used here'
fi

deb=$(make -s BUILD="$1" deb | tail -n 1)
dpkg-deb -x "$deb" "$dir/deb"
dpkg-deb -f "$deb" Depends | grep -q 'libcurl4.*libjansson4' || fail 'the Debian package does not name its libraries'
for f in bin/snapmla share/man/man1/snapmla.1.gz share/bash-completion/completions/snapmla \
    share/zsh/vendor-completions/_snapmla share/fish/vendor_completions.d/snapmla.fish share/doc/snapmla/copyright; do
    [ -s "$dir/deb/usr/$f" ] || fail "no $f in the Debian package"
done
(cd / && env -i "$dir/deb/usr/bin/snapmla" info >/dev/null) || fail 'the program of the Debian package does not run'

python3 - "$wheel" "$dir/wheel" <<'END' || fail 'the RECORD of the wheel does not fit its files'
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = set(wheel.namelist())
record = next(n for n in names if n.endswith(".dist-info/RECORD"))
for name, digest, size in csv.reader(io.StringIO(wheel.read(record).decode())):
    names.remove(name)
    if name != record:
        data = wheel.read(name)
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert digest == "sha256=" + found and int(size) == len(data), name
assert not names, names
wheel.extractall(sys.argv[2])
END
chmod +x "$dir/wheel/snapmla/bin/snapmla" "$dir/wheel/snapmla/libexec/snapmla"
(cd / && env -i "$dir/wheel/snapmla/bin/snapmla" info >/dev/null) || fail 'the program of the wheel does not run'
sh ci/hardened.sh "${program%/bin/snapmla}/libexec/snapmla" "$dir/deb/usr/bin/snapmla" "$dir/wheel/snapmla/libexec/snapmla" || fail 'a package is not hardened'
echo 'test-install: installation, bundle, Debian package and wheel run'
