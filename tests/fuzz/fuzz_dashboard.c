/* A request's head as carma dashboard judges it: who is accepted has shown the token or its cookie, for this host. */
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "dashboard/access.h"
#include "fuzz.h"

/* "METHOD TARGET", then lines "Name: value"; nothing of this is the server's way to read one. */
static void read_head(char *text, struct dashboard_request *request)
{
    static const struct {
        const char *name;
        enum dashboard_field field;
    } known[] = {{"Host: ", FIELD_HOST},
                 {"Origin: ", FIELD_ORIGIN},
                 {"Sec-Fetch-Site: ", FIELD_FETCH_SITE},
                 {"Cookie: ", FIELD_COOKIE}};
    char *rest, *line = strtok_r(text, "\r\n", &rest), *target = line ? strchr(line, ' ') : NULL;

    *request = (struct dashboard_request){.method = "GET", .target = "/"};
    request->fields[FIELD_HOST].value = "";
    if (target) {
        *target = '\0';
        request->method = line;
        request->target = target + 1;
    }
    for (line = strtok_r(NULL, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest))
        for (size_t i = 0; i < array_size(known); i++)
            if (strncasecmp(line, known[i].name, strlen(known[i].name)) == 0)
                request->fields[known[i].field] =
                    (struct http_field){.value = line + strlen(known[i].name), .count = 1};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct dashboard_access access = {.port = 8471, .cookie.text = "c", .token.text = "t"};
    CLEANUP(free_ptr) char *text = xstrndup((const char *)bytes, length);
    struct dashboard_request request;
    const char *why = NULL;
    unsigned status = 0;

    if (!length)
        return 0;
    read_head(text, &request);
    if (dashboard_access_judge(&access, &request, &status, &why) == DASHBOARD_REFUSED)
        require(status >= 400 && why && *why);
    else
        require(strstr(request.fields[FIELD_HOST].value, ":8471") &&
                ((request.fields[FIELD_COOKIE].value && strstr(request.fields[FIELD_COOKIE].value, "carma-8471=c")) ||
                 strcmp(request.target, "/?token=t") == 0));
    return 0;
}
