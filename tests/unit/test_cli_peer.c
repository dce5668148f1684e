/* Whose a connection to the dashboard is, by the kernel's tables. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/dashboard_access.h"

#define UID 12001

/* As a machine of little-endian words shows them, like those that carma is built for. */
static const char tcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:2117 00000000:0000 0A 00000000:00000000 00:00000000 00000000 12001        0 51 1 0 100 0 0 10 0\n"
    "   1: 0100007F:C001 0100007F:2117 01 00000000:00000000 00:00000000 00000000 12001        0 52 1 0 20 4 30 10 -1\n"
    "   2: 0100007F:C002 0100007F:2117 01 00000000:00000000 00:00000000 00000000 12002        0 53 1 0 20 4 30 10 -1\n"
    "   3: 0100007F:C003 0100007F:2117 01 00000000:00000000 00:00000000 00000000     0        0 54 1 0 20 4 30 10 -1\n"
    "   4: 0100007F:C004 0100007F:2117 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n"
    "   5: 0100007F:2117 0100007F:C006 01 00000000:00000000 00:00000000 00000000 12001        0 55 1 0 20 4 30 10 -1\n"
    "   6: 0100007F:C005 0100007F:2118 01 00000000:00000000 00:00000000 00000000 12001        0 56 1 0 20 4 30 10 -1\n"
    "   7: 0100007F:C007 0100007F:2117 01 0000";
static const char tcp6[] =
    "  sl  local_address                         remote_address                        st tx_queue ...\n"
    "   0: 0000000000000000FFFF00000100007F:C008 0000000000000000FFFF00000100007F:2117 01 00000000:00000000 00:00000000 "
    "00000000 12001        0 57 1 0 20 4 30 10 -1\n"
    "   1: 0000000000000000FFFF00000100007F:C009 0000000000000000FFFF00000100007F:2117 01 00000000:00000000 00:00000000 "
    "00000000 12002        0 58 1 0 20 4 30 10 -1\n";

static bool is_of(const char *table, uint16_t port)
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in own = peer;

    own.sin_port = htons(0x2117);
    return dashboard_access_is_of(table, &peer, &own, UID);
}

static void test_own(void **state)
{
    (void)state;
    if (htonl(1) == 1)
        skip();
    assert_true(is_of(tcp, 0xc001));
    assert_true(is_of(tcp, 0xc003)); /* root can do anything anyway */
    assert_true(is_of(tcp6, 0xc008));
}

static void test_others(void **state)
{
    (void)state;
    assert_false(is_of(tcp, 0xc002));
    assert_false(is_of(tcp, 0xc004)); /* nobody's any more */
    assert_false(is_of(tcp, 0xc005)); /* to another port */
    assert_false(is_of(tcp, 0xc006)); /* our own end of it */
    assert_false(is_of(tcp, 0xc007)); /* cut off */
    assert_false(is_of(tcp, 0x2117));
    assert_false(is_of(tcp6, 0xc009));
    assert_false(is_of("", 0xc001));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own), cmocka_unit_test(test_others)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
