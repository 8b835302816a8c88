#include "harness/opt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/share.h"
#include "base/text.h"
#include "harness/opt_inside.h"

enum { kConfigLimit = 1 << 20, kMaxArgs = 4096 };

void opt_shared_table(opt_shared *sh, opt table[OPT_SHARED]) {
    const opt all[OPT_SHARED] = {
        {.type = OPT_GROUP, .help = "Common"},
        {OPT_STR, "config", 0, &sh->config, "FILE",
         "read options from a JSON file, or from the shipped configuration of that name ('snapmla "
         "info' lists them)",
         0, 0},
        {OPT_FLAG, "print-config", 0, &sh->print_config, NULL,
         "print the values of all options as JSON, and run nothing", 0, 0},
        {OPT_FLAG, "json", 0, &sh->json, NULL, "print the result as JSON", 0, 0},
        {OPT_FLAG, "quiet", 'q', &sh->quiet, NULL, "print no progress and no warnings", 0, 0},
        {OPT_STR, "color", 0, &sh->color, "WHEN",
         "use colours: auto (on a terminal), always or never", 0, 0},
        {OPT_FLAG, "help", 'h', &sh->help, NULL, "print this help", 0, 0},
    };
    memcpy(table, all, sizeof all);
}

/* ---- verbs ---- */

const char *opt_verb_word(const opt_command *verb) {
    const char *space = strrchr(verb->name, ' ');
    return space ? space + 1 : verb->name;
}

static const opt_command *find_verb(const opt_command *cmd, const char *word) {
    for (const opt_command *const *v = cmd->verbs; word && v && *v; v++)
        if (strcmp(opt_verb_word(*v), word) == 0)
            return *v;
    return NULL;
}

/* "check, run, selftest or history" */
static void list_verbs(const opt_command *cmd, buf *out) {
    size_t listed = 0, n = 0;
    for (const opt_command *const *v = cmd->verbs; *v; v++)
        listed += (*v)->summary != NULL;
    for (const opt_command *const *v = cmd->verbs; *v; v++)
        if ((*v)->summary) {
            const char *between = n == 0 ? "" : n + 1 == listed ? " or " : ", ";
            (void)buf_printf(out, "%s%s", between, opt_verb_word(*v));
            n++;
        }
}

snap_status opt_select(const opt_command *cmd, int *argc, const char ***argv,
                       const opt_command **out, snap_err *err) {
    const char *word = cmd->verbs && *argc > 0 ? (*argv)[0] : NULL;
    const opt_command *verb = word ? find_verb(cmd, word) : NULL;
    *out = verb ? verb : cmd;
    if (verb) {
        (*argc)--;
        (*argv)++;
    } else if (word && word[0] != '-' && cmd->max_args == 0) {
        buf names = {0};
        list_verbs(cmd, &names);
        (void)err_set(err, SNAP_E_USAGE, "'%s %s' is unknown: use %s", cmd->name, word,
                      buf_str(&names));
        buf_release(&names);
        return SNAP_E_USAGE;
    }
    return SNAP_OK;
}

/* ---- options ---- */

/* The options of a command: its own (cmd->options), which search() tries first, and those that all
 * commands share. */
typedef struct {
    const opt_command *cmd;
    opt_shared *sh;
    opt shared[OPT_SHARED];
} tables;

typedef bool (*opt_match_fn)(const opt *o, const void *key);

static const opt *search(const tables *t, opt_match_fn match, const void *key) {
    for (const opt *o = t->cmd->options; o->type != OPT_END; o++)
        if (o->type != OPT_GROUP && match(o, key))
            return o;
    for (int i = 0; i < OPT_SHARED; i++)
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

/* ---- one value from text; @from names its origin: "--batch", "SNAPMLA_BATCH" ---- */

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

static snap_status refuse_gone(const opt *o, const char *text, const char *from, snap_err *err) {
    const opt_gone *g = o->value;
    while (g->value && strcmp(g->value, text) != 0)
        g++;
    if (g->now)
        return err_set(err, SNAP_E_USAGE, "%s was removed: write '%s' instead", from, g->now);
    return err_set(err, SNAP_E_USAGE, "%s was removed: '%s' has no replacement", from, text);
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
    case OPT_GONE:
        return refuse_gone(o, text, from, err);
    default:
        SNAP_BUG("an option without a type");
    }
}

