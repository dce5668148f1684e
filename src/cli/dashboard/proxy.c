/* One request on each connection: its head is judged and written anew for the daemon, its body and the answer are passed on as
 * they come. What a side does not take yet is waited for by not reading the other. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <utlist.h>
#include <unistd.h>
#include <uv.h>

#include "base/address.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/dashboard/access.h"
#include "cli/dashboard/dashboard.h"
#include "cli/dashboard/head.h"
#include "cli/dashboard/peer.h"

#define BACKLOG          32
#define BLOCK_BYTES      (64 << 10)
#define QUEUE_HIGH_BYTES (256 << 10) /* what one side may be behind by before the other is not read any more */
#define HEAD_WAIT_MS     15000
#define SILENCE_MS       120000 /* the daemon lets streams speak every 15 s, and gives up what stands still for as long */
#define ENDING_WAIT_MS   2000

enum link_state {
    LINK_HEAD,    /* the request's head is being read */
    LINK_LOCAL,   /* a thread makes up an answer */
    LINK_CONNECT, /* to the daemon */
    LINK_RELAY,
    LINK_ENDING, /* all is written; what still comes is read away, so that the answer is not lost by a reset */
    LINK_CLOSED
};

/* A browser's connection, and the one to the daemon that belongs to it. */
struct link {
    struct dashboard_proxy *proxy;
    enum link_state state;
    uv_tcp_t client;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    } daemon;
    uv_connect_t connecting;
    uv_shutdown_t shutdown;
    uv_timer_t timer;
    bool has_daemon;
    unsigned open;         /* handles, until all of them are closed */
    struct strbuf input;   /* of the client: the head, and what came with it */
    struct strbuf to_send; /* to the daemon, once connected */
    size_t body_left;      /* of the request, not passed on yet */
    bool refusing_body;    /* the daemon takes no more of it */
    struct strbuf answer;  /* of the daemon: its head */
    bool answered;         /* the client has been sent a head */
    struct dashboard_head head;
    struct local_work *work; /* under way for it */
    struct link *next, *prev;
};

/* An answer that a thread makes up; outlives its link where that goes first. */
struct local_work {
    uv_work_t work;
    const struct dashboard_place *place;
    char *target;
    struct dashboard_answer answer;
    struct link *link;
};

/* Bytes on their way to a side. */
struct passing {
    uv_write_t write;
    struct link *link;
    bool to_client;
    char bytes[];
};

struct dashboard_proxy {
    uv_loop_t loop;
    const struct dashboard_place *place;
    struct address tcp_address;
    uv_tcp_t listener;
    uv_signal_t signals[2];
    struct dashboard_access access;
    struct link *links;
    unsigned link_count;
    char block[BLOCK_BYTES]; /* what is read is copied before the next is */
};

/* ---- Ends ---- */

static void on_link_handle_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;

    if (--link->open)
        return;
    dashboard_head_release(&link->head);
    strbuf_release(&link->input);
    strbuf_release(&link->to_send);
    strbuf_release(&link->answer);
    free(link);
}

static void link_close(struct link *link)
{
    if (link->state == LINK_CLOSED)
        return;
    link->state = LINK_CLOSED;
    DL_DELETE(link->proxy->links, link);
    link->proxy->link_count--;
    if (link->work)
        link->work->link = NULL;
    uv_close((uv_handle_t *)&link->client, on_link_handle_closed);
    uv_close((uv_handle_t *)&link->timer, on_link_handle_closed);
    if (link->has_daemon)
        uv_close(&link->daemon.handle, on_link_handle_closed);
}

static void on_timer(uv_timer_t *timer);

static void link_wait(struct link *link, uint64_t wall_ms)
{
    uv_timer_start(&link->timer, on_timer, wall_ms, 0);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    struct link *link = shutdown->data;

    if (status < 0)
        link_close(link);
}

static void on_client_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer);
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer);

