/* Network addresses, as people write them: 127.0.0.1:8471, [::1]:8471. Never a name: nothing here asks a resolver. */
#ifndef CARMA_BASE_NET_ADDRESS_H
#define CARMA_BASE_NET_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

struct address {
    struct sockaddr_storage socket; /* of the family AF_INET or AF_INET6 */
    socklen_t length;
};

/* HOST:PORT with an IP address and a port from 1 to 65535. -EINVAL: not an address. */
int address_parse(const char *text, struct address *address);

#define ADDRESS_TEXT 64 /* room for "[IP]:PORT" */

/* As address_parse reads it; returns text. */
char *address_format(const struct address *address, char text[static ADDRESS_TEXT]);

/* Whether only this machine can reach it. */
bool address_is_loopback(const struct address *address);

/* Whether `text` is an IP address (in brackets where it is of version 6), with or without a port. */
bool address_is_literal(const char *text);

#endif
