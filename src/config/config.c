#include "config/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/address.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/old_names.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "config/paths.h"
#include "config/presets.h"
#include "core/policy/policy.h"

enum key_kind {
    POLICY,   /* names of presets and of the core's table, joined by '+' */
    CHOICE,   /* one of `choices`, kept as its index */
    SIZE,     /* bytes */
    DURATION, /* nanoseconds */
    SHARE,    /* a part of one, kept in permille */
    RATIO,    /* a factor of at least 1, kept in permille; 0: none */
    COUNT,
    SWITCH,        /* yes or no */
    SHARING,       /* config/share.h */
    PATH,          /* absolute */
    OPTIONAL_PATH, /* the same; empty: not set */
    LIBRARY,       /* absolute, or a bare name that the loader looks up; empty: not set */
    PROFILE,       /* absolute, or the name of a built-in machine profile; empty: not set */
    ADDRESS,       /* of TCP; empty: not set */
    GROUP          /* a name; empty: not set */
};

static const char *const memory_views[] = {"monitor", "reserve", NULL};
static const char *const fences[] = {"off", "auto", NULL};
static const char *const statistics[] = {"mean", "median", "p95", "ema", "risk", NULL};
static const char *const retries[] = {"exclusive", "step", "informed", NULL};
static const char *const device_cgroups[] = {"auto", "off", NULL};
static const char *const switches[] = {"no", "yes", NULL};
static const char *const engines[] = {"local", "slurm", NULL};
static const char *const gates[] = {"all", "memory", NULL};
static const char *const off_or_on[] = {"off", "on", NULL};
static const char *const estimator_names[] = {"auto",      "declared", "measured",  "horus",   "faketensor",
                                              "gpumemnet", "replay",   "deepspeed", "history", NULL};

#define MAX_SOCKET (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)
#define MINUTES(n) (INT64_C(60) * (n)*NS_PER_SEC)

