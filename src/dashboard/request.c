#include "dashboard/request.h"

#include <stdlib.h>
#include <string.h>

#define TARGET_LIMIT_BYTES (8 << 10)

static const char *const names[FIELD_COUNT] = {
    [FIELD_HOST] = MHD_HTTP_HEADER_HOST,
    [FIELD_ORIGIN] = MHD_HTTP_HEADER_ORIGIN,
    [FIELD_FETCH_SITE] = "Sec-Fetch-Site",
    [FIELD_COOKIE] = MHD_HTTP_HEADER_COOKIE,
    [FIELD_ENCODING] = MHD_HTTP_HEADER_TRANSFER_ENCODING,
    [FIELD_ACCEPT] = MHD_HTTP_HEADER_ACCEPT,
    [FIELD_ACCEPT_ENCODING] = MHD_HTTP_HEADER_ACCEPT_ENCODING,
    [FIELD_CONTENT_TYPE] = MHD_HTTP_HEADER_CONTENT_TYPE,
    [FIELD_IF_MODIFIED_SINCE] = MHD_HTTP_HEADER_IF_MODIFIED_SINCE,
    [FIELD_IF_NONE_MATCH] = MHD_HTTP_HEADER_IF_NONE_MATCH,
    [FIELD_LAST_EVENT_ID] = "Last-Event-ID",
    [FIELD_LENGTH] = MHD_HTTP_HEADER_CONTENT_LENGTH,
};

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

unsigned dashboard_request_read(struct dashboard_request *request, struct MHD_Connection *connection,
                                const char *method, const char *target, const char *version, const char **why)
{
    const char *length;
    bool plain;

    *request = (struct dashboard_request){.method = method, .target = target};
    for (size_t i = 0; i < FIELD_COUNT; i++)
        request->fields[i].name = names[i];
    plain = http_fields_read(connection, method, strlen(target), version, request->fields, FIELD_COUNT);
    if (request->fields[FIELD_ENCODING].count)
        return refuse(MHD_HTTP_LENGTH_REQUIRED, why,
                      "say the body's length: Content-Length is needed, and Transfer-Encoding not known");
    for (size_t i = 0; i < FIELD_COUNT; i++)
        plain &= request->fields[i].count <= 1;
    length = request->fields[FIELD_LENGTH].value;
    if (!plain || !request->fields[FIELD_HOST].count || !is_target(target) || (length && !http_is_length(length)))
        return refuse(
            MHD_HTTP_BAD_REQUEST, why,
            "the request's head can be read in two ways: write each line as 'Name: value' and an end of CR LF, with "
            "one Host and at most one of any other");
    if (strlen(target) > TARGET_LIMIT_BYTES)
        return refuse(MHD_HTTP_URI_TOO_LONG, why, "the request's path is too long");
    if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
        return refuse(MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED, why, "the request is not of HTTP/1.1");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 && strcmp(method, "POST") != 0)
        return refuse(MHD_HTTP_METHOD_NOT_ALLOWED, why, "the request's method is not known: use GET, HEAD or POST");
    if (length && strtoull(length, NULL, 10) > DASHBOARD_BODY_LIMIT_BYTES)
        return refuse(MHD_HTTP_CONTENT_TOO_LARGE, why, "the request is too large: at most 16 MiB are taken");
    return 0;
}

void dashboard_request_write(const struct dashboard_request *request, const char *host, const char *token,
                             struct strbuf *out)
{
    strbuf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", request->method, request->target, host);
    if (token)
        strbuf_printf(out, "Authorization: Bearer %s\r\n", token);
    for (size_t i = FIELD_ACCEPT; i < FIELD_COUNT; i++)
        if (request->fields[i].count)
            strbuf_printf(out, "%s: %s\r\n", names[i], request->fields[i].value);
    strbuf_puts(out, "\r\n");
}
