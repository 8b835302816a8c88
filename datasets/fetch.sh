#!/bin/sh
# Brings the public data sets into a folder: what `snapmla fetch` does, with curl or wget alone.
#   fetch.sh [--dir DIR] [--mirror URL] [--list] [--accept-licences] [--retries N] [--manifest FILE] [NAME...]
# Without a NAME it fetches all sets but the large ones. Each file is first written to FILE.part. It
# is renamed to FILE when it is complete and has the manifest's sha256 (where the manifest has one).
# An interrupted transfer continues where it stopped. If build/snapmla exists, this script runs
# `snapmla fetch` instead: SNAPMLA=PROGRAM names another program, an empty SNAPMLA= forbids it.
# Exit codes as the program's: 0 done, 2 usage, 3 files or network.
set -euf

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
program=${SNAPMLA-$here/../build/snapmla}
manifest=$here/manifest.json
dir=datasets
mirror=
list=0
accepted=0
retries=4
tab=$(printf '\t')

die() {
    code=$1
    shift
    echo "fetch.sh: $*" >&2
    exit "$code"
}

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$here/fetch.sh"
}

# ---- the manifest, by line ----

# Prints one line for each file: set, large, path, bytes, sha256, url, convert, with - for null.
files() {
    awk '
        function value(key,   s) {
            if (!match($0, "\"" key "\": (\"[^\"]*\"|[a-z0-9]+)"))
                return "-"
            s = substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
            gsub(/"/, "", s)
            return s == "null" ? "-" : s
        }
        /^\{"name": / { set = value("name"); large = value("large") }
        /^\{"path": / {
            printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", set, large, value("path"), value("bytes"),
                value("sha256"), value("url"), value("convert")
        }' "$manifest"
}

# Prints the value of the key $2 of the set $1; nothing for null.
of_set() {
    sed -n "s/^{\"name\": \"$1\".*\"$2\": \"\([^\"]*\)\".*/\1/p" "$manifest"
}

# Prints a mark if the manifest lacks a checksum for one of the files of the set $1.
mark_of() {
    files | awk -F "$tab" -v set="$1" '$1 == set && ($5 == "-" || $7 != "-") { n++ }
        END { if (n) printf " (UNVERIFIED)" }'
}

# Prints the state of the file. $1: 1 if the file was compared with the manifest's checksum.
say() {
    if [ "$1" = 1 ]; then
        printf '%-9s %s\n' "$state" "$target"
    else
        printf '%-9s %s UNVERIFIED, sha256 %s\n' "$state" "$target" "$(sha256_of "$target")"
    fi
}

# ---- one file ----

sha256_of() {
    sha256sum <"$1" | cut -d ' ' -f 1
}

size_of() {
    wc -c <"$1" | tr -d ' '
}

# Downloads the rest of the URL $1 to $2.part. Returns 0 = done, 1 = try again, 2 = try again from the
# start, 3 = trying again is useless. curl or wget print what went wrong.
transfer() {
    rc=0
    if command -v curl >/dev/null 2>&1; then
        answer=$(curl -fsSL --proto '=http,https' --max-redirs 8 --connect-timeout 30 --speed-limit 1 \
            --speed-time 60 -C - -w '%{http_code}' -o "$2.part" "$1") || rc=$?
        case $rc:$answer in
        0:*) return 0 ;;
        33:* | 36:* | 22:416) return 2 ;;              # the server has no Range, or it is past the end
        22:408 | 22:409 | 22:425 | 22:429 | 22:5*) return 1 ;;
        1:* | 3:* | 22:* | 23:* | 47:* | 60:*) return 3 ;; # protocol, refusal, disk, redirects, certificate
        *) return 1 ;;
        esac
    fi
    command -v wget >/dev/null 2>&1 || die 3 'needs curl or wget'
    wget -nv -c --max-redirect=8 --timeout=60 --tries=1 -O "$2.part" "$1" || rc=$?
    case $rc in
    0) return 0 ;;
    2 | 3 | 5 | 8) return 3 ;; # usage, disk, certificate, refusal
    *) return 1 ;;
    esac
}