static const struct key {
    const char *name;
    enum key_kind kind;
    size_t offset;
    int64_t low;
    int64_t high; /* PATH: most bytes */
    const char *const *choices;
    const char *help;
} keys[] = {
    {"policy", POLICY, offsetof(struct config, core.policy), 0, 0, NULL,
     "which GPU the next job gets; a preset sets other keys with it"},
    {"memory_view", CHOICE, offsetof(struct config, core.memory_view), 0, 0, memory_views,
     "how free memory is counted: by the monitor's readings, or by the jobs' reservations"},
    {"memory_floor", SIZE, offsetof(struct config, core.floor_bytes), 0, 64 * TIB, NULL,
     "free memory that a GPU with jobs needs for another of unknown memory"},
    {"memory_margin", SIZE, offsetof(struct config, core.margin_bytes), 0, 64 * TIB, NULL,
     "memory kept free beyond the jobs' reservations"},
    {"sm_activity_cap", SHARE, offsetof(struct config, core.smact_cap_permille), 0, 1000, NULL,
     "a GPU that is busier gets no further job"},
    {"sm_occupancy_cap", SHARE, offsetof(struct config, core.smocc_cap_permille), 0, 1000, NULL,
     "a GPU with higher SM occupancy gets no further job"},
    {"dram_activity_cap", SHARE, offsetof(struct config, core.dram_cap_permille), 0, 1000, NULL,
     "a GPU with higher DRAM activity gets no further job"},
    {"caps_together", SWITCH, offsetof(struct config, core.caps_together), 0, 0, NULL,
     "close a GPU only when SM activity and one of the other two are over"},
    {"statistic", CHOICE, offsetof(struct config, core.statistic), 0, 0, statistics,
     "the statistic of the window that is compared with the caps"},
    {"decide_period", DURATION, offsetof(struct config, core.decide_period_ns), 0, MINUTES(60), NULL,
     "least time between two placements"},
    {"collocate_extra", DURATION, offsetof(struct config, core.collocate_extra_ns), 0, MINUTES(60), NULL,
     "extra time between two placements when the first was beside other jobs"},
    {"paced", SWITCH, offsetof(struct config, core.paced), 0, 0, NULL,
     "a decision that places nothing takes its period too"},
    {"settle", DURATION, offsetof(struct config, core.settle_ns), 0, MINUTES(60), NULL,
     "time that a new job's memory is watched before its GPU gets another job"},
    {"oom_retry", CHOICE, offsetof(struct config, core.oom_retry), 0, 0, retries,
     "how a job that ran out of GPU memory is retried"},
    {"max_retries", COUNT, offsetof(struct config, core.max_retries), 0, 1000, NULL,
     "out-of-memory crashes after which a job is given up; and, counted apart, faults that were not its own"},
    {"max_requeues", COUNT, offsetof(struct config, core.max_requeues), 0, 1000000, NULL,
     "time limits after which a job submitted with --requeue is started again"},
    {"requeue_lost", SWITCH, offsetof(struct config, core.requeue_lost), 0, 0, NULL,
     "start jobs again that were lost with their shepherd or the machine, as if submitted with --requeue"},
    {"max_queued_per_user", COUNT, offsetof(struct config, core.per_user.max_queued), 0, 1000000, NULL,
     "unfinished jobs that a user may have: further ones are refused (0: any)"},
    {"max_running_per_user", COUNT, offsetof(struct config, core.per_user.max_running), 0, 100000, NULL,
     "jobs of a user that may have GPUs at a time: further ones wait (0: any)"},
    {"max_gpus_per_user", COUNT, offsetof(struct config, core.per_user.max_gpus), 0, 100000, NULL,
     "GPUs that these may have, a shared one counted for each of them (0: any)"},
    {"max_gpu_memory_per_user", SIZE, offsetof(struct config, core.per_user.max_memory_bytes), 0, 1024 * TIB, NULL,
     "GPU memory reserved for these in all, grown with use; a declared request counts in whole, a job without any as "
     "whole GPUs (0: any)"},
    {"max_retries_per_user", COUNT, offsetof(struct config, core.per_user.max_retries), 0, 100000, NULL,
     "jobs of a user that may go before the queue in an hour, after a crash (0: any)"},
    {"max_jobs_per_gpu", COUNT, offsetof(struct config, core.max_jobs_per_gpu), 1, 48, NULL,
     "most jobs that share a GPU"},
    {"backfill", CHOICE, offsetof(struct config, core.backfill), 0, 0, switches,
     "whether jobs that fit go before a waiting one that does not"},
    {"starvation_timeout", DURATION, offsetof(struct config, core.starvation_timeout_ns), 0, MINUTES(43200), NULL,
     "with backfill: a job that has waited so long since its submission is not delayed by later ones"},
    {"max_slowdown", RATIO, offsetof(struct config, core.max_slowdown_permille), 0, 1000000, NULL,
     "highest slowdown by sharing that may be predicted for a job (0: any)"},
    {"memory_fence", CHOICE, offsetof(struct config, core.memory_fence), 0, 0, fences,
     "whether the driver gives a job under MPS no more memory than its request or estimate and some headroom"},
    {"learn", SWITCH, offsetof(struct config, core.learn), 0, 0, NULL,
     "take memory and SM activity from earlier runs of the same command"},
    {"prior_quantile", SHARE, offsetof(struct config, core.prior_quantile_permille), 0, 999, NULL,
     "a job of unknown need requests as much memory as is enough for this part of workloads (0%: whole GPUs)"},
    {"shrink_after", DURATION, offsetof(struct config, core.shrink_after_ns), 0, MINUTES(1440), NULL,
     "when a reservation shrinks to the job's observed memory and a tenth more (0s: never)"},
    {"gate", CHOICE, offsetof(struct config, core.gate), 0, 0, gates,
     "what closes a GPU to a job: all that is known; or memory alone, and SM activity and slowdown only rank GPUs"},
    {"max_queued", COUNT, offsetof(struct config, max_queued), 1, 1000000, NULL,
     "most jobs that have not ended, of all users together: further ones are refused; the last tenth is for users with "
     "few jobs"},
    {"retention", DURATION, offsetof(struct config, retention_ns), MINUTES(1), MINUTES(5256000), NULL,
     "how long ended jobs, and the log that replays them, are kept"},
    {"history_retention", DURATION, offsetof(struct config, history_retention_ns), MINUTES(1), MINUTES(52560000), NULL,
     "how long `carma history` knows ended jobs (at least `retention`)"},
    {"share", SHARING, offsetof(struct config, share), 0, 0, NULL,
     "how jobs share a GPU; auto: a user's by MPS, several users' in turns where that pays; mps: by a server of each "
     "user on all GPUs; mps:gpu: by one of each GPU"},
    {"mps_multiuser", SWITCH, offsetof(struct config, core.mps_multiuser), 0, 0, NULL,
     "jobs of several users may share a GPU's MPS server, which no longer keeps them apart"},
    {"mps_max_clients", COUNT, offsetof(struct config, core.mps_max_clients), 1, 60, NULL,
     "most jobs that share a GPU by MPS; the driver takes 48 clients, from CUDA 13.1 on 60"},
    {"mps_control", LIBRARY, offsetof(struct config, mps_control), 0, 4000, NULL,
     "the MPS control program, by which carma runs control daemons"},
    {"mps_pipe_directory", OPTIONAL_PATH, offsetof(struct config, mps_pipe_directory), 0, 4000, NULL,
     "the pipes of an administrator's own control daemon: jobs use it, and carma runs none (none: carma's own)"},
    {"mps_threads", COUNT, offsetof(struct config, mps_threads_percent), 1, 100, NULL,
     "most of a GPU's threads for one job under MPS, in percent"},
    {"mps_memory_limit", SIZE, offsetof(struct config, mps_memory_limit_bytes), 0, 64 * TIB, NULL,
     "most GPU memory that the driver gives a job's process under MPS (0: any)"},
    {"estimator", CHOICE, offsetof(struct config, estimator), 0, 0, estimator_names,
     "source of a job's memory when it declares none: a figure recorded by that name, else an estimate"},
    {"estimate_quantile", SHARE, offsetof(struct config, estimate_quantile_permille), 500, 999, NULL,
     "probability that an estimate is enough"},
    {"auto_capture", CHOICE, offsetof(struct config, auto_capture), 0, 0, off_or_on,
     "whether a job of unknown need that starts Python is tried in a sandbox, without a GPU, to estimate its memory"},
    {"machine_profile", PROFILE, offsetof(struct config, machine_profile), 0, 4000, NULL,
     "the machine's addition to a job's memory, e.g. a file of carma calibrate (none: by its GPUs)"},
    {"sample_period", DURATION, offsetof(struct config, sample_period_ns), 10 * NS_PER_MS, MINUTES(1), NULL,
     "how often the GPUs are read"},
    {"window", DURATION, offsetof(struct config, core.window_ns), 10 * NS_PER_MS, MINUTES(60), NULL,
     "time span over which activity is measured"},
    {"grace", DURATION, offsetof(struct config, grace_ns), 0, MINUTES(60), NULL,
     "time between asking a job to stop and killing it"},
    {"job_memory_max", SIZE, offsetof(struct config, job_memory_max_bytes), 0, 1024 * TIB, NULL,
     "most host memory (RAM, not a GPU's) of one job, which --memory can lower; a job beyond it is killed; at least "
     "16M (0: any)"},
    {"job_pids_max", COUNT, offsetof(struct config, job_pids_max), 0, 4194304, NULL,
     "most processes and threads of one job at a time (0: any)"},
    {"job_cpu_weight", COUNT, offsetof(struct config, job_cpu_weight), 1, 10000, NULL,
     "a job's weight for busy processors, beside 100 of any other group of processes"},
    {"start_timeout", DURATION, offsetof(struct config, start_timeout_ns), NS_PER_SEC, MINUTES(1440), NULL,
     "wall time in which a job has to come to its command: a start that hangs longer fails, and gives its GPUs back"},
    {"idle_report", DURATION, offsetof(struct config, idle_report_ns), 0, MINUTES(43200), NULL,
     "time after which a job that does not use its GPUs is reported (0s: never)"},
    {"nvml_library", LIBRARY, offsetof(struct config, nvml_library), 0, 4095, NULL,
     "NVML to load instead of the system's"},
    {"dcgm_library", LIBRARY, offsetof(struct config, dcgm_library), 0, 4095, NULL,
     "DCGM to load instead of the system's, for metrics that NVML does not measure"},
    {"state_directory", PATH, offsetof(struct config, state_directory), 0, 4000, NULL,
     "where the daemon keeps its store"},
    {"socket", PATH, offsetof(struct config, socket), 0, MAX_SOCKET, NULL, "where the daemon listens"},
    {"engine", CHOICE, offsetof(struct config, engine), 0, 0, engines,
     "who has the queue of this node: carma; or Slurm, which asks for leases, and users submit with sbatch"},
    {"listen", ADDRESS, offsetof(struct config, listen), 0, 60, NULL,
     "where the daemon listens for TCP too, for clients that show the token (none: nowhere)"},
    {"token_file", OPTIONAL_PATH, offsetof(struct config, token_file), 0, 4000, NULL,
     "the file of mode 0600 with the token; a client that shows it acts as the file's owner"},
    {"admin_group", GROUP, offsetof(struct config, admin_group), 0, 32, NULL,
     "group of users that may hold, release and cancel everybody's jobs (none: only root and carmad's user)"},
    {"hpc_job_mapping_dir", OPTIONAL_PATH, offsetof(struct config, hpc_job_mapping_dir), 0, 4000, NULL,
     "directory in which dcgm-exporter finds the jobs of each GPU (none: nowhere)"},
    {"device_cgroup", CHOICE, offsetof(struct config, device_cgroup), 0, 0, device_cgroups,
     "whether a job can open the device nodes of its own GPUs only: auto, where root and the kernel allow it"},
};