static void link_end(struct link *link)
{
    if (link->state == LINK_CLOSED || link->state == LINK_ENDING)
        return;
    link->state = LINK_ENDING;
    if (link->has_daemon)
        uv_read_stop(&link->daemon.stream);
    link->shutdown.data = link;
    if (uv_shutdown(&link->shutdown, (uv_stream_t *)&link->client, on_shutdown) < 0) {
        link_close(link);
        return;
    }
    uv_read_start((uv_stream_t *)&link->client, on_alloc, on_client_read);
    /* A slow reader has its time; a browser that has all closes. */
    link_wait(link, uv_stream_get_write_queue_size((uv_stream_t *)&link->client) ? SILENCE_MS : ENDING_WAIT_MS);
}

/* ---- Passing on ---- */

static void on_daemon_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer);

static void on_passed(uv_write_t *write, int status)
{
    struct passing *passing = (struct passing *)write;
    struct link *link = passing->link;
    bool to_client = passing->to_client;

    free(passing);
    if (link->state == LINK_CLOSED)
        return;
    if (status < 0 && to_client) {
        link_close(link);
        return;
    }
    if (status < 0) /* the daemon may have answered without reading to the end */
        link->refusing_body = true;
    if (link->state == LINK_ENDING) {
        if (!uv_stream_get_write_queue_size((uv_stream_t *)&link->client))
            link_wait(link, ENDING_WAIT_MS);
        return;
    }
    if (link->state != LINK_RELAY)
        return;
    link_wait(link, SILENCE_MS);
    if (to_client)
        uv_read_start(&link->daemon.stream, on_alloc, on_daemon_read);
    else /* also where no body is to come: it may go away */
        uv_read_start((uv_stream_t *)&link->client, on_alloc, on_client_read);
}

/* Writes a copy; stops reading `from` (may be NULL) while too much waits. */
static void pass(struct link *link, bool to_client, const void *bytes, size_t length, uv_stream_t *from)
{
    uv_stream_t *to = to_client ? (uv_stream_t *)&link->client : &link->daemon.stream;
    struct passing *passing;
    uv_buf_t buffer;

    if (!length)
        return;
    passing = xmalloc(sizeof *passing + length);
    passing->link = link;
    passing->to_client = to_client;
    memcpy(passing->bytes, bytes, length);
    buffer = uv_buf_init(passing->bytes, (unsigned)length);
    if (uv_write(&passing->write, to, &buffer, 1, on_passed) < 0) {
        free(passing);
        if (to_client)
            link_close(link);
        else
            link->refusing_body = true;
        return;
    }
    if (from && uv_stream_get_write_queue_size(to) > QUEUE_HIGH_BYTES)
        uv_read_stop(from);
}

/* ---- Answers of our own ---- */

