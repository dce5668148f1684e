#include "cli/pages.h"

#include <errno.h>
#include <string.h>

#include "base/trust/guarded.h"
#include "base/manual/manual.h"
#include "base/memory.h"
#include "cli/cli.h"

static char *page_name(const char *command)
{
    char *name = xasprintf("carma-%s", command);

    for (char *blank = strchr(name, ' '); blank; blank = strchr(blank, ' '))
        *blank = '-';
    return name;
}

void pages_print_command(FILE *out, const struct command *command)
{
    CLEANUP(free_ptr) char *name = page_name(command->name);
    CLEANUP(free_ptr) char *invocation = xasprintf("carma %s", command->name);

    manual_write(out, &(struct manual){.name = name,
                                       .section = 1,
                                       .summary = command->summary,
                                       .invocation = invocation,
                                       .argp = command->argp,
                                       .more = cli_common_options,
                                       .see_also = "carma(1), carmad(8), carma.conf(5)"});
}

static void command_item(const struct command *command, void *out)
{
    CLEANUP(free_ptr) char *name = page_name(command->name);
    CLEANUP(free_ptr) char *text = xasprintf("%s; see %s(1)", command->summary, name);

    manual_item(out, command->name, text);
}

void pages_print(FILE *out)
{
    manual_begin(out, "carma", 1, "share a machine's GPUs among training jobs");
    manual_heading(out, "SYNOPSIS");
    manual_text(out, " carma [--socket PATH] COMMAND [OPTION...] [ARGUMENT...]");
    manual_heading(out, "DESCRIPTION");
    manual_text(out, "carma is the command line of carmad(8), which runs the jobs that users submit on the GPUs of its "
                     "machine. Where that pays, several jobs share a GPU. carmad estimates each job's GPU memory "
                     "before it starts, watches the GPUs, and starts jobs again that ran out of memory.\n\n"
                     " carma submit --gpu-memory 12G -- python3 train.py\n"
                     " carma queue\n"
                     " carma explain 7\n"
                     " carma logs --follow 7\n\n"
                     "Jobs are named by their ids: 7, 3-5, or @ for one's own latest.");
    manual_heading(out, "COMMANDS");
    command_each(command_item, out);
    manual_heading(out, "ENVIRONMENT");
    manual_item(out, "CARMA_SOCKET", "the daemon's socket, or tcp://ADDRESS:PORT; --socket goes before it");
    manual_item(out, "CARMA_TOKEN_FILE", "the file with the token by which a daemon is asked over TCP");
    manual_item(out, "NO_COLOR", "print no colours, also on a terminal");
    manual_item(out, "CARMA_VNODE, CARMA_TIME_SCALE",
                "the virtual GPU node that is used, and how many times faster its time is");
    manual_heading(out, "FILES");
    manual_item(out, "/run/carma/carma.sock", "the socket of the machine's daemon");
    manual_item(out, "$XDG_RUNTIME_DIR/carma/carma.sock", "that of a user's own");
    manual_heading(out, "EXIT STATUS");
    manual_text(
        out, "0: done; 1: failed; 2: wrong usage; 3: some job of a trace did not complete (carma simulate, play and "
             "compare). "
             "carma wait and carma submit --wait exit as the job did. Messages go to standard error, one line each.");
    manual_heading(out, "SEE ALSO");
    manual_text(out, "carmad(8), carma.conf(5), carma-vnode(1), carma-train(1)");
}

struct pages {
    const char *directory;
    struct error *err;
    int status;
};

static void write_page(struct pages *pages, const char *name, const struct command *command)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/%s.1", pages->directory, name);
    struct error err;
    FILE *out = guarded_fopen(path, &err);
    int failed = !out;

    if (out) {
        if (command)
            pages_print_command(out, command);
        else
            pages_print(out);
        failed = ferror(out);
        failed |= fclose(out) != 0;
        error_set(&err, errno, "%s", strerror(errno));
    }
    if (failed && !pages->status)
        pages->status = error_set(pages->err, EIO, "%s: %s", path, err.text);
}

static void write_command(const struct command *command, void *pages)
{
    CLEANUP(free_ptr) char *name = page_name(command->name);

    write_page(pages, name, command);
}

int pages_write(const char *directory, struct error *err)
{
    struct pages pages = {.directory = directory, .err = err};

    write_page(&pages, "carma", NULL);
    command_each(write_command, &pages);
    return pages.status;
}
