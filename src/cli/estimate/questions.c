/* carma estimate --questions: `carma evaluate` (python/carma_bench/evaluate.py) asks here. A line of JSON on standard
 * input is a question, and one on standard output its answer: of a measured run (evaluation/question.h), of the
 * machine, of what the core predicts where jobs share a GPU (core/share/rates.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/estimate/estimate.h"
#include "cli/show/answer.h"
#include "config/config.h"
#include "core/share/rates.h"
#include "estimate/learned/model.h"
#include "evaluation/question.h"

#define MEASURED_ON "a100-40g-thesis" /* the published runs */

struct asker {
    const struct estimate_options *options;
    struct machine_profile profile; /* of the machine that the runs were measured on */
};

/* Whether the model was trained on the row; *any: it tells on which at all. */
static bool has_seen(const char *model, const struct question *question, bool *any)
{
    CLEANUP(free_ptr) char *name = xasprintf("rows/%.20s", question->kind);
    struct model_array rows = model_array(model_find(model), name, MODEL_U64);
    const uint64_t *keys = rows.data;

    *any |= rows.data && rows.count;
    for (size_t i = 0; rows.data && i < rows.count; i++)
        if (keys[i] == question->key)
            return true;
    return false;
}

/* `auto` may ask any of them. Formulas were trained on none. */
static bool memory_seen(const struct asker *asker, const struct question *question, bool *any)
{
    static const char *const models[] = {"replay", "gpumemnet"};
    const char *name = asker->options->estimator->name;
    bool seen = false;

    for (size_t i = 0; i < array_size(models); i++)
        if (strcmp(name, "auto") == 0 || strcmp(name, models[i]) == 0)
            seen |= has_seen(models[i], question, any);
    return seen;
}

/* SM activity has models of its own, beside any estimator of memory. A table without a list of its training rows was
 * trained with that of the memory. */
static bool activity_seen(const struct question *question)
{
    bool any = false, seen = has_seen("utilisation", question, &any);

    return any ? seen : has_seen("replay", question, &any);
}

static json_t *estimate_json(const struct estimate *estimate)
{
    return json_pack("{s:I, s:I, s:s, s:i, s:i}", "bytes", (json_int_t)estimate->bytes, "median_bytes",
                     (json_int_t)estimate->median_bytes, "source", estimate->source, "confidence_permille",
                     (int)estimate->confidence_permille, "sm_activity_permille", (int)estimate->smact_permille);
}

/* With "folds", a row that was trained on is asked of the models without it: where an estimator was not trained, that
 * is about SM activity alone. */
static json_t *answer_question(const struct asker *asker, const json_t *json, const struct question *question,
                               struct error *err)
{
    bool trained = false, seen = memory_seen(asker, question, &trained), of_activity = activity_seen(question);
    bool apart = json_is_true(json_object_get(json, "folds")) && (trained ? seen : of_activity);
    struct estimate_question asked = {
        .layers = question->has_layers ? &question->layers : NULL,
        .capture = question->capture,
        .training = question->training,
        .profile = &asker->profile,
        .declared_bytes = -1,
        .quantile_permille = asker->options->quantile_permille,
        .fold = apart ? (int32_t)(question->key % QUESTION_FOLDS) : -1,
    };
    struct estimate estimated;
    int rc = estimate(asker->options->estimator, &asked, &estimated, err);
    json_t *answer;

    if (rc && rc != -ENOTSUP)
        return NULL;
    answer = rc ? json_pack("{s:s}", "unanswered", err->text) : estimate_json(&estimated);
    json_object_set_new(answer, "seen", json_boolean(seen));
    json_object_set_new(answer, "sm_activity_seen", json_boolean(of_activity));
    json_object_set_new(answer, "fold", json_integer(asked.fold));
    return answer;
}

static json_t *answer_run(const struct asker *asker, const json_t *json, struct error *err)
{
    CLEANUP(question_release) struct question question;
    int rc = question_read(&question, json, err);

    if (rc < 0)
        return NULL;
    return rc ? answer_question(asker, json, &question, err) : json_pack("{s:b}", "left_out", true);
}

static json_t *answer_machine(const struct asker *asker, const json_t *json, struct error *err)
{
    const struct machine_profile *published = machine_profile_find(MEASURED_ON);

    return json_pack("{s:I, s:{s:I, s:I}}", "memory_bytes", (json_int_t)asker->profile.memory_bytes, "published",
                     "memory_bytes", (json_int_t)published->memory_bytes, "context_bytes",
                     (json_int_t)published->context_bytes);
}

