#include "config/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/net/address.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text/nearest.h"
#include "base/old_names.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "config/keys.h"
#include "config/paths.h"
#include "config/presets.h"
#include "config/user_shares.h"
#include "core/policy/policy.h"

static int set_policy(struct config *config, const char *names);

void config_init_default(struct config *config)
{
    *config = (struct config){
        .share = {.mode = SHARE_AUTO},
        .estimate_quantile_permille = 980,
        .auto_capture = AUTO_CAPTURE_ON,
        .max_queued = 100000,
        .max_texts_per_user = GIB,
        .retention_ns = MINUTES(43200),
        .history_retention_ns = MINUTES(1051200),
        .sample_period_ns = NS_PER_SEC, /* thesis 6.2.1: every second over a 90 s window */
        .grace_ns = 10 * NS_PER_SEC,
        .start_timeout_ns = MINUTES(10),
        .job_cpu_weight = 100,
        .idle_limit_interactive_ns = MINUTES(120),
        .idle_report_ns = MINUTES(30),
        .savings = true,
        .mps_control = xstrdup("nvidia-cuda-mps-control"),
        .state_directory = config_default_state_directory(),
        .socket = config_default_socket(),
    };
    core_config_default(&config->core);
    config->core.per_user.max_retries = 20;
    set_policy(config, "default");
}

void config_release(struct config *config)
{
    free(config->machine_profile);
    free(config->nvml_library);
    free(config->dcgm_library);
    free(config->mps_control);
    free(config->mps_pipe_directory);
    free(config->state_directory);
    free(config->socket);
    free(config->listen);
    free(config->token_file);
    free(config->submit_filter);
    free(config->admin_group);
    free(config->user_shares);
    free(config->share_groups);
    free(config->hpc_job_mapping_dir);
    *config = (struct config){0};
}

static int parse_share(const char *text, int64_t *permille)
{
    char *end;
    double value;

    if (strspn(text, "0123456789.%") != strlen(text) || strspn(text, ".%") == strlen(text))
        return -EINVAL;
    value = strtod(text, &end);
    if (*end == '%' && !end[1])
        value /= 100;
    else if (*end)
        return -EINVAL;
    if (!(value >= 0 && value <= 1))
        return -ERANGE;
    *permille = (int64_t)(value * 1000 + 0.5);
    return 0;
}

/* A bare number would be minutes to parse_duration; here nearly everybody would mean seconds. */
static int parse_period(const char *text, int64_t *ns)
{
    return strspn(text, "0123456789.") == strlen(text) ? -EINVAL : parse_duration(text, ns, NULL);
}

static int parse_number(const struct key *key, const char *text, int64_t *value)
{
    int rc = -EINVAL;

    if (key->kind == COUNT_OR_AUTO && strcmp(text, KEY_AUTO) == 0) {
        *value = 0;
        return 0;
    }
    switch (key->kind) {
    case SIZE:
        rc = parse_size(text, value, NULL);
        break;
    case DURATION:
        rc = parse_period(text, value);
        break;
    case SHARE:
        rc = parse_share(text, value);
        break;
    case RATIO:
        rc = parse_ratio(text, value, NULL);
        break;
    default:
        rc = parse_integer(text, key->low, key->high, value, NULL);
        break;
    }
    return rc ? rc : *value < key->low || *value > key->high ? -ERANGE : 0;
}

static int find_choice(const char *const *choices, const char *value, int64_t *index)
{
    for (*index = 0; choices[*index]; ++*index)
        if (strcmp(choices[*index], value) == 0)
            return 0;
    return -EINVAL;
}

/* Settings of users and of MPS stay: they do not belong to a policy. */
static void set_plain(struct config *config)
{
    struct core_config was = config->core;

    core_config_default(&config->core);
    config->core.per_user = was.per_user;
    config->core.most = was.most;
    config->core.max_requeues = was.max_requeues;
    config->core.requeue_lost = was.requeue_lost;
    config->core.mps_domain = was.mps_domain;
    config->core.mps_multiuser = was.mps_multiuser;
    config->core.mps_max_clients = was.mps_max_clients;
    config->core.gate = was.gate;
    config->estimator = ESTIMATOR_DECLARED;
}

