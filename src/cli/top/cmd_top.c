/* carma top: GPUs, running jobs and the head of the queue on one screen, live. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/commands.h"
#include "cli/top/fetch.h"
#include "cli/top/keys.h"
#include "cli/top/screen.h"
#include "cli/top/answer.h"

struct top_options {
    int64_t period_ns; /* 0: by default */
    struct cluster cluster;
};

enum { KEY_DELAY = 'd' };

static const struct argp_option options[] = {
    {"delay", KEY_DELAY, "SECONDS", 0, "look again every SECONDS (default: 2, with --cluster 10)", 0},
    CLUSTER_OPTIONS,
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct top_options *top = state->input;

    switch (key) {
    case KEY_DELAY: {
        CLEANUP(free_ptr) char *text = xasprintf("%ss", arg);
        if (parse_duration(text, &top->period_ns, NULL) || top->period_ns < NS_PER_SEC / 10 ||
            top->period_ns > 3600 * NS_PER_SEC)
            return cli_bad_usage(state, "--delay: '%.40s' is not a number of seconds from 0.1 to 3600", arg);
        return 0;
    }
    default:
        return cluster_parse(key, arg, state, &top->cluster);
    }
}

const struct argp top_argp = {
    .options = options,
    .parser = parse,
    .doc = "Show GPUs, running jobs and the head of the queue on one screen, and act on them: ? shows the keys."
           "\vdocs/top.md explains the screen. Colours are left out where NO_COLOR is set.",
};

struct top {
    struct top_model model;
    struct top_fetch *fetch;
    int wake[2];
    int64_t lost_since_ns; /* monotonic wall time; 0: the daemon answers */
};

static struct top_wish wish_of(const struct top_model *model)
{
    struct top_wish wish;

    memset(&wish, 0, sizeof wish); /* it is compared as bytes */
    wish.waiting = top_model_wanted(model);
    wish.unfolded = model->unfolded;
    wish.uid = model->mine ? model->uid : -1;
    wish.details_of = model->mode == TOP_DETAILS ? model->shown_job : -1;
    wish.log_of = model->mode == TOP_LOG ? model->shown_job : -1;
    return wish;
}

/* ---- Data from the daemon ---- */

static void take_answer(struct top_model *model, const struct top_news *news)
{
    if (!news->has_answer)
        return;
    memcpy(model->message, news->answer, sizeof model->message);
    model->message_bad = news->refused;
}

static void take_text(struct top_model *model, const struct top_news *news)
{
    if (model->mode == TOP_DETAILS && news->details_of == model->shown_job)
        top_view_details(news->details, news->explanation, &model->text);
    if (model->mode != TOP_LOG || news->log_of != model->shown_job)
        return;
    if (news->log.length)
        top_text_add(&model->text, news->log.text, news->log.length);
    if (*news->log_error) {
        memcpy(model->message, news->log_error, sizeof model->message);
        model->message_bad = true;
    }
}

static void take_news(struct top *top)
{
    struct top_model *model = &top->model;
    struct top_news news;

    top_fetch_take(top->fetch, &news);
    if (news.has_picture)
        top_model_take(model, &news.picture);
    if (!news.is_lost)
        top->lost_since_ns = 0;
    else if (!top->lost_since_ns)
        top->lost_since_ns = nodetime_monotonic_wall_ns();
    model->lost_s = top->lost_since_ns ? (nodetime_monotonic_wall_ns() - top->lost_since_ns) / NS_PER_SEC : 0;
    snprintf(model->lost, sizeof model->lost, "%s", news.is_lost ? news.lost : "");
    take_answer(model, &news);
    take_text(model, &news);
    top_news_release(&news);
}

/* ---- The screen ---- */

static void draw(struct top *top)
{
    struct top_screen screen;
    size_t width, height;

    top_screen_size(&width, &height);
    top_screen_init(&screen, width, height);
    top_view(&top->model, &screen);
    top_screen_paint(&screen);
    top_screen_release(&screen);
}

static void ask_for(struct top *top, int64_t job, const char *verb)
{
    if (top_fetch_do(top->fetch, job, verb, top->model.which))
        return;
    snprintf(top->model.message, sizeof top->model.message,
             "the daemon has not answered the last request yet: try again");
    top->model.message_bad = true;
}

/* False: the user is done. */
static bool take_keys(struct top *top)
{
    uint32_t key;
    bool is_there;

    while ((is_there = top_screen_key(&key)) && key) {
        int64_t job = -1;

        switch (top_key(&top->model, key, &job)) {
        case TOP_QUIT:
            return false;
        case TOP_CANCEL:
            ask_for(top, job, "cancel");
            break;
        case TOP_HOLD:
            ask_for(top, job, "hold");
            break;
        case TOP_RELEASE:
            ask_for(top, job, "release");
            break;
        default:
            break;
        }
        const struct top_wish wish = wish_of(&top->model);
        top_fetch_want(top->fetch, &wish);
    }
    return is_there;
}

static void empty_pipe(int fd)
{
    char bytes[256];

    while (read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
}

/* Until the user is done, or the terminal is gone. */
static void run(struct top *top)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = top->wake[0], .events = POLLIN}};

    do {
        take_news(top);
        draw(top);
        const struct top_wish wish = wish_of(&top->model); /* drawing tells how long a page is */
        top_fetch_want(top->fetch, &wish);
        if (poll(fds, array_size(fds), *top->model.lost ? 1000 : -1) < 0 && errno != EINTR)
            return;
        empty_pipe(top->wake[0]);
        top_screen_catch_up();
    } while (take_keys(top));
}

/* A daemon that never was there is not waited for. */
static int wait_for_first(struct top *top)
{
    struct pollfd woken = {.fd = top->wake[0], .events = POLLIN};
    struct top_news news;
    int status = CLI_OK;

    while (poll(&woken, 1, -1) < 0 && errno == EINTR)
        ;
    top_fetch_take(top->fetch, &news);
    if (news.is_lost)
        status = cli_fail("%s", news.lost);
    else
        top_model_take(&top->model, &news.picture);
    top_news_release(&news);
    return status;
}

static int run_on_terminal(struct top *top)
{
    struct error err;

    if (top_screen_open(top->wake[1], top->model.message, &err)) {
        cli_fail("top: %s", err.text);
        return CLI_USAGE;
    }
    run(top);
    top_screen_close();
    return CLI_OK;
}

int cmd_top(struct cli *cli, int argc, char **argv)
{
    struct top_options chosen = {0};
    struct top top = {.wake = {-1, -1}};
    int status;

    cluster_init(&chosen.cluster);
    if (!cli_parse(cli, argc, argv, &chosen, &status))
        return status;
    if (!chosen.period_ns)
        chosen.period_ns = (chosen.cluster.wanted ? 10 : 2) * NS_PER_SEC;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        cli_fail("top: standard input and output must be a terminal: elsewhere use carma gpus and carma queue, with "
                 "--watch");
        return CLI_USAGE;
    }
    if (pipe2(top.wake, O_CLOEXEC | O_NONBLOCK))
        return cli_fail("top: cannot make a pipe: %s", strerror(errno));
    top_model_init(&top.model, (int64_t)getuid());
    top.model.cluster = chosen.cluster.wanted;
    const struct top_wish wish = wish_of(&top.model);
    top.fetch = top_fetch_start(cli->socket, &chosen.cluster, chosen.period_ns, top.wake[1], &wish);
    status = wait_for_first(&top);
    if (status == CLI_OK)
        status = run_on_terminal(&top);
    top_fetch_stop(top.fetch);
    top_model_release(&top.model);
    return status;
}
