#!/bin/sh
# What bash completes must be what the program takes: every command, every option of its --help.
#   completion.sh PROGRAM
set -eu
program=$1
command -v bash >/dev/null || {
    echo 'completion: no bash, not checked'
    exit 0
}
complete() { # WORD...: what is offered for the last one
    "$program" --completion | bash -c 'source /dev/stdin; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _snapmla
        printf "%s\n" "${COMPREPLY[@]}"' complete "$@"
}
expect() { # WHAT WANTED GOT
    [ "$2" = "$3" ] || {
        printf 'completion: %s: wanted\n%s\ngot\n%s\n' "$1" "$2" "$3" >&2
        exit 1
    }
}
commands=$("$program" --help | sed -n '/^Commands/,/^$/s/^  \([a-z-]*\) .*/\1/p' | sort)
expect commands "$commands" "$(complete snapmla '' | grep -v '^-' | sort)"
for c in $commands; do
    options=$("$program" "$c" --help | grep -oE '^ +(-., )?--(\[no-\])?[a-z0-9-]+' | sed 's/.*--/--/; s/\[no-\]//' | sort -u)
    offered=$(complete snapmla "$c" -- | grep -v '^--no-' | sort)
    expect "options of $c" "$options" "$offered"
done
expect 'the beginning of an option' --suite "$(complete snapmla eval --sui)"
expect 'no option begun' '' "$(complete snapmla eval syn)"
echo 'completion: every command and option'
