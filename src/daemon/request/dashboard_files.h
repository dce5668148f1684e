/* The files of the dashboard, as web/embed.py puts them into the program. */
#ifndef CARMA_DAEMON_REQUEST_DASHBOARD_FILES_H
#define CARMA_DAEMON_REQUEST_DASHBOARD_FILES_H

#include <stddef.h>

struct dashboard_file {
    const char *path; /* as it is asked for: "/app.js" */
    const char *type;
    const char *etag;           /* with its quotes; another for other content */
    const unsigned char *bytes; /* compressed by gzip */
    size_t length;
};

extern const struct dashboard_file dashboard_files[];
extern const size_t dashboard_file_count;

#endif
