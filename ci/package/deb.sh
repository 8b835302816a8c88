#!/bin/sh
# Makes BUILD/package/snapmla_VERSION-1_ARCH.deb from what `make` built, and checks it with lintian where that is
# installed. dpkg-deb alone is used, not debhelper: `make install` already puts every file where it belongs, so the
# package is that tree, the dependencies that dpkg-shlibdeps computes, and the files that Debian's policy asks for.
#   deb.sh BUILD VERSION
set -eu
build=$1
version=$2-1
work=$build/package/deb
root=$work/root
rm -rf "$work"
mkdir -p "$root/DEBIAN" "$work/debian" "$root/usr/share/doc/snapmla"
# Every file is dated by the commit, so that a second build gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022

make -s BUILD="$build" install DESTDIR="$root" PREFIX=/usr
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/snapmla"
mkdir -p "$root/usr/share/zsh/vendor-completions"
mv "$root/usr/share/zsh/site-functions/_snapmla" "$root/usr/share/zsh/vendor-completions/_snapmla"
rmdir "$root/usr/share/zsh/site-functions"
gzip -9n "$root/usr/share/man/man1/snapmla.1"
find "$root/usr/share" -type f -exec chmod 644 {} +
find "$root/usr/share" \( -name '*.sh' -o -name '*.sbatch' \) -exec chmod 755 {} +

doc=$root/usr/share/doc/snapmla
maintainer="${DEBFULLNAME:-the snapmla authors} <${DEBEMAIL:-snapmla@packages.invalid}>"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
cat <<END | gzip -9nc >"$doc/changelog.Debian.gz"
snapmla ($version) unstable; urgency=medium

  * Built from the sources with \`make deb\`; see changelog.gz.

 -- $maintainer  $(date -uRd "@$SOURCE_DATE_EPOCH")
END
{
    printf '%s\n' 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/' \
        'Upstream-Name: snapmla' '' 'Files: *' "$(sed -n 's/^Copyright (c) /Copyright: /p' LICENSE)" 'License: Expat' ''
    echo 'License: Expat'
    sed '1,/^Copyright/d; /./,$!d; s/^$/./; s/^/ /' LICENSE
} >"$doc/copyright"

architecture=$(dpkg --print-architecture)
printf 'Source: snapmla\n\nPackage: snapmla\nArchitecture: %s\n' "$architecture" >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info root/usr/bin/snapmla 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo 'deb: dpkg-shlibdeps found no dependencies' >&2; exit 1; }
cat >"$root/DEBIAN/control" <<END
Package: snapmla
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f 1)
Depends: $depends
Recommends: bubblewrap, python3
Suggests: python3-langdetect
Section: science
Priority: optional
Description: measures FP8 MLA decoding against a BF16 baseline
 snapmla measures Multi-head Latent Attention (MLA) decoding with an FP8 cache
 (SnapMLA) against a BF16 cache, in speed and in answer quality: benchmarks
 against the measured roofline of the device, numerical error against FP64, and
 evaluation sets with paired statistics. It runs on the CPU, on NVIDIA GPUs if
 it was built with CUDA, and on any other device through plugins.
 .
 bubblewrap and python3 are needed to judge programs that a model wrote.
END
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/md5sums" "$root/DEBIAN/control"

package=$build/package/snapmla_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz -z3 --build "$root" "$package" >/dev/null
if command -v lintian >/dev/null 2>&1; then
    lintian --fail-on error --allow-root "$package" >&2
fi
echo "$package"