# Downloads the URL $4 to $target.part, with retries. $1: path in the folder, $2: bytes, $3: sha256.
download() {
    target=$dir/$1
    # without a checksum, the rest could belong to another version of the file, so start again
    [ "$3" != - ] || rm -f "$target.part"
    attempt=0
    wait=1
    until [ "$2" != - ] && [ -f "$target.part" ] && [ "$(size_of "$target.part")" -ge "$2" ]; do
        how=0
        transfer "$4" "$target" || how=$?
        [ $how != 0 ] || break
        if [ $how = 2 ] && [ -s "$target.part" ]; then
            rm -f "$target.part"
            state=fetched
            continue
        fi
        attempt=$((attempt + 1))
        kept=0
        [ ! -f "$target.part" ] || kept=$(size_of "$target.part")
        if [ $how = 3 ] || [ "$attempt" -gt "$retries" ]; then
            die 3 "$set: cannot fetch $4 ($kept bytes are kept; the same command continues)"
        fi
        [ "$kept" = 0 ] || state=resumed
        sleep $wait
        wait=$((wait * 2))
    done
    # curl and wget create no file for an empty answer
    [ -f "$target.part" ] || : >"$target.part"
}

# True if $target.part has $1 bytes and the sha256 $2, as far as these are known (not "-").
is_whole() {
    { [ "$1" = - ] || [ "$(size_of "$target.part")" = "$1" ]; } &&
        { [ "$2" = - ] || [ "$(sha256_of "$target.part")" = "$2" ]; }
}

# Ends the script if $target.part, from the URL $3, does not have $1 bytes and the sha256 $2.
check() {
    if [ "$1" != - ] && [ "$(size_of "$target.part")" != "$1" ]; then
        got=$(size_of "$target.part")
        rm -f "$target.part"
        die 3 "$set: $3 has $got bytes, but the manifest says $1; the download was deleted"
    fi
    [ "$2" != - ] || return 0
    sum=$(sha256_of "$target.part")
    if [ "$sum" != "$2" ]; then
        rm -f "$target.part"
        die 3 "$set: $3 has the wrong checksum: sha256 $sum, but the manifest says $2;" \
            "the download was deleted"
    fi
}

# Converts $target.part from the JSON of Hugging Face's rows API to JSON lines. $1: its URL.
convert() {
    command -v jq >/dev/null 2>&1 || die 3 "$set: needs jq, or the program, to convert '$target'"
    jq -ce 'if .rows and (.rows | length) == .num_rows_total and (.partial | not) and
            ([.rows[].truncated_cells[]?] | length) == 0
        then .rows[].row else error("rows are missing or cut short") end' \
        <"$target.part" >"$target.part.jsonl" || {
        rm -f "$target.part" "$target.part.jsonl"
        die 3 "$set: $1 is not the rows of a set"
    }
    mv "$target.part.jsonl" "$target.part"
}

