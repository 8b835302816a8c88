#!/bin/sh
# Makes a relocatable bundle with the program, its data, manual and completions, and the shared
# libraries it needs except those of the C library. It runs with a glibc at least as new as the
# bundle's NOTE says.
#   dist.sh BUILD VERSION
set -eu
build=$1
version=$2
name=snapmla-$version-$(uname -m)
root=$build/dist/$name
sh ci/install-deps.sh package
command -v patchelf >/dev/null || { echo 'dist: patchelf is missing: install it (Debian: apt-get install patchelf)' >&2; exit 1; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

rm -rf "$root"
make -s BUILD="$build" install DESTDIR="$PWD/$root" PREFIX= >/dev/null
mkdir -p "$root/lib" "$root/libexec" "$root/share/doc/snapmla/licences"
mv "$root/bin/snapmla" "$root/libexec/snapmla"
strip "$root/libexec/snapmla"
cat >"$root/bin/snapmla" <<'END'
#!/bin/sh
# Starts the program of this bundle. The loader finds the bundle's libraries through /proc/self/exe.
# Where /proc is not mounted, it must be told where they are.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
if [ ! -e /proc/self/exe ]; then
    echo 'snapmla: warning: /proc is not mounted, so programs of models cannot be tested, and a' \
        'result lacks its command and its processor: mount it' >&2
    export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec "$here/libexec/snapmla" "$@"
END
chmod 755 "$root/bin/snapmla"

# The C library and its loader must be those of the host: they depend on its kernel, locales and
# name service.
ldd "$build/snapmla" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libnss_[a-z]+|ld-linux[^/]*)\.so' |
    while read -r lib; do
        cp -L "$lib" "$root/lib/"
        # Debian names each package's licence file after the package.
        package=$(dpkg-query -S "*/$(basename "$(realpath "$lib")")" 2>/dev/null | sed 's/:.*//; q')
        licence=/usr/share/doc/${package:-none}/copyright
        [ ! -f "$licence" ] || cp -L "$licence" "$root/share/doc/snapmla/licences/$package"
    done
cp LICENSE "$root/share/doc/snapmla/licences/snapmla"
strip --strip-unneeded "$root"/lib/*.so*
# DT_RPATH, not RUNPATH, so that the libraries' own dependencies are also loaded from the bundle
patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$root/libexec/snapmla"
for lib in "$root"/lib/*; do
    patchelf --force-rpath --set-rpath "\$ORIGIN" "$lib"
done

glibc=$(objdump -T "$root"/libexec/snapmla "$root"/lib/* 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
{
    echo "snapmla $version, a relocatable bundle: run bin/snapmla from wherever this folder lies."
    echo "It needs Linux on $(uname -m) with ${glibc:-GLIBC} or newer. Nothing has to be installed."
    echo "The libraries in lib/ are Debian's and keep their own licences: share/doc/snapmla/licences."
} >"$root/NOTE"
tar -C "$build/dist" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
    gzip -9n >"$build/dist/$name.tar.gz"
echo "$build/dist/$name.tar.gz"
