/* libmicrohttpd is a lenient reader: it takes the first of two lengths, joins folded lines to the header's name, and ends
 * a value at a NUL. Others between here and the client may read such a head in another way, and then take a part of one
 * request for the next. So a head has to be in the one form that everybody reads alike: "Name: value" lines whose bytes
 * add up to what was received. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "http/http_internal.h"

struct head {
    size_t bytes;
    bool odd; /* something in it is not as it should be */
    bool announces; /* a body */
    unsigned hosts, lengths, encodings, authorizations;
    const char *origin, *host, *authorization;
    unsigned origins;
};

static bool is_token(const char *text, size_t length)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !memchr(others, text[i], sizeof others - 1))
            return false;
    return length > 0;
}

static bool has_control(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return true;
    return false;
}

/* A name that libmicrohttpd has joined with what was folded under it. */
static bool hides(const char *name)
{
    return strcasestr(name, MHD_HTTP_HEADER_CONTENT_LENGTH) || strcasestr(name, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static enum MHD_Result on_header(void *closure, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                 const char *value, size_t value_length)
{
    struct head *head = closure;

    (void)kind;
    value = value ? value : "";
    head->bytes += name_length + strlen(": ") + value_length + strlen("\r\n");
    head->odd |= !is_token(name, name_length) || has_control(value, value_length);
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        head->lengths++;
        head->odd |= !value_length || strspn(value, "0123456789") != value_length;
        head->announces |= strspn(value, "0") != value_length;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        head->encodings++;
    } else if (hides(name)) {
        head->odd = true;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
        head->hosts++;
        head->host = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_ORIGIN) == 0) {
        head->origins++;
        head->origin = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0) {
        head->authorizations++;
        head->authorization = value;
    }
    return MHD_YES;
}

/* No name that a browser could have looked up: one that leads here may have been pointed here by somebody else's server. */
static bool is_safe_host(const char *host)
{
    static const char *const names[] = {"carma", "localhost"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0 &&
            (!host[length] || (host[length] == ':' && strspn(host + length + 1, "0123456789") == strlen(host + length + 1))))
            return true;
    }
    return address_is_literal(host);
}

/* A body would be kept, and take the room of those who have the token. */
static bool is_public(const struct http_server *server, const char *path, const struct head *head)
{
    return server->options.is_public && server->options.is_public(path) && !head->announces;
}

static bool shows_token(const struct http_server *server, const struct head *head)
{
    static const char scheme[] = "Bearer ";

    return head->authorizations == 1 && strncasecmp(head->authorization, scheme, sizeof scheme - 1) == 0 &&
           token_matches(&server->token, head->authorization + sizeof scheme - 1);
}

/* A page that came from here, the dashboard: a browser lets no other page write this server's name as its origin. */
static bool is_own_page(const struct connection *connection, const struct head *head)
{
    static const char scheme[] = "http://";

    return connection->peer->tcp && head->origins == 1 && strncmp(head->origin, scheme, sizeof scheme - 1) == 0 &&
           strcasecmp(head->origin + sizeof scheme - 1, head->host) == 0;
}

unsigned http_refuse_head(struct connection *connection, struct MHD_Connection *mhd_connection, const char *path,
                          const char *method, const char *version, const char **why)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd_connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct head head = {.bytes = strlen(method) + 1 + connection->uri_length + 1 + strlen(version) + 2 * strlen("\r\n")};

    MHD_get_connection_values_n(mhd_connection, MHD_HEADER_KIND, on_header, &head);
    if (head.encodings) {
        *why = "say the body's length: Content-Length is needed, and Transfer-Encoding not known";
        return MHD_HTTP_LENGTH_REQUIRED;
    }
    if (head.odd || head.lengths > 1 || head.hosts != 1 || !is_token(method, strlen(method)) ||
        head.bytes != info->header_size) {
        *why = "the request's head can be read in two ways: write each line as 'Name: value' and an end of CR LF, with one "
               "Host and at most one Content-Length";
        return MHD_HTTP_BAD_REQUEST;
    }
    if (!is_safe_host(head.host)) {
        *why = "the request is for another host: ask for 'localhost' or by an IP address";
        return MHD_HTTP_FORBIDDEN;
    }
    if (head.origins && !is_own_page(connection, &head)) {
        *why = "the request is of a web page from elsewhere (by its Origin): such pages are not answered";
        return MHD_HTTP_FORBIDDEN;
    }
    if (connection->peer->tcp && !is_public(connection->server, path, &head) && !shows_token(connection->server, &head)) {
        *why = "show the token: 'Authorization: Bearer TOKEN', with what carmad's token_file holds (carma reads it from the "
               "file that CARMA_TOKEN_FILE names)";
        return MHD_HTTP_UNAUTHORIZED;
    }
    return 0;
}

void *http_on_uri(void *closure, const char *uri, struct MHD_Connection *mhd_connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd_connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info->socket_context;

    (void)closure;
    connection->uri_length = strlen(uri);
    return NULL; /* what http_on_request finds as its context */
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* Of %00 nothing is made: it would end the text before its end. */
size_t http_unescape(void *closure, struct MHD_Connection *connection, char *text)
{
    char *to = text;

    (void)closure;
    (void)connection;
    for (const char *from = text; *from; from++) {
        int value = from[0] == '%' && digit(from[1]) >= 0 && digit(from[2]) >= 0 ? digit(from[1]) * 16 + digit(from[2]) : 0;

        *to++ = value ? (char)value : *from;
        from += value ? 2 : 0;
    }
    *to = '\0';
    return (size_t)(to - text);
}
