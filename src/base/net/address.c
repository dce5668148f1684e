#include "base/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits alone, 1 to 65535; 0: not a port. */
static unsigned parse_port(const char *text)
{
    size_t length = strspn(text, "0123456789");
    long port = length >= 1 && length <= 5 && !text[length] ? strtol(text, NULL, 10) : 0;

    return port <= 65535 ? (unsigned)port : 0;
}

/* The host without brackets in `host`, and the text behind it. NULL: it cannot be a host. */
static const char *split_host(const char *text, char host[static INET6_ADDRSTRLEN], int *family)
{
    bool bracketed = *text == '[';
    const char *begin = text + bracketed;
    size_t length = strcspn(begin, bracketed ? "]" : ":");

    if (length >= INET6_ADDRSTRLEN || (bracketed && begin[length] != ']'))
        return NULL;
    memcpy(host, begin, length);
    host[length] = '\0';
    *family = bracketed ? AF_INET6 : AF_INET;
    return begin + length + bracketed;
}

int address_parse(const char *text, struct address *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address->socket;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->socket;
    char host[INET6_ADDRSTRLEN];
    int family;
    const char *rest = split_host(text, host, &family);
    unsigned port = rest && *rest == ':' ? parse_port(rest + 1) : 0;

    *address = (struct address){0};
    if (!port || inet_pton(family, host, family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr) != 1)
        return -EINVAL;
    address->socket.ss_family = (sa_family_t)family;
    if (family == AF_INET) {
        v4->sin_port = htons((uint16_t)port);
        address->length = sizeof *v4;
    } else {
        v6->sin6_port = htons((uint16_t)port);
        address->length = sizeof *v6;
    }
    return 0;
}

char *address_format(const struct address *address, char text[static ADDRESS_TEXT])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->socket;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->socket;
    bool six = address->socket.ss_family == AF_INET6;
    char host[INET6_ADDRSTRLEN] = "";

    inet_ntop(six ? AF_INET6 : AF_INET, six ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, host,
              sizeof host);
    snprintf(text, ADDRESS_TEXT, six ? "[%s]:%u" : "%s:%u", host, ntohs(six ? v6->sin6_port : v4->sin_port));
    return text;
}

bool address_is_loopback(const struct address *address)
{
    if (address->socket.ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)&address->socket)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->socket)->sin6_addr);
}

bool address_is_literal(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char host[INET6_ADDRSTRLEN];
    int family;
    const char *rest = split_host(text, host, &family);

    return rest && inet_pton(family, host, bytes) == 1 && (!*rest || (*rest == ':' && parse_port(rest + 1)));
}