/* The bound that a carmad without settings goes by, and the worst prediction within it. */
static json_t *answer_bound(const struct asker *asker, const json_t *json, struct error *err)
{
    struct config config;
    int32_t bound;

    config_init_default(&config);
    bound = config.core.max_slowdown_permille;
    config_release(&config);
    return json_pack("{s:i, s:i}", "bound_permille", (int)bound, "admitted_permille",
                     (int)rates_admitted_permille(bound));
}

/* Two clients of an MPS server, of these activities. */
static json_t *answer_pair(const struct asker *asker, const json_t *json, struct error *err)
{
    struct rates_client clients[2] = {{0, RATES_ALL_THREADS}, {0, RATES_ALL_THREADS}};
    int32_t rates[2];
    int a, b;

    if (json_unpack((json_t *)(uintptr_t)json, "{s:[i, i!]}", "activity_permille", &a, &b) || a < 0 || a > 1000 ||
        b < 0 || b > 1000)
        return error_set(err, EINVAL, "a pair has two activities of 0 to 1000 permille"), NULL;
    clients[0].activity_permille = a;
    clients[1].activity_permille = b;
    rates_of_clients(2, clients, rates);
    return json_pack("{s:[i, i]}", "rates_ppm", (int)rates[0], (int)rates[1]);
}

/* As many clients of one server, with the share of threads that the core would give the last of them. */
static json_t *answer_threads(const struct asker *asker, const json_t *json, struct error *err)
{
    int64_t clients = answer_integer(json, "clients", 0), percent;

    if (clients < 1 || clients > RATES_CLIENT)
        return error_set(err, EINVAL, "a server has 1 to %d clients", RATES_CLIENT), NULL;
    percent = 2 * rates_thread_percent((uint32_t)clients) < 50 + 14 ? 14 : 50; /* the measured one that is nearest */
    return json_pack("{s:I, s:i}", "percent", (json_int_t)percent, "gain_permille",
                     (int)rates_thread_gain_permille((uint32_t)clients, (int32_t)percent));
}

/* On this part of a GPU: the slowdown of each activity. */
static json_t *answer_part(const struct asker *asker, const json_t *json, struct error *err)
{
    int64_t part = answer_integer(json, "part_permille", 0);
    json_t *slowed = json_array();

    if (part < 1 || part > 1000)
        return json_decref(slowed), error_set(err, EINVAL, "a part has 1 to 1000 permille"), NULL;
    for (int64_t activity = 0; activity <= 1000; activity++)
        json_array_append_new(slowed, json_integer((json_int_t)rates_slowed_by_part(activity, part)));
    return json_pack("{s:o}", "slowed_permille", slowed);
}

static json_t *answer(const struct asker *asker, const char *line, size_t length, struct error *err)
{
    static const struct {
        const char *ask;
        json_t *(*answer)(const struct asker *asker, const json_t *json, struct error *err);
    } questions[] = {{"run", answer_run},   {"machine", answer_machine}, {"bound", answer_bound},
                     {"pair", answer_pair}, {"threads", answer_threads}, {"part", answer_part}};
    CLEANUP(json_release) json_t *json = NULL;
    const char *ask;

    if (question_parse(line, length, &json, err))
        return NULL;
    ask = json_string_value(json_object_get(json, "ask"));
    for (size_t i = 0; ask && i < array_size(questions); i++)
        if (strcmp(questions[i].ask, ask) == 0)
            return questions[i].answer(asker, json, err);
    return error_set(err, EINVAL, "not a question"), NULL;
}

int estimate_questions(const struct estimate_options *options)
{
    struct asker asker = {.options = options, .profile = *machine_profile_find(MEASURED_ON)};
    CLEANUP(free_ptr) char *line = NULL;
    size_t room = 0;
    struct error err;
    ssize_t length;

    if (options->profile && estimate_read_profile(&asker.profile, options->profile, &err))
        return cli_fail("%s", err.text);
    while ((length = getline(&line, &room, stdin)) > 0) {
        CLEANUP(json_release) json_t *said = answer(&asker, line, (size_t)length, &err);

        if (!said)
            said = json_pack("{s:s}", "error", err.text);
        if (json_dumpf(said, stdout, JSON_COMPACT) || puts("") == EOF || fflush(stdout))
            return CLI_FAILURE;
    }
    return CLI_OK;
}
