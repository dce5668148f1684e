/* The commands that run together in each mode, and comparisons between their runs. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/old_names.h"
#include "base/units.h"
#include "bench/collocate.h"

#define FILE_MAX MIB

static const char *const mode_names[COLLOCATE_MODES] = {"time-slice", "mps", "mig"};

const char *collocate_mode_name(enum collocate_mode mode)
{
    return mode_names[mode];
}

/* ---- Commands ---- */

static struct collocate_command *add_command(struct collocate_plan *plan, char *name, size_t words)
{
    struct collocate_command *command;

    plan->commands = xrealloc(plan->commands, plan->command_count + 1, sizeof *plan->commands);
    command = &plan->commands[plan->command_count++];
    *command = (struct collocate_command){.name = name, .argv = xcalloc(words + 1, sizeof *command->argv)};
    return command;
}

void collocate_plan_command(struct collocate_plan *plan, char *const *argv)
{
    struct collocate_command *command;
    size_t words = 0;

    while (argv[words])
        words++;
    command = add_command(plan, xstrdup(file_base_name(argv[0])), words);
    for (size_t i = 0; i < words; i++)
        command->argv[i] = xstrdup(argv[i]);
}

static bool find_command(const struct collocate_plan *plan, const char *name, size_t length, size_t *index)
{
    for (size_t i = 0; i < plan->command_count; i++) {
        if (strlen(plan->commands[i].name) == length && memcmp(plan->commands[i].name, name, length) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

/* Names become parts of file names and of mixes. */
static size_t name_length(const char *line)
{
    return strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");
}

static int read_line(struct collocate_plan *plan, const char *line, struct error *err)
{
    size_t length = name_length(line), known;
    const char *text = line + length;
    struct collocate_command *command;

    if (length == 0 || *text != ':')
        return error_set(err, EINVAL, "'%.40s' is not NAME: COMMAND (a name has letters, digits, '_', '-', '.')", line);
    if (find_command(plan, line, length, &known))
        return error_set(err, EINVAL, "there are two commands '%.*s'", (int)length, line);
    text++;
    text += strspn(text, " \t");
    if (!*text)
        return error_set(err, EINVAL, "'%.*s' has no command", (int)length, line);
    command = add_command(plan, xstrndup(line, length), 3);
    command->argv[0] = xstrdup("/bin/sh");
    command->argv[1] = xstrdup("-c");
    command->argv[2] = xstrdup(text);
    return 0;
}

int collocate_plan_read(struct collocate_plan *plan, const char *path, struct error *err)
{
    CLEANUP(free_ptr) char *text = NULL;
    char *rest, *line;
    unsigned int number = 0;
    size_t length;
    int rc = file_read(path, FILE_MAX, &text, &length, err);

    for (rest = text; rc == 0 && (line = strsep(&rest, "\n"));) {
        number++;
        while (isspace((unsigned char)*line))
            line++;
        if (!*line || *line == '#')
            continue;
        rc = read_line(plan, line, err);
        if (rc)
            error_prefix(err, "%s:%u", path, number);
    }
    if (rc == 0 && plan->command_count == 0)
        rc = error_set(err, EINVAL, "%s: no command in it: write lines NAME: COMMAND", path);
    return rc;
}

/* ---- Lists ---- */

int collocate_degrees_parse(const char *text, uint64_t *degrees, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *rest = copy, *item;

    *degrees = 0;
    while ((item = strsep(&rest, ","))) {
        char *dash = strchr(item, '-');
        int64_t low, high;

        if (dash)
            *dash++ = '\0';
        if (parse_integer(item, 1, COLLOCATE_JOBS_MAX, &low, err) ||
            parse_integer(dash ? dash : item, low, COLLOCATE_JOBS_MAX, &high, err)) {
            return error_set(err, EINVAL, "'%.40s' is not a list of numbers from 1 to %d such as 1,2,4 or 1-7", text,
                             COLLOCATE_JOBS_MAX);
        }
        for (int64_t n = low; n <= high; n++)
            *degrees |= UINT64_C(1) << n;
    }
    return 0;
}

int collocate_modes_parse(const char *text, unsigned int *modes, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *rest = copy, *item;

    *modes = 0;
    while ((item = strsep(&rest, ","))) {
        size_t mode = 0;
        while (mode < COLLOCATE_MODES && strcmp(present_name(item), mode_names[mode]) != 0)
            mode++;
        if (mode == COLLOCATE_MODES)
            return error_set(err, EINVAL, "there is no mode '%.40s': name some of time-slice, mps, mig", item);
        *modes |= 1u << mode;
    }
    return 0;
}

/* ---- Runs ---- */

static struct collocate_run *add_run(struct collocate_plan *plan, enum collocate_mode mode, const char *label)
{
    struct collocate_run *run;

    plan->runs = xrealloc(plan->runs, plan->run_count + 1, sizeof *plan->runs);
    run = &plan->runs[plan->run_count++];
    *run = (struct collocate_run){
        .mode = mode, .label = xstrdup(label), .jobs = xcalloc(COLLOCATE_JOBS_MAX, sizeof *run->jobs)};
    return run;
}

static void add_uniform(struct collocate_plan *plan, enum collocate_mode mode, size_t command, size_t degree)
{
    CLEANUP(free_ptr) char *label = xasprintf("%s x %zu", plan->commands[command].name, degree);
    struct collocate_run *run = add_run(plan, mode, label);

    run->count = degree;
    for (size_t i = 0; i < degree; i++)
        run->jobs[i].command = command;
}

static int add_mix(struct collocate_plan *plan, enum collocate_mode mode, const char *mix, struct error *err)
{
    struct collocate_run *run = add_run(plan, mode, mix);

    for (const char *at = mix;; at++) {
        size_t length = strcspn(at, "+"), command;
        if (!find_command(plan, at, length, &command))
            return error_set(err, EINVAL, "--mix %.80s: there is no command '%.*s'", mix, (int)length, at);
        if (run->count == COLLOCATE_JOBS_MAX)
            return error_set(err, EINVAL, "--mix %.80s: more than %d jobs at once", mix, COLLOCATE_JOBS_MAX);
        run->jobs[run->count++].command = command;
        at += length;
        if (!*at)
            return 0;
    }
}

int collocate_plan_runs(struct collocate_plan *plan, unsigned int modes, uint64_t degrees, const char *const *mixes,
                        size_t mix_count, struct error *err)
{
    for (size_t command = 0; command < plan->command_count; command++) {
        add_uniform(plan, COLLOCATE_TIME_SLICE, command, 1);
        plan->runs[plan->run_count - 1].alone = true;
        for (enum collocate_mode mode = 0; mode < COLLOCATE_MODES; mode++) {
            for (size_t degree = 1; degree <= COLLOCATE_JOBS_MAX; degree++) {
                bool baseline = mode == COLLOCATE_TIME_SLICE && degree == 1;
                if (modes & 1u << mode && degrees & UINT64_C(1) << degree && !baseline)
                    add_uniform(plan, mode, command, degree);
            }
        }
    }
    for (size_t mix = 0; mix < mix_count; mix++) {
        for (enum collocate_mode mode = 0; mode < COLLOCATE_MODES; mode++) {
            int rc = modes & 1u << mode ? add_mix(plan, mode, mixes[mix], err) : 0;
            if (rc)
                return rc;
        }
    }
    return 0;
}

void collocate_plan_release(struct collocate_plan *plan)
{
    for (size_t i = 0; i < plan->command_count; i++) {
        for (char **word = plan->commands[i].argv; *word; word++)
            free(*word);
        free(plan->commands[i].argv);
        free(plan->commands[i].name);
    }
    free(plan->commands);
    for (size_t i = 0; i < plan->run_count; i++) {
        free(plan->runs[i].label);
        free(plan->runs[i].jobs);
    }
    free(plan->runs);
    *plan = (struct collocate_plan){0};
}

/* ---- Results of several runs ---- */

static const struct collocate_run *alone_run(const struct collocate_plan *plan, size_t command)
{
    for (size_t i = 0; i < plan->run_count; i++) {
        if (plan->runs[i].alone && plan->runs[i].jobs[0].command == command)
            return plan->runs[i].result == COLLOCATE_OK ? &plan->runs[i] : NULL;
    }
    return NULL;
}

double collocate_alone_epoch_s(const struct collocate_plan *plan, size_t command)
{
    const struct collocate_run *alone = alone_run(plan, command);

    return alone ? alone->jobs[0].epoch_s : 0;
}

double collocate_throughput(const struct collocate_plan *plan, const struct collocate_run *run)
{
    double sum = 0;

    for (size_t i = 0; i < run->count; i++) {
        double alone_s = collocate_alone_epoch_s(plan, run->jobs[i].command);
        if (!(alone_s > 0 && run->jobs[i].epoch_s > 0))
            return 0;
        sum += alone_s / run->jobs[i].epoch_s;
    }
    return sum;
}

double collocate_serial_s(const struct collocate_plan *plan, const struct collocate_run *run)
{
    double sum = 0;

    for (size_t i = 0; i < run->count; i++) {
        const struct collocate_run *alone = alone_run(plan, run->jobs[i].command);
        if (!alone)
            return 0;
        sum += (double)alone->total_ns / 1e9;
    }
    return sum;
}
