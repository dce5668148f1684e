/* One run: its jobs started at once, each line of their output read as it comes, all of them ended. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trust/guarded.h"
#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "bench/collocate.h"

#define LINE_MAX_BYTES 4096
#define TICK_MS        100
#define KILL_AFTER_NS  (5 * NS_PER_SEC)  /* wall clock, after SIGTERM */
#define DRAIN_NS       (2 * NS_PER_SEC)  /* for output of a job that has ended, while its children hold the pipe open */
#define CLEAR_NS       (10 * NS_PER_SEC) /* for a driver to free the last run's memory */
#define CLEAR_BYTES    (64 * MIB)

struct process {
    struct running *running;
    size_t index; /* among the run's jobs */
    uv_process_t handle;
    uv_pipe_t output;
    bool started, exited, output_ended, failed;
    int64_t exit_status;
    int exit_signal;
    int64_t begun_ns, ended_ns, ended_wall_ns;
    FILE *log;
    char line[LINE_MAX_BYTES]; /* of output, not ended yet */
    size_t line_length;
    char last_line[120];
    int64_t *marks; /* owned: when its epochs ended */
    size_t mark_count, mark_capacity;
    char room[16384];
};

struct running {
    struct collocate_setup *setup;
    const struct collocate_plan *plan;
    struct collocate_run *run;
    struct process *processes;
    size_t open; /* handles that the loop still has */
    int64_t begun_ns;
    int64_t all_train_from_ns, all_train_to_ns; /* the figures' subject */
    int64_t stop_wall_ns;                       /* when all were asked to end; 0: they were not */
    bool killed, over_time;
    void (*show)(void *user, const struct collocate_run *run, int64_t elapsed_ns);
    void *user;
};

/* ---- Output ---- */

static void take_line(struct process *process)
{
    const regex_t *pattern = process->running->setup->epoch_pattern;
    const char *text = process->line + strspn(process->line, " \t\r");

    if (*text)
        snprintf(process->last_line, sizeof process->last_line, "%s", text);
    if (pattern && regexec(pattern, process->line, 0, NULL, 0) == 0) {
        array_reserve(process->marks, process->mark_capacity, process->mark_count + 1);
        process->marks[process->mark_count++] = nodetime_now_ns();
    }
}

/* Lines end with a line feed or, as progress bars do, with a carriage return. */
static void take_output(struct process *process, const char *bytes, size_t count)
{
    fwrite(bytes, 1, count, process->log);
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\r') {
            if (process->line_length + 1 < sizeof process->line && bytes[i])
                process->line[process->line_length++] = bytes[i];
            continue;
        }
        process->line[process->line_length] = '\0';
        take_line(process);
        process->line_length = 0;
    }
}

static void on_closed(uv_handle_t *handle)
{
    ((struct process *)handle->data)->running->open--;
}

static void end_output(struct process *process)
{
    if (process->output_ended)
        return;
    process->output_ended = true;
    if (process->line_length)
        take_output(process, "\n", 1);
    uv_close((uv_handle_t *)&process->output, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct process *process = handle->data;

    *buffer = uv_buf_init(process->room, sizeof process->room);
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct process *process = stream->data;

    if (count > 0)
        take_output(process, buffer->base, (size_t)count);
    else if (count < 0)
        end_output(process);
}

/* ---- Starting and ending ---- */

/* A job is the leader of a session of its own, and its children go with it. */
static void signal_job(const struct process *process, int number)
{
    if (process->started && !process->output_ended)
        kill(-process->handle.pid, number);
}

static void stop_all(struct running *running, int number)
{
    for (size_t i = 0; i < running->run->count; i++) {
        if (!running->processes[i].exited)
            signal_job(&running->processes[i], number);
    }
    if (!running->stop_wall_ns)
        running->stop_wall_ns = nodetime_monotonic_wall_ns();
}

static void fail(struct running *running, const struct process *process, const char *what)
{
    struct collocate_run *run = running->run;
    const struct collocate_command *command = &running->plan->commands[run->jobs[process->index].command];

    if (run->result != COLLOCATE_OK)
        return; /* the first one says why; the others are stopped for it */
    run->result = COLLOCATE_FAILED;
    snprintf(run->reason, sizeof run->reason, "%s (job %zu of %zu) %s", command->name, process->index + 1, run->count,
             what);
}

static void on_exit_of_job(uv_process_t *handle, int64_t status, int signal_number)
{
    struct process *process = handle->data;

    process->exited = true;
    process->exit_status = status;
    process->exit_signal = signal_number;
    process->ended_ns = nodetime_now_ns();
    process->ended_wall_ns = nodetime_monotonic_wall_ns();
    process->failed = status != 0 || signal_number != 0;
    signal_job(process, SIGKILL);
    uv_close((uv_handle_t *)handle, on_closed);
    if (process->failed)
        stop_all(process->running, SIGTERM);
}

static void replace_variable(char **environment, size_t *count, const char *name, char *text)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < *count; i++) {
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=') {
            free(environment[i]);
            environment[i] = text;
            return;
        }
    }
    environment[(*count)++] = text;
}

