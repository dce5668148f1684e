/* The MPS control daemon's language: the commands, and answers taken whole or refused. */
#include "unit.h"

#include "gpu/mps/protocol.h"
#include "gpu/mps/server_log.h"

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

    mps_say_probe(&command);
    assert_string_equal(said(&command), "| get_default_active_thread_percentage\n");
    mps_say_servers(&command);
    assert_string_equal(said(&command), "| get_server_list\n");
    mps_say_status(71, &command);
    assert_string_equal(said(&command), "| get_server_status 71\n");
    mps_say_start(1000, &command);
    assert_string_equal(said(&command), "| start_server -uid 1000\n");
    mps_say_shutdown(71, &command);
    assert_string_equal(said(&command), "| shutdown_server 71\n");
    mps_say_clients(71, &command);
    assert_string_equal(said(&command), "| get_client_list 71\n");
    mps_say_terminate(71, 4194304, &command);
    assert_string_equal(said(&command), "| terminate_client 71 4194304\n");
    mps_say_quit(&command);
    assert_string_equal(said(&command), "| quit\n");
}

static struct mps_pids pids;

TEST(test_pids)
{
    assert_int_equal(mps_read_servers("", &pids, &trouble), 0);
    assert_int_equal(pids.count, 0);
    assert_int_equal(mps_read_servers("\n 6472 \r\n", &pids, &trouble), 0);
    assert_int_equal(pids.count, 1);
    assert_int_equal(pids.items[0], 6472);
    assert_int_equal(mps_read_clients("12\n13\n12\n4194304\n", &pids, &trouble), 0);
    assert_int_equal(pids.count, 3); /* one is on two devices */
    assert_int_equal(pids.items[2], 4194304);
}

static void refused(int rc, const char *text)
{
    assert_int_equal(rc, -EPROTO);
    assert_has(trouble.text, text);
}

TEST(test_pids_refused)
{
    CLEANUP(strbuf_release) struct strbuf many = {0};

    refused(mps_read_servers("Server not found\n", &pids, &trouble), "'not' where the end of the line");
    refused(mps_read_servers("none\n", &pids, &trouble), "'none' where a process");
    refused(mps_read_servers("0\n", &pids, &trouble), "'0' where a process");
    refused(mps_read_servers("-1\n", &pids, &trouble), "'-1'");
    refused(mps_read_servers("4194305\n", &pids, &trouble), "'4194305'");
    refused(mps_read_servers("99999999999999999999999999\n", &pids, &trouble), "'99999");
    refused(mps_read_servers("12\n\033[1m\n", &pids, &trouble), "'?[1m'");
    for (int i = 1; i <= MPS_MAX_CLIENTS; i++)
        strbuf_printf(&many, "%d\n", i);
    assert_int_equal(mps_read_clients(many.text, &pids, &trouble), 0);
    strbuf_printf(&many, "%d\n", MPS_MAX_CLIENTS + 1);
    refused(mps_read_clients(many.text, &pids, &trouble), "more than 512");
}

TEST(test_status)
{
    enum mps_server_state server;

    assert_int_equal(mps_read_status("ACTIVE\n", 7, &server, &trouble), 0);
    assert_int_equal(server, MPS_SERVER_ACTIVE);
    assert_int_equal(mps_read_status("INITIALIZING\n", 7, &server, &trouble), 0);
    assert_int_equal(server, MPS_SERVER_INITIALIZING);
    assert_int_equal(mps_read_status("FAULT", 7, &server, &trouble), 0);
    assert_int_equal(server, MPS_SERVER_FAULT);
    refused(mps_read_status("", 7, &server, &trouble), "nothing of server 7");
    refused(mps_read_status("Server 7 not found\n", 7, &server, &trouble), "'Server' where the state");
    refused(mps_read_status("ACTIVE\nACTIVE\n", 7, &server, &trouble), "'ACTIVE' where the end");
    refused(mps_read_status("active\n", 7, &server, &trouble), "'active'");
    refused(mps_read_status("Unknown\n", 7, &server, &trouble), "'Unknown'");
    assert_int_equal(mps_read_status("Unknown command \"get_server_status\"\n", 7, &server, &trouble), -ENOTSUP);
}

TEST(test_probe)
{
    assert_int_equal(mps_read_probe("100.0\n", &trouble), 0);
    refused(mps_read_probe("", &trouble), "a percentage");
    refused(mps_read_probe("name,uid,pid,status\n", &trouble), "'name,uid,pid,status'"); /* as of version 3 */
    refused(mps_read_probe("Unknown\n", &trouble), "'Unknown'");
}

