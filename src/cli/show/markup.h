/* Text within XML or HTML, and within their attributes in double quotes. */
#ifndef CARMA_CLI_SHOW_MARKUP_H
#define CARMA_CLI_SHOW_MARKUP_H

#include "base/strbuf.h"

void markup_append(struct strbuf *out, const char *text);

#endif