static char **make_environment(const char *visible, const char *pipe_directory)
{
    size_t count = 0;
    char **environment;

    while (environ[count])
        count++;
    environment = xcalloc(count + 8, sizeof *environment);
    for (size_t i = 0; i < count; i++)
        environment[i] = xstrdup(environ[i]);
    replace_variable(environment, &count, "CUDA_VISIBLE_DEVICES", xasprintf("CUDA_VISIBLE_DEVICES=%s", visible));
    replace_variable(environment, &count, "CUDA_MPS_PIPE_DIRECTORY",
                     xasprintf("CUDA_MPS_PIPE_DIRECTORY=%s", pipe_directory));
    /* else Python holds the lines back that tell of an epoch's end */
    replace_variable(environment, &count, "PYTHONUNBUFFERED", xstrdup("PYTHONUNBUFFERED=1"));
    return environment;
}

static void free_environment(char **environment)
{
    for (char **variable = environment; *variable; variable++)
        free(*variable);
    free(environment);
}

static int start_job(struct running *running, struct process *process, const char *visible, const char *pipe_directory,
                     const char *directory, struct error *err)
{
    const struct collocate_command *command = &running->plan->commands[running->run->jobs[process->index].command];
    CLEANUP(free_ptr) char *path = xasprintf("%s/job-%zu.log", directory, process->index + 1);
    uv_loop_t *loop = running->setup->watch->loop;
    char **environment;
    uv_file ends[2];
    int rc;

    process->log = guarded_fopen(path, err);
    if (!process->log) {
        error_prefix(err, "%s", path);
        return -EACCES;
    }
    rc = uv_pipe(ends, UV_NONBLOCK_PIPE, 0);
    if (rc < 0)
        return error_set(err, -rc, "no pipe for a job's output: %s", uv_strerror(rc));
    uv_stdio_container_t stdio[] = {{.flags = UV_IGNORE},
                                    {.flags = UV_INHERIT_FD, .data.fd = ends[1]},
                                    {.flags = UV_INHERIT_FD, .data.fd = ends[1]}};
    environment = make_environment(visible, pipe_directory);
    uv_process_options_t options = {.file = command->argv[0],
                                    .args = command->argv,
                                    .env = environment,
                                    .flags = UV_PROCESS_DETACHED,
                                    .stdio = stdio,
                                    .stdio_count = array_size(stdio),
                                    .exit_cb = on_exit_of_job};
    uv_pipe_init(loop, &process->output, 0);
    uv_pipe_open(&process->output, ends[0]);
    process->output.data = process->handle.data = process;
    running->open += 2;
    rc = uv_spawn(loop, &process->handle, &options);
    close(ends[1]);
    free_environment(environment);
    process->begun_ns = nodetime_now_ns();
    if (rc < 0) {
        uv_close((uv_handle_t *)&process->handle, on_closed);
        uv_close((uv_handle_t *)&process->output, on_closed);
        process->exited = process->output_ended = true;
        return error_set(err, -rc, "cannot start %s: %s", command->argv[0], uv_strerror(rc));
    }
    process->started = true;
    uv_read_start((uv_stream_t *)&process->output, on_alloc, on_output);
    return 0;
}

/* ---- Waiting ---- */

static void on_tick(uv_timer_t *timer)
{
    struct running *running = timer->data;
    const struct collocate_setup *setup = running->setup;
    int64_t wall_ns = nodetime_monotonic_wall_ns(), elapsed_ns = nodetime_now_ns() - running->begun_ns;

    if (running->show)
        running->show(running->user, running->run, elapsed_ns);
    if (!running->stop_wall_ns && setup->interrupted)
        stop_all(running, SIGTERM);
    if (!running->stop_wall_ns && setup->time_limit_ns && elapsed_ns > setup->time_limit_ns) {
        running->over_time = true;
        stop_all(running, SIGTERM);
    }
    if (running->stop_wall_ns && !running->killed && wall_ns - running->stop_wall_ns > KILL_AFTER_NS) {
        running->killed = true;
        stop_all(running, SIGKILL);
    }
    for (size_t i = 0; i < running->run->count; i++) {
        struct process *process = &running->processes[i];
        if (process->exited && wall_ns - process->ended_wall_ns > DRAIN_NS)
            end_output(process);
    }
}

