/* carma doctor: looks at everything that carma needs of a machine, and names faults with their remedies. */
#include <stdio.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/doctor/doctor.h"
#include "cli/show/term.h"

struct doctor_options {
    const char *config;
    const char *root;
    const char *slurm_node; /* NULL: without Slurm's checks; "": this host's name */
    bool json;
};

enum { KEY_ROOT = 0x100, KEY_SLURM };

static const struct argp_option options[] = {
    {"config", 'c', "FILE", 0, "the daemon's settings (default: where carmad looks for them)", 0},
    {"root", KEY_ROOT, "DIR", OPTION_HIDDEN, "look for /proc, /sys, /run and /etc below DIR", 0}, /* for tests */
    {"slurm", KEY_SLURM, "NODE", OPTION_ARG_OPTIONAL,
     "look at Slurm's plugin, configuration, agent and counts, too: held jobs are submitted and taken back; NODE is "
     "Slurm's name of this one (default: the host's)",
     0},
    {"json", CLI_JSON_KEY, NULL, 0, "print JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct doctor_options *wanted = state->input;

    switch (key) {
    case 'c':
        wanted->config = arg;
        return 0;
    case KEY_ROOT:
        wanted->root = arg;
        return 0;
    case KEY_SLURM:
        wanted->slurm_node = arg ? arg : "";
        return 0;
    case CLI_JSON_KEY:
        wanted->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp doctor_argp = {
    .options = options,
    .parser = parse,
    .doc = "Find out why carma does not work here: driver, GPUs, metrics, MPS, cgroups, permissions, disk, settings, "
           "the daemon. Without --slurm it changes nothing, and needs neither a daemon nor a GPU."
           "\vAs root, or as the user that runs carmad, it sees more. The exit status is 1 where a check fails; a "
           "warning is not a failure. Each finding is explained in docs/doctor.md.",
};

static void print(const struct doctor *doctor, bool json)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    if (json) {
        json_t *all = doctor_json(doctor);
        cli_print_json(all);
        json_decref(all);
        return;
    }
    doctor_format(doctor, term_width(stdout), term_colour(stdout), &out);
    fputs(out.text, stdout);
}

int cmd_doctor(struct cli *cli, int argc, char **argv)
{
    CLEANUP(doctor_release) struct doctor doctor;
    struct doctor_options wanted = {0};
    int status;

    doctor_init(&doctor, cli);
    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    doctor.config_file = wanted.config;
    doctor.root = wanted.root ? wanted.root : "";
    doctor_check_config(&doctor);
    doctor_check_daemon(&doctor);
    doctor_check_gpus(&doctor);
    doctor_check_mps(&doctor);
    doctor_check_store(&doctor);
    doctor_check_system(&doctor);
    if (wanted.slurm_node)
        doctor_check_slurm(&doctor, wanted.slurm_node);
    print(&doctor, wanted.json);
    return doctor_count(&doctor, DOCTOR_FAIL) ? CLI_FAILURE : CLI_OK;
}