static const char *phrase_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *phrase;
    } phrases[] = {{200, "OK"}, {303, "See Other"}, {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"},
                   {404, "Not Found"}, {405, "Method Not Allowed"}, {413, "Content Too Large"}, {502, "Bad Gateway"},
                   {503, "Service Unavailable"}, {504, "Gateway Timeout"}};

    for (size_t i = 0; i < array_size(phrases); i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Refused";
}

/* `more` are lines of the head, or "". The body is taken over. */
static void answer(struct link *link, struct dashboard_answer *own, const char *more)
{
    CLEANUP(strbuf_release) struct strbuf plain = {0}, out = {0};
    bool head_only = link->head.method && strcmp(link->head.method, "HEAD") == 0;

    strbuf_printf(&plain, "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", own->status,
                  phrase_of(own->status), own->type, own->length, more);
    dashboard_head_protect(plain.text, plain.length, &out);
    if (!head_only)
        strbuf_append(&out, own->body, own->length);
    free(own->body);
    link->answered = true;
    pass(link, true, out.text, out.length, NULL);
    link_end(link);
}

static void answer_error(struct link *link, unsigned status, const char *why)
{
    struct dashboard_answer own;

    dashboard_answer_error(&own, status, link->head.values[HEADER_ACCEPT], why);
    answer(link, &own, status == 405 ? "Allow: GET, HEAD, POST\r\n" : "");
}

/* Lets the browser in. Where the address was followed from another site's page, a redirection would still count as that site's,
 * and the cookie not be sent: then a page of our own goes on to the dashboard. */
static void answer_token(struct link *link, bool with_cookie)
{
    static const char onward[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                                 "<meta http-equiv=\"refresh\" content=\"0; url=/\">\n<title>carma</title>\n"
                                 "<p><a href=\"/\">To the dashboard</a></p>\n</html>\n";
    const char *site = link->head.values[HEADER_FETCH_SITE];
    bool foreign = site && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0;
    struct dashboard_answer own = {.status = foreign ? 200 : 303, .type = "text/html; charset=utf-8"};
    CLEANUP(strbuf_release) struct strbuf more = {0};

    own.body = xstrdup(onward);
    own.length = strlen(onward);
    if (!foreign)
        strbuf_puts(&more, "Location: /\r\n");
    if (with_cookie)
        strbuf_printf(&more, "Set-Cookie: carma-%u=%s; Path=/; HttpOnly; SameSite=Strict\r\n", link->proxy->access.port,
                      link->proxy->access.cookie.text);
    answer(link, &own, more.text ? more.text : "");
}

static void on_timer(uv_timer_t *timer)
{
    struct link *link = timer->data;

    if ((link->state == LINK_CONNECT || link->state == LINK_RELAY) && !link->answered)
        answer_error(link, 504, "the daemon has not answered for too long: is carmad stopped or very busy?");
    else
        link_close(link);
}

/* ---- The daemon's side ---- */

static void answer_no_daemon(struct link *link, const char *why)
{
    CLEANUP(free_ptr) char *text = xasprintf("%s: the daemon cannot be reached (%s). It may be starting again: try again in a "
                                             "moment, or start it with 'carmad'",
                                             link->proxy->place->name, why);

    answer_error(link, 502, text);
}

/* Passes on the head once all of it is there, with what came behind it. */
static void take_answer(struct link *link, const char *bytes, size_t length)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    size_t end;

    if (link->answered) {
        pass(link, true, bytes, length, &link->daemon.stream);
        return;
    }
    strbuf_append(&link->answer, bytes, length);
    end = dashboard_head_end(link->answer.text, link->answer.length);
    if ((end ? end : link->answer.length) > DASHBOARD_HEAD_LIMIT_BYTES ||
        (end && !dashboard_head_protect(link->answer.text, end, &out))) {
        answer_error(link, 502, "what answers is no carmad: does something else listen at the daemon's place?");
        return;
    }
    if (!end)
        return;
    link->answered = true;
    strbuf_append(&out, link->answer.text + end, link->answer.length - end);
    strbuf_release(&link->answer);
    pass(link, true, out.text, out.length, &link->daemon.stream);
}

static void on_daemon_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct link *link = stream->data;

    if (link->state != LINK_RELAY || count == 0)
        return;
    if (count > 0) {
        link_wait(link, SILENCE_MS);
        take_answer(link, buffer->base, (size_t)count);
    } else if (link->answered) {
        link_end(link);
    } else {
        answer_no_daemon(link, "it closed the connection without an answer");
    }
}

/* What of the request's body is not too much. What comes behind it is nobody's. */
static size_t body_part(struct link *link, size_t length)
{
    size_t part = length < link->body_left ? length : link->body_left;

    link->body_left -= part;
    return link->refusing_body ? 0 : part;
}

static void on_connected(uv_connect_t *connecting, int status)
{
    struct link *link = connecting->data;

    if (link->state != LINK_CONNECT)
        return;
    if (status < 0) {
        answer_no_daemon(link, uv_strerror(status));
        return;
    }
    link->state = LINK_RELAY;
    link_wait(link, SILENCE_MS);
    uv_read_start(&link->daemon.stream, on_alloc, on_daemon_read);
    pass(link, false, link->to_send.text, link->to_send.length, (uv_stream_t *)&link->client);
    strbuf_release(&link->to_send);
}

static void connect_daemon(struct link *link)
{
    struct dashboard_proxy *proxy = link->proxy;
    int rc = 0;

    link->state = LINK_CONNECT;
    link->connecting.data = link;
    link->daemon.handle.data = link;
    if (proxy->place->tcp)
        uv_tcp_init(&proxy->loop, &link->daemon.tcp);
    else
        uv_pipe_init(&proxy->loop, &link->daemon.pipe, 0);
    link->daemon.handle.data = link;
    link->has_daemon = true;
    link->open++;
    if (proxy->place->tcp) {
        uv_tcp_nodelay(&link->daemon.tcp, 1);
        rc = uv_tcp_connect(&link->connecting, &link->daemon.tcp, (const struct sockaddr *)&proxy->tcp_address.socket,
                            on_connected);
    } else {
        uv_pipe_connect(&link->connecting, &link->daemon.pipe, proxy->place->name, on_connected);
    }
    if (rc < 0)
        answer_no_daemon(link, uv_strerror(rc));
}