static void wait_for_all(struct running *running)
{
    uv_loop_t *loop = running->setup->watch->loop;
    uv_timer_t tick;

    uv_timer_init(loop, &tick);
    tick.data = running;
    uv_timer_start(&tick, on_tick, TICK_MS, TICK_MS);
    while (running->open)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
}

/* ---- Results ---- */

/* The mean of the epochs after the first, a warm-up: of those that ended while all jobs ran, if there are such. */
static double marked_epoch_s(const struct process *process, int64_t first_end_ns, uint32_t *epochs)
{
    size_t count = 0;

    while (count < process->mark_count && process->marks[count] <= first_end_ns)
        count++;
    if (count < 2)
        count = process->mark_count;
    *epochs = (uint32_t)count;
    if (count == 0)
        return 0;
    if (count == 1)
        return (double)(process->marks[0] - process->begun_ns) / 1e9;
    return (double)(process->marks[count - 1] - process->marks[0]) / 1e9 / (double)(count - 1);
}

/* All jobs train: each has its first epoch, the warm-up, behind it and its last one not yet. Without marks, it is the
 * whole run. */
static void find_training(struct running *running, int64_t end_ns)
{
    running->all_train_from_ns = running->begun_ns;
    running->all_train_to_ns = end_ns;
    for (size_t i = 0; i < running->run->count; i++) {
        const struct process *process = &running->processes[i];
        if (process->mark_count < 2)
            continue;
        if (process->marks[0] > running->all_train_from_ns)
            running->all_train_from_ns = process->marks[0];
        if (process->marks[process->mark_count - 1] < running->all_train_to_ns)
            running->all_train_to_ns = process->marks[process->mark_count - 1];
    }
}

static void judge(struct running *running)
{
    const struct collocate_setup *setup = running->setup;
    struct collocate_run *run = running->run;
    int64_t first_end_ns = INT64_MAX, last_end_ns = running->begun_ns;
    const struct process *first_failed = NULL;

    for (size_t i = 0; i < run->count; i++) {
        const struct process *process = &running->processes[i];
        first_end_ns = process->ended_ns < first_end_ns ? process->ended_ns : first_end_ns;
        last_end_ns = process->ended_ns > last_end_ns ? process->ended_ns : last_end_ns;
        if (process->failed && (!first_failed || process->ended_ns < first_failed->ended_ns))
            first_failed = process;
    }
    run->total_ns = last_end_ns - running->begun_ns;
    find_training(running, last_end_ns);
    if (running->over_time) {
        char limit[UNITS_TEXT];
        run->result = COLLOCATE_FAILED;
        snprintf(run->reason, sizeof run->reason, "not done within the time limit of %s",
                 format_duration(setup->time_limit_ns, limit));
    } else if (first_failed) {
        CLEANUP(free_ptr)
        char *how = first_failed->exit_signal ? xasprintf("was ended by signal %d", first_failed->exit_signal)
                                              : xasprintf("ended with status %" PRId64, first_failed->exit_status);
        CLEANUP(free_ptr) char *what = xasprintf("%s: %s", how, first_failed->last_line);
        fail(running, first_failed, *first_failed->last_line ? what : how);
    }
    for (size_t i = 0; i < run->count; i++) {
        const struct process *process = &running->processes[i];
        struct collocate_job *job = &run->jobs[i];

        job->ns = process->ended_ns - process->begun_ns;
        if (setup->epoch_pattern) {
            job->epoch_s = marked_epoch_s(process, first_end_ns, &job->epochs);
            if (job->epochs == 0)
                fail(running, process, "printed no line that matches --epoch-pattern");
        } else {
            job->epochs = setup->epochs;
            job->epoch_s = (double)job->ns / 1e9 / setup->epochs;
        }
    }
}

/* ---- The run ---- */

static void skip(struct collocate_run *run, const char *reason)
{
    run->result = COLLOCATE_SKIPPED;
    snprintf(run->reason, sizeof run->reason, "%s", reason);
}

/* On a GPU in MIG mode the baselines, too, run on an instance: the largest. */
static bool on_instances(const struct collocate_setup *setup, const struct collocate_run *run)
{
    return run->mode == COLLOCATE_MIG || (run->alone && setup->partitioned);
}

static bool possible(const struct collocate_setup *setup, struct collocate_run *run)
{
    CLEANUP(free_ptr) char *reason = NULL;

    if (on_instances(setup, run)) {
        if (setup->instance_count == 0)
            skip(run, "there are no MIG instances");
        else if (run->count > setup->instance_count)
            skip(run, reason = xasprintf("%zu jobs, and only %zu MIG instances", run->count, setup->instance_count));
    } else if (setup->partitioned) {
        skip(run, "the GPU is in MIG mode");
    } else if (run->mode == COLLOCATE_MPS && !setup->mps_program) {
        skip(run, "no nvidia-cuda-mps-control on the PATH: --mps-control names one");
    }
    return run->result == COLLOCATE_OK;
}

