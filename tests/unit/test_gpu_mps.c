/* The MPS control daemon's two languages: the commands, and answers taken whole or refused. */
#include "unit.h"

#include "base/strbuf.h"
#include "gpu/mps/protocol.h"

/* The whole call: "ARGUMENT ... | input". */
static const char *said(const struct mps_command *command)
{
    static char text[256];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; command->arguments[i]; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s ", command->arguments[i]);
    snprintf(text + length, sizeof text - length, "| %s", command->input);
    return text;
}

TEST(test_words)
{
    struct mps_command command;

    mps_say_probe(MPS_V2, &command);
    assert_string_equal(said(&command), "| get_default_active_thread_percentage\n");
    mps_say_servers(MPS_V2, &command);
    assert_string_equal(said(&command), "| get_server_list\n");
    mps_say_status(MPS_V2, 71, &command);
    assert_string_equal(said(&command), "| get_server_status 71\n");
    mps_say_start(MPS_V2, 1000, &command);
    assert_string_equal(said(&command), "| start_server -uid 1000\n");
    mps_say_shutdown(MPS_V2, 71, &command);
    assert_string_equal(said(&command), "| shutdown_server 71\n");
    mps_say_clients(MPS_V2, 71, &command);
    assert_string_equal(said(&command), "| get_client_list 71\n");
    mps_say_terminate(MPS_V2, 71, 4194304, &command);
    assert_string_equal(said(&command), "| terminate_client 71 4194304\n");
    mps_say_quit(MPS_V2, &command);
    assert_string_equal(said(&command), "| quit\n");

    mps_say_probe(MPS_V3, &command);
    assert_string_equal(said(&command), "server list | ");
    mps_say_status(MPS_V3, 71, &command);
    assert_string_equal(said(&command), "server list | ");
    mps_say_start(MPS_V3, (uid_t)-2, &command);
    assert_string_equal(said(&command), "server create --uid=4294967294 | ");
    mps_say_shutdown(MPS_V3, 71, &command);
    assert_string_equal(said(&command), "server shutdown 71 | ");
    mps_say_clients(MPS_V3, 71, &command);
    assert_string_equal(said(&command), "client list --all | ");
    mps_say_terminate(MPS_V3, 71, 99, &command);
    assert_string_equal(said(&command), "client terminate 71 99 | ");
    mps_say_quit(MPS_V3, &command);
    assert_string_equal(said(&command), "-q | ");
}

static struct mps_pids pids;
static struct error err;

TEST(test_pids)
{
    assert_int_equal(mps_read_servers(MPS_V2, "", &pids, &err), 0);
    assert_int_equal(pids.count, 0);
    assert_int_equal(mps_read_servers(MPS_V2, "\n 6472 \r\n", &pids, &err), 0);
    assert_int_equal(pids.count, 1);
    assert_int_equal(pids.items[0], 6472);
    assert_int_equal(mps_read_clients(MPS_V2, "12\n13\n12\n4194304\n", 6472, &pids, &err), 0);
    assert_int_equal(pids.count, 3); /* one is on two devices */
    assert_int_equal(pids.items[2], 4194304);
}

static void refused(int rc, const char *text)
{
    assert_int_equal(rc, -EPROTO);
    if (!strstr(err.text, text))
        fail_msg("'%s' is not in '%s'", text, err.text);
}

TEST(test_pids_refused)
{
    CLEANUP(strbuf_release) struct strbuf many = {0};

    refused(mps_read_servers(MPS_V2, "Server not found\n", &pids, &err), "'not' where the end of the line");
    refused(mps_read_servers(MPS_V2, "none\n", &pids, &err), "'none' where a process");
    refused(mps_read_servers(MPS_V2, "0\n", &pids, &err), "'0' where a process");
    refused(mps_read_servers(MPS_V2, "-1\n", &pids, &err), "'-1'");
    refused(mps_read_servers(MPS_V2, "4194305\n", &pids, &err), "'4194305'");
    refused(mps_read_servers(MPS_V2, "99999999999999999999999999\n", &pids, &err), "'99999");
    refused(mps_read_servers(MPS_V2, "12\n\033[1m\n", &pids, &err), "'?[1m'");
    for (int i = 1; i <= MPS_MAX_CLIENTS; i++)
        strbuf_printf(&many, "%d\n", i);
    assert_int_equal(mps_read_clients(MPS_V2, many.text, 1, &pids, &err), 0);
    strbuf_printf(&many, "%d\n", MPS_MAX_CLIENTS + 1);
    refused(mps_read_clients(MPS_V2, many.text, 1, &pids, &err), "more than 512");
}