static void *key_at(const struct config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

const char *estimator_name(enum estimator_choice estimator)
{
    return estimator_names[estimator];
}

bool estimator_computes(enum estimator_choice estimator)
{
    return estimator != ESTIMATOR_DECLARED && estimator != ESTIMATOR_MEASURED && estimator != ESTIMATOR_HISTORY;
}

static int set_policy(struct config *config, const char *names);

void config_init_default(struct config *config)
{
    *config = (struct config){
        .share = {.mode = SHARE_AUTO},
        .estimate_quantile_permille = 980,
        .auto_capture = AUTO_CAPTURE_ON,
        .max_queued = 100000,
        .retention_ns = MINUTES(43200),
        .history_retention_ns = MINUTES(1051200),
        .sample_period_ns = NS_PER_SEC, /* thesis 6.2.1: every second over a 90 s window */
        .grace_ns = 10 * NS_PER_SEC,
        .start_timeout_ns = MINUTES(10),
        .job_cpu_weight = 100,
        .idle_report_ns = MINUTES(30),
        .mps_control = xstrdup("nvidia-cuda-mps-control"),
        .mps_threads_percent = 100,
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
    free(config->admin_group);
    free(config->hpc_job_mapping_dir);
    *config = (struct config){0};
}

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

/* "monitor or reserve", "0% to 100%", "an absolute path": the values that the key takes. */
static void describe_allowed(const struct key *key, struct strbuf *out)
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
        describe_choices(switches, out);
        break;
    case SHARING:
        strbuf_puts(
            out,
            "auto, time-slice, mps, mps:gpu or exclusive; then, by number or UUID, GPUs that differ: mps, 3=exclusive "
            "(mps and mps:gpu do not go together)");
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
    default:
        strbuf_printf(out, "%s to %s", number_text(key, key->low, low), number_text(key, key->high, high));
        break;
    }
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
        rc = find_choice(switches, value, &number);
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
    else if (key->kind == COUNT)
        *(uint32_t *)at = (uint32_t)number;
    else
        *(int64_t *)at = number;
    return 0;
}

