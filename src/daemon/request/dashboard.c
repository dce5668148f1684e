#include "daemon/request/dashboard.h"

#include <string.h>

#include "daemon/request/dashboard_files.h"

/* The page's rights: it may only load these files and ask this server. Texts of jobs that find a way into the page can
 * then neither run nor call. */
#define POLICY                                                                                                         \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "   \
    "form-action 'none'; frame-ancestors 'none'"

static const struct dashboard_file *find(const char *path)
{
    for (size_t i = 0; i < dashboard_file_count; i++)
        if (strcmp(dashboard_files[i].path, path) == 0)
            return &dashboard_files[i];
    return NULL;
}

bool dashboard_has(const char *path)
{
    return find(path);
}

void dashboard_answer(struct http_request *request)
{
    const struct dashboard_file *file = find(request->path);

    if (strcmp(request->method, "GET") != 0) {
        http_reply_error(request, 405, "%s %s is not known: use GET", request->method, request->path);
        return;
    }
    http_reply_file(request, &(struct http_file){
                                 .bytes = file->bytes,
                                 .length = file->length,
                                 .etag = file->etag,
                                 .headers = {{"Content-Type", file->type},
                                             {"Content-Encoding", "gzip"},
                                             {"Content-Security-Policy", POLICY},
                                             {"X-Content-Type-Options", "nosniff"},
                                             {"Referrer-Policy", "no-referrer"}},
                             });
}
