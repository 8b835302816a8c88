#!/bin/sh
# Installs the missing packages with apt. If it may not, it prints their names.
#   install-deps.sh build|test|package|lint
# build: packages for building the program; test: also for its tests; package: also for `make dist`,
# `make deb` and `make wheel`; lint: for every check of `make check`.
set -eu
build='gcc make pkg-config binutils libc6-dev libcurl4-openssl-dev libmicrohttpd-dev libjansson-dev libpcre2-dev libssl-dev libzip-dev libgmp-dev libmpfr-dev zlib1g-dev libzstd-dev libsnappy-dev libseccomp-dev libutf8proc-dev bubblewrap python3 python3-langdetect util-linux'
test="$build libcunit1-dev ca-certificates"
package="$build patchelf dpkg-dev file lintian"
lint="$test $package clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev mandoc pmccabe zsh libxml2-utils ocl-icd-libopencl1 pocl-opencl-icd"
# For the test of report pages. Ubuntu has no such package, and the test is then skipped.
grep -qs '^ID=debian' /etc/os-release && lint="$lint chromium"

case ${1:-build} in
build) want=$build ;;
test) want=$test ;;
package) want=$package ;;
lint) want=$lint ;;
*) echo "usage: $0 build|test|package|lint" >&2; exit 2 ;;
esac

# Without dpkg the packages have other names, so the libraries are searched instead.
if ! command -v dpkg-query >/dev/null 2>&1; then
    pkg-config --exists libcurl libmicrohttpd jansson libpcre2-8 libcrypto libzip gmp mpfr zlib libzstd libseccomp && exit 0
    echo "install-deps: needs a C compiler, make, pkg-config, and the development files of" >&2
    echo "libcurl, libmicrohttpd, jansson, pcre2, openssl, libzip, gmp, mpfr, zlib, zstd, snappy and libseccomp (for tests: cunit; to run programs of a model: bubblewrap, python3; for language checks: python3-langdetect)" >&2
    exit 1
fi

missing=
for p in $want; do
    dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        echo "install-deps: please install as root:$missing" >&2
        echo "install-deps: apt-get install$missing" >&2
        exit 1
    fi
fi
echo "install-deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
if ! $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1; then
    $as_root apt-get update -qq
    $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