/* ---- The browser's side ---- */

static void on_local_work(uv_work_t *work)
{
    struct local_work *local = work->data;

    dashboard_local_answer(local->place, local->target, &local->answer);
}

static void on_local_done(uv_work_t *work, int status)
{
    struct local_work *local = work->data;
    struct link *link = local->link;

    if (link) {
        link->work = NULL;
        answer(link, &local->answer, "");
    } else {
        free(local->answer.body);
    }
    free(local->target);
    free(local);
}

static void start_local(struct link *link)
{
    struct local_work *local;

    if (strcmp(link->head.method, "GET") != 0) {
        answer_error(link, 405, "what is answered here can only be asked for: use GET");
        return;
    }
    local = xcalloc(1, sizeof *local);
    local->work.data = local;
    local->place = link->proxy->place;
    local->target = xstrdup(link->head.target);
    local->link = link;
    link->work = local;
    link->state = LINK_LOCAL;
    uv_timer_stop(&link->timer); /* it takes a thread and the daemon, which take their time */
    uv_queue_work(&link->proxy->loop, &local->work, on_local_work, on_local_done);
}

/* Judges the whole head that has come, `end` bytes of the input. */
static void take_request(struct link *link, size_t end)
{
    struct dashboard_proxy *proxy = link->proxy;
    const struct dashboard_place *place = proxy->place;
    enum dashboard_verdict verdict;
    const char *why;
    unsigned status = dashboard_head_parse(link->input.text, end, &link->head, &why);

    link->body_left = link->head.body_bytes;
    if (status) {
        answer_error(link, status, why);
        return;
    }
    verdict = dashboard_access_judge(&proxy->access, &link->head, &status, &why);
    if (verdict == DASHBOARD_REFUSED) {
        answer_error(link, status, why);
    } else if (verdict != DASHBOARD_GRANTED) {
        answer_token(link, verdict == DASHBOARD_ENTER);
    } else if (strncmp(link->head.target, DASHBOARD_LOCAL_PREFIX, strlen(DASHBOARD_LOCAL_PREFIX)) == 0) {
        start_local(link);
    } else {
        uv_read_stop((uv_stream_t *)&link->client);
        dashboard_head_write(&link->head, place->tcp ? place->tcp : "carma", place->tcp ? place->token.text : NULL,
                             &link->to_send);
        strbuf_append(&link->to_send, link->input.text + end, body_part(link, link->input.length - end));
        connect_daemon(link);
    }
    strbuf_release(&link->input);
}

static void take_head(struct link *link, const char *bytes, size_t length)
{
    size_t end;

    strbuf_append(&link->input, bytes, length);
    end = dashboard_head_end(link->input.text, link->input.length);
    if ((end ? end : link->input.length) > DASHBOARD_HEAD_LIMIT_BYTES)
        answer_error(link, 431, "the request's head is too long");
    else if (end)
        take_request(link, end);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct link *link = handle->data;

    *buffer = uv_buf_init(link->proxy->block, sizeof link->proxy->block);
}

static void on_client_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct link *link = stream->data;

    if (count < 0) {
        link_close(link);
    } else if (link->state == LINK_HEAD) {
        take_head(link, buffer->base, (size_t)count);
    } else if (link->state == LINK_RELAY && count > 0 && link->body_left) {
        link_wait(link, SILENCE_MS);
        pass(link, false, buffer->base, body_part(link, (size_t)count), stream);
    }
}