/* Each name in turn, once all of them are known: a preset's settings, or just the core's policy. */
static int set_policy(struct config *config, const char *names)
{
    CLEANUP(free_ptr) char *known = xstrdup(names), *wanted = xstrdup(names);
    char *rest = NULL;

    if (!*names || strlen(names) >= sizeof config->policy || names[strlen(names) - 1] == '+' || *names == '+' ||
        strstr(names, "++"))
        return -EINVAL;
    for (char *name = strtok_r(known, "+", &rest); name; name = strtok_r(NULL, "+", &rest))
        if (!preset_find(name) && !policy_find(name))
            return -EINVAL;
    for (char *name = strtok_r(wanted, "+", &rest); name; name = strtok_r(NULL, "+", &rest)) {
        const struct preset *preset = preset_find(name);
        if (!preset && name == wanted) /* by itself, and not upon a preset: the plain policy of the thesis's text */
            set_plain(config);
        CLEANUP(free_ptr) char *settings = preset ? xstrdup(preset->settings) : NULL;
        char *next = NULL;
        snprintf(config->core.policy, sizeof config->core.policy, "%s", preset ? preset->policy : name);
        for (char *pair = settings ? strtok_r(settings, " ", &next) : NULL; pair; pair = strtok_r(NULL, " ", &next))
            config_set_pair(config, pair, NULL);
    }
    snprintf(config->policy, sizeof config->policy, "%s", names);
    return 0;
}

/* Words that are allowed in place of an absolute path. */
static bool is_name(const struct key *key, const char *value)
{
    if (key->kind == PROFILE)
        return !*value || machine_profile_find(value);
    if (key->kind == OPTIONAL_PATH)
        return !*value;
    return key->kind == LIBRARY && !strchr(value, '/');
}

static bool is_allowed_text(const struct key *key, const char *value)
{
    struct address address;

    if (strlen(value) > (size_t)key->high)
        return false;
    if (key->kind == ADDRESS)
        return !*value || address_parse(value, &address) == 0;
    if (key->kind == USER_SHARES)
        return user_shares_are_allowed(value);
    if (key->kind == USER_GROUPS)
        return user_groups_are_allowed(value);
    return key->kind == GROUP || *value == '/' || is_name(key, value);
}

static int set_key(struct config *config, const struct key *key, const char *value)
{
    void *at = key_at(config, key);
    int64_t number;
    int rc;

    switch (key->kind) {
    case POLICY:
        return set_policy(config, value);
    case SWITCH:
        rc = find_choice(config_switches, value, &number);
        if (!rc)
            *(bool *)at = number;
        return rc;
    case CHOICE:
        rc = find_choice(key->choices, value, &number);
        if (!rc)
            *(uint32_t *)at = (uint32_t)number;
        return rc;
    case SHARING:
        return share_setting_parse(value, at, &config->core.mps_domain);
    case PATH:
    case OPTIONAL_PATH:
    case LIBRARY:
    case PROFILE:
    case ADDRESS:
    case GROUP:
    case USER_SHARES:
    case USER_GROUPS:
        if (!is_allowed_text(key, value))
            return -EINVAL;
        free_ptr(at);
        *(char **)at = *value ? xstrdup(value) : NULL;
        return 0;
    default:
        break;
    }
    rc = parse_number(key, value, &number);
    if (rc)
        return rc;
    if (key->kind == SHARE || key->kind == RATIO)
        *(int32_t *)at = (int32_t)number;
    else if (key->kind == COUNT || key->kind == COUNT_OR_AUTO)
        *(uint32_t *)at = (uint32_t)number;
    else
        *(int64_t *)at = number;
    return 0;
}

