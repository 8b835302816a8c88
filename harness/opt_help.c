/* opt_help.c - writes a table of options as --help and as a part of the man page, and lists it for
 * completion scripts. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/opt_inside.h"

/* Columns of --help: its width, and where the text of an option begins. */
enum { kHelpWidth = 100, kHelpColumn = 31 };

/* The exit codes of a command that names none. */
static const char kExits[] =
    "0 done, 2 usage or configuration, 3 runtime, 6 environment invalid, 7 wrong result";

/* Whether @o is a flag that is on by default, so that only its --no- form changes anything. */
static bool flag_is_on(const opt *o) {
    return o->type == OPT_FLAG && o->value && *(const bool *)o->value;
}

static void help_default(const opt *o, buf *out) {
    if (flag_is_on(o))
        (void)buf_puts(out, " (on by default)");
    if (o->type == OPT_NUM && o->value) {
        (void)buf_printf(out, " (default %g)", *(const double *)o->value);
        return;
    }
    js *v = o->type == OPT_FLAG || !o->value ? NULL : opt_value_json(o);
    buf text = {0};
    bool empty = !v || js_is_null(v) || (js_is_array(v) && !js_len(v));
    if (!empty && opt_scalar_text(v, &text) && text.len)
        (void)buf_printf(out, " (default %s)", buf_str(&text));
    js_free(v);
    buf_release(&text);
}

/* Appends @text, which begins at column @at of its line. The text is broken between words so that
 * its lines have at most kHelpWidth columns, if no word is too long for that. Further lines are
 * indented to @indent. */
static void put_wrapped(const char *text, size_t at, size_t indent, buf *out) {
    for (bool first = true; *text; first = false) {
        bool whole = strncmp(text, "(default ", 9) == 0; /* a default value is not broken */
        size_t n = whole ? strlen(text) : strcspn(text, " ");
        if (!first && at + 1 + n > kHelpWidth) {
            (void)buf_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            (void)buf_puts(out, " ");
            at++;
        }
        (void)buf_append(out, text, n);
        at += n;
        text += n + strspn(text + n, " ");
    }
}