/* ---- the configuration file ---- */

bool opt_scalar_text(const js *v, buf *out) {
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
            ((opt_list *)o->value)->from_file = true;
            continue;
        }
        if (i)
            (void)buf_puts(&joined, ",");
        if (o->type != OPT_STR || !opt_scalar_text(js_at(v, i), &joined))
            st = err_set(err, SNAP_E_USAGE, "%s does not take this array", from);
    }
    if (st == SNAP_OK && o->type == OPT_STR) {
        js *text = js_new_str(buf_str(&joined)); /* freed with sh->file */
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
    if (o->type == OPT_LIST)
        ((opt_list *)o->value)->from_file = true;
    if (js_is_str(v))
        return set_text(o, js_str(v), from, err);
    buf text = {0};
    snap_status st;
    if (o->type == OPT_STR || o->type == OPT_LIST || !opt_scalar_text(v, &text))
        st = err_set(err, SNAP_E_USAGE, "%s does not take a value of type %s", from,
                     js_type_name(v));
    else
        st = set_text(o, buf_str(&text), from, err);
    buf_release(&text);
    return st;
}

/* The path of a configuration file, which the caller frees. A name without a slash and without
 * ".json" denotes a shipped configuration or, if there is none of that name, an existing file. */
static char *config_path(const char *name, snap_err *err) {
    char *path = NULL;
    if (!strchr(name, '/') && !text_ends(name, ".json")) {
        buf shipped = {0};
        (void)buf_printf(&shipped, "configs/%s.json", name);
        path = shipped.failed ? NULL : share_find(buf_str(&shipped));
        buf_release(&shipped);
        if (!path && !fs_exists(name)) {
            (void)err_set(
                err, SNAP_E_USAGE,
                "no configuration '%s' and no file of that name: 'snapmla info' lists the shipped "
                "configurations",
                name);
            return NULL;
        }
    }
    path = path ? path : strdup(name);
    if (!path)
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", name);
    return path;
}

static bool has_option(const opt_command *cmd, const char *name) {
    for (const opt *o = cmd->options; o->type != OPT_END; o++)
        if (o->type != OPT_GROUP && o->type != OPT_GONE && strcmp(o->name, name) == 0)
            return true;
    return false;
}

/* The other command or verb of the same family that has the option; NULL = none. */
static const opt_command *owner_of(const opt_command *cmd, const char *name) {
    const opt_command *family = cmd->of ? cmd->of : cmd;
    for (const opt_command *const *v = family->verbs; v && *v; v++)
        if (*v != cmd && has_option(*v, name))
            return *v;
    return family != cmd && has_option(family, name) ? family : NULL;
}

static snap_status config_key(const tables *t, const char *path, const char *key, snap_err *err) {
    char from[300], hint[NEAREST_HINT];
    const opt *o = search(t, match_name, key);
    (void)snprintf(from, sizeof from, "%s: key '%s'", path, key);
    /* The key "why" is a comment. A key that is an option of another verb of the same command,
     * or of the command itself, is ignored. */
    if (strcmp(key, "why") == 0 || (!o && owner_of(t->cmd, key)))
        return SNAP_OK;
    if (!o || strcmp(o->name, "config") == 0)
        return err_set(err, SNAP_E_USAGE, "%s is not an option of '%s'%s", from, t->cmd->name,
                       opt_hint(t->cmd, key, hint));
    return config_value(t->sh, o, js_get(t->sh->file, key), from, err);
}

