#include "client/http1.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define HEADER_LIMIT_BYTES (64 << 10)

void http1_reply_init(struct http1_reply *reply, size_t limit_bytes)
{
    *reply = (struct http1_reply){.limit_bytes = limit_bytes};
}

void http1_reply_release(struct http1_reply *reply)
{
    strbuf_release(&reply->line);
    strbuf_release(&reply->head);
    strbuf_release(&reply->body);
}

static int not_http(struct error *err)
{
    return error_set(err, EPROTO, "the answer is not HTTP: does something else than carmad listen there?");
}

static int too_large(const struct http1_reply *reply, struct error *err)
{
    return error_set(err, EMSGSIZE, "the answer has more than %zu bytes", reply->limit_bytes);
}

/* Digits of the base and nothing else; a value beyond every limit reads as SIZE_MAX. */
static bool parse_size_text(const char *text, size_t length, unsigned base, size_t *value)
{
    static const char digits[] = "0123456789abcdef";

    *value = 0;
    for (size_t i = 0; i < length; i++) {
        const char *digit = memchr(digits, text[i] >= 'A' && text[i] <= 'F' ? text[i] + 32 : text[i], base);

        if (!digit)
            return false;
        *value = *value > (SIZE_MAX - 15) / base ? SIZE_MAX : *value * base + (size_t)(digit - digits);
    }
    return length > 0;
}

/* "HTTP/1.1 200 OK" */
static int status_line(struct http1_reply *reply, const char *line, struct error *err)
{
    size_t status;

    if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
        !parse_size_text(line + 9, strcspn(line + 9, " "), 10, &status) || status < 100 || status > 999)
        return not_http(err);
    reply->status = (int)status;
    reply->keep_alive = line[7] == '1';
    reply->has_length = reply->chunked = false;
    reply->left = 0;
    strbuf_clear(&reply->head);
    reply->state = HTTP1_HEADER;
    return 0;
}

static void end_of_header(struct http1_reply *reply)
{
    if (reply->status < 200) /* 100 Continue: the answer itself is still to come */
        reply->state = HTTP1_STATUS;
    else if (reply->status == 204 || reply->status == 304 || reply->head_only)
        reply->state = HTTP1_DONE;
    else if (reply->chunked)
        reply->state = HTTP1_CHUNK_SIZE;
    else if (reply->has_length)
        reply->state = reply->left ? HTTP1_BODY : HTTP1_DONE;
    else
        reply->state = HTTP1_UNTIL_CLOSE;
}

static int header_line(struct http1_reply *reply, const char *line, struct error *err)
{
    const char *colon = strchr(line, ':');
    const char *value;
    size_t name_length, length;

    if (!*line) {
        end_of_header(reply);
        return 0;
    }
    if (!colon)
        return not_http(err);
    strbuf_printf(&reply->head, "%s\n", line);
    name_length = (size_t)(colon - line);
    value = colon + 1 + strspn(colon + 1, " \t");
    length = strlen(value);
    while (length && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    if (name_length == 14 && !strncasecmp(line, "Content-Length", name_length)) {
        if (reply->has_length || !parse_size_text(value, length, 10, &reply->left))
            return not_http(err);
        reply->has_length = true;
        if (reply->left > reply->limit_bytes)
            return too_large(reply, err);
    } else if (name_length == 17 && !strncasecmp(line, "Transfer-Encoding", name_length)) {
        if (length != 7 || strncasecmp(value, "chunked", length) != 0)
            return not_http(err);
        reply->chunked = true;
    } else if (name_length == 10 && !strncasecmp(line, "Connection", name_length)) {
        if (length == 5 && !strncasecmp(value, "close", length))
            reply->keep_alive = false;
    }
    return 0;
}

static int chunk_size_line(struct http1_reply *reply, const char *line, struct error *err)
{
    if (!parse_size_text(line, strcspn(line, "; \t"), 16, &reply->left))
        return not_http(err);
    if (reply->left > reply->limit_bytes - reply->body.length)
        return too_large(reply, err);
    reply->state = reply->left ? HTTP1_CHUNK : HTTP1_TRAILER;
    return 0;
}

static int take_line(struct http1_reply *reply, const char *line, struct error *err)
{
    switch (reply->state) {
    case HTTP1_STATUS:
        return status_line(reply, line, err);
    case HTTP1_HEADER:
        return header_line(reply, line, err);
    case HTTP1_CHUNK_SIZE:
        return chunk_size_line(reply, line, err);
    case HTTP1_CHUNK_END:
        reply->state = HTTP1_CHUNK_SIZE;
        return *line ? not_http(err) : 0;
    default: /* HTTP1_TRAILER */
        if (!*line)
            reply->state = HTTP1_DONE;
        return 0;
    }
}

/* A line, or a part of one; returns how many bytes were used. */
static size_t feed_line(struct http1_reply *reply, const char *bytes, size_t count, int *rc, struct error *err)
{
    const char *end = memchr(bytes, '\n', count);
    size_t used = end ? (size_t)(end - bytes) + 1 : count;

    reply->header_bytes += used;
    if (reply->header_bytes > HEADER_LIMIT_BYTES && reply->state <= HTTP1_HEADER) {
        *rc = not_http(err);
        return used;
    }
    strbuf_append(&reply->line, bytes, end ? used - 1 : used);
    /* Lines of the body's framing are bounded one by one: there may be many. */
    if (reply->line.length > HEADER_LIMIT_BYTES || memchr(reply->line.text, '\0', reply->line.length)) {
        *rc = not_http(err);
        return used;
    }
    if (end) {
        if (reply->line.length && reply->line.text[reply->line.length - 1] == '\r')
            reply->line.text[--reply->line.length] = '\0';
        *rc = take_line(reply, reply->line.text, err);
        strbuf_clear(&reply->line);
    }
    return used;
}

int http1_reply_feed(struct http1_reply *reply, const char *bytes, size_t count, struct error *err)
{
    int rc = 0;

    reply->begun = reply->begun || count;
    while (!rc && count) {
        size_t used;

        switch (reply->state) {
        case HTTP1_BODY:
        case HTTP1_CHUNK:
            used = count < reply->left ? count : reply->left;
            strbuf_append(&reply->body, bytes, used);
            reply->left -= used;
            if (!reply->left)
                reply->state = reply->state == HTTP1_BODY ? HTTP1_DONE : HTTP1_CHUNK_END;
            break;
        case HTTP1_UNTIL_CLOSE:
            used = count;
            if (count > reply->limit_bytes - reply->body.length)
                return too_large(reply, err);
            strbuf_append(&reply->body, bytes, used);
            break;
        case HTTP1_DONE: /* nobody asked for more: this connection is out of step */
            reply->keep_alive = false;
            return 0;
        default:
            used = feed_line(reply, bytes, count, &rc, err);
            break;
        }
        bytes += used;
        count -= used;
    }
    return rc;
}

int http1_reply_close(struct http1_reply *reply, struct error *err)
{
    reply->keep_alive = false;
    if (reply->state == HTTP1_UNTIL_CLOSE)
        reply->state = HTTP1_DONE;
    return reply->state == HTTP1_DONE ? 0 : error_set(err, EPROTO, "the daemon closed the connection in mid-answer");
}
