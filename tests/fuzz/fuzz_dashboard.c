/* What a browser, or whatever else connects, sends to carma dashboard as a head, and what a daemon answers with. What is
 * accepted is written for the daemon in such a way that it is read there as it was read here, and that nothing else is in it. */
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cli/dashboard/access.h"
#include "cli/dashboard/head.h"
#include "fuzz.h"

/* Lines of the head that begin with the name. */
static size_t lines_of(const char *head, const char *name)
{
    size_t count = 0;

    for (const char *line = head; *line; line = strstr(line, "\r\n") + 2)
        count += strncasecmp(line, name, strlen(name)) == 0;
    return count;
}

static void check_request(const char *bytes, size_t length)
{
    struct dashboard_access access = {.port = 8471, .cookie.text = "c"};
    CLEANUP(strbuf_release) struct strbuf out = {0};
    struct dashboard_head head, again;
    const char *why = NULL;
    unsigned status = dashboard_head_parse(bytes, length, &head, &why);

    if (status) {
        require(status >= 400 && why && *why);
        dashboard_head_release(&head);
        return;
    }
    dashboard_head_write(&head, "carma", NULL, &out);
    require(strlen(out.text) == out.length && dashboard_head_end(out.text, out.length) == out.length);
    require(!lines_of(out.text, "Cookie:") && !lines_of(out.text, "Origin:") && !lines_of(out.text, "Transfer-Encoding:"));
    require(lines_of(out.text, "Host:") == 1 && lines_of(out.text, "Connection:") == 1);
    require(lines_of(out.text, "Content-Length:") == (head.values[HEADER_LENGTH] != NULL));
    require(dashboard_head_parse(out.text, out.length, &again, &why) == 0);
    require(strcmp(head.method, again.method) == 0 && strcmp(head.target, again.target) == 0);
    require(head.body_bytes == again.body_bytes && head.body_bytes <= DASHBOARD_BODY_LIMIT_BYTES);
    if (dashboard_access_judge(&access, &head, &status, &why) == DASHBOARD_REFUSED)
        require(status >= 400 && why);
    else
        require(strstr(head.values[HEADER_HOST], "8471") &&
                (strstr(head.values[HEADER_COOKIE], "carma-8471=c") || strstr(head.target, "/?token=")));
    dashboard_head_release(&head);
    dashboard_head_release(&again);
}

static void check_answer(const char *bytes, size_t length)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};

    if (!dashboard_head_protect(bytes, length, &out))
        return;
    require(dashboard_head_end(out.text, out.length) == out.length);
    require(memcmp(out.text, bytes, length - 2) == 0);
    require(lines_of(out.text, "Content-Security-Policy:") >= 1 && lines_of(out.text, "Cache-Control:") >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    size_t end = dashboard_head_end(text, length);

    require(end <= length);
    check_request(text, end ? end : length);
    check_answer(text, end ? end : length);
    return 0;
}
