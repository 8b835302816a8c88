#!/bin/sh
# Runs the commands of a document, by default docs/tutorial.md, and compares their output with what it shows.
#   tutorial.sh BUILD [DOCUMENT]
#
# A block that begins with ```console holds commands and their output:
#   $ command            a command; a line that ends with \ continues in the next line
#   anything else        its standard output
# Commands run in order in one shell, in a temporary folder with links to the source tree. Standard
# error is not compared. A command must exit with 0.
#
# How output is compared, by the words after ```console:
#   (none)      word by word; the amount of white space does not count
#   measured    the same, but any number matches any other or a missing one (-), any verdict matches
#               any other, and the flags of a busy machine may be present or absent
#   by-hand     the block is skipped: it needs the network or takes long
# In every block, … within a line matches the rest of that line. A line that is only … matches any
# number of lines, including none.
set -u
build=$(realpath "$1")
document=$(realpath "${2:-docs/tutorial.md}")
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export NO_COLOR=1 COLUMNS=100
export CUDA_VISIBLE_DEVICES= # the document shows a processor, also on a machine with a GPU
unset SNAPMLA_CONFIG

mkdir "$dir/here" "$dir/steps"
for entry in "$root"/*; do
    ln -s "$entry" "$dir/here/"
done
rm -f "$dir/here/build"
ln -s "$build" "$dir/here/build"

# One step for each command: N.cmd, N.want, N.line, N.mode
awk -v to="$dir/steps" '
    function finish() { if (open) { close(base ".want"); close(base ".cmd") }; open = 0 }
    /^```console/ { inside = $0 !~ /by-hand/; mode = $0 ~ /measured/ ? "measured" : "exact"; next }
    /^```/ { finish(); inside = 0; more = 0; next }
    !inside { next }
    more { print > (base ".cmd"); more = /\\$/; next }
    /^\$ / {
        finish()
        base = sprintf("%s/%03d", to, ++n)
        open = 1
        print substr($0, 3) > (base ".cmd")
        printf "" > (base ".want")
        print NR > (base ".line"); close(base ".line")
        print mode > (base ".mode"); close(base ".mode")
        more = /\\$/
        next
    }
    open { print > (base ".want") }
' "$document"

# Output in the form in which it is compared.   normal_form MODE < TEXT
normal_form() {
    awk -v mode="$1" '
        mode == "measured" {
            gsub(/(noisy|shared|throttled|power_capped|weak_baseline)/, "")
            gsub(/(not shown|equivalent|different|correct|wrong|unparsed|\(truncated\))/, "VERDICT")
            gsub(/[-+]?[0-9]+([.,][0-9]+)*(e[-+]?[0-9]+)?x?/, "#")
            gsub(/#\.\.#/, "#")
            gsub(/\[#, #\]/, "#")
            gsub(/(VERDICT )#/, "VERDICT")
            gsub(/ -( -)* /, " # ")
            while (gsub(/ - /, " # ")) {}
            sub(/ -$/, " #")
        }
        { gsub(/[ \t]+/, " "); sub(/^ /, ""); sub(/ $/, ""); print }
    '
}

# Does the output match?   matches WANT GOT
matches() {
    awk '
        function like(pattern, text,   i) { # … in a line
            if ((i = index(pattern, "…")) == 0)
                return pattern == text
            return substr(text, 1, i - 1) == substr(pattern, 1, i - 1)
        }
        NR == FNR { want[++w] = $0; next }
        { got[++g] = $0 }
        END {
            while (w && want[w] == "") w--
            while (g && got[g] == "") g--
            i = j = 1
            star = 0
            while (j <= g) {
                if (i <= w && want[i] == "…") { star = i++; mark = j }
                else if (i <= w && like(want[i], got[j])) { i++; j++ }
                else if (star) { i = star + 1; j = ++mark }
                else exit 1
            }
            while (i <= w && want[i] == "…") i++
            exit i <= w
        }
    ' "$1" "$2"
}

cd "$dir/here" || exit 1
steps=0
failed=0
for cmd in "$dir"/steps/*.cmd; do
    base=${cmd%.cmd}
    steps=$((steps + 1))
    where="${document#"$root/"}:$(cat "$base.line")"
    eval "$(cat "$cmd")" >"$base.out" 2>"$base.err" </dev/null
    code=$?
    if [ "$code" != 0 ]; then
        echo "tutorial: $where: exit code $code from: $(cat "$cmd")" >&2
        cat "$base.err" >&2
        failed=$((failed + 1))
        break # later commands use what this one makes
    fi
    mode=$(cat "$base.mode")
    normal_form "$mode" <"$base.want" >"$base.want.form"
    normal_form "$mode" <"$base.out" >"$base.out.form"
    if ! matches "$base.want.form" "$base.out.form"; then
        echo "tutorial: $where: the output of this command has changed: $(cat "$cmd")" >&2
        diff "$base.want" "$base.out" >&2
        failed=$((failed + 1))
    fi
done
echo "tutorial: $steps commands, $failed failed"
[ "$failed" = 0 ] && [ "$steps" -gt 0 ]
