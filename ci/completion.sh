#!/bin/sh
# What bash completes must be what the program takes: every command and verb, and every option of its --help.
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
options_of() { # COMMAND [VERB]: the options of its --help
    "$program" "$@" --help | grep -oE '^ +(-., )?--(\[no-\])?[a-z0-9-]+' | sed 's/.*--/--/; s/\[no-\]//' | sort -u
}
verbs_of() { # COMMAND
    "$program" "$1" --help | sed -n '/^Verbs/,/^$/s/^  \([a-z-]*\) .*/\1/p' | sort
}
for c in $commands; do
    expect "options of $c" "$(options_of "$c")" "$(complete snapmla "$c" -- | grep -v '^--no-' | sort)"
    for v in $(verbs_of "$c"); do
        expect "options of $c $v" "$(options_of "$c" "$v")" "$(complete snapmla "$c" "$v" -- | grep -v '^--no-' | sort)"
    done
    expect "verbs of $c" "$(verbs_of "$c")" "$(complete snapmla "$c" '' | sort)"
done
expect 'the beginning of an option' --suite "$(complete snapmla eval --sui)"
expect 'no option begun' '' "$(complete snapmla eval syn)"
echo 'completion: every command, verb and option'
