"""GET /v1/events. Usage: events.py follow UID SOCKET    each event as one line of JSON, until the stream ends; UID: the reader
                                                        (another than one's own: as root)
                       events.py job FILE ID NAME     of the followed events: the present value of a job's member NAME ("reason.code")
                       events.py last FILE EVENT      ... the last event of that name, its data
                       events.py names FILE           ... the names of all events, in their order"""

import json
import os
import sys

from unix_http import Connection


def open_stream(path):
    connection = Connection(path)
    connection.request("GET", "/v1/events")
    return connection, connection.getresponse()


def follow(uid, path):
    if int(uid) != os.getuid():
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    _, answer = open_stream(path)
    assert answer.status == 200, answer.read()
    assert answer.getheader("Content-Type") == "text/event-stream", answer.getheaders()
    name = data = None
    while line := answer.readline():  # an end that was cut off raises
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            assert data is None, "data of more than one line"
            data = json.loads(line.removeprefix("data: "))
        elif not line and name:
            print(json.dumps({"event": name, "data": data}), flush=True)
            name = data = None
        else:
            assert not line or line.startswith(":"), line


def followed(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.endswith("\n")]


def job(path, number, name):
    value = None
    for event in followed(path):
        if event["event"] == "jobs":
            for one in event["data"]["jobs"]:
                if one["id"] == int(number):
                    value = one
    for key in name.split("."):
        value = value.get(key, "absent") if value else value
    print(value)


def last(path, name):
    print(json.dumps([event["data"] for event in followed(path) if event["event"] == name][-1]))


def names(path):
    print(*(event["event"] for event in followed(path)))


{"follow": follow, "job": job, "last": last, "names": names}[sys.argv[1]](*sys.argv[2:])
