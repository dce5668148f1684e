/* Records as JSON text, one line each, written and read by the table `record_fields`. The same record always gives the
 * same bytes, so that stores, golden files and replays can be compared with cmp(1). Format: docs/formats/records.md. */
#ifndef CARMA_API_RECORD_JSON_H
#define CARMA_API_RECORD_JSON_H

#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "core/record.h"

/* Appends the record's text, without a newline. -EINVAL, with nothing appended, for a record that could not be read
 * back. Such a record has an unknown type, a job number above 2^63 - 1, an unterminated or non-UTF-8 text, or too many
 * elements.
 */
int record_json_write(const struct record *record, struct strbuf *out, struct error *err);

/* Reads one text. Every member must be there, of its kind and in its range, and none else: -EINVAL otherwise, with one
 * line that names the member. Members that the record's type does not use are zero. */
int record_json_read(const char *text, size_t length, struct record *record, struct error *err);

#endif
