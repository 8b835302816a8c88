#!/bin/sh
# One relocatable bundle: the program, the shared libraries it needs save the C library's own, its data
# and manual. It runs where glibc is at least as new as the one named in the bundle's NOTE.
#   dist.sh BUILD VERSION [HEADER... -- MANUAL...]: what plugins are compiled against goes along
set -eu
build=$1
version=$2
name=snapmla-$version-$(uname -m)
root=$build/dist/$name
rm -rf "$root"
mkdir -p "$root/bin" "$root/lib" "$root/share/man/man1" "$root/share/snapmla"

cp "$build/snapmla" "$root/bin/snapmla"
cp "$build/snapmla.1" "$root/share/man/man1/"
git ls-files configs datasets models | while read -r f; do
    mkdir -p "$root/share/snapmla/$(dirname "$f")"
    cp "$f" "$root/share/snapmla/$f"
done
shift 2
to=include/snapmla
for f in "$@"; do
    [ "$f" = -- ] && to=share/doc/snapmla && continue
    mkdir -p "$root/$to/$(dirname "$f")"
    cp "$f" "$root/$to/$f"
done

# The C library and its loader must be the host's: they belong to its kernel, locale and name service.
ldd "$build/snapmla" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libnss_[a-z]+|ld-linux[^/]*)\.so' |
    while read -r lib; do
        cp -L "$lib" "$root/lib/"
    done
strip --strip-unneeded "$root"/lib/*.so* 2>/dev/null || true
# DT_RPATH, not RUNPATH: the libraries' own dependencies must come from the bundle as well
patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$root/bin/snapmla"
for lib in "$root"/lib/*; do
    patchelf --force-rpath --set-rpath "\$ORIGIN" "$lib"
done

glibc=$(objdump -T "$root"/bin/snapmla "$root"/lib/* 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
{
    echo "snapmla $version, a relocatable bundle: run bin/snapmla from wherever this folder lies."
    echo "Needs Linux on $(uname -m) with ${glibc:-GLIBC} or newer; nothing has to be installed."
    echo "The libraries in lib/ are Debian's and keep their own licences."
} >"$root/NOTE"
tar -C "$build/dist" -czf "$build/dist/$name.tar.gz" "$name"
echo "$build/dist/$name.tar.gz"
