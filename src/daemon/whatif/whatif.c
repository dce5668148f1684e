#include "daemon/whatif/whatif.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/install.h"
#include "base/json/json_read.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "config/config.h"
#include "daemon/node/node.h"
#include "daemon/low_child.h"
#include "daemon/whatif/savings.h"
#include "trace/profile.h"

#define PROFILES_MAX    32
#define PROFILE_DEFAULT "a100x4-40g"
#define NAME_LIMIT      64

/* What sharing has saved is looked at again after both, where a job has ended since. */
#define SAVED_PERIOD_NS     (INT64_C(3600) * NS_PER_SEC) /* node time */
#define SAVED_WALL_MS       20000
#define SAVED_FIRST_WALL_MS 10000 /* after carmad's begin */

/* A question, and in time its answer. */
struct question {
    uint64_t id;
    uid_t uid;
    bool own;      /* the daemon's: what sharing has saved */
    char *compare; /* the policies, as carma simulate takes them */
    json_t *names; /* their names in the answer */
    bool done;
    struct error err;  /* "": it did not fail */
    json_t *outcomes;  /* of carma simulate; NULL: not there */
    char power_of[96]; /* the GPU that gives the power model */
    struct question *next, *prev;
};

struct whatif {
    struct daemon *daemon;
    struct question *questions; /* in the order in which they were asked */
    struct question *current;
    struct low_child *child; /* of the current one */
    uint64_t last_id;
    struct {
        char gpu_name[96];
        char *path;
    } profiles[PROFILES_MAX]; /* the GPUs with a known power model */
    size_t profile_count;
    uv_timer_t *saved_timer;
    json_t *saved;        /* what sharing has saved; NULL: not asked for yet */
    int64_t saved_at_ns;  /* node time, when that was last begun */
    uint64_t saved_ended; /* jobs that had ended then */
};

static void question_free(struct question *question)
{
    free(question->compare);
    json_decref(question->names);
    json_decref(question->outcomes);
    free(question);
}

/* ---- A GPU's power ---- */

static void learn_profiles(struct whatif *whatif)
{
    CLEANUP(free_ptr) char *directory = install_path("share/carma/nodes");
    DIR *dir = opendir(directory);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) && whatif->profile_count < PROFILES_MAX) {
        CLEANUP(free_ptr) char *path = xasprintf("%s/%s", directory, entry->d_name);
        struct node_profile profile;
        size_t length = strlen(path);

        if (length < 4 || strcmp(path + length - 4, ".ini") != 0 || node_profile_read(path, &profile, NULL) != 0)
            continue;
        snprintf(whatif->profiles[whatif->profile_count].gpu_name, sizeof profile.gpu_name, "%s", profile.gpu_name);
        whatif->profiles[whatif->profile_count++].path = steal_ptr(&path);
    }
    if (dir)
        closedir(dir);
}

/* The profile that knows this GPU, else the default; `power_of` becomes its GPU. */
static const char *profile_of(const struct whatif *whatif, const char *gpu_name, char power_of[static 96])
{
    *power_of = '\0';
    for (size_t i = 0; i < whatif->profile_count; i++) {
        if (strcmp(whatif->profiles[i].gpu_name, gpu_name) != 0)
            continue;
        memcpy(power_of, whatif->profiles[i].gpu_name, sizeof whatif->profiles[i].gpu_name);
        return whatif->profiles[i].path;
    }
    for (size_t i = 0; i < whatif->profile_count; i++)
        if (strstr(whatif->profiles[i].path, "/" PROFILE_DEFAULT ".ini"))
            memcpy(power_of, whatif->profiles[i].gpu_name, sizeof whatif->profiles[i].gpu_name);
    return PROFILE_DEFAULT;
}

/* ---- The child ---- */

struct words {
    char **items; /* owned, ended by NULL */
    size_t count, capacity;
};

static void add_word(struct words *words, char *word)
{
    array_reserve(words->items, words->capacity, words->count + 2);
    words->items[words->count++] = word;
    words->items[words->count] = NULL;
}

static void words_release(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
}

static void add_setting(const char *key, const char *value, void *user)
{
    add_word(user, xasprintf("--set=%s=%s", key, value));
}

/* The daemon's settings beyond its policy stay the same under every other. */
static void add_settings(const struct config *config, struct words *words)
{
    struct config base;

    config_init_default(&base);
    config_set(&base, "policy", config->policy, NULL);
    config_each_difference(config, &base, add_setting, words);
    config_release(&base);
}

