/* Names of 0.1 that are still understood: settings, values, options (docs/changes.md). */
#ifndef CARMA_BASE_OLD_NAMES_H
#define CARMA_BASE_OLD_NAMES_H

/* Today's name of `name`; `name` itself where that has not changed. Borrowed. */
const char *present_name(const char *name);

#endif
