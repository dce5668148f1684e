/* carmad's own messages while it runs. */
#ifndef CARMA_DAEMON_LOG_H
#define CARMA_DAEMON_LOG_H

/* One line on stderr, with the time; characters that must not be shown (base/text/printable.h) as \xNN. */
void daemon_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