int config_set(struct config *config, const char *key, const char *value, struct error *err)
{
    struct strbuf allowed = {0};
    size_t i = 0;

    key = present_name(key);
    while (i < array_size(keys) && strcmp(keys[i].name, key) != 0)
        i++;
    if (i == array_size(keys))
        return error_set(err, EINVAL, "unknown key '%.40s': `carmad --settings` lists them", key);
    if (set_key(config, &keys[i], value) == 0)
        return 0;
    describe_allowed(&keys[i], &allowed);
    error_set(err, EINVAL, "%s '%.120s' is not allowed: write %s%s", key, value, allowed.text,
              keys[i].kind == SIZE ? ", with a unit as in 12GiB" : "");
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

static const char *value_text(const struct config *config, const struct key *key, char text[static UNITS_TEXT])
{
    const void *at = key_at(config, key);

    switch (key->kind) {
    case POLICY:
        return at;
    case CHOICE:
        return key->choices[*(const uint32_t *)at];
    case SWITCH:
        return switches[*(const bool *)at];
    case SHARING: /* the defaults have no GPUs that differ */
        return share_mode_name(((const struct share_setting *)at)->mode);
    case PATH:
    case OPTIONAL_PATH:
    case LIBRARY:
    case PROFILE:
    case ADDRESS:
    case GROUP:
        return *(char *const *)at ? *(char *const *)at : "none";
    case SHARE:
    case RATIO:
        return number_text(key, *(const int32_t *)at, text);
    case COUNT:
        return number_text(key, *(const uint32_t *)at, text);
    default:
        return number_text(key, *(const int64_t *)at, text);
    }
}

enum share_mode config_share_of(const struct config *config, uint32_t number, const char *uuid)
{
    return share_setting_of(&config->share, number, uuid);
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
    for (size_t i = 0; i < array_size(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return key_decides(&keys[i]);
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
    for (size_t i = 0; i < array_size(keys); i++) {
        char own[UNITS_TEXT], others[UNITS_TEXT];
        const char *value;

        if (!key_decides(&keys[i]) && keys[i].kind != PROFILE)
            continue;
        value = exact_text(config, &keys[i], own);
        if (strcmp(value, exact_text(other, &keys[i], others)) != 0)
            visit(keys[i].name, value, user);
    }
}

static void each_key(const struct config *defaults, void (*visit)(const struct config_key *key, void *user), void *user)
{
    for (size_t i = 0; i < array_size(keys); i++) {
        struct strbuf allowed = {0};
        char text[UNITS_TEXT];

        describe_allowed(&keys[i], &allowed);
        visit(&(struct config_key){.name = keys[i].name,
                                   .help = keys[i].help,
                                   .allowed = allowed.text,
                                   .preset = value_text(defaults, &keys[i], text)},
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