static void start_next(struct whatif *whatif);

/* Most of it is numbers, of some digits. */
static const struct json_bounds outcomes = {
    .values = WHATIF_OUTPUT_LIMIT / 4, .depth = 16, .bytes = WHATIF_OUTPUT_LIMIT};

/* The daemon's own question is answered, or failed. */
static void take_saved(struct whatif *whatif, struct question *question)
{
    const char *why = question->err.text, *state = whatif->daemon->config.state_directory;
    size_t length = strlen(state);

    if (strncmp(why, state, length) == 0 &&
        strncmp(why + length, ": ", 2) == 0) /* no user asked about that directory */
        why += length + 2;
    json_decref(whatif->saved);
    whatif->saved = *question->err.text ? savings_unknown(why, whatif->saved_at_ns)
                                        : savings_to_json(question->outcomes, whatif->saved_at_ns);
    DL_DELETE(whatif->questions, question);
    question_free(question);
}

static void on_ended(int rc, const char *output, size_t length, const struct error *err, void *user)
{
    struct whatif *whatif = user;
    struct question *question = whatif->current;

    whatif->child = NULL;
    whatif->current = NULL;
    question->done = true;
    question->err = *err;
    if (rc == 0) {
        json_read(output, length, 0, &outcomes, &question->outcomes, NULL);
        if (json_array_size(question->outcomes) != json_array_size(question->names))
            error_set(&question->err, EPROTO, "the simulation says what is no answer: is all of carma of one version?");
    }
    if (question->own)
        take_saved(whatif, question);
    start_next(whatif);
}

static int start(struct whatif *whatif, struct question *question)
{
    static const char past[] = "this node's past is too long for it";
    const struct low_child_limits limits = {.what = "simulation",
                                            .too_long = question->own ? past : "ask about fewer policies",
                                            .too_large = past,
                                            .time_s = WHATIF_TIME_LIMIT_S,
                                            .memory_bytes = WHATIF_MEMORY_LIMIT,
                                            .output_bytes = WHATIF_OUTPUT_LIMIT,
                                            .status = WHATIF_INCOMPLETE};
    const struct config *config = &whatif->daemon->config;
    CLEANUP(words_release) struct words words = {0};

    add_word(&words, install_path("bin/carma"));
    add_word(&words, xstrdup("simulate"));
    add_word(&words, xasprintf("--trace=%s", config->state_directory));
    add_word(&words,
             xasprintf("--node=%s", profile_of(whatif, node_gpu_name(whatif->daemon->node), question->power_of)));
    add_word(&words, xasprintf("--share=%s", share_name(config->share.mode, config->core.mps_domain)));
    add_word(&words, xasprintf("--compare=%s", question->compare));
    add_word(&words, xstrdup("--json"));
    add_word(&words, question->own ? xasprintf("--last=%dd", SAVINGS_DAYS) : xasprintf("--steps=%d", WHATIF_STEPS));
    add_settings(config, &words);
    return low_child_start(whatif->daemon->loop, words.items, NULL, &limits, on_ended, whatif, &whatif->child,
                           &question->err);
}

/* Forgets answers that are too many, and begins with the next question. */
static void start_next(struct whatif *whatif)
{
    struct question *question, *next;
    size_t done = 0;

    DL_FOREACH (whatif->questions, question)
        done += question->done;
    DL_FOREACH_SAFE (whatif->questions, question, next) {
        if (question->done && done > WHATIF_KEPT) {
            DL_DELETE(whatif->questions, question);
            question_free(question);
            done--;
        } else if (!question->done && !whatif->current) {
            whatif->current = question;
            if (start(whatif, question) != 0) {
                question->done = true;
                whatif->current = NULL;
                if (question->own)
                    take_saved(whatif, question);
            }
        }
    }
}

/* ---- What sharing has saved ---- */

static const char *present_policy(const struct config *config)
{
    return strcmp(config->policy, "default") == 0 ? config->core.policy : config->policy;
}

static uint64_t ended_count(const struct daemon *daemon)
{
    uint64_t count = 0;

    for (uint32_t state = 0; state < JOB_STATE_COUNT; state++)
        count += job_state_ended(state) ? daemon->views.counts[state] : 0;
    return count;
}

