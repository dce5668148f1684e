#include "cli/dashboard/head.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

#define TARGET_LIMIT_BYTES (8 << 10)

static const char *const header_names[HEADER_COUNT] = {
    [HEADER_HOST] = "Host",
    [HEADER_ORIGIN] = "Origin",
    [HEADER_FETCH_SITE] = "Sec-Fetch-Site",
    [HEADER_COOKIE] = "Cookie",
    [HEADER_LENGTH] = "Content-Length",
    [HEADER_ENCODING] = "Transfer-Encoding",
    [HEADER_ACCEPT] = "Accept",
    [HEADER_ACCEPT_ENCODING] = "Accept-Encoding",
    [HEADER_CONTENT_TYPE] = "Content-Type",
    [HEADER_IF_MODIFIED_SINCE] = "If-Modified-Since",
    [HEADER_IF_NONE_MATCH] = "If-None-Match",
    [HEADER_LAST_EVENT_ID] = "Last-Event-ID",
};

/* Nothing but what the daemon sends is shown or run, nobody can frame it, and neither address nor answer is kept elsewhere. */
static const struct {
    const char *name, *value;
} protections[] = {
    {"Content-Security-Policy",
     "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
    {"Connection", "close"},
};

size_t dashboard_head_end(const char *bytes, size_t length)
{
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);

    return end ? (size_t)(end - bytes) + 4 : 0;
}

static bool is_token(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(others, *c))
            return false;
    return *text;
}

/* No control character but a tab, and so no line's end that is not one. */
static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return false;
    return true;
}

/* Cuts the line at `*at` off; NULL: it is the empty one that ends the head. */
static char *next_line(char **at)
{
    char *line = *at, *end = strstr(line, "\r\n");

    *end = '\0';
    *at = end + 2;
    return *line ? line : NULL;
}

static bool is_target(const char *target)
{
    for (const char *c = target; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '#')
            return false;
    return *target == '/';
}

static unsigned refuse(unsigned status, const char **why, const char *text)
{
    *why = text;
    return status;
}

static unsigned parse_request_line(char *line, struct dashboard_head *head, const char **why)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;

    if (!version)
        return refuse(400, why, "the request's first line is no METHOD PATH HTTP/1.1");
    *target++ = *version++ = '\0';
    if (!is_token(line) || !is_target(target))
        return refuse(400, why, "the request's first line is no METHOD PATH HTTP/1.1 with a path that begins with '/'");
    if (strlen(target) > TARGET_LIMIT_BYTES)
        return refuse(414, why, "the request's path is too long");
    if (strcmp(version, "HTTP/1.1") != 0)
        return refuse(505, why, "the request is not of HTTP/1.1");
    if (strcmp(line, "GET") != 0 && strcmp(line, "HEAD") != 0 && strcmp(line, "POST") != 0)
        return refuse(405, why, "the request's method is not known: use GET, HEAD or POST");
    head->method = line;
    head->target = target;
    return 0;
}

/* "Name: value" without blanks around the name; those around the value are left away. */
static unsigned parse_header(char *line, struct dashboard_head *head, const char **why)
{
    char *colon = strchr(line, ':'), *value, *end;

    if (colon)
        *colon = '\0';
    if (!colon || !is_token(line))
        return refuse(400, why, "a line of the request's head is no 'Name: value'");
    value = colon + 1 + strspn(colon + 1, " \t");
    end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    for (size_t i = 0; i < HEADER_COUNT; i++) {
        if (strcasecmp(line, header_names[i]) != 0)
            continue;
        if (head->values[i])
            return refuse(400, why, "the request's head says something twice that it may say once");
        head->values[i] = value;
    }
    return 0;
}

static unsigned check(struct dashboard_head *head, const char **why)
{
    const char *length = head->values[HEADER_LENGTH];

    if (head->values[HEADER_ENCODING])
        return refuse(411, why, "say the body's length: Content-Length is needed, and Transfer-Encoding not known");
    if (!head->values[HEADER_HOST])
        return refuse(400, why, "the request does not say which host it is for");
    if (!length)
        return 0;
    if (!*length || strspn(length, "0123456789") != strlen(length))
        return refuse(400, why, "the request's Content-Length is no number");
    head->body_bytes = strlen(length) > 18 ? SIZE_MAX : strtoull(length, NULL, 10);
    if (head->body_bytes > DASHBOARD_BODY_LIMIT_BYTES)
        return refuse(413, why, "the request is too large: at most 32 MiB are taken");
    return 0;
}

unsigned dashboard_head_parse(const char *bytes, size_t length, struct dashboard_head *head, const char **why)
{
    unsigned status;
    char *at, *line;

    *head = (struct dashboard_head){0};
    if (!length || dashboard_head_end(bytes, length) != length)
        return refuse(400, why, "the request's head has no end");
    head->text = at = xstrndup(bytes, length);
    if (strlen(at) != length)
        return refuse(400, why, "the request's head holds a NUL");
    line = next_line(&at);
    status = line ? parse_request_line(line, head, why) : refuse(400, why, "the request is empty");
    while (!status && (line = next_line(&at)))
        status = is_plain(line, strlen(line)) ? parse_header(line, head, why)
                                              : refuse(400, why, "the request's head holds a control character");
    return status ? status : check(head, why);
}

void dashboard_head_release(struct dashboard_head *head)
{
    free(head->text);
    *head = (struct dashboard_head){0};
}

void dashboard_head_write(const struct dashboard_head *head, const char *host, const char *token, struct strbuf *out)
{
    strbuf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", head->method, head->target, host);
    if (token)
        strbuf_printf(out, "Authorization: Bearer %s\r\n", token);
    if (head->values[HEADER_LENGTH])
        strbuf_printf(out, "Content-Length: %zu\r\n", head->body_bytes);
    for (size_t i = HEADER_ACCEPT; i < HEADER_COUNT; i++)
        if (head->values[i])
            strbuf_printf(out, "%s: %s\r\n", header_names[i], head->values[i]);
    strbuf_puts(out, "\r\n");
}

/* Whether a line of the head begins with the name. */
static bool has_header(const char *head, const char *name)
{
    for (const char *line = strstr(head, "\r\n") + 2; *line != '\r'; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            return true;
    return false;
}

bool dashboard_head_protect(const char *bytes, size_t length, struct strbuf *out)
{
    CLEANUP(free_ptr) char *head = xstrndup(bytes, length);

    /* An interim answer (1xx) was not asked for: what follows it would be taken for the body. */
    if (strlen(head) != length || dashboard_head_end(head, length) != length || strncmp(head, "HTTP/1.1 ", 9) != 0 ||
        strspn(head + 9, "0123456789") != 3 || head[9] < '2')
        return false;
    strbuf_append(out, head, length - 2);
    for (size_t i = 0; i < array_size(protections); i++)
        if (!has_header(head, protections[i].name))
            strbuf_printf(out, "%s: %s\r\n", protections[i].name, protections[i].value);
    strbuf_puts(out, "\r\n");
    return true;
}
