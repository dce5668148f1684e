/* A request's head as libmicrohttpd has read it. That is a lenient reader. It takes the first of two lengths, joins
 * folded lines to the header's name, and ends a value at a NUL. Others may read such a head in another way. So a head
 * has to be in the one form that all parsers read alike. It has "Name: value" lines whose bytes add up to the received
 * ones. */
#ifndef CARMA_HTTP_FIELDS_H
#define CARMA_HTTP_FIELDS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct http_field {
    const char *name;
    const char *value; /* of the last one; belongs to the connection */
    unsigned count;    /* of the lines with that name */
};

/* Fills in the fields that are named. `target_bytes` is the length of the target as it was sent. False: the head can be
 * read in two ways. */
bool http_fields_read(struct MHD_Connection *connection, const char *method, size_t target_bytes, const char *version,
                      struct http_field *fields, size_t count);

/* Whether a Content-Length is a number. */
bool http_is_length(const char *value);

#endif