static void on_saved_due(uv_timer_t *timer)
{
    struct whatif *whatif = timer->data;
    const struct config *config = &whatif->daemon->config;
    int64_t now_ns = nodetime_now_ns();
    uint64_t ended = ended_count(whatif->daemon);
    struct question *question;

    if (ended == whatif->saved_ended || (whatif->saved && now_ns - whatif->saved_at_ns < SAVED_PERIOD_NS))
        return;
    whatif->saved_at_ns = now_ns;
    whatif->saved_ended = ended;
    question = xcalloc(1, sizeof *question);
    question->own = true;
    question->compare = xasprintf("%s,exclusive", config->policy);
    question->names = json_pack("[s, s]", present_policy(config), "exclusive");
    DL_APPEND(whatif->questions, question);
    if (!whatif->current)
        start_next(whatif);
}

json_t *whatif_saved_to_json(const struct whatif *whatif)
{
    return whatif && whatif->saved ? json_incref(whatif->saved) : json_null();
}

/* ---- Requests ---- */

/* "/share=mps/settle=60s", once it is known to be allowed. The values stand in a list of policies in the child's
 * arguments. */
static int read_settings(const json_t *settings, struct config *scratch, struct strbuf *out, struct error *err)
{
    const char *key;
    json_t *value;

    if (json_object_size(settings) > WHATIF_SETTINGS_MAX)
        return error_set(err, EINVAL, "%zu settings are too many: at most %d can be tried", json_object_size(settings),
                         WHATIF_SETTINGS_MAX);
    json_object_foreach ((json_t *)settings, key, value) {
        const char *text = json_string_value(value);

        if (!config_key_decides(key) && strcmp(key, "share") != 0)
            return error_set(err, EINVAL,
                             "'%.40s' is not a setting that decides which job runs where: nothing can be tried with it",
                             key);
        if (!text || strlen(text) > NAME_LIMIT || strpbrk(text, "/,"))
            return error_set(err, EINVAL,
                             "the value of '%.40s' is not a short text: write it as in carmad's settings, \"60s\"",
                             key);
        if (config_set(scratch, key, text, err) != 0)
            return -EINVAL;
        strbuf_printf(out, "/%s=%s", key, text);
    }
    return 0;
}

static int read_policies(const json_t *policies, const char *settings, struct config *scratch,
                         struct question *question, struct strbuf *out, struct error *err)
{
    json_t *policy;
    size_t i;

    if (!json_is_array(policies) || json_array_size(policies) < 1 || json_array_size(policies) > WHATIF_POLICIES_MAX)
        return error_set(err, EINVAL, "'policies' is not a list of 1 to %d names of policies", WHATIF_POLICIES_MAX);
    json_array_foreach ((json_t *)policies, i, policy) {
        const char *name = json_string_value(policy);

        if (!name || strlen(name) > NAME_LIMIT)
            return error_set(err, EINVAL, "policy %zu is not a name of a policy", i + 1);
        if (config_set(scratch, "policy", name, err) != 0)
            return -EINVAL;
        strbuf_printf(out, ",%s%s", name, settings);
        json_array_append(question->names, policy);
    }
    return 0;
}

/* 0, or -EINVAL: the request's fault. */
static int read_question(const struct whatif *whatif, const struct http_request *request, struct question *question,
                         struct error *err)
{
    const struct config *config = &whatif->daemon->config;
    CLEANUP(strbuf_release) struct strbuf settings = {0}, compare = {0};
    json_t *policies = NULL, *wanted = NULL;
    struct config scratch;
    static const struct json_bounds bounds = {.values = 256, .depth = 4, .bytes = 16 << 10};
    json_error_t at;
    json_t *body;
    int rc = json_read(request->body, request->body_length, JSON_REJECT_DUPLICATES, &bounds, &body, err);

    if (rc)
        error_prefix(err, "the request");
    else if (json_unpack_ex(body, &at, JSON_STRICT, "{s:o, s?:o}", "policies", &policies, "settings", &wanted) != 0 ||
             (wanted && !json_is_object(wanted)))
        rc = error_set(err, EINVAL, "the request is not {\"policies\": [name], \"settings\": {key: text}}");
    config_init_default(&scratch);
    /* First the present policy: the others are compared with it. */
    question->names = json_pack("[s]", present_policy(config));
    strbuf_puts(&compare, config->policy);
    if (!rc)
        rc = read_settings(wanted, &scratch, &settings, err);
    if (!rc)
        rc = read_policies(policies, settings.text ? settings.text : "", &scratch, question, &compare, err);
    config_release(&scratch);
    json_decref(body);
    question->compare = strbuf_steal(&compare);
    return rc;
}

