/* What carma doctor --slurm tries: a held job shows what Slurm counts for it, and ssh which other hosts have the
 * plugin. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/cluster/children.h"
#include "cli/cluster/nodes.h"
#include "cli/doctor/slurm.h"

#define SLURM_MS        20000 /* slurmctld has 10 s to answer */
#define SSH_MS          4000
#define WORDS           9
#define COUNT_TOLERANCE 10 /* percent: a GPU of 40 GB has some of them for itself */

/* Runs a program of Slurm's. Its output, or NULL where it failed; *said is its first line of errors. Both are owned by
 * the caller. */
static char *run(const char *const *argv, char **said)
{
    struct child child = {.argv = argv};
    const char *errors;
    char *out = NULL;

    children_run(&child, 1, SLURM_MS);
    errors = child.errors.length ? child.errors.text : child.end == CHILD_LATE ? "no answer" : "it cannot be run";
    *said = xstrndup(errors, strcspn(errors, "\n"));
    if (child.end == CHILD_ENDED && child.status == 0)
        out = xstrndup(child.out.length ? child.out.text : "", strcspn(child.out.length ? child.out.text : "", "\n"));
    child_release(&child);
    return out;
}

bool slurm_differs(int64_t counted, int64_t there)
{
    return counted > there + there / 100 * COUNT_TOLERANCE || counted < there - there / 100 * COUNT_TOLERANCE;
}

static void judge_count(struct doctor *doctor, const char *partition, const char *gres, int64_t gpu_bytes)
{
    int64_t counted = slurm_count_of(gres, "gpumem");
    const char *missing = counted < 0 ? "gpumem" : slurm_count_of(gres, "gpuslot") < 2 ? "gpuslot" : NULL;
    char ours[UNITS_TEXT], theirs[UNITS_TEXT];

    if (missing)
        doctor_find(doctor, "Slurm counts", DOCTOR_FAIL, "join carma's functions with the site's job_submit.lua",
                    "partition %s: a job with --carma-exclusive is counted no %s (its GRES: %s): jobs get no GPUs",
                    partition, missing, gres);
    else if (gpu_bytes > 0 && slurm_differs(counted, gpu_bytes))
        doctor_find(doctor, "Slurm counts", DOCTOR_WARN, "correct GPU_GIB in job_submit.lua",
                    "partition %s: job_submit.lua takes a GPU for %s; one of this node has %s", partition,
                    format_bytes(counted, theirs), format_bytes(gpu_bytes, ours));
    else
        doctor_find(doctor, "Slurm counts", DOCTOR_OK, NULL, "partition %s: a job with a GPU of its own is counted %s",
                    partition, gres);
}

/* A job that asks for a whole GPU, held, so that it never starts; and taken back. */
static void try_partition(struct doctor *doctor, const char *node, const char *partition, int64_t gpu_bytes)
{
    const char *const submit[] = {
        "sbatch", "--parsable", "--hold", "-J", "carma-doctor",      "-D",     "/",    "-o", "/dev/null",
        "-p",     partition,    "-w",     node, "--carma-exclusive", "--wrap", "true", NULL};
    CLEANUP(free_ptr) char *said = NULL;
    CLEANUP(free_ptr) char *job = run(submit, &said);

    if (!job) {
        doctor_find(doctor, "Slurm counts", DOCTOR_WARN,
                    "let this user submit there, and run carma doctor --slurm again",
                    "partition %s: not tried: sbatch --carma-exclusive: %s", partition, said);
        return;
    }
    job[strspn(job, "0123456789")] = '\0'; /* sbatch says the cluster, too, where there are some */
    const char *const ask[] = {"squeue", "-h", "-O", "tres-per-node:", "-j", job, NULL};
    const char *const cancel[] = {"scancel", job, NULL};
    CLEANUP(free_ptr) char *why = NULL;
    CLEANUP(free_ptr) char *gres = run(ask, &why);
    CLEANUP(free_ptr) char *late = NULL;
    CLEANUP(free_ptr) char *cancelled = run(cancel, &late);
    judge_count(doctor, partition, gres ? gres : why, gpu_bytes);
    if (!cancelled)
        doctor_find(doctor, "Slurm counts", DOCTOR_WARN, "cancel it", "job %s was submitted and is still held: %s", job,
                    late);
}

