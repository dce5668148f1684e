/* carma-dashboard, which `carma dashboard` executes: the daemon's page in a browser, with the caller's rights. */
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/programs/programs.h"
#include "client/client.h"
#include "client/connect.h"
#include "dashboard/dashboard.h"

struct dashboard_options {
    unsigned port; /* 0: any */
    bool stay;     /* open no browser */
    struct cluster cluster;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct dashboard_options *wanted = state->input;

    switch (key) {
    case DASHBOARD_KEY_PORT:
        wanted->port =
            strspn(arg, "0123456789") == strlen(arg) && strlen(arg) <= 5 ? (unsigned)strtoul(arg, NULL, 10) : 0;
        if (wanted->port < 1024 || wanted->port > 65535)
            return cli_bad_usage(state, "--port: '%.40s' is not a port from 1024 to 65535", arg);
        return 0;
    case DASHBOARD_KEY_NO_OPEN:
        wanted->stay = true;
        return 0;
    default:
        return cluster_parse(key, arg, state, &wanted->cluster);
    }
}

/* Finds the daemon, and the means to speak to it, while errors can still be shown on the terminal. */
static int find_daemon(struct cli *cli, struct dashboard_place *place, char **name, struct error *err)
{
    struct client *client = NULL;
    int rc = client_open(cli->socket, &client, err);

    if (rc)
        return rc;
    place->name = *name = xstrdup(client_socket(client));
    place->tcp = connect_tcp_of(place->name);
    client_free(client);
    return place->tcp ? token_read(getenv("CARMA_TOKEN_FILE"), &place->token, err) : 0;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

/* A user that came by ssh has the browser elsewhere. */
static void say_how_by_ssh(unsigned port)
{
    const char *connection = getenv("SSH_CONNECTION"); /* "CLIENT PORT SERVER PORT" */
    const struct passwd *user = getpwuid(getuid());
    char server[64], ssh_port[8];

    if (!connection || sscanf(connection, "%*s %*s %63s %7s", server, ssh_port) != 2)
        return;
    fprintf(stderr, "Your browser is elsewhere? There, first: ssh -N -L %u:127.0.0.1:%u%s%s %s%s%s\n", port, port,
            strcmp(ssh_port, "22") == 0 ? "" : " -p ", strcmp(ssh_port, "22") == 0 ? "" : ssh_port,
            user ? user->pw_name : "", user ? "@" : "", server);
}

/* Where that fails, the address stands on the terminal. */
static void open_browser(char *address)
{
    char program[] = "xdg-open";
    char *argv[] = {program, address, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t ours, none;
    pid_t pid;

    signal(SIGCHLD, SIG_IGN); /* nobody waits for it */
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &ours);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSID); /* Ctrl-C is not for the browser */
    posix_spawnp(&pid, argv[0], &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
}

static int run(struct cli *cli, int argc, char **argv)
{
    CLEANUP(free_ptr) char *name = NULL;
    CLEANUP(free_ptr) char *address = NULL;
    struct argp argp = dashboard_argp;
    struct dashboard_options wanted = {0};
    struct dashboard_place place = {0};
    struct dashboard_server *server;
    char command[] = "dashboard";
    struct error err;
    sigset_t ends;
    int status, number;

    argv[0] = command;
    argp.parser = parse;
    cli->argp = &argp;
    cluster_init(&wanted.cluster);
    if (!cli_parse(cli, argc, argv, &wanted, &status))
        return status;
    place.cluster = wanted.cluster;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* for the server's threads, too */
    if (find_daemon(cli, &place, &name, &err) || dashboard_server_new(&place, wanted.port, &server, &address, &err))
        return cli_fail("%s", err.text);
    puts(address);
    fflush(stdout);
    if (is_set("SSH_CONNECTION"))
        say_how_by_ssh(dashboard_server_port(server));
    fprintf(stderr, "The address is good once, for one browser. Ctrl-C ends the dashboard.\n");
    if (!wanted.stay && isatty(STDOUT_FILENO) && (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) &&
        !is_set("SSH_CONNECTION")) /* a display that ssh brings is where a browser is, too */
        open_browser(address);
    sigwait(&ends, &number);
    dashboard_server_free(server);
    explicit_bzero(&place.token, sizeof place.token);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    return cli_main(argc, argv, run);
}