/* The first are a server's of drivers 470 to 580; the words of a refusal are assumed. */
static const struct {
    const char *text;
    enum mps_log_says says;
    pid_t client;
} a_servers_log[] = {
    {"Client process 4267 encountered a fatal GPU error.", MPS_LOG_FATAL, 4267},
    {"Client {4267, 1} exit", MPS_LOG_NOTHING, 0},
    {"Client {PID: 4267, Context ID: 0} connected", MPS_LOG_NOTHING, 0},
    {"Client 14777 disconnected", MPS_LOG_NOTHING, 0},
    {"Server is handling a fatal GPU error.", MPS_LOG_NOTHING, 0},
    {"MPS client failed to allocate space to hold host reservation blocks", MPS_LOG_NOTHING, 0},
    {"Device pinned memory limit for device 0 set to 0x140000000 bytes", MPS_LOG_NOTHING, 0},
    {"Internal error when allocating 4096 bytes", MPS_LOG_NOTHING, 0},
    {"Client process 12 failed to allocate device memory: out of memory", MPS_LOG_REFUSED, 12},
    {"Client {PID: 12, Context ID: 0} exceeded its device memory limit", MPS_LOG_REFUSED, 12},
    {"Client {12, 0}: pinned memory limit reached", MPS_LOG_REFUSED, 12},
    {"Client process 12 failed to allocate host memory", MPS_LOG_NOTHING, 0},
    {"Client process 0 is out of memory", MPS_LOG_NOTHING, 0},
    {"Client process 99999999999 is out of memory", MPS_LOG_NOTHING, 0},
    {"out of memory", MPS_LOG_NOTHING, 0},
};

EACH_ROW(TEST, test_a_servers_log, a_servers_log)
{
    CLEANUP(free_ptr) char *line = xasprintf("[2026-04-28 18:20:41.986 Server 4428] %s", row->text);
    pid_t client = 0;
    enum mps_log_says says = mps_log_read_line(line, strlen(line), &client);
    if (says != row->says || (says != MPS_LOG_NOTHING && client != row->client))
        fail_msg("%s: %d of %d", row->text, says, (int)client);
    assert_int_equal(mps_log_read_line(row->text, strlen(row->text), &client), MPS_LOG_NOTHING);
}

static void writes(const char *directory, const char *mode, const char *text, int repeat)
{
    CLEANUP(free_ptr) char *path = xasprintf("%s/server.log", directory);
    FILE *file = fopen(path, mode);

    assert_non_null(file);
    while (repeat-- > 0)
        fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

TEST(test_new_lines_of_the_log)
{
    static const char line[] = "[t Server 1] Client process 7 encountered a fatal GPU error.\n";
    char directory[] = "/tmp/carma-test-XXXXXX";
    struct mps_log log = {0};

    assert_non_null(mkdtemp(directory));
    CLEANUP(free_ptr) char *path = xasprintf("%s/server.log", directory);
    writes(directory, "w", line, 3);
    assert_int_equal(mps_log_look(&log, directory, 1), 0); /* old */
    writes(directory, "a", line, 2);
    writes(directory, "a", "[t Server 1] Client process 8 is out", 1);
    assert_int_equal(mps_log_look(&log, directory, 2), 2);
    writes(directory, "a", " of memory\n", 1);
    assert_int_equal(mps_log_look(&log, directory, 3), 1);
    assert_int_equal(log.words[2].client, 8);
    assert_int_equal(log.words[2].at_ns, 3);
    assert_int_equal(mps_log_look(&log, directory, 4), 0);
    writes(directory, "w", line, 1); /* begun anew */
    assert_int_equal(mps_log_look(&log, directory, 5), 1);
    writes(directory, "a", line, 100000); /* the last of them */
    assert_in_range(mps_log_look(&log, directory, 6), 1, 64 * 1024 / (sizeof line - 1));
    assert_int_equal(mps_log_look(&log, directory, 7), 0);
    writes(directory, "a", line, 1);
    assert_int_equal(chmod(path, 0646), 0); /* anybody may have written it */
    assert_int_equal(mps_log_look(&log, directory, 8), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(mps_log_look(&log, directory, 9), 0);
    unlink(path);
    rmdir(directory);
}
