#!/usr/bin/env python3
"""A daemon that answers as docs/formats/http.md says, from a file: for tests of the command line.

    fake_carmad.py SOCKET ANSWERS.json

ANSWERS.json maps "METHOD /path" to [status, body], or to a list of such pairs, given one after the other (the last one
for ever). body may be the word "close". Then the connection is closed without an answer. POSTed bodies are appended to
ANSWERS.json.posts, one line of JSON each. Prints "ready" once it listens; ends when its standard input does.
"""
import http.server
import json
import os
import re
import socketserver
import sys
import threading

SOCKET, ANSWERS = sys.argv[1:3]
with open(ANSWERS, encoding="utf-8") as file:
    answers = json.load(file)
asked = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        key = f"{self.command} {self.path}"
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.command == "POST":
            with open(ANSWERS + ".posts", "a", encoding="utf-8") as posts:
                posts.write(json.dumps([self.path, json.loads(body) if body else None]) + "\n")
        if key not in answers:  # a part of a list is all of it here
            key = re.sub(r"[?&](limit=\d+|last=\d+|uid=self)", "", key)
        of_no_array = [200, {"jobs": []}] if "array=" in key else None
        given = answers.get(key.replace("&folded", ""), of_no_array or [404, {"error": f"no such thing: {self.path}"}])
        if given and isinstance(given[0], list):
            turn = asked.get(key, 0)
            asked[key] = turn + 1
            given = given[min(turn, len(given) - 1)]
        status, reply = given
        if reply == "close":
            self.close_connection = True
            return
        text = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def until_input_ends(server):
    while os.read(0, 4096):
        pass
    server.shutdown()


with Server(SOCKET, Handler) as listening:
    threading.Thread(target=until_input_ends, args=(listening,), daemon=True).start()
    print("ready", flush=True)
    listening.serve_forever(poll_interval=0.05)
os.unlink(SOCKET)
