/* CSV as spreadsheets read it (RFC 4180), of texts that somebody else wrote. */
#ifndef CARMA_CLI_SHOW_CSV_TEXT_H
#define CARMA_CLI_SHOW_CSV_TEXT_H

#include "base/strbuf.h"

/* Appends a field. Control characters become \xNN, so that a row is a line. A text that a spreadsheet would take for a
 * formula (it begins with = + - @, a tab or a blank before one) gets a ' before it. One with a comma or a quote is
 * quoted. NULL: an empty field. UTF-8 stays. */
void csv_put_text(struct strbuf *out, const char *text);

#endif
