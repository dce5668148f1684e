/* Which settings there are. */
#include "config/keys.h"

#include "base/memory.h"

static const char *const memory_views[] = {"monitor", "reserve", NULL};
static const char *const fences[] = {"off", "auto", NULL};
static const char *const statistics[] = {"mean", "median", "p95", "ema", "risk", NULL};
static const char *const retries[] = {"exclusive", "step", "informed", NULL};
static const char *const containers[] = {"auto", "podman", "apptainer", "off", NULL};
static const char *const device_cgroups[] = {"auto", "off", NULL};
static const char *const engines[] = {"local", "slurm", NULL};
static const char *const visible_devices[] = {"uuid", "index", NULL};
static const char *const orders[] = {"fifo", "fair", NULL};
static const char *const gates[] = {"all", "memory", NULL};
static const char *const off_or_on[] = {"off", "on", NULL};
static const char *const estimator_names[] = {"auto",      "declared", "measured", "horus", "faketensor",
                                              "gpumemnet", "replay",   "history",  NULL};
const char *const config_switches[] = {"no", "yes", NULL};

const struct key config_keys[] = {
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
    {"max_host_memory", SIZE, offsetof(struct config, core.most.host_memory_bytes), 0, 1024 * TIB, NULL,
     "host memory that all jobs with GPUs may have asked for by --memory: further ones wait (0: any)"},
    {"max_jobs_without_gpu", COUNT, offsetof(struct config, core.max_without_gpu), 0, 100000, NULL,
     "jobs without a GPU (--gpus 0) that run at a time: further ones wait (0: any)"},
    {"max_jobs_per_gpu", COUNT, offsetof(struct config, core.max_jobs_per_gpu), 1, 48, NULL,
     "most jobs that share a GPU"},
    {"backfill", CHOICE, offsetof(struct config, core.backfill), 0, 0, config_switches,
     "whether jobs that fit go before a waiting one that does not"},
    {"order", CHOICE, offsetof(struct config, core.order), 0, 0, orders,
     "whose jobs go first: fair, of the user who has had the least of the GPUs lately; fifo, the oldest"},
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
     "the figures that close a GPU to a job: all known ones; or memory alone, and SM activity and slowdown only rank "
     "GPUs"},
    {"shares", USER_SHARES, offsetof(struct config, user_shares), 0, 4000, NULL,
     "the users' shares of the GPUs under fair turns, as alice=3, 12002=2, and those of groups, as @vision=4; others "
     "have 1, or what carma admin share gave them"},
    {"share_groups", USER_GROUPS, offsetof(struct config, share_groups), 0, 4000, NULL,
     "groups of users who have one share of the GPUs together, as vision=alice+bob, nlp=carol+12002"},
    {"max_queued", COUNT, offsetof(struct config, max_queued), 1, 1000000, NULL,
     "most jobs that have not ended, of all users together: further ones are refused; the last tenth is for users with "
     "few jobs"},
    {"max_texts_per_user", SIZE, offsetof(struct config, max_texts_per_user), 0, 1024 * TIB, NULL,
     "disk space for the descriptions of a user's jobs (commands, scripts, environments): further jobs are refused "
     "(0: any)"},
    {"retention", DURATION, offsetof(struct config, retention_ns), MINUTES(1), MINUTES(5256000), NULL,
     "how long ended jobs, and the log that replays them, are kept"},
    {"history_retention", DURATION, offsetof(struct config, history_retention_ns), MINUTES(1), MINUTES(52560000), NULL,
     "how long `carma history` knows ended jobs (at least `retention`)"},
    {"share", SHARING, offsetof(struct config, share), 0, 0, NULL,
     "how jobs share a GPU; auto: a user's by MPS, several users' by time-slicing where that pays; mps: by a server of "
     "each "
     "user on all GPUs; mps:gpu: by one of each GPU"},
    {"mps_multiuser", SWITCH, offsetof(struct config, core.mps_multiuser), 0, 0, NULL,
     "jobs of several users may share a GPU's MPS server, which no longer keeps them apart"},
    {"mps_max_clients", COUNT, offsetof(struct config, core.mps_max_clients), 1, 60, NULL,
     "most jobs that share a GPU by MPS; the driver takes 48 clients, from CUDA 13.1 on 60"},
    {"mps_control", LIBRARY, offsetof(struct config, mps_control), 0, 4000, NULL,
     "the MPS control program, by which carma runs control daemons"},
    {"mps_pipe_directory", OPTIONAL_PATH, offsetof(struct config, mps_pipe_directory), 0, 4000, NULL,
     "the pipes of an administrator's own control daemon: jobs use it, and carma runs none (none: carma's own)"},
    {"mps_threads", COUNT_OR_AUTO, offsetof(struct config, core.mps_threads_percent), 1, 100, NULL,
     "most of a GPU's threads for one job under MPS, in percent; auto: less for the third job on a GPU and those after "
     "it"},
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
    {"time_limit_default", DURATION, offsetof(struct config, time_limit_default_ns), 0, MINUTES(5256000), NULL,
     "the time limit of a job that says none (0s: time_limit_max)"},
    {"time_limit_max", DURATION, offsetof(struct config, time_limit_max_ns), 0, MINUTES(5256000), NULL,
     "the longest time limit that a job may have (0s: any, or none)"},
    {"idle_limit_default", DURATION, offsetof(struct config, idle_limit_default_ns), 0, MINUTES(5256000), NULL,
     "the idle limit of a job that says none: it is ended once it has not used its GPUs for so long (0s: "
     "idle_limit_max)"},
    {"idle_limit_interactive", DURATION, offsetof(struct config, idle_limit_interactive_ns), 0, MINUTES(5256000), NULL,
     "that of carma shell and carma jupyter (0s: idle_limit_default)"},
    {"idle_limit_max", DURATION, offsetof(struct config, idle_limit_max_ns), 0, MINUTES(5256000), NULL,
     "the longest idle limit that a job may have (0s: any, or none)"},
    {"idle_report", DURATION, offsetof(struct config, idle_report_ns), 0, MINUTES(43200), NULL,
     "time after which a job that does not use its GPUs is reported (0s: never)"},
    {"savings", SWITCH, offsetof(struct config, savings), 0, 0, NULL,
     "simulate about once an hour, in the background, what sharing has saved"},
    {"nvml_library", LIBRARY, offsetof(struct config, nvml_library), 0, 4095, NULL,
     "NVML to load instead of the system's"},
    {"dcgm_library", LIBRARY, offsetof(struct config, dcgm_library), 0, 4095, NULL,
     "DCGM to load instead of the system's, for metrics that NVML does not measure"},
    {"state_directory", PATH, offsetof(struct config, state_directory), 0, 4000, NULL,
     "where the daemon keeps its store"},
    {"socket", PATH, offsetof(struct config, socket), 0, MAX_SOCKET, NULL, "where the daemon listens"},
    {"engine", CHOICE, offsetof(struct config, engine), 0, 0, engines,
     "the owner of this node's queue: carma; or Slurm, which asks for leases, and users submit with sbatch"},
    {"listen", ADDRESS, offsetof(struct config, listen), 0, 60, NULL,
     "where the daemon listens for TCP too, for clients that show the token (none: nowhere)"},
    {"token_file", OPTIONAL_PATH, offsetof(struct config, token_file), 0, 4000, NULL,
     "the file of mode 0600 with the token; a client that shows it acts as the file's owner"},
    {"admin_group", GROUP, offsetof(struct config, admin_group), 0, 32, NULL,
     "group of users that may hold, release and cancel everybody's jobs (none: only root and carmad's user)"},
    {"submit_filter", OPTIONAL_PATH, offsetof(struct config, submit_filter), 0, 4000, NULL,
     "a program that may refuse or change submissions, e.g. /etc/carma/submit-filter (none: all are taken)"},
    {"hpc_job_mapping_dir", OPTIONAL_PATH, offsetof(struct config, hpc_job_mapping_dir), 0, 4000, NULL,
     "directory in which dcgm-exporter finds the jobs of each GPU (none: nowhere)"},
    {"container", CHOICE, offsetof(struct config, container), 0, 0, containers,
     "by which engine --container runs a job: auto, the first that is there; off: not at all"},
    {"device_cgroup", CHOICE, offsetof(struct config, device_cgroup), 0, 0, device_cgroups,
     "whether a job can open the device nodes of its own GPUs only: auto, where root and the kernel allow it"},
    {"visible_devices", CHOICE, offsetof(struct config, visible_devices), 0, 0, visible_devices,
     "what CUDA_VISIBLE_DEVICES holds for a job that does not say: UUIDs, or indices by PCI order"},
};
const size_t config_key_count = array_size(config_keys);

const char *estimator_name(enum estimator_choice estimator)
{
    return estimator_names[estimator];
}

const char *config_container_engine(const struct config *config)
{
    return config->container == CONTAINER_AUTO ? NULL : containers[config->container];
}

bool estimator_computes(enum estimator_choice estimator)
{
    return estimator != ESTIMATOR_DECLARED && estimator != ESTIMATOR_MEASURED && estimator != ESTIMATOR_HISTORY;
}
