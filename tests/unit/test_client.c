/* The client library against src/http, and against servers that answer oddly. */
#include "unit.h"

#include "client/client.h"
#include "client/http1.h"
#include "http_fixture.h"

static struct http_fixture fixture;

/* A test's client and what it says last. */
static struct client *client;
static json_t *reply;
static int status;

static int setup(void **state)
{
    client = NULL;
    trouble = (struct error){{0}};
    reply = NULL;
    status = 0;
    return http_fixture_prepare(&fixture);
}

static int teardown(void **state)
{
    json_decref(reply);
    client_free(client);
    return http_fixture_remove(&fixture);
}

#define CLIENT_TEST(name) TEST_BETWEEN(name, setup, teardown)

static void start(void)
{
    fail_if(http_fixture_start(&fixture, &trouble), trouble);
}

static void open_client(void)
{
    client_free(client);
    client = NULL;
    fail_if(client_open(fixture.path, &client, &trouble), trouble);
    client_set_timeout(client, 10000);
}

/* The reply is released with the next call. */
static int try(const char *method, const char *path, json_t *body)
{
    json_decref(reply);
    return client_call(client, method, path, body, &status, &reply, &trouble);
}

static void call(const char *method, const char *path, json_t *body, int expected)
{
    if (try(method, path, body))
        fail_msg("%s %s: %s", method, path, trouble.text);
    assert_int_equal(status, expected);
    json_decref(body);
}

CLIENT_TEST(test_calls)
{
    json_t *sent = json_pack("{s:s, s:[i, n]}", "text", "é\"\n", "list", 7);
    CLEANUP(free_ptr) char *text = json_dumps(sent, JSON_COMPACT);

    start();
    open_client();
    call("POST", "/echo?state=all", sent, 200);
    assert_string_equal(json_string_value(json_object_get(reply, "method")), "POST");
    assert_string_equal(json_string_value(json_object_get(reply, "path")), "/echo");
    assert_string_equal(json_string_value(json_object_get(reply, "state")), "all");
    assert_string_equal(json_string_value(json_object_get(reply, "body")), text);
    call("GET", "/later", NULL, 200);
    assert_int_equal(json_integer_value(json_object_get(reply, "length")), 0);
    call("POST", "/echo", NULL, 200);
    call("GET", "/big?bytes=9000000", NULL, 200);
    assert_int_equal(json_string_length(json_object_get(reply, "text")), 9000000);
}

static void assert_not_opened(const char *place, int code, const char *says)
{
    struct client *none = NULL;

    assert_int_equal(client_open(place, &none, &trouble), code);
    assert_null(none);
    assert_has(trouble.text, says);
}

CLIENT_TEST(test_tcp)
{
    assert_int_equal(http_fixture_add_tcp(&fixture), 0);
    CLEANUP(free_ptr) char *place = xasprintf("tcp://%s", fixture.tcp_address);
    start();
    unsetenv("CARMA_TOKEN_FILE");
    assert_not_opened(place, -EACCES, "CARMA_TOKEN_FILE");
    setenv("CARMA_TOKEN_FILE", fixture.token_path, 1);
    assert_not_opened("tcp://localhost:80", -EINVAL, "write an IP address and a port");
    chmod(fixture.token_path, 0644);
    assert_not_opened(place, -EPERM, "chmod 600");
    chmod(fixture.token_path, 0600);
    fail_if(client_open(place, &client, &trouble), trouble);
    call("POST", "/echo", json_pack("{s:i}", "a", 1), 200);
    assert_string_equal(json_string_value(json_object_get(reply, "body")), "{\"a\":1}");
    assert_int_equal(json_integer_value(json_object_get(reply, "uid")), getuid());
    http_fixture_stop(&fixture);
    assert_not_opened(place, -ECONNREFUSED, "no daemon listens there");
    unsetenv("CARMA_TOKEN_FILE");
}

CLIENT_TEST(test_check)
{
    static const struct {
        int status;
        int code;
    } cases[] = {{400, -EINVAL}, {401, -EACCES}, {403, -EPERM},  {404, -ENOENT}, {409, -EBUSY},
                 {413, -EFBIG},  {422, -ERANGE}, {503, -EAGAIN}, {500, -EIO}};

    start();
    open_client();
    for (size_t i = 0; i < array_size(cases); i++) {
        char path[64];

        snprintf(path, sizeof path, "/fail?status=%d", cases[i].status);
        call("GET", path, NULL, cases[i].status);
        assert_int_equal(client_check(cases[i].status, reply, &trouble), cases[i].code);
        assert_string_equal(trouble.text, "/fail: no such thing");
    }
    assert_int_equal(client_check(201, NULL, &trouble), 0);
    assert_error(client_check(502, NULL, &trouble), -EIO, "502");
}