static snap_status load_config(const tables *t, const char *name, snap_err *err) {
    opt_shared *sh = t->sh;
    char *path = config_path(name, err);
    sh->file = path ? js_parse_file(path, kConfigLimit, err) : NULL;
    if (sh->file && !js_is_object(sh->file))
        (void)err_set(err, SNAP_E_USAGE, "%s: a configuration must be a JSON object", path);
    js *keys = js_copy(sh->file); /* config_array() changes sh->file during the loop */
    snap_status st = keys && js_is_object(keys) ? SNAP_OK : SNAP_E_USAGE;
    for (void *it = js_first(keys); it && st == SNAP_OK; it = js_next(keys, it))
        st = config_key(t, path, js_key(it), err);
    js_free(keys);
    free(path);
    if (st != SNAP_OK && err)
        err->code = SNAP_E_USAGE; /* every error in a configuration is a usage error */
    return st == SNAP_OK ? SNAP_OK : SNAP_E_USAGE;
}

/* ---- the environment ---- */

static snap_status load_env_table(const opt *table, int n, snap_err *err) {
    for (int i = 0; i != n && table[i].type != OPT_END; i++) {
        if (table[i].type == OPT_GROUP)
            continue;
        char name[OPT_ENV_NAME];
        opt_env_name(table[i].name, name);
        const char *v = getenv(name);
        if (!v)
            continue;
        if (table[i].type == OPT_LIST)
            *(opt_list *)table[i].value = (opt_list){0};
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
    bool cleared[256]; /* by the option's index: this list was emptied for the command line */
} cursor;

static snap_status unknown(const cursor *c, const char *arg, snap_err *err) {
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
    const opt_command *owner = text_starts(name, "--") ? owner_of(c->t->cmd, name + 2) : NULL;
    if (owner)
        return err_set(err, SNAP_E_USAGE, "%s belongs to 'snapmla %s'", name, owner->name);
    char hint[NEAREST_HINT];
    return err_set(err, SNAP_E_USAGE, "unknown option '%.100s'%s: see 'snapmla %s --help'", arg,
                   opt_hint(c->t->cmd, name, hint), c->t->cmd->name);
}

/* A list on the command line replaces the values from the configuration file and the environment.
 * Its first occurrence therefore empties the list. */
static void clear_list_once(cursor *c, const opt *o) {
    if (o->type != OPT_LIST)
        return;
    size_t slot = (size_t)(o - c->t->cmd->options);
    if (slot < sizeof c->cleared && !c->cleared[slot]) {
        *(opt_list *)o->value = (opt_list){0};
        c->cleared[slot] = true;
    }
}

static snap_status take_value(cursor *c, const opt *o, const char *attached, const char *from,
                              snap_err *err) {
    const char *value = attached;
    if (!value && c->i + 1 < c->argc)
        value = c->argv[++c->i];
    if (!value)
        return err_set(err, SNAP_E_USAGE, "%s needs a value: %s", from, o->argument);
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

/* --config may be given on the command line or in the environment. The file must be read first,
 * because both override its values. */
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

js *opt_value_json(const opt *o) {
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
        if (o->type != OPT_GROUP && o->type != OPT_GONE)
            ok = js_set_new(t->sh->resolved, o->name, opt_value_json(o));
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for the configuration");
}

static snap_status check_args(const tables *t, snap_err *err) {
    const opt_shared *sh = t->sh;
    if (sh->help || sh->print_config)
        return SNAP_OK;
    const opt_command *late = sh->n_args ? find_verb(t->cmd, sh->args[0]) : NULL;
    if (late && t->cmd->max_args == 0)
        return err_set(err, SNAP_E_USAGE, "the verb comes first: write 'snapmla %s ...'",
                       late->name);
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
    opt_shared_table(shared, t.shared);
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
    TRY(load_env_table(t.shared, OPT_SHARED, err));
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