void slurm_try_counts(struct doctor *doctor, const char *node, const char *line, int64_t gpu_bytes)
{
    const char *at = strstr(line, " Partitions=");
    CLEANUP(free_ptr) char *list = xstrndup(at ? at + 12 : "", at ? strcspn(at + 12, " \n") : 0);
    char *rest = list, *partition;

    while ((partition = strsep(&rest, ",")))
        if (*partition)
            try_partition(doctor, node, partition, gpu_bytes);
}

/* ---- Other hosts ---- */

/* The shell's words that say "here" where one of the files is. */
static char *question_of(const char *plugin, const char *folders)
{
    struct strbuf words = {0};
    CLEANUP(free_ptr) char *list = xstrdup(*plugin == '/' ? "" : folders);
    char *rest = list, *folder;

    while ((folder = strsep(&rest, ":")))
        strbuf_printf(&words, "test -e '%s%s%s' && echo here; ", folder, *folder ? "/" : "", plugin);
    strbuf_puts(&words, "true");
    return strbuf_steal(&words);
}

static void name_host(struct strbuf *list, const char *name)
{
    strbuf_printf(list, "%s%s", list->length ? ", " : "", name);
}

static void judge_hosts(struct doctor *doctor, size_t count, const struct strbuf *missing, const struct strbuf *silent,
                        bool required)
{
    if (missing->length)
        doctor_find(doctor, "Slurm hosts", required ? DOCTOR_FAIL : DOCTOR_WARN,
                    "install carma-slurm there; until then write optional into plugstack.conf",
                    "%s: no libcarma_spank.so there%s", missing->text,
                    required ? ", and plugstack.conf says required: sbatch fails, and nodes are drained" : "");
    else if (silent->length)
        doctor_find(doctor, "Slurm hosts", DOCTOR_SKIP, "let this user ssh there, or look there by hand",
                    "%s: not reached by ssh; the other nodes have libcarma_spank.so", silent->text);
    else if (!required)
        doctor_find(doctor, "Slurm hosts", DOCTOR_WARN, "write required into plugstack.conf",
                    "%zu other nodes, all with libcarma_spank.so, and plugstack.conf says optional: where the plugin "
                    "fails, a job starts without carma",
                    count);
    else
        doctor_find(doctor, "Slurm hosts", DOCTOR_OK, NULL, "%zu other nodes, all with libcarma_spank.so", count);
}

void slurm_try_hosts(struct doctor *doctor, const char *node, const char *plugin, const char *folders, bool required)
{
    CLEANUP(cluster_nodes_release) struct cluster_nodes nodes = {0};
    CLEANUP(strbuf_release) struct strbuf missing = {0}, silent = {0};
    CLEANUP(free_ptr) char *question = question_of(plugin, folders);
    const struct cluster cluster = {.wanted = true, .timeout_ms = SLURM_MS};
    struct error err;
    size_t others = 0;

    if (cluster_nodes_find(&nodes, &cluster, &err)) {
        doctor_find(doctor, "Slurm hosts", DOCTOR_SKIP, NULL, "%s", err.text);
        return;
    }
    struct child *children = xcalloc(nodes.count + 1, sizeof *children);
    const char *(*words)[WORDS] = xcalloc(nodes.count + 1, sizeof *words);
    for (size_t i = 0; i < nodes.count; i++) {
        const char *argv[WORDS] = {"ssh", "-o",           "BatchMode=yes", "-o", "ConnectTimeout=2",
                                   "--",  nodes.names[i], question};
        const char *here[WORDS] = {"true"};
        memcpy(words[i], strcmp(nodes.names[i], node) == 0 ? here : argv, sizeof argv);
        children[i].argv = words[i];
    }
    children_run(children, nodes.count, SSH_MS);
    for (size_t i = 0; i < nodes.count; i++) {
        const struct child *child = &children[i];
        if (words[i][1]) {
            others++;
            if (child->end != CHILD_ENDED || child->status != 0)
                name_host(&silent, nodes.names[i]);
            else if (!child->out.length)
                name_host(&missing, nodes.names[i]);
        }
        child_release(&children[i]);
    }
    free(children);
    free(words);
    judge_hosts(doctor, others, &missing, &silent, required);
}
