#include "gpu/mps/protocol.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PID_LIMIT   (INT64_C(1) << 22) /* proc(5), pid_max: the most on 64 bits */
#define MAX_COLUMNS 16

const char *mps_server_state_name(enum mps_server_state state)
{
    static const char *const names[] = {"INITIALIZING", "ACTIVE", "FAULT"};

    return (uint32_t)state < MPS_SERVER_STATE_COUNT ? names[state] : "?";
}

/* ---- Commands ---- */

static void say_input(struct mps_command *command, const char *word, int64_t first, int64_t second)
{
    size_t length;

    *command = (struct mps_command){0};
    length = (size_t)snprintf(command->input, sizeof command->input, "%s", word);
    if (first >= 0)
        length += (size_t)snprintf(command->input + length, sizeof command->input - length, " %jd", (intmax_t)first);
    if (second >= 0)
        length += (size_t)snprintf(command->input + length, sizeof command->input - length, " %jd", (intmax_t)second);
    snprintf(command->input + length, sizeof command->input - length, "\n");
}

void mps_say_probe(struct mps_command *command)
{
    say_input(command, "get_default_active_thread_percentage", -1, -1);
}

void mps_say_servers(struct mps_command *command)
{
    say_input(command, "get_server_list", -1, -1);
}

void mps_say_status(pid_t server, struct mps_command *command)
{
    say_input(command, "get_server_status", server, -1);
}

void mps_say_start(uid_t uid, struct mps_command *command)
{
    say_input(command, "start_server -uid", (int64_t)uid, -1);
}

void mps_say_shutdown(pid_t server, struct mps_command *command)
{
    say_input(command, "shutdown_server", server, -1);
}

void mps_say_clients(pid_t server, struct mps_command *command)
{
    say_input(command, "get_client_list", server, -1);
}

void mps_say_terminate(pid_t server, pid_t client, struct mps_command *command)
{
    say_input(command, "terminate_client", server, client);
}

void mps_say_quit(struct mps_command *command)
{
    say_input(command, "quit", -1, -1);
}

/* ---- Answers ---- */

struct word {
    const char *text;
    size_t length;
};

struct line {
    struct word words[MAX_COLUMNS]; /* the rest is not looked at: the command of a client may have blanks */
    uint32_t count;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The words of the next line that has any; false: there is none. */
static bool next_line(const char **at, struct line *line)
{
    line->count = 0;
    while (**at && line->count == 0) {
        while (**at && **at != '\n') {
            size_t length = 0;
            while (is_blank(**at))
                ++*at;
            while ((*at)[length] && (*at)[length] != '\n' && !is_blank((*at)[length]))
                length++;
            if (length && line->count < MAX_COLUMNS)
                line->words[line->count++] = (struct word){*at, length};
            *at += length;
        }
        if (**at)
            ++*at;
    }
    return line->count > 0;
}

static int not_understood(const struct word *word, const char *wanted, struct error *err)
{
    char shown[41];
    size_t length = 0;

    for (; length < word->length && length + 1 < sizeof shown; length++) {
        unsigned char c = (unsigned char)word->text[length];
        shown[length] = c < ' ' || c >= 0x7f ? '?' : (char)c;
    }
    shown[length] = '\0';
    return error_set(err, EPROTO, "the MPS control daemon answered '%s' where %s was expected", shown, wanted);
}

static bool word_is(const struct word *word, const char *text)
{
    return strlen(text) == word->length && memcmp(word->text, text, word->length) == 0;
}

static int read_pid(const struct word *word, pid_t *pid, struct error *err)
{
    int64_t value = 0;

    for (size_t i = 0; i < word->length; i++) {
        if (word->text[i] < '0' || word->text[i] > '9')
            return not_understood(word, "a process", err);
        value = value * 10 + (word->text[i] - '0');
        if (value > PID_LIMIT)
            return not_understood(word, "a process", err);
    }
    if (value == 0)
        return not_understood(word, "a process", err);
    *pid = (pid_t)value;
    return 0;
}

static int add_pid(struct mps_pids *pids, pid_t pid, uint32_t most, struct error *err)
{
    for (uint32_t i = 0; i < pids->count; i++) /* a client is listed once for each device */
        if (pids->items[i] == pid)
            return 0;
    if (pids->count == most)
        return error_set(err, EPROTO, "the MPS control daemon lists more than %u processes", most);
    pids->items[pids->count++] = pid;
    return 0;
}

/* Bare pids, one a line. */
static int read_pids(const char *text, uint32_t most, struct mps_pids *pids, struct error *err)
{
    struct line line;

    pids->count = 0;
    while (next_line(&text, &line)) {
        pid_t pid = 0;
        int rc = line.count > 1 ? not_understood(&line.words[1], "the end of the line", err)
                                : read_pid(&line.words[0], &pid, err);
        if (rc == 0)
            rc = add_pid(pids, pid, most, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_state(const struct word *word, enum mps_server_state *state, struct error *err)
{
    for (*state = 0; *state < MPS_SERVER_STATE_COUNT; ++*state)
        if (word_is(word, mps_server_state_name(*state)))
            return 0;
    return not_understood(word, "the state of a server", err);
}

int mps_read_probe(const char *text, struct error *err)
{
    struct line line, more;

    if (!next_line(&text, &line))
        return error_set(err, EPROTO, "the MPS control daemon answered nothing where a percentage was expected");
    if (line.count != 1 || next_line(&text, &more))
        return not_understood(&line.words[0], "a percentage alone", err);
    for (size_t i = 0; i < line.words[0].length; i++)
        if (!strchr("0123456789.", line.words[0].text[i]))
            return not_understood(&line.words[0], "a percentage", err);
    return 0;
}

int mps_read_servers(const char *text, struct mps_pids *servers, struct error *err)
{
    return read_pids(text, MPS_MAX_SERVERS, servers, err);
}

int mps_read_status(const char *text, pid_t server, enum mps_server_state *state, struct error *err)
{
    struct line line;
    int rc;

    *state = MPS_SERVER_STATE_COUNT;
    if (!next_line(&text, &line))
        return error_set(err, EPROTO, "the MPS control daemon says nothing of server %jd", (intmax_t)server);
    if (line.count > 1 && word_is(&line.words[0], "Unknown") && word_is(&line.words[1], "command"))
        return error_set(err, ENOTSUP, "the MPS control daemon does not tell a server's state");
    rc = line.count > 1 ? not_understood(&line.words[0], "the state of a server alone", err)
                        : read_state(&line.words[0], state, err);
    return rc < 0 || !next_line(&text, &line) ? rc : not_understood(&line.words[0], "the end", err);
}

int mps_read_clients(const char *text, struct mps_pids *clients, struct error *err)
{
    return read_pids(text, MPS_MAX_CLIENTS, clients, err);
}
