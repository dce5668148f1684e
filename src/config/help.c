/* The settings in words: for a terminal, and as the manual page carma.conf(5). */
#include <string.h>

#include "base/manual/manual.h"
#include "base/memory.h"
#include "config/config.h"
#include "config/presets.h"
#include "core/policy/policy.h"

static void print_key(const struct config_key *key, void *out)
{
    fprintf(out, "  %-18s %s\n  %-18s (%s; default %s)\n", key->name, key->help, "", key->allowed, key->preset);
}

void config_help(FILE *out)
{
    config_each_key(print_key, out);
}

/* Long lists of allowed values are broken, since all of it is a comment. */
#define FILE_WIDTH 100

static void print_comment(FILE *out, const char *text)
{
    int column = fprintf(out, "#") - 1;

    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column + 1 + length > FILE_WIDTH)
            column = fprintf(out, "\n#  ") - 2;
        column += fprintf(out, " %.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_setting(const struct config_key *key, void *user)
{
    FILE *out = user;
    CLEANUP(free_ptr) char *allowed = xasprintf("(%s)", key->allowed);
    bool none = strcmp(key->preset, "none") == 0;

    fputc('\n', out);
    print_comment(out, key->help);
    print_comment(out, allowed);
    fprintf(out, "#%s =%s%s\n", key->name, none ? "" : " ", none ? "" : key->preset);
}

void config_file(FILE *out)
{
    fprintf(out, "# The settings of carmad, each with its default: take away the # before one to change it. "
                 "carma.conf(5) says how\n"
                 "# values are written. carmad reads this file when it starts: jobs that run or wait stay as they are "
                 "when it is\n"
                 "# started again.\n");
    config_each_system_key(print_setting, out);
}

#define HELP_WIDTH  78
#define HELP_INDENT 15

/* "  name         text", broken between words, every line under the text's begin. */
static void print_policy(const char *name, const char *text, void *user)
{
    FILE *out = user;
    int column = fprintf(out, "  %-*s", HELP_INDENT - 2, name);

    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column + 1 + length > HELP_WIDTH)
            column = fprintf(out, "\n%*s", HELP_INDENT, "") - 1;
        column += fprintf(out, "%s%.*s", column > HELP_INDENT ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void config_each_policy(void (*visit)(const char *name, const char *summary, void *user), void *user)
{
    for (const struct preset *preset = presets; preset->name; preset++)
        visit(preset->name, preset->summary, user);
    for (size_t i = 0; policies[i]; i++)
        if (!preset_find(policies[i]->name))
            visit(policies[i]->name, policies[i]->summary, user);
}

void config_policies_help(FILE *out)
{
    config_each_policy(print_policy, out);
}

static void policy_item(const char *name, const char *summary, void *out)
{
    manual_item(out, name, summary);
}

static void key_item(const struct config_key *key, void *out)
{
    CLEANUP(free_ptr) char *text = xasprintf("%s. Takes %s; default %s.", key->help, key->allowed, key->preset);

    manual_item(out, key->name, text);
}

void config_manual(FILE *out)
{
    manual_begin(out, "carma.conf", 5, "the settings of carmad");
    manual_heading(out, "DESCRIPTION");
    manual_text(
        out,
        "carmad(8) reads /etc/carma/carma.conf as root and $XDG_CONFIG_HOME/carma/carma.conf "
        "(~/.config/carma/carma.conf) otherwise, or the file that --config names; then come its --set KEY=VALUE "
        "options. The last setting of a key counts.\n\n"
        "Lines are `key = value`; blank lines and those that begin with # or ; mean nothing, and a value ends where "
        "a ; after a blank begins a comment. There are no sections. Sizes are written 5G or 512MiB, times 90s, "
        "500ms or 1:30 (minutes and seconds), never as a bare number, a share 80% or 0.8. The first line that is "
        "wrong ends the reading, and carmad with it.\n\n"
        "Times are node time; grace alone is wall time.");
    manual_heading(out, "SETTINGS");
    config_each_system_key(key_item, out);
    manual_heading(out, "POLICIES");
    manual_text(out, "The values of the setting policy: a name, or a preset and a plain policy, as in thesis+lug.");
    config_each_policy(policy_item, out);
    manual_heading(out, "EXAMPLE");
    manual_text(out, " policy = carma\n sm_activity_cap = 85%\n share = mps, 3=exclusive\n retention = 90d");
    manual_heading(out, "SEE ALSO");
    manual_text(out, "carmad(8), carma(1)");
    fputc('\n', out);
}
