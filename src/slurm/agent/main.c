/* carma-slurm-agent, one on each node of a Slurm cluster that shares its GPUs by carma. It schedules nothing. */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "base/usage.h"
#include "slurm/agent/gpus_of.h"
#include "slurm/agent/node.h"
#include "slurm/agent/orders.h"
#include "slurm/agent/waiting.h"
#include "slurm/shared/ask.h"

enum {
    SOON_MS = 100,
    AGAIN_MS = 1000, /* to be sure of an orphan before its lease has ended */
};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    stopping = 1;
}

struct arguments {
    struct agent agent;
    int64_t gpus_of; /* print this job's GPUs, and do nothing else; 0: do the agent's work */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    struct agent *agent = &arguments->agent;
    struct error err;
    int64_t seconds;

    switch (key) {
    case 's':
        agent->socket = arg;
        return 0;
    case 'd':
        agent->spool = arg;
        return 0;
    case 'n':
        agent->node = arg;
        return 0;
    case 'p':
        if (parse_integer(arg, 1, 3600, &seconds, &err))
            usage_error(state, "--period: %s", err.text);
        agent->period_ms = seconds * 1000;
        return 0;
    case 'g':
        if (parse_integer(arg, 1, UINT32_MAX, &arguments->gpus_of, &err))
            usage_error(state, "--gpus-of: %s", err.text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option table[] = {
    {"socket", 's', "PATH", 0, "carmad's socket (default: /run/carma/carma.sock)"},
    {"spool", 'd', "FOLDER", 0, "where libcarma_spank.so leaves its orders (default: /var/lib/carma-slurm)"},
    {"node", 'n', "NAME", 0, "Slurm's name of this node (default: the host's, up to the first dot)"},
    {"period", 'p', "SECONDS", 0, "between looks at the GPUs and leases (default: 5)"},
    {"gpus-of", 'g', "JOB", 0,
     "print $SLURM_JOB_GPUS and $CUDA_VISIBLE_DEVICES of a job on this node, for an Epilog, and end"},
    {0}};

static const struct argp argp = {table, parse, NULL,
                                 "Puts jobs of Slurm back into its queue whose GPU memory did not suffice or was not "
                                 "free. Lowers a node's counts while GPUs are lost. Notes each job's use of the GPUs."};

static const struct manual manual = {
    .name = "carma-slurm-agent",
    .section = 8,
    .summary = "takes care of Slurm's jobs that share GPUs by carma",
    .invocation = "carma-slurm-agent",
    .argp = &argp,
    .see_also = "carma(1), carmad(8)",
};

/* Until an order comes, or the time is over. */
static void wait_for_order(int watch, int64_t ms)
{
    struct pollfd one = {.fd = watch, .events = POLLIN};
    char events[4096];

    if (ms > 0 && poll(&one, 1, (int)ms) > 0 && read(watch, events, sizeof events) < 0 && errno != EAGAIN)
        agent_say("inotify: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    static char host[64];
    struct arguments arguments = {
        .agent = {.socket = "/run/carma/carma.sock", .spool = "/var/lib/carma-slurm", .node = host, .period_ms = 5000}};
    const struct agent *agent = &arguments.agent;
    struct sigaction action = {.sa_handler = on_signal};
    struct node_watch watch = {0};
    struct error err;
    int64_t next_look_ms = 0;
    int orders;

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    usage_parse(&manual, argc, argv, &arguments);
    if (arguments.gpus_of) {
        if (!gpus_of_print(agent, arguments.gpus_of, &err))
            return 0;
        agent_say("job %lld: %s", (long long)arguments.gpus_of, err.text);
        return 1;
    }
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    orders = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (file_make_dirs(agent->spool, 0700, &err) || orders < 0 ||
        inotify_add_watch(orders, agent->spool, IN_MOVED_TO) < 0) {
        agent_say("--spool=%s cannot be watched: %s", agent->spool, strerror(errno));
        return 1;
    }
    while (!stopping) {
        int64_t began_ms = ask_now_ms();
        bool waiting = orders_carry_out(agent), room = orders_have_ended();
        int64_t soon_ms = ask_now_ms() - began_ms, left; /* on a busy machine it leaves some to others */

        if (room)
            waiting_look(agent, true);
        if (ask_now_ms() >= next_look_ms) {
            waiting_look(agent, node_look(agent, &watch));
            next_look_ms = ask_now_ms() + (watch.count && agent->period_ms > AGAIN_MS ? AGAIN_MS : agent->period_ms);
        }
        left = next_look_ms - ask_now_ms();
        if (soon_ms < SOON_MS)
            soon_ms = SOON_MS;
        wait_for_order(orders, waiting && left > soon_ms ? soon_ms : left);
    }
    node_watch_release(&watch);
    close(orders);
    return 0;
}