TEST(test_status)
{
    enum mps_server_state server;

    assert_int_equal(mps_read_status(MPS_V2, "ACTIVE\n", 7, &server, &err), 0);
    assert_int_equal(server, MPS_SERVER_ACTIVE);
    assert_int_equal(mps_read_status(MPS_V2, "INITIALIZING\n", 7, &server, &err), 0);
    assert_int_equal(server, MPS_SERVER_INITIALIZING);
    assert_int_equal(mps_read_status(MPS_V2, "FAULT", 7, &server, &err), 0);
    assert_int_equal(server, MPS_SERVER_FAULT);
    refused(mps_read_status(MPS_V2, "", 7, &server, &err), "nothing of server 7");
    refused(mps_read_status(MPS_V2, "Server 7 not found\n", 7, &server, &err), "'Server' where the state");
    refused(mps_read_status(MPS_V2, "ACTIVE\nACTIVE\n", 7, &server, &err), "'ACTIVE' where the end");
    refused(mps_read_status(MPS_V2, "active\n", 7, &server, &err), "'active'");
    refused(mps_read_status(MPS_V2, "Unknown\n", 7, &server, &err), "'Unknown'");
    assert_int_equal(mps_read_status(MPS_V2, "Unknown command \"get_server_status\"\n", 7, &server, &err), -ENOTSUP);
}

TEST(test_tables)
{
    static const char servers[] = "NAME      PID   UID   STATUS\ntrain     71    1000  ACTIVE\nother 72 0 FAULT\n";
    static const char clients[] = "PID  ID SERVER DEVICE             NAMESPACE  COMMAND\n"
                                  "9741 0  71     GPU-cb1213a3-d6a4  4026531836 ./nbody -n 3\n"
                                  "9743 0  72     GPU-cb1213a3-d6a4  4026531836 python\n"
                                  "9741 0  71     GPU-aaaaaaaa-d6a4  4026531836 ./nbody -n 3\n";
    enum mps_server_state server;

    assert_int_equal(mps_read_servers(MPS_V3, servers, &pids, &err), 0);
    assert_int_equal(pids.count, 2);
    assert_int_equal(pids.items[1], 72);
    assert_int_equal(mps_read_status(MPS_V3, servers, 72, &server, &err), 0);
    assert_int_equal(server, MPS_SERVER_FAULT);
    refused(mps_read_status(MPS_V3, servers, 73, &server, &err), "does not list server 73");
    assert_int_equal(mps_read_clients(MPS_V3, clients, 71, &pids, &err), 0);
    assert_int_equal(pids.count, 1);
    assert_int_equal(pids.items[0], 9741);
    assert_int_equal(mps_read_clients(MPS_V3, "PID SERVER\n", 71, &pids, &err), 0);
    assert_int_equal(pids.count, 0);
    refused(mps_read_servers(MPS_V3, "", &pids, &err), "nothing where a list");
    refused(mps_read_servers(MPS_V3, "NAME UID STATUS\n", &pids, &err), "no column PID");
    refused(mps_read_servers(MPS_V3, "NAME PID\ntrain 71\n", &pids, &err), "no column STATUS");
    refused(mps_read_servers(MPS_V3, "PID STATUS\n71\n", &pids, &err), "'' where the state");
    refused(mps_read_clients(MPS_V3, "PID SERVER\n71 GPU-0\n", 71, &pids, &err), "'GPU-0' where a process");
}

/* Each daemon answers one probe and not the other. */
TEST(test_probe)
{
    assert_int_equal(mps_read_probe(MPS_V2, "100.0\n", &err), 0);
    assert_int_equal(mps_read_probe(MPS_V3, "NAME PID UID STATUS\n", &err), 0);
    refused(mps_read_probe(MPS_V2, "", &err), "a percentage");
    refused(mps_read_probe(MPS_V2, "NAME PID UID STATUS\n", &err), "'NAME'");
    refused(mps_read_probe(MPS_V2, "Unknown\n", &err), "'Unknown'");
    refused(mps_read_probe(MPS_V3, "100.0\n", &err), "no column PID");
    refused(mps_read_probe(MPS_V3, "", &err), "nothing");
}

RUN_TESTS(NULL, NULL)
