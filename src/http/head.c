/* Requests that this server refuses, though libmicrohttpd would accept them. */
#include <string.h>
#include <strings.h>

#include "base/net/address.h"
#include "http/fields.h"
#include "http/http_internal.h"

enum { HOST, LENGTH, ENCODING, ORIGIN, AUTHORIZATION, FIELDS };

/* No name that a browser could have looked up: one that leads here may have been pointed here by somebody else's
 * server. */
static bool is_safe_host(const char *host)
{
    static const char *const names[] = {"carma", "localhost"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0 &&
            (!host[length] ||
             (host[length] == ':' && strspn(host + length + 1, "0123456789") == strlen(host + length + 1))))
            return true;
    }
    return address_is_literal(host);
}

/* A body would be kept, and take the space of clients that have the token. */
static bool is_public(const struct http_server *server, const char *path, const struct http_field *length)
{
    return server->options.is_public && server->options.is_public(path) &&
           (!length->count || strspn(length->value, "0") == strlen(length->value));
}

static bool shows_token(const struct http_server *server, const struct http_field *authorization)
{
    static const char scheme[] = "Bearer ";

    return authorization->count == 1 && strncasecmp(authorization->value, scheme, sizeof scheme - 1) == 0 &&
           token_matches(&server->token, authorization->value + sizeof scheme - 1);
}

/* A page that came from here, the dashboard: a browser lets no other page write this server's name as its origin. */
static bool is_own_page(const struct connection *connection, const struct http_field *origin, const char *host)
{
    static const char scheme[] = "http://";

    return connection->peer->tcp && origin->count == 1 && strncmp(origin->value, scheme, sizeof scheme - 1) == 0 &&
           strcasecmp(origin->value + sizeof scheme - 1, host) == 0;
}

unsigned http_refuse_head(struct connection *connection, struct MHD_Connection *mhd_connection, const char *path,
                          const char *method, const char *version, const char **why)
{
    struct http_field fields[FIELDS] = {{.name = MHD_HTTP_HEADER_HOST},
                                        {.name = MHD_HTTP_HEADER_CONTENT_LENGTH},
                                        {.name = MHD_HTTP_HEADER_TRANSFER_ENCODING},
                                        {.name = MHD_HTTP_HEADER_ORIGIN},
                                        {.name = MHD_HTTP_HEADER_AUTHORIZATION}};
    bool plain = http_fields_read(mhd_connection, method, connection->uri_length, version, fields, FIELDS);

    if (fields[ENCODING].count) {
        *why = "say the body's length: Content-Length is needed, and Transfer-Encoding not known";
        return MHD_HTTP_LENGTH_REQUIRED;
    }
    if (!plain || fields[HOST].count != 1 || fields[LENGTH].count > 1 ||
        (fields[LENGTH].count && !http_is_length(fields[LENGTH].value))) {
        *why = "the request's head can be read in two ways: write each line as 'Name: value' and an end of CR LF, with "
               "one Host and at most one Content-Length";
        return MHD_HTTP_BAD_REQUEST;
    }
    if (!is_safe_host(fields[HOST].value)) {
        *why = "the request is for another host: ask for 'localhost' or by an IP address";
        return MHD_HTTP_FORBIDDEN;
    }
    if (fields[ORIGIN].count && !is_own_page(connection, &fields[ORIGIN], fields[HOST].value)) {
        *why = "the request is of a web page from elsewhere (by its Origin): such pages are not answered";
        return MHD_HTTP_FORBIDDEN;
    }
    if (connection->peer->tcp && !is_public(connection->server, path, &fields[LENGTH]) &&
        !shows_token(connection->server, &fields[AUTHORIZATION])) {
        *why = "show the token: 'Authorization: Bearer TOKEN', with the token in carmad's token_file (carma reads it "
               "from the file that CARMA_TOKEN_FILE names)";
        return MHD_HTTP_UNAUTHORIZED;
    }
    return 0;
}

void *http_on_uri(void *closure, const char *uri, struct MHD_Connection *mhd_connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd_connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info->socket_context;

    connection->uri_length = strlen(uri);
    return NULL; /* the context that http_on_request finds */
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* Of %00 nothing is made: it would end the text before its end. */
size_t http_unescape(void *closure, struct MHD_Connection *connection, char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        int value =
            from[0] == '%' && digit(from[1]) >= 0 && digit(from[2]) >= 0 ? digit(from[1]) * 16 + digit(from[2]) : 0;

        *to++ = value ? (char)value : *from;
        from += value ? 2 : 0;
    }
    *to = '\0';
    return (size_t)(to - text);
}
