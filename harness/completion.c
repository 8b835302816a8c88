#include "harness/completion.h"

#include <string.h>

#include "base/text.h"

typedef const opt_command *const *command_list;

/* ---- bash ---- */

static void bash_words(const opt *o, void *out) {
    (void)buf_printf(out, " --%s", o->name);
    if (o->type == OPT_FLAG)
        (void)buf_printf(out, " --no-%s", o->name);
}

/* One branch of the `case` over "COMMAND VERB". */
static void bash_case(const opt_command *c, const char *name, const char *tail, buf *out) {
    (void)buf_printf(out, "    '%s'%s) words='", name, tail);
    opt_each(c, bash_words, out);
    (void)buf_puts(out, "'");
    for (command_list v = c->verbs; v && *v; v++)
        if ((*v)->summary)
            (void)buf_printf(out, "%s%s", v == c->verbs ? " verbs='" : " ", opt_verb_word(*v));
    (void)buf_puts(out, c->verbs ? "' ;;\n" : " ;;\n");
}

static void bash_command(const opt_command *c, buf *out) {
    for (command_list v = c->verbs; v && *v; v++)
        if ((*v)->summary)
            bash_case(*v, (*v)->name, "", out);
    bash_case(c, c->name, "' '*", out);
}

static void write_bash(command_list commands, buf *out) {
    (void)buf_puts(out, "# bash completion for snapmla, written by snapmla --completion bash\n"
                        "_snapmla() {\n"
                        "    local word=${COMP_WORDS[COMP_CWORD]} words= verbs=\n"
                        "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (command_list c = commands; *c; c++)
        bash_command(*c, out);
    (void)buf_puts(out, "    esac\n"
                        "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
                        "        words='--help --version");
    for (command_list c = commands; *c; c++)
        (void)buf_printf(out, " %s", (*c)->name);
    (void)buf_puts(out, "'\n"
                        "    elif [ \"${word#-}\" = \"$word\" ]; then\n"
                        "        words=\n"
                        "        [ \"$COMP_CWORD\" = 2 ] && words=$verbs\n"
                        "    fi\n"
                        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                        "}\n"
                        "complete -o default -F _snapmla snapmla\n");
}

/* ---- quoting ---- */

/* Appends the first line of a help text, for a place between single quotes of a shell. @escape:
 * this character gets a backslash before it. */
static void put_quoted(const char *text, char escape, buf *out) {
    for (const char *p = text; *p && *p != '\n'; p++) {
        if (*p == '\'')
            (void)buf_puts(out, "'\\''");
        else if (*p == escape)
            (void)buf_printf(out, "\\%c", *p);
        else
            (void)buf_append(out, p, 1);
    }
}

/* ---- zsh ---- */

/* 'name:description': the form that _describe reads. */
static void zsh_item(const char *before, const char *name, const char *about, buf *out) {
    (void)buf_printf(out, " '%s%s:", before, name);
    put_quoted(about, ':', out);
    (void)buf_puts(out, "'");
}

static void zsh_option(const opt *o, void *out) {
    zsh_item("--", o->name, o->help, out);
    if (o->type == OPT_FLAG)
        zsh_item("--no-", o->name, o->help, out);
}

static void zsh_list(const char *name, command_list list, bool verbs, buf *out) {
    (void)buf_printf(out, "%s=(", name);
    for (; list && *list; list++)
        if ((*list)->summary)
            zsh_item("", verbs ? opt_verb_word(*list) : (*list)->name, (*list)->summary, out);
    (void)buf_puts(out, ")");
}

static void zsh_case(const opt_command *c, const char *tail, buf *out) {
    (void)buf_printf(out, "    '%s'%s) options=(", c->name, tail);
    opt_each(c, zsh_option, out);
    (void)buf_puts(out, ") ");
    zsh_list("verbs", c->verbs, true, out);
    (void)buf_puts(out, " ;;\n");
}

static void write_zsh(command_list commands, buf *out) {
    (void)buf_puts(out, "#compdef snapmla\n"
                        "# zsh completion for snapmla, written by snapmla --completion zsh\n"
                        "local -a commands options verbs\n");
    zsh_list("commands", commands, false, out);
    (void)buf_puts(out, "\ncase \"$words[2] $words[3]\" in\n");
    for (command_list c = commands; *c; c++) {
        for (command_list v = (*c)->verbs; v && *v; v++)
            if ((*v)->summary)
                zsh_case(*v, "", out);
        zsh_case(*c, "' '*", out);
    }
    (void)buf_puts(out, "esac\n"
                        "if (( CURRENT == 2 )); then\n"
                        "    _describe command commands\n"
                        "elif [[ $words[CURRENT] == -* ]]; then\n"
                        "    _describe -o option options\n"
                        "elif (( CURRENT == 3 && $#verbs )); then\n"
                        "    _describe verb verbs\n"
                        "    _files\n"
                        "else\n"
                        "    _files\n"
                        "fi\n");
}

/* ---- fish ---- */

/* Context of fish_option(): where to write, and the fish condition under which the options are
 * offered. */
typedef struct {
    buf *out;
    const char *condition;
} fish_options;

static void fish_line(const fish_options *f, const char *kind, const char *before, const char *name,
                      bool value, const char *about) {
    (void)buf_printf(f->out, "complete -c snapmla -n '%s' %s %s%s%s -d '", f->condition, kind,
                     before, name, value ? " -r" : "");
    for (const char *p = about; *p && *p != '\n'; p++)
        (void)buf_printf(f->out, *p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
    (void)buf_puts(f->out, "'\n");
}

static void fish_option(const opt *o, void *ctx) {
    const fish_options *f = ctx;
    fish_line(f, "-l", "", o->name, o->argument != NULL, o->help);
    if (o->type == OPT_FLAG)
        fish_line(f, "-l", "no-", o->name, false, o->help);
}

/* The options of a command are offered only if no verb follows the command. */
static void fish_command(const opt_command *c, buf *out) {
    buf condition = {0};
    (void)buf_printf(&condition, "__snapmla_at %s", c->name);
    for (command_list v = c->verbs; v && *v; v++)
        if ((*v)->summary)
            (void)buf_printf(&condition, " not:%s", opt_verb_word(*v));
    const fish_options own = {out, buf_str(&condition)};
    opt_each(c, fish_option, (void *)(uintptr_t)&own);
    for (command_list v = c->verbs; v && *v; v++)
        if ((*v)->summary) {
            buf at = {0};
            (void)buf_printf(&at, "__snapmla_at %s %s", c->name, opt_verb_word(*v));
            const fish_options of_verb = {out, buf_str(&at)};
            fish_line(&own, "-a", "", opt_verb_word(*v), false, (*v)->summary);
            opt_each(*v, fish_option, (void *)(uintptr_t)&of_verb);
            buf_release(&at);
        }
    buf_release(&condition);
}

static void write_fish(command_list commands, buf *out) {
    const fish_options first = {out, "__snapmla_at"};
    (void)buf_puts(out, "# fish completion for snapmla, written by snapmla --completion fish\n"
                        "# True if the words typed so far are snapmla and the arguments of this "
                        "function. An\n"
                        "# argument not:WORD means that the next word must not be WORD.\n"
                        "function __snapmla_at\n"
                        "    set -l line (commandline -opc)[2..]\n"
                        "    set -l wanted (string match -v 'not:*' -- $argv)\n"
                        "    set -l next (math (count $wanted) + 1)\n"
                        "    if test (count $argv) = 0\n"
                        "        test (count $line) = 0\n"
                        "    else if set -q line[$next]; and contains -- not:$line[$next] $argv\n"
                        "        false\n"
                        "    else\n"
                        "        test \"$line[1..\"(count $wanted)\"]\" = \"$wanted\"\n"
                        "    end\n"
                        "end\n");
    for (command_list c = commands; *c; c++)
        fish_line(&first, "-f -a", "", (*c)->name, false, (*c)->summary);
    for (command_list c = commands; *c; c++)
        fish_command(*c, out);
}

/* ---- writing the completion of a shell ---- */

snap_status completion_write(const char *shell, const opt_command *const *commands, buf *out,
                             snap_err *err) {
    if (text_equal(shell, "bash"))
        write_bash(commands, out);
    else if (text_equal(shell, "zsh"))
        write_zsh(commands, out);
    else if (text_equal(shell, "fish"))
        write_fish(commands, out);
    else
        return err_set(err, SNAP_E_USAGE, "--completion '%s': must be bash, zsh or fish", shell);
    return buf_check(out, "the completion", err);
}