/* Whether who has connected is the user himself, or root. */
static bool is_own_peer(struct link *link)
{
    struct sockaddr_in peer, own;
    int peer_length = sizeof peer, own_length = sizeof own;

    return uv_tcp_getpeername(&link->client, (struct sockaddr *)&peer, &peer_length) == 0 &&
           uv_tcp_getsockname(&link->client, (struct sockaddr *)&own, &own_length) == 0 &&
           dashboard_peer_is_of(&peer, &own, getuid());
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct dashboard_proxy *proxy = listener->data;
    struct link *link;

    if (status < 0)
        return;
    link = xcalloc(1, sizeof *link);
    link->proxy = proxy;
    uv_tcp_init(&proxy->loop, &link->client);
    uv_timer_init(&proxy->loop, &link->timer);
    link->client.data = link->timer.data = link;
    link->open = 2;
    DL_APPEND(proxy->links, link);
    proxy->link_count++;
    if (uv_accept(listener, (uv_stream_t *)&link->client) < 0 || !is_own_peer(link)) {
        link_close(link);
        return;
    }
    uv_tcp_nodelay(&link->client, 1);
    link_wait(link, HEAD_WAIT_MS);
    if (proxy->link_count > DASHBOARD_CONNECTIONS)
        answer_error(link, 503, "too many connections are open: close some of the dashboard's pages");
    else
        uv_read_start((uv_stream_t *)&link->client, on_alloc, on_client_read);
}

/* ---- From begin to end ---- */

static void on_signal(uv_signal_t *handle, int number)
{
    uv_stop(handle->loop);
}

static int start_listening(struct dashboard_proxy *proxy, unsigned port, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int length = sizeof address, rc;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener.data = proxy;
    rc = uv_tcp_bind(&proxy->listener, (struct sockaddr *)&address, 0);
    if (!rc)
        rc = uv_listen((uv_stream_t *)&proxy->listener, BACKLOG, on_connection);
    if (!rc)
        rc = uv_tcp_getsockname(&proxy->listener, (struct sockaddr *)&address, &length);
    if (rc)
        return error_set(err, rc, "cannot listen on 127.0.0.1:%u: %s%s", port, uv_strerror(rc),
                         rc == UV_EADDRINUSE ? ": name another --port, or none" : "");
    return dashboard_access_init(&proxy->access, ntohs(address.sin_port), err);
}

int dashboard_proxy_new(const struct dashboard_place *place, unsigned port, struct dashboard_proxy **made, char **address,
                        struct error *err)
{
    struct dashboard_proxy *proxy = xcalloc(1, sizeof *proxy);
    static const int numbers[] = {SIGINT, SIGTERM};
    int rc;

    proxy->place = place;
    uv_loop_init(&proxy->loop);
    uv_tcp_init(&proxy->loop, &proxy->listener);
    for (size_t i = 0; i < array_size(numbers); i++)
        uv_signal_init(&proxy->loop, &proxy->signals[i]);
    if (place->tcp && address_parse(place->tcp, &proxy->tcp_address) != 0)
        rc = error_set(err, EINVAL, "%s: write an IP address and a port, as tcp://127.0.0.1:8471", place->name);
    else
        rc = start_listening(proxy, port, err);
    if (rc) {
        dashboard_proxy_free(proxy);
        return rc;
    }
    for (size_t i = 0; i < array_size(numbers); i++)
        uv_signal_start(&proxy->signals[i], on_signal, numbers[i]);
    *address = xasprintf("http://127.0.0.1:%u/?token=%s", proxy->access.port, proxy->access.token.text);
    *made = proxy;
    return 0;
}

unsigned dashboard_proxy_port(const struct dashboard_proxy *proxy)
{
    return proxy->access.port;
}

void dashboard_proxy_run(struct dashboard_proxy *proxy)
{
    uv_run(&proxy->loop, UV_RUN_DEFAULT);
}

void dashboard_proxy_free(struct dashboard_proxy *proxy)
{
    struct link *link, *next;

    DL_FOREACH_SAFE(proxy->links, link, next)
    link_close(link);
    uv_close((uv_handle_t *)&proxy->listener, NULL);
    for (size_t i = 0; i < array_size(proxy->signals); i++)
        uv_close((uv_handle_t *)&proxy->signals[i], NULL); /* from now on a signal ends the process */
    uv_run(&proxy->loop, UV_RUN_DEFAULT);
    uv_loop_close(&proxy->loop);
    explicit_bzero(&proxy->access, sizeof proxy->access);
    free(proxy);
}
