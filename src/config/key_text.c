/* Settings and their values as text: for help, error messages, and another process. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "config/keys.h"
#include "config/paths.h"
#include "config/presets.h"
#include "config/user_shares.h"
#include "core/policy/policy.h"

static char *number_text(const struct key *key, int64_t value, char text[static UNITS_TEXT])
{
    switch (key->kind) {
    case SIZE:
        return format_bytes(value, text);
    case DURATION:
        if (value && value % MINUTES(1440) == 0)
            snprintf(text, UNITS_TEXT, "%" PRId64 "d", value / MINUTES(1440));
        else
            snprintf(text, UNITS_TEXT, "%gs", (double)value / NS_PER_SEC);
        return text;
    case RATIO:
        snprintf(text, UNITS_TEXT, "%g", (double)value / 1000);
        return text;
    case SHARE:
        snprintf(text, UNITS_TEXT, "%g%%", (double)value / 10);
        return text;
    default:
        snprintf(text, UNITS_TEXT, "%" PRId64, value);
        return text;
    }
}

static void describe_policies(struct strbuf *out)
{
    for (const struct preset *preset = presets; preset->name; preset++)
        strbuf_printf(out, "%s, ", preset->name);
    for (size_t i = 0; policies[i]; i++)
        if (!preset_find(policies[i]->name))
            strbuf_printf(out, "%s%s", policies[i]->name, policies[i + 1] ? ", " : "; joined by +");
}

static void describe_choices(const char *const *choices, struct strbuf *out)
{
    for (size_t i = 0; choices[i]; i++)
        strbuf_printf(out, "%s%s", i == 0 ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
}

void key_describe_allowed(const struct key *key, struct strbuf *out)
{
    char low[UNITS_TEXT], high[UNITS_TEXT];

    switch (key->kind) {
    case POLICY:
        describe_policies(out);
        break;
    case CHOICE:
        describe_choices(key->choices, out);
        break;
    case SWITCH:
        describe_choices(config_switches, out);
        break;
    case SHARING:
        strbuf_puts(out, "auto, time-slice, mps, mps:gpu or exclusive; then, by number or UUID, GPUs that differ, "
                         "once: mps, 3=exclusive (mps and mps:gpu do not go together)");
        break;
    case PATH:
    case OPTIONAL_PATH:
        strbuf_printf(out, "an absolute path of at most %" PRId64 " bytes", key->high);
        break;
    case LIBRARY:
        strbuf_puts(out, "an absolute path or a file name");
        break;
    case PROFILE:
        strbuf_puts(out, "an absolute path or the name of a built-in machine profile");
        break;
    case ADDRESS:
        strbuf_puts(out, "an IP address and a port, as 127.0.0.1:8471 or [::1]:8471");
        break;
    case GROUP:
        strbuf_printf(out, "the name of a group, at most %" PRId64 " bytes", key->high);
        break;
    case USER_SHARES:
        strbuf_printf(out,
                      "users, by name or number, and groups, with shares from 1 to %d: alice=3, 12002=2, @vision=4",
                      USER_SHARES_MOST);
        break;
    case USER_GROUPS:
        strbuf_printf(out,
                      "groups of at most %d bytes with their users, by name or number: vision=alice+bob, nlp=12003",
                      USER_GROUP_SIZE - 1);
        break;
    default:
        strbuf_printf(out, "%s%s to %s", key->kind == COUNT_OR_AUTO ? KEY_AUTO ", or " : "",
                      key->kind == RATIO ? "0, or 1" : number_text(key, key->low, low),
                      number_text(key, key->high, high));
        break;
    }
}

static const char *value_text(const struct config *config, const struct key *key, char text[static UNITS_TEXT])
{
    const void *at = key_at(config, key);

    switch (key->kind) {
    case POLICY:
        return at;
    case CHOICE:
        return key->choices[*(const uint32_t *)at];
    case SWITCH:
        return config_switches[*(const bool *)at];
    case SHARING: /* the defaults have no GPUs that differ */
        return share_mode_name(((const struct share_setting *)at)->mode);
    case PATH:
    case OPTIONAL_PATH:
    case LIBRARY:
    case PROFILE:
    case ADDRESS:
    case GROUP:
    case USER_SHARES:
    case USER_GROUPS:
        return *(char *const *)at ? *(char *const *)at : "none";
    case SHARE:
    case RATIO:
        return number_text(key, *(const int32_t *)at, text);
    case COUNT_OR_AUTO:
        if (*(const uint32_t *)at == 0)
            return KEY_AUTO;
        return number_text(key, *(const uint32_t *)at, text);
    case COUNT:
        return number_text(key, *(const uint32_t *)at, text);
    default:
        return number_text(key, *(const int64_t *)at, text);
    }
}

