#include "vnode/mps_speak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vnode/numbering.h"

#define MAX_WORDS 8

static const char *state_name(enum mps_state state)
{
    static const char *const names[] = {"NONE", "INITIALIZING", "ACTIVE", "FAULT"};

    return names[state];
}

static bool is_server(const struct mps_daemon *daemon, const char *word)
{
    return word && daemon->server && strtol(word, NULL, 10) == daemon->server;
}

static void no_server(const char *word, struct strbuf *answer)
{
    strbuf_printf(answer, "Server %ld not found\n", word ? strtol(word, NULL, 10) : 0);
}

/* What root and the daemon's own user may do, and others only with what is theirs. */
static bool may(const struct mps_speaker *speaker, uid_t owner, const char *others, struct strbuf *answer)
{
    if (speaker->uid == 0 || speaker->uid == owner)
        return true;
    strbuf_printf(answer, "Insufficient privileges for UID %u", (unsigned)speaker->uid);
    strbuf_printf(answer, speaker->driver >= MPS_DRIVER_STATES ? ". %s\n" : "\n", others);
    return false;
}

/* Before 550 everybody may. */
static bool may_set(const struct mps_speaker *speaker, struct strbuf *answer)
{
    return speaker->driver < MPS_DRIVER_STATES ||
           may(speaker, geteuid(),
               "Control deamon settings can only be modified by the user started it or by the root user.", answer);
}

static bool may_quit(const struct mps_speaker *speaker, struct strbuf *answer)
{
    if (speaker->uid == 0 || speaker->uid == geteuid())
        return true;
    strbuf_puts(answer, "Not enough privilege to execute quit command\n");
    return false;
}

static void start_server(struct mps_speaker *speaker, const char *uid, int64_t now_ms, struct strbuf *answer)
{
    char *end = NULL;
    unsigned long value = uid && *uid ? strtoul(uid, &end, 10) : 0;

    if (!end || *end) {
        strbuf_puts(answer, "A user id (UID) is required to start a new server\n");
        return;
    }
    if (may(speaker, (uid_t)value, "Only the root user may start server for another user.", answer))
        mps_daemon_start_server(speaker->daemon, (uid_t)value, now_ms);
}

static void terminate(struct mps_daemon *daemon, const char *server, const char *client, struct strbuf *answer)
{
    if (is_server(daemon, server) && client && mps_daemon_terminate(daemon, (pid_t)strtol(client, NULL, 10)))
        return;
    if (!is_server(daemon, server))
        no_server(server, answer);
    strbuf_printf(answer, "Server %s not found!\n1\n", server ? server : "0");
}

static void list_clients(const struct mps_daemon *daemon, struct strbuf *answer)
{
    for (uint32_t i = 0; i < daemon->client_count; i++)
        if (daemon->clients[i].served)
            strbuf_printf(answer, "%d\n", daemon->clients[i].pid);
}