CLIENT_TEST(test_no_daemon)
{
    assert_int_equal(client_open(fixture.path, &client, &trouble), -ECONNREFUSED);
    assert_null(client);
    assert_non_null(strstr(trouble.text, fixture.path));
    assert_non_null(strstr(trouble.text, "`carmad`"));
    assert_null(strchr(trouble.text, '\n'));
    setenv("CARMA_SOCKET", fixture.path, 1);
    start();
    assert_int_equal(client_open(NULL, &client, &trouble), 0);
    assert_string_equal(client_socket(client), fixture.path);
    unsetenv("CARMA_SOCKET");
}

/* Where $CARMA_SOCKET does not say: in a child, so that root can become somebody with a runtime directory. */
CLIENT_TEST(test_default_socket)
{
    CLEANUP(free_ptr) char *expected = xasprintf("%s/carma/carma.sock", fixture.directory);
    CLEANUP(free_ptr) char *link = xasprintf("%s/carma", fixture.directory);
    int ended;

    start();
    assert_int_equal(symlink(".", link), 0);
    assert_int_equal(chmod(fixture.directory, 0755), 0);
    pid_t child = fork();
    if (!child) {
        unsetenv("CARMA_SOCKET");
        setenv("XDG_RUNTIME_DIR", fixture.directory, 1);
        if (geteuid() == 0 && setuid(65534) < 0)
            _exit(1);
        int rc = client_open(NULL, &client, NULL);
        _exit(rc == 0 && strcmp(client_socket(client), expected) == 0 ? 42 : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 42);
    unlink(link);
}

/* The daemon was started anew between two calls: the second does not notice, a POST included. */
CLIENT_TEST(test_reconnects)
{
    start();
    open_client();
    call("GET", "/echo", NULL, 200);
    http_fixture_stop(&fixture);
    start();
    call("POST", "/echo", json_object(), 200);
    assert_int_equal(fixture.handled, 2);
}

CLIENT_TEST(test_stopped_while_waiting)
{
    start();
    open_client();
    client_set_timeout(client, 100);
    assert_error(try("GET", "/never", NULL), -ETIMEDOUT, fixture.path);
    assert_null(reply);
    client_set_timeout(client, 10000);
    call("GET", "/echo", NULL, 200);
    http_fixture_stop(&fixture);
    assert_int_equal(try("GET", "/echo", NULL), -ECONNREFUSED);
}

/* The server refuses before it has read all: its word is heard all the same. */
CLIENT_TEST(test_too_large)
{
    size_t length = HTTP_BODY_LIMIT_BYTES + 1000000;
    CLEANUP(free_ptr) char *big = xmalloc(length + 1);

    start();
    memset(big, 'x', length);
    big[length] = '\0';
    open_client();
    for (int i = 0; i < 2; i++) {
        call("POST", "/echo", json_pack("[s]", big), 413);
        assert_error(client_check(413, reply, &trouble), -EFBIG, "too large");
        call("GET", "/echo", NULL, 200);
    }
}

/* A server of one listening socket that plays one line of `answers` a connection, each answer after a request. */
struct script {
    const char *answers[4][3];
    int connections;
    int requests;
    int listen_fd;
    pthread_t thread;
};

static void *play(void *user)
{
    struct script *script = user;

    for (; script->answers[script->connections][0]; script->connections++) {
        const char *const *answers = script->answers[script->connections];
        CLEANUP(close_fd) int fd = accept(script->listen_fd, NULL, NULL);

        for (int i = 0; i < 3 && answers[i]; i++) {
            char request[4096];

            if (recv(fd, request, sizeof request, 0) > 0)
                script->requests++;
            for (const char *at = answers[i]; *at; at++) { /* in the smallest pieces */
                send(fd, at, 1, MSG_NOSIGNAL);
            }
        }
    }
    return NULL;
}

static void start_script(struct script *script)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, fixture.path, strlen(fixture.path) + 1);
    script->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(script->listen_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(script->listen_fd, 5), 0);
    assert_int_equal(pthread_create(&script->thread, NULL, play, script), 0);
}

static void end_script(struct script *script)
{
    pthread_join(script->thread, NULL);
    close(script->listen_fd);
    unlink(fixture.path);
}

#define OK(body) "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" body