static bool key_decides(const struct key *key)
{
    if (key->kind == POLICY)
        return false;
    return key->offset < sizeof((struct config *)NULL)->core || key->offset == offsetof(struct config, estimator) ||
           key->offset == offsetof(struct config, estimate_quantile_permille) ||
           key->offset == offsetof(struct config, sample_period_ns);
}

bool config_key_decides(const char *name)
{
    for (size_t i = 0; i < config_key_count; i++)
        if (strcmp(config_keys[i].name, name) == 0)
            return key_decides(&config_keys[i]);
    return false;
}

/* As value_text, but to the last digit. */
static const char *exact_text(const struct config *config, const struct key *key, char text[static UNITS_TEXT])
{
    const void *at = key_at(config, key);

    switch (key->kind) {
    case SIZE:
        snprintf(text, UNITS_TEXT, "%" PRId64 "B", *(const int64_t *)at);
        return text;
    case DURATION:
        snprintf(text, UNITS_TEXT, "%" PRId64 ".%09" PRId64 "s", *(const int64_t *)at / NS_PER_SEC,
                 *(const int64_t *)at % NS_PER_SEC);
        return text;
    case RATIO:
        snprintf(text, UNITS_TEXT, "%" PRId32 ".%03" PRId32, *(const int32_t *)at / 1000, *(const int32_t *)at % 1000);
        return text;
    case PROFILE:
        return *(char *const *)at ? *(char *const *)at : "";
    default:
        return value_text(config, key, text);
    }
}

void config_each_difference(const struct config *config, const struct config *other,
                            void (*visit)(const char *key, const char *value, void *user), void *user)
{
    for (size_t i = 0; i < config_key_count; i++) {
        char own[UNITS_TEXT], others[UNITS_TEXT];
        const char *value;

        if (!key_decides(&config_keys[i]) && config_keys[i].kind != PROFILE)
            continue;
        value = exact_text(config, &config_keys[i], own);
        if (strcmp(value, exact_text(other, &config_keys[i], others)) != 0)
            visit(config_keys[i].name, value, user);
    }
}

static void each_key(const struct config *defaults, void (*visit)(const struct config_key *key, void *user), void *user)
{
    for (size_t i = 0; i < config_key_count; i++) {
        struct strbuf allowed = {0};
        char text[UNITS_TEXT];

        key_describe_allowed(&config_keys[i], &allowed);
        visit(&(struct config_key){.name = config_keys[i].name,
                                   .help = config_keys[i].help,
                                   .allowed = allowed.text,
                                   .preset = value_text(defaults, &config_keys[i], text)},
              user);
        strbuf_release(&allowed);
    }
}

void config_each_key(void (*visit)(const struct config_key *key, void *user), void *user)
{
    struct config defaults;

    config_init_default(&defaults);
    each_key(&defaults, visit, user);
    config_release(&defaults);
}

void config_each_system_key(void (*visit)(const struct config_key *key, void *user), void *user)
{
    struct config defaults;

    config_init_default(&defaults);
    config_set(&defaults, "state_directory", CONFIG_SYSTEM_STATE_DIRECTORY, NULL);
    config_set(&defaults, "socket", CONFIG_SYSTEM_SOCKET, NULL);
    each_key(&defaults, visit, user);
    config_release(&defaults);
}
