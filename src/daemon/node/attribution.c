#include "daemon/node/attribution.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/proc.h"

/* A GPU process; its owner does not change while it lives. */
struct seen_process {
    int32_t pid;
    bool there;               /* in this PID namespace, when it was first listed */
    uint64_t job;             /* or ATTRIBUTION_MPS_SERVER; 0: nobody's of ours */
    uint64_t strayed_to;      /* GPUs on which it was, though they were not given to its job: a bit each */
    uint64_t first, last;     /* readings that listed it */
    struct owner_process who; /* where it was there */
    UT_hash_handle hh;
};

struct attributor {
    uint64_t (*owner_of)(const void *user, pid_t pid);
    const void *user;
    struct seen_process *processes;
    uint64_t reading;
};

struct attributor *attributor_new(uint64_t (*owner_of)(const void *user, pid_t pid), const void *user)
{
    struct attributor *attributor = xcalloc(1, sizeof *attributor);

    attributor->owner_of = owner_of;
    attributor->user = user;
    return attributor;
}

static void forget(struct attributor *attributor, bool all)
{
    struct seen_process *process, *next;

    HASH_ITER (hh, attributor->processes, process, next) {
        if (all || process->last != attributor->reading) {
            HASH_DEL(attributor->processes, process);
            free(process);
        }
    }
}

void attributor_free(struct attributor *attributor)
{
    if (!attributor)
        return;
    forget(attributor, true);
    free(attributor);
}

void attributor_begin(struct attributor *attributor)
{
    forget(attributor, false);
    attributor->reading++;
}

/* A process that ends stays listed for a moment after it has left /proc. It keeps its owner for that time. */
static struct seen_process *look_at(struct attributor *attributor, int32_t pid)
{
    struct seen_process *process;
    struct proc_stat stat;
    bool there = proc_read_stat(pid, &stat) == 0;

    HASH_FIND(hh, attributor->processes, &pid, sizeof pid, process);
    if (!process || (there && (!process->there || process->who.start_ticks != stat.start_ticks))) {
        if (!process) {
            process = xcalloc(1, sizeof *process);
            process->pid = pid;
            HASH_ADD(hh, attributor->processes, pid, sizeof process->pid, process);
        }
        process->who = (struct owner_process){0};
        process->there = there = there && owner_read(pid, &process->who) == 0;
        process->strayed_to = 0;
        process->first = attributor->reading;
        process->job = there ? attributor->owner_of(attributor->user, pid) : 0;
    }
    process->last = attributor->reading;
    return process;
}

/* Listed again, though nobody here has its pid: it has not just ended, but cannot be found from here. */
static bool is_hidden(const struct seen_process *process)
{
    return !process->there && process->first != process->last;
}

static void add_share(struct attribution *result, uint64_t job, int64_t used_bytes)
{
    struct attribution_share *share = result->shares;

    while (share < result->shares + result->share_count && share->job != job)
        share++;
    if (share == result->shares + result->share_count) {
        result->share_count++;
        *share = (struct attribution_share){job, 0};
    }
    share->used_bytes = share->used_bytes < 0 || used_bytes < 0 ? -1 : share->used_bytes + used_bytes;
}

static void add_unmanaged(struct attribution *result, const struct seen_process *process, int64_t used_bytes)
{
    struct attribution_unmanaged *unmanaged = &result->unmanaged[result->unmanaged_count++];

    *unmanaged = (struct attribution_unmanaged){
        .job = process->job, .pid = process->pid, .uid = process->who.uid, .used_bytes = used_bytes};
    memcpy(unmanaged->command, process->who.command, sizeof unmanaged->command);
}

static void why_unknown(struct attribution *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void why_unknown(struct attribution *result, const char *format, ...)
{
    va_list arguments;

    if (*result->why) /* one reason will do */
        return;
    va_start(arguments, format);
    vsnprintf(result->why, sizeof result->why, format, arguments);
    va_end(arguments);
}

static bool is_given(const struct gpu *gpu, uint64_t job)
{
    for (uint32_t i = 0; i < gpu->resident_count; i++)
        if (gpu->residents[i]->id == job)
            return true;
    return false;
}

static void add_stray(struct attribution *result, const struct gpu *gpu, struct seen_process *process,
                      int64_t used_bytes)
{
    uint64_t here = UINT64_C(1) << gpu->number % 64;

    add_unmanaged(result, process, used_bytes);
    result->unmanaged[result->unmanaged_count - 1].news = !(process->strayed_to & here);
    process->strayed_to |= here;
}

static void take_process(struct attributor *attributor, const struct gpu *gpu, const struct gpu_process *listed,
                         struct attribution *result)
{
    struct seen_process *process = look_at(attributor, listed->pid);

    if (process->job == ATTRIBUTION_MPS_SERVER)
        result->mps_server_bytes += listed->used_bytes > 0 ? listed->used_bytes : 0;
    else if (process->job && !is_given(gpu, process->job))
        add_stray(result, gpu, process, listed->used_bytes);
    else if (process->job)
        add_share(result, process->job, listed->used_bytes);
    else
        add_unmanaged(result, process, listed->used_bytes);
    if (is_hidden(process))
        why_unknown(result, "process %" PRId32 " is not to be seen from here (another PID namespace)", listed->pid);
}

void attributor_judge(struct attributor *attributor, const struct gpu *gpu, const struct gpu_reading *reading,
                      struct attribution *result)
{
    uint32_t listed = reading->process_count < GPU_MAX_PROCESSES ? reading->process_count : GPU_MAX_PROCESSES;
    int64_t ours = 0;

    result->share_count = result->unmanaged_count = 0;
    result->mps_server_bytes = 0;
    *result->why = '\0';
    for (uint32_t i = 0; i < listed && reading->valid & GPU_HAS_PROCESSES; i++)
        take_process(attributor, gpu, &reading->processes[i], result);
    if (!(reading->valid & GPU_HAS_MEMORY))
        why_unknown(result, "the driver does not tell the memory in use");
    else if (!(reading->valid & GPU_HAS_PROCESSES))
        why_unknown(result, "the driver does not list processes");
    else if (listed < reading->process_count)
        why_unknown(result, "it has %" PRIu32 " processes, of which only %" PRIu32 " are listed",
                    reading->process_count, listed);
    else if (listed == 0 && gpu->resident_count && reading->used_bytes > GPU_IDLE_UNMANAGED_BYTES)
        why_unknown(result, "memory is in use, but the driver lists no process");
    for (uint32_t i = 0; i < gpu->resident_count; i++) {
        int64_t held = attribution_of(result, gpu->residents[i]->id);
        if (held < 0)
            why_unknown(result, "the driver does not say how much memory the processes of job %" PRIu64 " hold",
                        gpu->residents[i]->id);
        else
            ours += held;
    }
    result->unmanaged_bytes = *result->why ? -1 : reading->used_bytes > ours ? reading->used_bytes - ours : 0;
}

int64_t attribution_of(const struct attribution *attribution, uint64_t job)
{
    for (uint32_t i = 0; i < attribution->share_count; i++)
        if (attribution->shares[i].job == job)
            return attribution->shares[i].used_bytes;
    return 0;
}
