#include "harness/opt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { kConfigLimit = 1 << 20, kMaxArgs = 4096 };

/* The options that every command has; bound to its opt_shared while parsing. */
enum { SHARED_N = 7 };
static void shared_table(opt_shared *sh, opt table[SHARED_N]) {
    const opt all[SHARED_N] = {
        {.type = OPT_GROUP, .help = "Common"},
        {OPT_STR, "config", 0, &sh->config, "FILE", "read options from a JSON object", 0, 0},
        {OPT_FLAG, "print-config", 0, &sh->print_config, NULL,
         "print the resolved configuration as JSON and stop", 0, 0},
        {OPT_FLAG, "json", 0, &sh->json, NULL, "print the result as JSON", 0, 0},
        {OPT_FLAG, "quiet", 'q', &sh->quiet, NULL, "no progress, no warnings", 0, 0},
        {OPT_STR, "color", 0, &sh->color, "WHEN", "auto, always or never", 0, 0},
        {OPT_FLAG, "help", 'h', &sh->help, NULL, "show this help and stop", 0, 0},
    };
    memcpy(table, all, sizeof all);
}

/* A command's table followed by the shared one. */
typedef struct {
    const opt_command *cmd;
    opt_shared *sh;
    opt shared[SHARED_N];
} tables;

typedef bool (*opt_match_fn)(const opt *o, const void *key);

static const opt *search(const tables *t, opt_match_fn match, const void *key) {
    for (const opt *o = t->cmd->options; o->type != OPT_END; o++)
        if (o->type != OPT_GROUP && match(o, key))
            return o;
    for (int i = 0; i < SHARED_N; i++)
        if (t->shared[i].type != OPT_GROUP && match(&t->shared[i], key))
            return &t->shared[i];
    return NULL;
}

static bool match_name(const opt *o, const void *key) {
    return strcmp(o->name, key) == 0;
}

static bool match_letter(const opt *o, const void *key) {
    return o->letter && o->letter == *(const char *)key;
}

/* ---- one value from text; @from says where it stands: "--batch", "SNAPMLA_BATCH" ---- */

static snap_status set_flag(const opt *o, const char *text, const char *from, snap_err *err) {
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool no = strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    if (!yes && !no)
        return err_set(err, SNAP_E_USAGE, "%s must be true or false, got '%s'", from, text);
    *(bool *)o->value = yes;
    return SNAP_OK;
}

static snap_status check_range(const opt *o, double v, const char *text, const char *from,
                               snap_err *err) {
    bool bounded = o->min < o->max;
    if (bounded && (v < o->min || v > o->max))
        return err_set(err, SNAP_E_USAGE, "%s must be %g..%g, got '%s'", from, o->min, o->max,
                       text);
    return SNAP_OK;
}

static snap_status set_int(const opt *o, const char *text, const char *from, snap_err *err) {
    int64_t v;
    if (!text_to_int(text, &v))
        return err_set(err, SNAP_E_USAGE, "%s must be an integer, got '%s'", from, text);
    snap_status st = check_range(o, (double)v, text, from, err);
    if (st == SNAP_OK)
        *(int64_t *)o->value = v;
    return st;
}

static snap_status set_num(const opt *o, const char *text, const char *from, snap_err *err) {
    double v;
    if (!text_to_double(text, &v))
        return err_set(err, SNAP_E_USAGE, "%s must be a number, got '%s'", from, text);
    snap_status st = check_range(o, v, text, from, err);
    if (st == SNAP_OK)
        *(double *)o->value = v;
    return st;
}

static snap_status add_item(const opt *o, const char *text, const char *from, snap_err *err) {
    opt_list *list = o->value;
    if (list->n == OPT_LIST_MAX)
        return err_set(err, SNAP_E_USAGE, "%s is given more than %d times", from, OPT_LIST_MAX);
    list->items[list->n++] = text;
    return SNAP_OK;
}

static snap_status set_text(const opt *o, const char *text, const char *from, snap_err *err) {
    switch (o->type) {
    case OPT_FLAG:
        return set_flag(o, text, from, err);
    case OPT_INT:
        return set_int(o, text, from, err);
    case OPT_NUM:
        return set_num(o, text, from, err);
    case OPT_STR:
        *(const char **)o->value = text;
        return SNAP_OK;
    case OPT_LIST:
        return add_item(o, text, from, err);
    default:
        SNAP_BUG("an option of no type");
    }
}

/* ---- the configuration file ---- */