/* With the client's name, as the kernel has it. */
static void put_row(const struct mps_daemon *daemon, uint32_t i, struct strbuf *answer)
{
    const struct mps_client *client = &daemon->clients[i];
    char path[64], name[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/comm", client->pid);
    file = fopen(path, "re");
    if (file && !fgets(name, sizeof name, file))
        *name = '\0';
    if (file)
        fclose(file);
    name[strcspn(name, "\n")] = '\0';
    strbuf_printf(answer, "%-10d %-5u %-10d %-18.18s %-10s ./%s\n", client->pid, i, daemon->server,
                  daemon->node.file->gpus[client->gpu].uuid, "4026531836", name);
}

static void put_table(const struct mps_daemon *daemon, struct strbuf *answer)
{
    strbuf_printf(answer, "%-10s %-5s %-10s %-18s %-10s %s\n", "PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
    for (uint32_t i = 0; i < daemon->client_count; i++)
        if (daemon->clients[i].served)
            put_row(daemon, i, answer);
}

static void list_devices(const struct mps_daemon *daemon, struct strbuf *answer)
{
    for (uint32_t i = 0; i < daemon->client_count; i++)
        if (daemon->clients[i].served)
            strbuf_printf(answer, "%s %d\n", daemon->node.file->gpus[daemon->clients[i].gpu].uuid,
                          daemon->clients[i].pid);
}

/* Echoed, and kept as it was where it makes no sense. */
static void set_percentage(struct mps_daemon *daemon, const char *word, struct strbuf *answer)
{
    double value = word ? strtod(word, NULL) : 0;

    if (value > 0 && value <= 100)
        daemon->thread_percentage = value;
    strbuf_printf(answer, "%.1f\n", daemon->thread_percentage);
}

static void set_pinned(struct mps_daemon *daemon, const char *device, const char *limit)
{
    unsigned long gpu = device ? strtoul(device, NULL, 10) : NODE_MAX_GPUS;

    if (gpu < daemon->node.file->gpu_count && limit)
        snprintf(daemon->pinned_limit[gpu], sizeof daemon->pinned_limit[gpu], "%s", limit);
}

static void get_pinned(const struct mps_daemon *daemon, const char *device, struct strbuf *answer)
{
    unsigned long gpu = device ? strtoul(device, NULL, 10) : 0;

    if (gpu < daemon->node.file->gpu_count && *daemon->pinned_limit[gpu])
        strbuf_printf(answer, "%s\n", daemon->pinned_limit[gpu]);
}

/* Commands that all drivers know; false: none of them. */
static bool speak_of_servers(struct mps_speaker *speaker, char **words, int64_t now_ms, struct strbuf *answer)
{
    struct mps_daemon *daemon = speaker->daemon;
    const char *verb = words[0], *gpus = getenv("CUDA_VISIBLE_DEVICES");

    if (strcmp(verb, "get_server_list") == 0) {
        if (daemon->server)
            strbuf_printf(answer, "%d\n", daemon->server);
    } else if (strcmp(verb, "start_server") == 0) {
        start_server(speaker, words[1] && strcmp(words[1], "-uid") == 0 ? words[2] : NULL, now_ms, answer);
    } else if (strcmp(verb, "shutdown_server") == 0) {
        if (!is_server(daemon, words[1]))
            no_server(words[1], answer);
        else if (may(speaker, daemon->server_uid, "Only the root user may shutdown another user's server.", answer))
            mps_daemon_end_server(daemon);
    } else if (strcmp(verb, "get_client_list") == 0) {
        is_server(daemon, words[1]) ? list_clients(daemon, answer) : no_server(words[1], answer);
    } else if (strcmp(verb, "get_device_client_list") == 0) {
        words[1] && !is_server(daemon, words[1]) ? no_server(words[1], answer) : list_devices(daemon, answer);
    } else if (strcmp(verb, "get_default_active_thread_percentage") == 0) {
        strbuf_printf(answer, "%.1f\n", daemon->thread_percentage);
    } else if (strcmp(verb, "set_default_active_thread_percentage") == 0) {
        if (may_set(speaker, answer))
            set_percentage(daemon, words[1], answer);
    } else if (strcmp(verb, NUMBERING_QUESTION) == 0) {
        strbuf_printf(answer, "%s\n", gpus ? gpus : "");
    } else if (strcmp(verb, "quit") == 0) {
        speaker->quit = may_quit(speaker, answer);
    } else {
        return false;
    }
    return true;
}

static bool speak_of_clients(const struct mps_speaker *speaker, char **words, struct strbuf *answer)
{
    struct mps_daemon *daemon = speaker->daemon;
    const char *verb = words[0];

    if (strcmp(verb, "ps") == 0) {
        if (daemon->server)
            put_table(daemon, answer);
        else
            strbuf_puts(answer, "Server not found\n");
    } else if (strcmp(verb, "terminate_client") == 0) {
        terminate(daemon, words[1], words[1] ? words[2] : NULL, answer);
    } else if (strcmp(verb, "set_default_device_pinned_mem_limit") == 0) {
        if (may_set(speaker, answer))
            set_pinned(daemon, words[1], words[1] ? words[2] : NULL);
    } else if (strcmp(verb, "get_default_device_pinned_mem_limit") == 0) {
        get_pinned(daemon, words[1], answer);
    } else if (strcmp(verb, "set_default_client_priority") == 0) {
        if (may_set(speaker, answer))
            daemon->priority = words[1] ? atoi(words[1]) : daemon->priority;
    } else if (strcmp(verb, "get_default_client_priority") == 0) {
        strbuf_printf(answer, "%d\n", daemon->priority);
    } else {
        return false;
    }
    return true;
}

static void put_state(const struct mps_daemon *daemon, const char *server, struct strbuf *answer)
{
    if (!server)
        strbuf_puts(answer, "A server PID is required\n");
    else if (!is_server(daemon, server))
        no_server(server, answer);
    else
        strbuf_printf(answer, "%s\n", state_name(daemon->state));
}

void mps_speak(struct mps_speaker *speaker, const char *line, int64_t now_ms, struct strbuf *answer)
{
    char text[512], *words[MAX_WORDS + 1] = {NULL}, *rest = NULL;
    int count = 0;

    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok_r(text, " \t\r\n", &rest); word && count < MAX_WORDS;
         word = strtok_r(NULL, " \t\r\n", &rest))
        words[count++] = word;
    if (count == 0)
        words[0] = text + strlen(text);
    if (speak_of_servers(speaker, words, now_ms, answer) ||
        (speaker->driver >= MPS_DRIVER_CLIENTS && speak_of_clients(speaker, words, answer)))
        return;
    if (speaker->driver >= MPS_DRIVER_STATES && strcmp(words[0], "get_server_status") == 0)
        put_state(speaker->daemon, words[1], answer);
    else
        strbuf_printf(answer, "Unknown command \"%.60s\"\n", words[0]);
}