/* The text begins at column kHelpColumn, on a line of its own if the option's name is too long. */
static void help_option(const opt *o, buf *out) {
    char left[80];
    buf text = {0};
    char letter[5] = "    ";
    if (o->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    (void)snprintf(left, sizeof left, "%s--%s%s%s%s", letter, flag_is_on(o) ? "[no-]" : "", o->name,
                   o->argument ? " " : "", o->argument ? o->argument : "");
    if (strlen(left) > kHelpColumn - 3)
        (void)buf_printf(out, "  %s\n%*s", left, kHelpColumn, "");
    else
        (void)buf_printf(out, "  %-*s ", kHelpColumn - 3, left);
    (void)buf_puts(&text, o->help);
    help_default(o, &text);
    put_wrapped(buf_str(&text), kHelpColumn, kHelpColumn, out);
    (void)buf_puts(out, "\n");
    out->failed |= text.failed;
    buf_release(&text);
}

typedef void (*opt_show_fn)(const opt *o, buf *out);

static void show_tables(const opt_command *cmd, opt_show_fn group, opt_show_fn option, buf *out) {
    opt_shared sh = {.color = "auto"};
    opt shared[OPT_SHARED];
    opt_shared_table(&sh, shared);
    for (const opt *o = cmd->options; o->type != OPT_END; o++)
        if (o->type != OPT_GONE)
            (o->type == OPT_GROUP ? group : option)(o, out);
    for (int i = 0; i < OPT_SHARED; i++)
        (shared[i].type == OPT_GROUP ? group : option)(&shared[i], out);
}

static void help_group(const opt *o, buf *out) {
    (void)buf_printf(out, "\n%s\n", o->help);
}

static void help_verbs(const opt_command *cmd, buf *out) {
    (void)buf_puts(out, "\nVerbs\n");
    for (const opt_command *const *v = cmd->verbs; *v; v++)
        if ((*v)->summary)
            (void)buf_printf(out, "  %-11s %s%s\n", opt_verb_word(*v), (*v)->summary,
                             (*v)->options == cmd->options ? "; the default" : "");
    (void)buf_printf(out, "\n'snapmla %s VERB --help' lists the options of a verb.\n", cmd->name);
}

void opt_help(const opt_command *cmd, buf *out) {
    (void)buf_printf(out, "usage: snapmla %s %s\n\n%s\n", cmd->name, cmd->synopsis, cmd->about);
    if (cmd->verbs)
        help_verbs(cmd, out);
    if (cmd->options->type != OPT_GROUP)
        (void)buf_puts(out, "\nOptions\n");
    show_tables(cmd, help_group, help_option, out);
    (void)buf_printf(out, "\nExamples\n%s\n", cmd->examples);
    static const char exits[] = "Exit codes: ";
    (void)buf_printf(out, "\n%s", exits);
    put_wrapped(cmd->exits ? cmd->exits : kExits, strlen(exits), 2, out);
    (void)buf_puts(out, "\n");
}

/* Escapes text for roff. A backslash begins an escape sequence. A dot or a quote at the start of a
 * line begins a request. Each sentence must begin on a new line, and an empty line is written as a
 * paragraph request. */
static void mdoc_text(const char *text, buf *out) {
    bool line_start = true;
    for (const char *p = text; *p; p++) {
        if (line_start && (*p == '.' || *p == '\''))
            (void)buf_puts(out, "\\&");
        line_start = *p == '\n' || (*p == ' ' && p > text && p[-1] == '.');
        if (*p == '\\')
            (void)buf_puts(out, "\\e");
        else if (*p == '\n' && p > text && p[-1] == '\n')
            (void)buf_puts(out, ".Pp\n");
        else
            (void)buf_append(out, line_start ? "\n" : p, 1);
    }
}

static void mdoc_group(const opt *o, buf *out) {
    (void)buf_printf(out, ".It Em %s\n", o->help);
}

static void mdoc_option(const opt *o, buf *out) {
    (void)buf_puts(out, ".It Fl ");
    if (o->letter)
        (void)buf_printf(out, "%c , Fl ", o->letter);
    (void)buf_printf(out, "-%s%s", flag_is_on(o) ? "[no-]" : "", o->name);
    if (o->argument)
        (void)buf_printf(out, " Ar %s", o->argument);
    (void)buf_puts(out, "\n");
    mdoc_text(o->help, out);
    help_default(o, out);
    (void)buf_puts(out, "\n");
}

static void mdoc_command(const opt_command *cmd, buf *out) {
    (void)buf_printf(out, ".Ss snapmla %s %s\n", cmd->name, cmd->synopsis);
    mdoc_text(cmd->about, out);
    if (cmd->exits)
        (void)buf_printf(out, "\n.Pp\nExit codes: %s.", cmd->exits);
    (void)buf_puts(out, "\n.Bl -tag -width Ds\n");
    show_tables(cmd, mdoc_group, mdoc_option, out);
    (void)buf_puts(out, ".El\n.Bd -literal -offset indent\n");
    mdoc_text(cmd->examples, out);
    (void)buf_puts(out, "\n.Ed\n");
}

/* The default verb of a command has the same table as the command, so it gets no section. */
void opt_mdoc(const opt_command *cmd, buf *out) {
    mdoc_command(cmd, out);
    for (const opt_command *const *v = cmd->verbs; v && *v; v++)
        if ((*v)->summary && (*v)->options != cmd->options)
            mdoc_command(*v, out);
}

void opt_each(const opt_command *cmd, void (*fn)(const opt *o, void *ctx), void *ctx) {
    opt_shared sh = {.color = "auto"};
    opt shared[OPT_SHARED];
    opt_shared_table(&sh, shared);
    for (const opt *o = cmd->options; o->type != OPT_END; o++)
        if (o->type != OPT_GONE && o->type != OPT_GROUP)
            fn(o, ctx);
    for (int i = 0; i < OPT_SHARED; i++)
        if (shared[i].type != OPT_GROUP)
            fn(&shared[i], ctx);
}
