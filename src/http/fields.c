#include "http/fields.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct reading {
    size_t bytes;
    bool odd;
    struct http_field *fields;
    size_t count;
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

/* A name that libmicrohttpd has joined with the line folded under it. */
static bool hides(const char *name, const char *hidden)
{
    return strcasestr(name, hidden) && strcasecmp(name, hidden) != 0;
}

static enum MHD_Result on_field(void *closure, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                const char *value, size_t value_length)
{
    struct reading *reading = closure;

    value = value ? value : "";
    reading->bytes += name_length + strlen(": ") + value_length + strlen("\r\n");
    reading->odd |= !is_token(name, name_length) || has_control(value, value_length) ||
                    hides(name, MHD_HTTP_HEADER_CONTENT_LENGTH) || hides(name, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    for (size_t i = 0; i < reading->count; i++)
        if (strcasecmp(name, reading->fields[i].name) == 0) {
            reading->fields[i].value = value;
            reading->fields[i].count++;
        }
    return MHD_YES;
}

bool http_fields_read(struct MHD_Connection *connection, const char *method, size_t target_bytes, const char *version,
                      struct http_field *fields, size_t count)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct reading reading = {.bytes = strlen(method) + 1 + target_bytes + 1 + strlen(version) + 2 * strlen("\r\n"),
                              .fields = fields,
                              .count = count};

    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_field, &reading);
    return !reading.odd && is_token(method, strlen(method)) && reading.bytes == info->header_size;
}

bool http_is_length(const char *value)
{
    return *value && strspn(value, "0123456789") == strlen(value);
}