/* A scalar of JSON as the text a flag would bring. */
static bool scalar_text(const js *v, buf *out) {
    if (js_is_str(v))
        return buf_puts(out, js_str(v));
    snap_err ignored = {0};
    bool scalar = js_is_num(v) || js_is_bool(v);
    return scalar && js_write(v, JS_COMPACT, out, &ignored) == SNAP_OK;
}

static snap_status config_array(opt_shared *sh, const opt *o, const js *v, const char *from,
                                snap_err *err) {
    buf joined = {0};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(v) && st == SNAP_OK; i++) {
        if (o->type == OPT_LIST && js_is_str(js_at(v, i))) {
            st = add_item(o, js_str(js_at(v, i)), from, err);
            continue;
        }
        if (i)
            (void)buf_puts(&joined, ",");
        if (o->type != OPT_STR || !scalar_text(js_at(v, i), &joined))
            st = err_set(err, SNAP_E_USAGE, "%s does not take this array", from);
    }
    if (st == SNAP_OK && o->type == OPT_STR) {
        js *text = js_new_str(buf_str(&joined)); /* lives as long as the file's other strings */
        *(const char **)o->value = js_str(text);
        if (!js_set_new(sh->file, o->name, text))
            st = err_set(err, SNAP_E_NOMEM, "out of memory for %s", from);
    }
    buf_release(&joined);
    return st;
}

static snap_status config_value(opt_shared *sh, const opt *o, const js *v, const char *from,
                                snap_err *err) {
    if (js_is_array(v))
        return config_array(sh, o, v, from, err);
    if (js_is_str(v))
        return set_text(o, js_str(v), from, err);
    buf text = {0};
    snap_status st;
    if (o->type == OPT_STR || o->type == OPT_LIST || !scalar_text(v, &text))
        st = err_set(err, SNAP_E_USAGE, "%s does not take a value of type %s", from,
                     js_type_name(v));
    else
        st = set_text(o, buf_str(&text), from, err);
    buf_release(&text);
    return st;
}

/* "why" is every file's own comment. */
static snap_status load_config(const tables *t, const char *path, snap_err *err) {
    opt_shared *sh = t->sh;
    sh->file = js_parse_file(path, kConfigLimit, err);
    if (sh->file && !js_is_object(sh->file))
        (void)err_set(err, SNAP_E_USAGE, "%s: a configuration must be a JSON object", path);
    js *keys = js_copy(sh->file); /* config_array() rewrites values while we walk */
    snap_status st = keys && js_is_object(keys) ? SNAP_OK : SNAP_E_USAGE;
    for (void *it = js_first(keys); it && st == SNAP_OK; it = js_next(keys, it)) {
        if (strcmp(js_key(it), "why") == 0)
            continue;
        const opt *o = search(t, match_name, js_key(it));
        char from[300];
        (void)snprintf(from, sizeof from, "%s: key '%s'", path, js_key(it));
        if (!o || strcmp(o->name, "config") == 0)
            st = err_set(err, SNAP_E_USAGE, "%s is no option of '%s'", from, t->cmd->name);
        else
            st = config_value(sh, o, js_get(sh->file, js_key(it)), from, err);
    }
    js_free(keys);
    if (st != SNAP_OK && err)
        err->code = SNAP_E_USAGE; /* whatever is wrong with a configuration is a usage error */
    return st == SNAP_OK ? SNAP_OK : SNAP_E_USAGE;
}

/* ---- the environment ---- */