/* The memory of the run before is free again, as far as the driver gets. */
static void wait_until_clear(struct collocate_watch *watch, const char *gpu, int64_t before_bytes)
{
    int64_t until_wall_ns = nodetime_monotonic_wall_ns() + CLEAR_NS;

    while (collocate_watch_fresh(watch) && before_bytes >= 0 && nodetime_monotonic_wall_ns() < until_wall_ns) {
        const struct gpu_reading *now = collocate_watch_find(watch, gpu);
        if (!now || !(now->valid & GPU_HAS_MEMORY) || now->used_bytes <= before_bytes + CLEAR_BYTES)
            return;
    }
}

static char *run_directory(const struct collocate_setup *setup, const struct collocate_run *run)
{
    char *path =
        xasprintf("%s/%s-%s", setup->directory, run->alone ? "alone" : collocate_mode_name(run->mode), run->label);

    for (char *c = path + strlen(setup->directory) + 1; *c; c++)
        *c = *c == ' ' ? '-' : *c;
    return path;
}

static int start_all(struct running *running, const char *pipe_directory, const char *directory, struct error *err)
{
    const struct collocate_setup *setup = running->setup;
    struct collocate_run *run = running->run;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < run->count; i++) {
        const char *visible = setup->gpu;
        if (on_instances(setup, run)) {
            visible = setup->instances[i];
            snprintf(run->jobs[i].instance, sizeof run->jobs[i].instance, "%s", visible);
        }
        rc = start_job(running, &running->processes[i], visible, pipe_directory, directory, err);
    }
    return rc;
}

static int run_jobs(struct collocate_setup *setup, const struct collocate_plan *plan, struct collocate_run *run,
                    void (*show)(void *user, const struct collocate_run *run, int64_t elapsed_ns), void *user,
                    const char *pipe_directory, struct error *err)
{
    bool mig = on_instances(setup, run);
    const char *gpu = mig ? setup->parent : setup->gpu;
    CLEANUP(free_ptr) char *directory = run_directory(setup, run);
    struct running running = {.setup = setup, .plan = plan, .run = run, .show = show, .user = user};
    int rc = file_make_dirs(directory, 0755, err);

    if (rc)
        return rc;
    running.processes = xcalloc(run->count, sizeof *running.processes);
    for (size_t i = 0; i < run->count; i++)
        running.processes[i] = (struct process){.running = &running, .index = i};
    collocate_watch_begin(setup->watch, gpu, mig ? setup->instances : NULL, mig ? run->count : 0);
    running.begun_ns = nodetime_now_ns();
    rc = start_all(&running, pipe_directory, directory, err);
    if (rc)
        stop_all(&running, SIGTERM);
    wait_for_all(&running);
    judge(&running);
    collocate_watch_end(setup->watch, running.all_train_from_ns, running.all_train_to_ns, run->total_ns, &run->figures);
    for (size_t i = 0; i < run->count; i++) {
        if (running.processes[i].log)
            fclose(running.processes[i].log);
        free(running.processes[i].marks);
    }
    free(running.processes);
    if (rc == 0)
        wait_until_clear(setup->watch, gpu, run->figures.memory_before_bytes);
    return rc;
}

int collocate_run(struct collocate_setup *setup, const struct collocate_plan *plan, struct collocate_run *run,
                  void (*show)(void *user, const struct collocate_run *run, int64_t elapsed_ns), void *user,
                  struct error *err)
{
    struct collocate_mps mps = {0};
    int rc = 0;

    if (!possible(setup, run))
        return 0;
    /* An empty directory: else CUDA would take a machine's own MPS daemon without a word. */
    CLEANUP(free_ptr) char *no_mps = xasprintf("%s/no-mps", setup->directory);
    if (run->mode == COLLOCATE_MPS) {
        rc = collocate_mps_start(&mps, setup->watch->loop, setup->mps_program, setup->gpu, err);
        if (rc) {
            skip(run, err->text);
            collocate_mps_stop(&mps);
            return 0;
        }
    } else {
        rc = file_make_dirs(no_mps, 0755, err);
    }
    if (rc == 0)
        rc = run_jobs(setup, plan, run, show, user, mps.pipe ? mps.pipe : no_mps, err);
    collocate_mps_stop(&mps);
    if (rc == 0 && setup->interrupted)
        rc = error_set(err, EINTR, "interrupted");
    return rc;
}