static bool has_room(const struct whatif *whatif, struct http_request *request)
{
    const struct question *question;
    unsigned waiting = 0, own = 0;

    DL_FOREACH (whatif->questions, question) {
        if (question->done || question->own || question == whatif->current)
            continue;
        waiting++;
        own += question->uid == request->uid;
    }
    if (own >= WHATIF_WAITING_PER_UID)
        http_reply_error(request, 503, "%u simulations of yours are waiting: wait for their answers", own);
    else if (waiting >= WHATIF_WAITING)
        http_reply_error(request, 503, "%u simulations are waiting: try again later", waiting);
    else
        return true;
    return false;
}

void whatif_ask(struct whatif *whatif, struct http_request *request)
{
    struct question *question;
    struct error err;

    if (!has_room(whatif, request))
        return;
    question = xcalloc(1, sizeof *question);
    if (read_question(whatif, request, question, &err) != 0) {
        question_free(question);
        http_reply_error(request, 400, "%s", err.text);
        return;
    }
    question->id = ++whatif->last_id;
    question->uid = request->uid;
    DL_APPEND(whatif->questions, question);
    http_reply(request, 202, json_pack("{s:I}", "id", (json_int_t)question->id));
    if (!whatif->current)
        start_next(whatif);
}

/* carma simulate's answer with the names of the question. */
static json_t *policies_of(const struct question *question)
{
    json_t *list = json_array(), *outcome;
    size_t i;

    json_array_foreach (question->outcomes, i, outcome) {
        json_t *copy = json_copy(outcome);

        json_object_set(copy, "policy", json_array_get(question->names, i));
        json_array_append_new(list, copy);
    }
    return list;
}

void whatif_show(struct whatif *whatif, struct http_request *request, const char *id)
{
    struct question *question;
    bool failed, answered;
    json_t *jobs;

    DL_FOREACH (whatif->questions, question) {
        CLEANUP(free_ptr) char *own = xasprintf("%" PRIu64, question->id);

        if (!question->own && strcmp(own, id) == 0)
            break;
    }
    if (!question) {
        http_reply_error(request, 404, "there is no simulation '%.20s': the latest %d are kept, until carmad ends", id,
                         WHATIF_KEPT);
        return;
    }
    failed = question->done && *question->err.text;
    answered = question->done && !failed;
    jobs = answered ? json_object_get(json_array_get(question->outcomes, 0), "jobs") : NULL;
    http_reply(request, 200,
               json_pack("{s:I, s:s, s:s?, s:O?, s:s?, s:o}", "id", (json_int_t)question->id, "state",
                         failed     ? "failed"
                         : answered ? "done"
                                    : "running",
                         "error", failed ? question->err.text : NULL, "jobs", jobs, "power_of",
                         answered && *question->power_of ? question->power_of : NULL, "policies",
                         answered ? policies_of(question) : json_null()));
}

/* ---- From begin to end ---- */

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

struct whatif *whatif_new(struct daemon *daemon)
{
    struct whatif *whatif = xcalloc(1, sizeof *whatif);

    whatif->daemon = daemon;
    learn_profiles(whatif);
    whatif->saved_timer = xmalloc(sizeof *whatif->saved_timer);
    uv_timer_init(daemon->loop, whatif->saved_timer);
    whatif->saved_timer->data = whatif;
    if (daemon->config.savings)
        uv_timer_start(whatif->saved_timer, on_saved_due, SAVED_FIRST_WALL_MS, SAVED_WALL_MS);
    return whatif;
}

void whatif_free(struct whatif *whatif)
{
    struct question *question, *next;

    if (!whatif)
        return;
    uv_close((uv_handle_t *)whatif->saved_timer, free_handle);
    json_decref(whatif->saved);
    low_child_free(whatif->child);
    DL_FOREACH_SAFE (whatif->questions, question, next)
        question_free(question);
    for (size_t i = 0; i < whatif->profile_count; i++)
        free(whatif->profiles[i].path);
    free(whatif);
}