static int unknown_key(const char *key, struct error *err)
{
    CLEANUP(free_ptr) char *question = NULL;
    struct nearest nearest;

    nearest_begin(&nearest, key);
    for (size_t i = 0; i < config_key_count; i++)
        nearest_try(&nearest, config_keys[i].name);
    question = nearest_question(&nearest, "");
    return error_set(err, EINVAL, "unknown key '%.40s'%s%s", key, question,
                     *question ? "" : ": `carmad --settings` lists them");
}

int config_set(struct config *config, const char *key, const char *value, struct error *err)
{
    CLEANUP(free_ptr) char *meant = NULL;
    struct strbuf allowed = {0};
    size_t i = 0;

    key = present_name(key);
    while (i < config_key_count && strcmp(config_keys[i].name, key) != 0)
        i++;
    if (i == config_key_count)
        return unknown_key(key, err);
    if (set_key(config, &config_keys[i], value) == 0)
        return 0;
    key_describe_allowed(&config_keys[i], &allowed);
    meant = config_keys[i].kind == POLICY || config_keys[i].kind == CHOICE || config_keys[i].kind == SHARING
                ? nearest_hint(value, allowed.text)
                : xstrdup("");
    error_set(err, EINVAL, "%s '%.120s'%s is not allowed: write %s%s", key, value, meant, allowed.text,
              config_keys[i].kind == SIZE ? ", with a unit as in 12GiB" : "");
    strbuf_release(&allowed);
    return -EINVAL;
}

int config_set_pair(struct config *config, const char *pair, struct error *err)
{
    const char *equals = strchr(pair, '=');
    CLEANUP(free_ptr) char *key = NULL;

    if (!equals || equals == pair)
        return error_set(err, EINVAL, "'%.120s' is not of the form key=value", pair);
    key = xstrndup(pair, (size_t)(equals - pair));
    return config_set(config, key, equals + 1, err);
}

int config_check(const struct config *config, struct error *err)
{
    char text[UNITS_TEXT], least[UNITS_TEXT];

    if (config->core.window_ns < config->sample_period_ns)
        return error_set(err, EINVAL, "window %gs is shorter than sample_period %gs: lengthen it",
                         (double)config->core.window_ns / NS_PER_SEC, (double)config->sample_period_ns / NS_PER_SEC);
    if (strlen(config->socket) > MAX_SOCKET) /* a default made of environment variables was not checked yet */
        return error_set(err, EINVAL, "socket '%.200s' is too long: at most %zu bytes; set `socket` to a shorter path",
                         config->socket, MAX_SOCKET);
    if (config->job_memory_max_bytes && config->job_memory_max_bytes < HOST_MEMORY_LEAST)
        return error_set(err, EINVAL,
                         "job_memory_max '%s' is too little for a program to begin: set at least %s, or 0 for any",
                         format_bytes(config->job_memory_max_bytes, text), format_bytes(HOST_MEMORY_LEAST, least));
    if (config->core.mps_domain == MPS_DOMAIN_NODE)
        return error_set(err, EINVAL,
                         "share 'mps:node' is the simulator's: for one MPS server for all users set share = mps "
                         "and mps_multiuser = yes");
    if (config->listen && !config->token_file)
        return error_set(err, EINVAL,
                         "listen '%s' needs a token: set `token_file` to a file of mode 0600 that holds one",
                         config->listen);
    return 0;
}

int config_machine_profile(const struct config *config, struct machine_profile *profile, struct error *err)
{
    const char *name = config->machine_profile;
    CLEANUP(free_ptr) char *text = NULL;
    size_t length;
    int rc;

    *profile = (struct machine_profile){0};
    if (!name)
        return 0;
    if (*name != '/') {
        *profile = *machine_profile_find(name); /* set_key has looked */
        return 0;
    }
    rc = file_read(name, MACHINE_PROFILE_MAX_BYTES, &text, &length, err);
    return rc ? rc : machine_profile_read(profile, name, text, length, err);
}

enum share_mode config_share_of(const struct config *config, uint32_t number, const char *uuid)
{
    return share_setting_of(&config->share, number, uuid);
}