/* The connection dies just as the second request is read: a GET is sent again, a POST never. */
CLIENT_TEST(test_never_twice)
{
    struct script get = {.answers = {{OK("[]"), ""}, {OK("{}")}}};
    struct script post = {.answers = {{OK("[]"), ""}}};
    struct script dying = {.answers = {{""}, {""}}};
    json_t *body = json_object();

    start_script(&get);
    open_client();
    call("GET", "/a", NULL, 200);
    call("GET", "/a", NULL, 200);
    assert_true(json_is_object(reply));
    end_script(&get);
    assert_int_equal(get.requests, 3);

    start_script(&post);
    open_client();
    call("POST", "/a", json_object(), 200);
    assert_error(try("POST", "/a", body), -ECONNRESET, "not known");
    end_script(&post);
    assert_int_equal(post.requests, 2);

    start_script(&dying);
    open_client();
    assert_int_equal(try("GET", "/a", NULL), -ECONNRESET);
    end_script(&dying);
    assert_int_equal(dying.requests, 2);
    json_decref(body);
}

static const struct {
    const char *answer;
    int rc;
    int status;
    const char *json; /* NULL: none */
} answers_rows[] = {
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1;x=y\r\n,\r\n2\r\n2]\r\n0\r\nX: y\r\n\r\n", 0,
     200, "[1,2]"},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length:  4 \r\n\r\n[ 1]", 0, 201, "[1]"},
    {"HTTP/1.0 200 OK\r\n\r\n[3]", 0, 200, "[3]"},
    {"HTTP/1.1 404 Not Found\nContent-Length: 6\n\n<html>", 0, 404, NULL},
    {"HTTP/1.1 204 No Content\r\n\r\n", 0, 204, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n[1", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Le", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\n[]", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n[]", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n[]", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n[]", -EMSGSIZE, 0, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000001\r\n", -EMSGSIZE, 0, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", -EMSGSIZE, 0, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]x\r\n0\r\n\r\n", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", -EPROTO, 0, NULL},
    {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", -EPROTO, 0, NULL},
    {"HTTP/2 200\r\n\r\n", -EPROTO, 0, NULL},
    {"HTTP/1.1 abc\r\n\r\n", -EPROTO, 0, NULL},
    {"SSH-2.0-OpenSSH\r\n", -EPROTO, 0, NULL},
};

EACH_ROW(CLIENT_TEST, test_answers, answers_rows)
{
    struct script script = {.answers = {{row->answer}}};

    start_script(&script);
    open_client();
    int rc = try("GET", "/", NULL);
    if (rc != row->rc || (!rc && status != row->status))
        fail_msg("%s: %d %d %s", row->answer, rc, status, trouble.text);
    assert_int_equal(reply == NULL, row->json == NULL);
    if (reply) {
        CLEANUP(free_ptr) char *text = json_dumps(reply, JSON_COMPACT);

        assert_string_equal(text, row->json);
    }
    end_script(&script);
}

/* An endless header is given up; bytes of any kind never crash the parser. */
TEST(test_hostile_answers)
{
    struct http1_reply parsed;
    uint64_t random = 88172645463325252;
    char line[1024];
    int rc = 0;

    memset(line, 'h', sizeof line);
    http1_reply_init(&parsed, 1000);
    assert_int_equal(http1_reply_feed(&parsed, "HTTP/1.1 200 OK\r\n", 17, &trouble), 0);
    for (int i = 0; i < 200 && !rc; i++)
        rc = http1_reply_feed(&parsed, i % 2 ? line : "A: b\r\n", i % 2 ? sizeof line : 6, &trouble);
    assert_int_equal(rc, -EPROTO);
    http1_reply_release(&parsed);
    for (int round = 0; round < 5000; round++) {
        static const char *const pieces[] = {"HTTP/1.1 200 OK\r\n",
                                             "\r\n",
                                             "Content-Length: 5\r\n",
                                             "abc",
                                             "5\r\n",
                                             "0\r\n",
                                             "Transfer-Encoding: chunked\r\n",
                                             "\n",
                                             ":",
                                             "\xff",
                                             "HTTP/1.1 100 x\r\n\r\n"};

        http1_reply_init(&parsed, 20);
        for (int i = 0; i < 12; i++) {
            const char *piece = pieces[(random ^= random << 13, random ^= random >> 7, random ^= random << 17) %
                                       (i ? array_size(pieces) : 2)];

            if (http1_reply_feed(&parsed, piece, strlen(piece), &trouble))
                break;
        }
        http1_reply_close(&parsed, &trouble);
        assert_true(parsed.body.length <= 20);
        http1_reply_release(&parsed);
    }
}
