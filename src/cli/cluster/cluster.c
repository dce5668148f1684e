#include "cli/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/install.h"
#include "base/memory.h"
#include "base/text/printable.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cluster/foreign.h"
#include "cli/cluster/nodes.h"
#include "cli/show/answer.h"
#include "client/connect.h"

void cluster_init(struct cluster *cluster)
{
    *cluster = (struct cluster){.timeout_ms = CLUSTER_TIMEOUT_MS};
}

error_t cluster_parse(int key, char *arg, const struct argp_state *state, struct cluster *cluster)
{
    CLEANUP(free_ptr) char *text = key == CLUSTER_KEY_TIMEOUT ? xasprintf("%ss", arg) : NULL;
    int64_t ns = 0;

    switch (key) {
    case CLUSTER_KEY_NODES:
        cluster->nodes = arg;
        break;
    case CLUSTER_KEY_TIMEOUT:
        if (parse_duration(text, &ns, NULL) || ns < NS_PER_SEC / 10 || ns > 600 * NS_PER_SEC)
            return cli_bad_usage(state, "--node-timeout: '%.40s' is not a number of seconds from 0.1 to 600", arg);
        cluster->timeout_ms = ns / NS_PER_MS;
        break;
    case CLUSTER_KEY:
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    cluster->wanted = true;
    return 0;
}

/* ---- One child ---- */

char *cluster_why(const struct child *child, int64_t timeout_ms)
{
    CLEANUP(free_ptr) char *line = foreign_last_line(child->errors.text);

    switch (child->end) {
    case CHILD_LATE:
        return xasprintf("no answer within %g s", (double)timeout_ms / 1000);
    case CHILD_TALKS_TOO_MUCH:
        return xasprintf("answers with more than %zu MiB", CHILD_OUT_LIMIT >> 20);
    case CHILD_NOT_STARTED:
        return xasprintf("%s cannot be started: %s", child->argv[0], strerror(child->status));
    default:
        if (line)
            return steal_ptr(&line);
        return child->status
                   ? xasprintf("%s: exit status %d", child->argv[0],
                               WIFEXITED(child->status) ? WEXITSTATUS(child->status) : 128 + WTERMSIG(child->status))
                   : xstrdup("its answer is not JSON of carma's");
    }
}

/* A word for the shell that sshd starts. */
static void put_word(struct strbuf *out, const char *word)
{
    strbuf_puts(out, " '");
    for (; *word; word++)
        strbuf_printf(out, *word == '\'' ? "'\\''" : "%c", *word);
    strbuf_puts(out, "'");
}

#define WORDS_MOST 16

/* How one node is asked one thing. */
struct question {
    const char *argv[WORDS_MOST + 4];
    char *program, *timeout, *remote; /* owned */
};

static void question_release(struct question *question)
{
    free(question->program);
    free(question->timeout);
    free(question->remote);
}

/* By TCP it is this machine's carma that asks: it knows the token. */
static void question_by_tcp(struct question *question, const char *node, const char *const *words)
{
    size_t count = 0;

    question->program = install_path("bin/carma");
    if (access(question->program, X_OK) < 0) {
        free(question->program);
        question->program = install_beside("carma");
    }
    question->argv[count++] = question->program;
    while (*words && count < WORDS_MOST)
        question->argv[count++] = *words++;
    question->argv[count++] = "--socket";
    question->argv[count] = node;
}

static void question_by_ssh(struct question *question, const char *node, const char *const *words, int64_t timeout_ms)
{
    struct strbuf remote = {0};

    strbuf_puts(&remote, "carma");
    while (*words)
        put_word(&remote, *words++);
    question->remote = strbuf_steal(&remote);
    question->timeout = xasprintf("ConnectTimeout=%d", (int)((timeout_ms + 999) / 1000));
    const char *argv[] = {"ssh", "-o", "BatchMode=yes", "-o", question->timeout, "--", node, question->remote};
    memcpy(question->argv, argv, sizeof argv);
}

/* ---- All of them ---- */

/* The answers of one node, to each of the commands. */
static json_t *node_answer(const char *name, const struct child *children, size_t count, int64_t timeout_ms)
{
    json_t *node = json_pack("{s:s}", "name", name);

    for (size_t i = 0; i < count; i++) {
        const struct child *child = &children[i];
        CLEANUP(json_release)
        json_t *answer =
            child->end == CHILD_ENDED && child->status == 0 ? foreign_json(child->out.text, child->out.length) : NULL;
        if (!answer || json_object_get(answer, "error")) {
            CLEANUP(free_ptr) char *why = cluster_why(child, timeout_ms);
            json_decref(node);
            return json_pack("{s:s, s:s}", "name", name, "error", why);
        }
        json_object_update_missing(node, answer);
    }
    return node;
}

int cluster_ask(const struct cluster *cluster, const char *const *const *commands, size_t count, struct child *beside,
                json_t **reply, struct error *err)
{
    CLEANUP(cluster_nodes_release) struct cluster_nodes nodes = {0};
    json_t *list;
    int rc = cluster_nodes_find(&nodes, cluster, err);

    if (rc)
        return rc;
    size_t total = nodes.count * count;
    struct question *questions = xcalloc(total, sizeof *questions);
    struct child *children = xcalloc(total + 1, sizeof *children);
    for (size_t i = 0; i < total; i++) {
        const char *node = nodes.names[i / count];
        if (connect_tcp_of(node))
            question_by_tcp(&questions[i], node, commands[i % count]);
        else
            question_by_ssh(&questions[i], node, commands[i % count], cluster->timeout_ms);
        children[i].argv = questions[i].argv;
    }
    if (beside)
        children[total] = *beside;
    children_run(children, total + (beside != NULL), cluster->timeout_ms);
    if (beside)
        *beside = children[total];
    list = json_array();
    for (size_t i = 0; i < nodes.count; i++)
        json_array_append_new(list, node_answer(nodes.names[i], &children[i * count], count, cluster->timeout_ms));
    *reply = json_pack("{s:o}", "nodes", list);
    for (size_t i = 0; i < total; i++) {
        child_release(&children[i]);
        question_release(&questions[i]);
    }
    free(children);
    free(questions);
    return 0;
}

void cluster_print_silent(const json_t *reply)
{
    json_t *node;
    size_t i;

    json_array_foreach (json_object_get(reply, "nodes"), i, node) {
        CLEANUP(free_ptr) char *why = answer_safe_text(node, "error");
        if (answer_text(node, "error"))
            printf("%s: %s\n", answer_text(node, "name"), why);
    }
}

int cluster_status(const json_t *reply)
{
    json_t *node;
    size_t i;

    json_array_foreach (json_object_get(reply, "nodes"), i, node)
        if (!answer_text(node, "error"))
            return CLI_OK;
    return CLI_FAILURE;
}

void cluster_print_json(const json_t *reply)
{
    CLEANUP(free_ptr) char *text = printable_json(json_dumps(reply, JSON_INDENT(2) | JSON_ENSURE_ASCII));

    printf("%s\n", text ? text : "null");
}