static void env_name(const opt *o, char out[64]) {
    size_t n = (size_t)snprintf(out, 64, "SNAPMLA_%s", o->name);
    for (size_t i = 8; i < n && i < 63; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static snap_status load_env_table(const opt *table, int n, snap_err *err) {
    for (int i = 0; i != n && table[i].type != OPT_END; i++) {
        if (table[i].type == OPT_GROUP)
            continue;
        char name[64];
        env_name(&table[i], name);
        const char *v = getenv(name);
        if (!v)
            continue;
        if (table[i].type == OPT_LIST)
            ((opt_list *)table[i].value)->n = 0;
        snap_status st = set_text(&table[i], v, name, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

/* ---- the command line ---- */

typedef struct {
    const tables *t;
    int argc;
    const char **argv;
    int i;
    bool cleared[256]; /* lists that the first flag on the line has emptied */
} cursor;

static snap_status unknown(const cursor *c, const char *arg, snap_err *err) {
    return err_set(err, SNAP_E_USAGE, "unknown option '%s': see 'snapmla %s --help'", arg,
                   c->t->cmd->name);
}

/* A list on the line replaces what the config file or the environment gave. */
static void clear_list_once(cursor *c, const opt *o) {
    if (o->type != OPT_LIST)
        return;
    size_t slot = (size_t)(o - c->t->cmd->options);
    if (slot < sizeof c->cleared && !c->cleared[slot]) {
        ((opt_list *)o->value)->n = 0;
        c->cleared[slot] = true;
    }
}

static snap_status take_value(cursor *c, const opt *o, const char *attached, const char *from,
                              snap_err *err) {
    const char *value = attached;
    if (!value && c->i + 1 < c->argc)
        value = c->argv[++c->i];
    if (!value)
        return err_set(err, SNAP_E_USAGE, "%s needs a value %s", from, o->argument);
    clear_list_once(c, o);
    return set_text(o, value, from, err);
}

static snap_status long_option(cursor *c, const char *arg, snap_err *err) {
    char name[64];
    const char *eq = strchr(arg, '=');
    size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
    if (n < 3 || n - 2 >= sizeof name)
        return unknown(c, arg, err);
    (void)snprintf(name, sizeof name, "%.*s", (int)(n - 2), arg + 2);
    const opt *o = search(c->t, match_name, name);
    bool negated = !o && text_starts(name, "no-") && (o = search(c->t, match_name, name + 3));
    if (!o || (negated && (o->type != OPT_FLAG || eq)))
        return unknown(c, arg, err);
    if (o->type == OPT_FLAG && !eq) {
        *(bool *)o->value = !negated;
        return SNAP_OK;
    }
    char from[70];
    (void)snprintf(from, sizeof from, "--%s", name);
    return take_value(c, o, eq ? eq + 1 : NULL, from, err);
}

static snap_status short_option(cursor *c, const char *arg, snap_err *err) {
    const opt *o = search(c->t, match_letter, arg + 1);
    if (!o)
        return unknown(c, arg, err);
    if (o->type != OPT_FLAG)
        return take_value(c, o, arg[2] ? arg + 2 : NULL, arg, err);
    if (arg[2])
        return unknown(c, arg, err);
    *(bool *)o->value = true;
    return SNAP_OK;
}

static snap_status parse_line(const tables *t, int argc, const char **argv, snap_err *err) {
    cursor c = {.t = t, .argc = argc, .argv = argv};
    bool only_args = false;
    snap_status st = SNAP_OK;
    for (; c.i < argc && st == SNAP_OK; c.i++) {
        const char *arg = argv[c.i];
        if (!only_args && strcmp(arg, "--") == 0)
            only_args = true;
        else if (!only_args && text_starts(arg, "--"))
            st = long_option(&c, arg, err);
        else if (!only_args && arg[0] == '-' && arg[1])
            st = short_option(&c, arg, err);
        else
            t->sh->args[t->sh->n_args++] = arg;
    }
    return st;
}

/* --config stands on the line or in the environment but must be read before both. */
static const char *find_config(int argc, const char **argv) {
    const char *path = getenv("SNAPMLA_CONFIG");
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (text_starts(argv[i], "--config="))
            path = argv[i] + strlen("--config=");
        else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            path = argv[i + 1];
    }
    return path;
}

/* ---- the resolved configuration ---- */

static js *value_json(const opt *o) {
    switch (o->type) {
    case OPT_FLAG:
        return js_new_bool(*(const bool *)o->value);
    case OPT_INT:
        return js_new_int(*(const int64_t *)o->value);
    case OPT_NUM:
        return js_new_num(*(const double *)o->value);
    case OPT_STR:
        return js_new_str(*(const char *const *)o->value);
    default:
        break;
    }
    const opt_list *list = o->value;
    js *array = js_new_array();
    for (int i = 0; i < list->n; i++)
        (void)js_push_new(array, js_new_str(list->items[i]));
    return array;
}

static snap_status resolve(const tables *t, snap_err *err) {
    t->sh->resolved = js_new_object();
    bool ok = t->sh->resolved != NULL;
    for (const opt *o = t->cmd->options; o->type != OPT_END && ok; o++)
        if (o->type != OPT_GROUP)
            ok = js_set_new(t->sh->resolved, o->name, value_json(o));
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the configuration");
}

static snap_status check_args(const tables *t, snap_err *err) {
    const opt_shared *sh = t->sh;
    if (sh->help || sh->print_config)
        return SNAP_OK;
    if (t->cmd->max_args >= 0 && sh->n_args > t->cmd->max_args)
        return err_set(err, SNAP_E_USAGE, "unexpected argument '%s': see 'snapmla %s --help'",
                       sh->args[t->cmd->max_args], t->cmd->name);
    if (sh->n_args < t->cmd->min_args)
        return err_set(err, SNAP_E_USAGE, "usage: snapmla %s %s", t->cmd->name, t->cmd->synopsis);
    return SNAP_OK;
}

static snap_status check_color(const opt_shared *sh, snap_err *err) {
    if (text_equal(sh->color, "auto") || text_equal(sh->color, "always") ||
        text_equal(sh->color, "never"))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "--color must be auto, always or never, got '%s'", sh->color);
}

snap_status opt_parse(const opt_command *cmd, int argc, const char **argv, opt_shared *shared,
                      snap_err *err) {
    *shared = (opt_shared){.color = "auto"};
    tables t = {.cmd = cmd, .sh = shared};
    shared_table(shared, t.shared);
    if (argc > kMaxArgs)
        return err_set(err, SNAP_E_USAGE, "more than %d arguments", kMaxArgs);
    shared->args = calloc((size_t)argc + 1, sizeof *shared->args);
    if (!shared->args)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the arguments");
    snap_status st = SNAP_OK;
    const char *config = find_config(argc, argv);
    if (config)
        TRY(load_config(&t, config, err));
    TRY(load_env_table(cmd->options, -1, err));
    TRY(load_env_table(t.shared, SHARED_N, err));
    TRY(parse_line(&t, argc, argv, err));
    TRY(check_color(shared, err));
    TRY(check_args(&t, err));
    TRY(resolve(&t, err));
cleanup:
    return st;
}

void opt_release(opt_shared *shared) {
    free(shared->args);
    js_free(shared->resolved);
    js_free(shared->file);
    *shared = (opt_shared){0};
}

/* ---- help ---- */

/* On without being asked for: only its --no- form says anything. */
static bool flag_is_on(const opt *o) {
    return o->type == OPT_FLAG && o->value && *(const bool *)o->value;
}

static void help_default(const opt *o, buf *out) {
    if (flag_is_on(o))
        (void)buf_puts(out, " [on]");
    js *v = o->type == OPT_FLAG || !o->value ? NULL : value_json(o);
    buf text = {0};
    bool empty = !v || js_is_null(v) || (js_is_array(v) && !js_len(v));
    if (!empty && scalar_text(v, &text) && text.len)
        (void)buf_printf(out, " [%s]", buf_str(&text));
    js_free(v);
    buf_release(&text);
}

static void help_option(const opt *o, buf *out) {
    char left[80];
    char letter[5] = "    ";
    if (o->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    (void)snprintf(left, sizeof left, "%s--%s%s%s%s", letter, flag_is_on(o) ? "[no-]" : "", o->name,
                   o->argument ? " " : "", o->argument ? o->argument : "");
    (void)buf_printf(out, "  %-28s %s", left, o->help);
    help_default(o, out);
    (void)buf_puts(out, "\n");
}

typedef void (*opt_show_fn)(const opt *o, buf *out);

static void show_tables(const opt_command *cmd, opt_show_fn group, opt_show_fn option, buf *out) {
    opt_shared sh = {.color = "auto"};
    opt shared[SHARED_N];
    shared_table(&sh, shared);
    for (const opt *o = cmd->options; o->type != OPT_END; o++)
        (o->type == OPT_GROUP ? group : option)(o, out);
    for (int i = 0; i < SHARED_N; i++)
        (shared[i].type == OPT_GROUP ? group : option)(&shared[i], out);
}

static void help_group(const opt *o, buf *out) {
    (void)buf_printf(out, "\n%s\n", o->help);
}

void opt_help(const opt_command *cmd, buf *out) {
    (void)buf_printf(out, "usage: snapmla %s %s\n\n%s\n", cmd->name, cmd->synopsis, cmd->about);
    if (cmd->options->type != OPT_GROUP)
        (void)buf_puts(out, "\nOptions\n");
    show_tables(cmd, help_group, help_option, out);
    (void)buf_printf(out, "\nExamples\n%s\n", cmd->examples);
    (void)buf_printf(out, "\nExit codes: %s\n",
                     cmd->exits ? cmd->exits
                                : "0 done, 2 usage or configuration, 3 runtime, 6 environment "
                                  "invalid, 7 wrong result");
}

/* roff: a backslash begins an escape, a dot or quote at the start of a line a request, a new sentence
 * wants a new line, and an empty line is a paragraph. */
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

void opt_mdoc(const opt_command *cmd, buf *out) {
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

/* ---- words for a shell's completion ---- */

static void no_words(const opt *o, buf *out) {
    (void)o, (void)out;
}

static void option_words(const opt *o, buf *out) {
    (void)buf_printf(out, " --%s", o->name);
    if (o->type == OPT_FLAG)
        (void)buf_printf(out, " --no-%s", o->name);
}

void opt_words(const opt_command *cmd, buf *out) {
    show_tables(cmd, no_words, option_words, out);
}
