"""openapi.py SOCKET HTTP.md: GET /v1/openapi.json has the requests of docs/formats/http.md and no others, the daemon knows each, and
what it answers, refusals included, is as the document says."""

import json
import re
import sys

from unix_http import Connection

VALUES = {"string": str, "integer": int, "boolean": bool, "number": (int, float), "array": list, "object": dict, "null": type(None)}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def ask(method, path, body=None):
    connection = Connection(sys.argv[1], 30)
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read() if answer.getheader("Content-Type") != "text/event-stream" else b""


def check(value, schema, where):
    """Strictly: a member that the schema does not name is an error here, though clients are to bear it."""
    if "$ref" in schema:
        return check(value, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], where)
    if "anyOf" in schema:
        return value is None or check(value, schema["anyOf"][0], where)
    kinds = schema.get("type", list(VALUES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    assert any(isinstance(value, VALUES[kind]) and (kind == "boolean") == isinstance(value, bool) for kind in kinds), (where, value, kinds)
    assert value is None or "enum" not in schema or value in schema["enum"], (where, value)
    assert value is None or schema.get("format") != "date-time" or MOMENT.match(value), (where, value)
    if isinstance(value, list):
        for entry in value:
            check(entry, schema.get("items", {}), where + "[]")
    if isinstance(value, dict) and "type" in schema:
        missing = set(schema.get("required", [])) - set(value)
        assert not missing, (where, missing)
        for name, member in value.items():
            kind = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            assert kind is not None, f"{where}.{name} is not in the document"
            check(member, kind, f"{where}.{name}")
    return True


def documented(text):
    """The requests of its tables: `GET /v1/x`, and `/y` behind it, which takes its last word's place."""
    for line in text.split("\n"):
        method = ""
        for found in re.findall(r"`([^`]*)`", line.split(" | ")[0]) if line.startswith("| `") else ():
            word, _, path = found.partition(" ")
            if word in ("GET", "POST", "PUT") and path.startswith("/"):
                method, last = word, re.split(r"[?\[]", path)[0].replace("ID", "{id}").replace("STEP", "{step}")
            elif method and found.startswith("/"):
                last = last[:last.rindex("/")] + found
            else:
                continue
            yield method, last
        if "so with the others" in line:
            yield from [("POST", f"/v1/jobs/{verb}") for verb in verbs]


status, _, body = ask("GET", "/v1/openapi.json")
document = json.loads(body)
verbs = [path.rsplit("/", 1)[1] for path in document["paths"] if path.startswith("/v1/jobs/{id}/")]
verbs = [verb for verb in verbs if f"/v1/jobs/{verb}" in document["paths"]]
here = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
with open(sys.argv[2], encoding="utf-8") as page:
    there = set(documented(page.read())) - {("GET", "/")}
assert here == there, f"only in the document: {sorted(here - there)}; only in http.md: {sorted(there - here)}"

# What a document's reader would send; to all others nothing, which is refused.
said = {"/v1/jobs": {"jobs": [{"name": "n", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True}] * 2},
        "/v1/jobs/edit?ids=8": {"priority": -1}, "/v1/jobs/8/signal": {"signal": "USR1"}, "/v1/gpus/drain": {"reason": "a test"}, "/v1/gpus/resume": {},
        "/v1/whatif": {"policies": ["exclusive"]}, "/v1/share": {"user": "1", "share": 2}}  # fmt: skip
queries = {"/v1/jobs/8/move": "?to=first", "/v1/stats": "?by=day", "/v1/history": "?limit=2", "/v1/jobs": "?state=all"}
for method, pattern in sorted(here, key=lambda route: (route[0] == "GET", route[1])):  # so that GET finds something
    for part in ("8", "4", "1", "99") if "{id}" in pattern else ("",):
        path = pattern.replace("{id}", part).replace("{step}", "0")
        more = "?ids=8" if method == "POST" and path.startswith("/v1/jobs/") and path.count("/") == 3 else queries.get(path, "") if part in "8" else ""
        body = said.get(path + more, said.get(path)) if method != "GET" else None
        status, kind, text = ask(method, path + more, None if body is None else json.dumps(body))
        where = f"{method} {path}{more}: {status}"
        operation = document["paths"][pattern][method.lower()]
        answer = operation["responses"].get(str(status))
        assert answer, (where, text)
        if "$ref" in answer:
            answer = document["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]
        (media, content), *_ = answer.get("content", {None: None}).items()
        assert media is None or kind.split(";")[0] == media, (where, kind)
        assert media != "application/json" or check(json.loads(text), content["schema"], where)
        assert body is None or status < 300 or part, (where, text)
    status, _, text = ask("DELETE", path)
    known = [word.upper() for word in document["paths"][pattern]]
    assert status == 405 and set(json.loads(text)["error"].split(": use ")[1].split(" or ")) == set(known), (path, text)
# Without a job's spec, or with a member that there is not.
for wrong in ({"jobs": [{"name": 1}]}, {"jobs": [{**said["/v1/jobs"]["jobs"][0], "colour": "red"}]}):
    assert ask("POST", "/v1/jobs", json.dumps(wrong))[0] == 400
