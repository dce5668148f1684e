#include "api/workload_key.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/spec.h"
#include "base/digest.h"
#include "base/memory.h"

#define NAME_SIZE 64

/* Arguments without a say in memory, by their whole names: "-", "_" and upper case do not count. */
static const char *const without_effect[] = {
    "seed",       "random_seed",   "manual_seed",     "lr",           "learning_rate",
    "base_lr",    "min_lr",        "max_lr",          "wd",           "weight_decay",
    "momentum",   "warmup",        "warmup_steps",    "warmup_ratio", "output",
    "output_dir", "output_path",   "output_file",     "out",          "out_dir",
    "outdir",     "save",          "save_dir",        "save_path",    "log_dir",
    "logdir",     "logging_dir",   "log_file",        "run_name",     "run_id",
    "exp_name",   "experiment",    "experiment_name", "results_dir",  "checkpoint_dir",
    "wandb_name", "wandb_project", "project_name",    "tag",          "tags",
};

/* Parts of the names of variables that choose a size or a model. */
static const char *const of_a_size[] = {"BATCH",      "MODEL",      "SEQ_LEN",     "SEQUENCE_LEN", "MAX_LEN",
                                        "BLOCK_SIZE", "IMAGE_SIZE", "CONTEXT_LEN", "HIDDEN_SIZE",  "NUM_LAYERS"};

/* The text's end included. */
static uint64_t mix(uint64_t digest, const char *text)
{
    return digest_add(digest, text, strlen(text) + 1);
}

/* The last part of a dotted name, as `optimizer.lr` has, in small letters; "" where it is too long to be one of ours.
 */
static void plain_name(const char *from, size_t length, char name[static NAME_SIZE])
{
    size_t count = 0;

    for (size_t i = 0; i < length; i++) {
        if (from[i] == '.')
            count = 0;
        else if (count < NAME_SIZE - 1)
            name[count++] = from[i] == '-' ? '_' : (char)tolower((unsigned char)from[i]);
    }
    name[count < NAME_SIZE - 1 ? count : 0] = '\0';
}

static bool has_no_effect(const char *word, size_t length)
{
    char name[NAME_SIZE];

    plain_name(word, length, name);
    for (size_t i = 0; i < array_size(without_effect); i++)
        if (strcmp(name, without_effect[i]) == 0)
            return true;
    return false;
}

static bool is_value(const char *word)
{
    return word[0] != '-' || isdigit((unsigned char)word[1]) || word[1] == '.';
}

/* How many words from this one on are an argument without effect, as `--seed 3`, `--seed=3`, `seed=3` or `+run.seed=3`.
 */
static size_t words_without_effect(const struct spec_strings *words, size_t at)
{
    const char *word = words->items[at], *equals = strchr(word, '=');
    size_t dashes = strspn(word, "-+");

    if (equals)
        return has_no_effect(word + dashes, (size_t)(equals - word) - dashes) ? 1 : 0;
    if (word[0] != '-' || !has_no_effect(word + dashes, strlen(word + dashes)))
        return 0;
    return at + 1 < words->count && is_value(words->items[at + 1]) ? 2 : 1;
}

static uint64_t mix_arguments(uint64_t digest, const struct spec_strings *command, size_t first)
{
    size_t skipped;

    for (size_t i = first; i < command->count; i += skipped ? skipped : 1) {
        skipped = words_without_effect(command, i);
        if (!skipped)
            digest = mix(digest, command->items[i]);
    }
    return digest;
}

static bool is_of_a_size(const char *variable)
{
    size_t length = strcspn(variable, "=");

    for (size_t i = 0; i < array_size(of_a_size); i++) {
        const char *part = strstr(variable, of_a_size[i]);
        if (part && (size_t)(part - variable) < length)
            return true;
    }
    return false;
}

/* In whatever order they are. */
static uint64_t digest_of_sizes(const struct spec_strings *environment)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < environment->count; i++)
        if (is_of_a_size(environment->items[i]))
            sum += digest_of_text(environment->items[i]);
    return sum;
}

static bool is_script(const char *word)
{
    const char *dot = strrchr(word, '.');

    return word[0] != '-' && dot && (strcmp(dot, ".py") == 0 || strcmp(dot, ".sh") == 0);
}

/* Launchers and interpreters have options of their own, which differ: the first word that is a script, or a module. */
static const char *program_of(const struct spec_strings *command)
{
    for (size_t i = 0; i < command->count; i++) {
        if (is_script(command->items[i]))
            return command->items[i];
        if (strcmp(command->items[i], "-m") == 0 && i + 1 < command->count)
            return command->items[i + 1];
    }
    return command->count ? command->items[0] : "";
}

static uint64_t digest_of_program(const struct job_spec *spec, uid_t uid)
{
    uint64_t digest = mix(DIGEST_EMPTY ^ uid, spec->directory ? spec->directory : "");

    return mix(digest, spec->script ? spec->script : program_of(&spec->command));
}

void workload_key(const struct job_spec *spec, uid_t uid, char key[static RECORD_WORKLOAD_SIZE])
{
    const char *const texts[] = {spec->summary, spec->capture,   spec->optimizer, spec->precision, spec->hf_config,
                                 spec->method,  spec->directory, spec->code,      spec->lengths};
    uint64_t digest = DIGEST_EMPTY ^ uid ^ ((uint64_t)spec->batch_size << 32);

    if (spec->sequence_length > 0)
        digest = digest_add(digest, &spec->sequence_length, sizeof spec->sequence_length);
    if (spec->script)
        digest = mix(digest, spec->script);
    digest = mix_arguments(digest, &spec->command, spec->script ? 1 : 0);
    for (size_t i = 0; i < array_size(texts); i++)
        if (texts[i])
            digest = mix(digest ^ (i + 1), texts[i]);
    snprintf(key, RECORD_WORKLOAD_SIZE, "%016" PRIx64 ":%016" PRIx64, digest_of_program(spec, uid),
             digest + digest_of_sizes(&spec->environment));
}