# Downloads and converts answers of 100 rows each, until all rows are there. $1: path, $2: URL.
pages() {
    have=0
    all=-1
    rm -f "$target.part.jsonl"
    while [ "$have" != "$all" ]; do
        rm -f "$target.part"
        download "$1" - - "$2&offset=$have&length=100"
        command -v jq >/dev/null 2>&1 || die 3 "$set: needs jq, or the program, to convert '$target'"
        counts=$(jq -re 'if (.rows | length) > 0 and (.partial | not) and
                ([.rows[].truncated_cells[]?] | length) == 0
            then "\(.rows | length) \(.num_rows_total)" else error("rows are missing or cut short") end' \
            <"$target.part") && jq -c '.rows[].row' <"$target.part" >>"$target.part.jsonl" || counts=
        [ -z "$counts" ] || have=$((have + ${counts%% *}))
        if [ -z "$counts" ] || [ "$have" -gt "${counts##* }" ]; then
            rm -f "$target.part" "$target.part.jsonl"
            die 3 "$set: $2 is not the rows of a set"
        fi
        all=${counts##* }
    done
    mv "$target.part.jsonl" "$target.part"
}

# Brings one file into the folder. $1: set, $2: path, $3: bytes, $4: sha256, $5: URL, $6: converter.
fetch() {
    set=$1
    target=$dir/$2
    bytes=$3
    want=$4
    url=$5
    converter=$6
    if [ -f "$target" ]; then
        there "$want" "$converter"
        return
    fi
    if [ -n "$mirror" ]; then
        url=${mirror%/}/$2
        [ "$converter" = - ] || { bytes=-; want=-; converter=-; }
    fi
    mkdir -p "$(dirname "$target")" || die 3 "cannot create the folder of '$target'"
    state=fetched
    if [ "$converter" = hf_pages ]; then
        pages "$2" "$url"
        mv "$target.part" "$target" || die 3 "cannot replace '$target'"
        say 0
        return
    fi
    [ ! -s "$target.part" ] || [ "$want" = - ] || state=resumed
    download "$2" "$bytes" "$want" "$url"
    if [ $state = resumed ] && ! is_whole "$bytes" "$want"; then
        rm -f "$target.part" # its beginning may be from another version of the file
        state=fetched
        download "$2" "$bytes" "$want" "$url"
    fi
    check "$bytes" "$want" "$url"
    [ "$converter" = - ] || convert "$url"
    mv "$target.part" "$target" || die 3 "cannot replace '$target'"
    rm -f "$target.part.etag"
    [ "$want" = - ] && say 0 || say 1
}

# Checks a file that exists already, if its sha256 $1 is known and it was not converted ($2 is -).
there() {
    if [ "$1" = - ] || [ "$2" != - ]; then
        state=unchecked
        say 0
        return
    fi
    sum=$(sha256_of "$target")
    [ "$sum" = "$1" ] ||
        die 3 "$set: '$target' exists with another checksum: sha256 $sum, but the manifest says $1;" \
            "delete it to fetch it again"
    printf '%-9s %s\n' there "$target"
}

# ---- the command line ----

for argument in "$@"; do
    case $argument in -h | --help) usage; exit 0 ;; esac
done
[ -z "$program" ] || [ ! -x "$program" ] || exec "$program" fetch "$@"

names=
while [ $# -gt 0 ]; do
    case $1 in
    --*=*)
        option=${1%%=*}
        argument=${1#*=}
        shift
        set -- "$option" "$argument" "$@"
        continue
        ;;
    -d | --dir | -m | --mirror | --manifest | --retries)
        [ $# -ge 2 ] || die 2 "$1 needs a value"
        case $1 in
        -d | --dir) dir=$2 ;;
        -m | --mirror) mirror=$2 ;;
        --manifest) manifest=$2 ;;
        --retries) retries=$2 ;;
        esac
        shift
        ;;
    -l | --list) list=1 ;;
    --accept-licences) accepted=1 ;;
    -*) die 2 "unknown option '$1': fetch.sh --help lists them" ;;
    *) names="$names $1" ;;
    esac
    shift
done
case $retries in '' | *[!0-9]*) die 2 "--retries must be a number, not '$retries'" ;; esac
case $mirror in '' | http://* | https://*) ;; *) die 2 "'$mirror' is neither an http nor an https URL" ;; esac
[ -r "$manifest" ] || die 3 "cannot open '$manifest'"
[ $list = 1 ] || command -v sha256sum >/dev/null 2>&1 || die 3 'needs sha256sum'
all=$(files | cut -f 1 | uniq)
[ -n "$all" ] || die 3 "$manifest: not a manifest of data sets"

for name in $names; do
    printf '%s\n' "$all" | grep -Fqx -e "$name" ||
        die 2 "no data set '$name' in the manifest: it has $(printf '%s' "$all" | tr '\n' ' ')"
done
if [ -z "$names" ]; then
    [ $list = 1 ] && names=$all || names=$(files | awk -F "$tab" '$2 == "false" {print $1}' | uniq)
fi

if [ $list = 0 ]; then
    mkdir -p "$dir" || die 3 "cannot create '$dir'"
    (: >>"$dir/.fetch.lock") 2>/dev/null || die 3 "cannot write in '$dir'"
    # `snapmla fetch` uses the same lock. curl and wget inherit it, so it is held while one of them runs
    if command -v flock >/dev/null 2>&1; then
        exec 9>>"$dir/.fetch.lock"
        flock -n 9 || die 3 "another process fetches into '$dir'"
    fi
fi

for name in $names; do
    if [ $list = 1 ]; then
        printf '%-14s %-20s %s%s\n' "$name" "$(of_set "$name" title)" "$(of_set "$name" licence)" \
            "$(mark_of "$name")"
        continue
    fi
    if [ $accepted = 0 ]; then
        printf '%s: %s\n  licence: %s\n' "$name" "$(of_set "$name" home)" "$(of_set "$name" licence)" >&2
        notice=$(of_set "$name" notice)
        [ -z "$notice" ] || printf '  notice: %s\n' "$notice" >&2
    fi
    files | awk -F "$tab" -v set="$name" '$1 == set' |
        while IFS=$tab read -r set large path bytes want url converter; do
            : "$large"
            fetch "$set" "$path" "$bytes" "$want" "$url" "$converter"
        done || exit $?
done
