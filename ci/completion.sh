#!/bin/sh
# Checks that bash, zsh and fish complete every command and verb, and every option that --help lists.
# A shell that is not installed is not checked, and the last line says so.
#   completion.sh PROGRAM
set -eu
program=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Prints what the shell offers for the last WORD, one candidate per line.
offers_bash() { # WORD...
    bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _snapmla
        printf "%s\n" "${COMPREPLY[@]}"' "$dir/bash" "$@"
}
# The completion system of zsh needs a terminal. Here _describe prints its candidates instead.
offers_zsh() { # WORD...
    zsh -fc 'zmodload zsh/parameter
        _describe() { [[ $1 == -o ]] && shift; print -rl -- ${(P)2} | sed "s/:.*//"; }
        _files() { }
        functions[_snapmla]=$(<$0); words=("$@"); CURRENT=$#; _snapmla' "$dir/zsh" "$@" |
        { grep -- "^$(for last; do :; done; echo "$last")" || true; }
}
offers_fish() { # WORD...
    fish --no-config -c 'source $argv[1]; complete -C "$argv[2..]"' "$dir/fish" "$@" | cut -f 1
}
expect() { # WHAT WANTED GOT
    [ "$2" = "$3" ] || {
        printf 'completion: %s: %s: wanted\n%s\ngot\n%s\n' "$shell" "$1" "$2" "$3" >&2
        exit 1
    }
}
options_of() { # COMMAND [VERB]: the options of its --help
    "$program" "$@" --help | grep -oE '^ +(-., )?--(\[no-\])?[a-z0-9-]+' | sed 's/.*--/--/; s/\[no-\]//' | sort -u
}
verbs_of() { # COMMAND
    "$program" "$1" --help | sed -n '/^Verbs/,/^$/s/^  \([a-z-]*\) .*/\1/p' | sort
}
# Every switch also has the form --no-NAME. Such a form counts only where --help lists it.
options_offered() { # OPTIONS-OF-HELP WORD...
    listed=$1
    shift
    offers_$shell "$@" -- | sort -u | while read -r option; do
        case $option in
        --no-*) printf '%s\n' "$listed" | grep -xe "$option" || true ;;
        *) echo "$option" ;;
        esac
    done
}

commands=$("$program" --help | sed -n '/^Commands/,/^$/s/^  \([a-z-]*\) .*/\1/p' | sort)
for c in $commands; do
    options_of "$c" >"$dir/options-$c"
    verbs_of "$c" >"$dir/verbs-$c"
done

checked=
cd "$dir" # no files here that a shell could offer
for shell in bash zsh fish; do
    command -v $shell >/dev/null || continue
    "$program" --completion $shell >"$dir/$shell"
    expect commands "$commands" "$(offers_$shell snapmla '' | grep -v '^-' | grep -vE "^(bash|zsh|fish|options-.*|verbs-.*)$" | sort)"
    for c in $commands; do
        options=$(cat "$dir/options-$c")
        expect "options of $c" "$options" "$(options_offered "$options" snapmla "$c")"
        for v in $(cat "$dir/verbs-$c"); do
            expect "verb of $c" "$v" "$(offers_$shell snapmla "$c" "${v%?}" | grep "^$v$")"
            options=$(options_of "$c" "$v")
            expect "options of $c $v" "$options" "$(options_offered "$options" snapmla "$c" "$v")"
        done
    done
    expect 'the beginning of an option' --suite "$(offers_$shell snapmla eval --sui)"
    checked="$checked $shell"
done
echo "completion: every command, verb and option, in$checked"
