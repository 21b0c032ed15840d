"""A small MCP server on standard streams. Its first argument says how it behaves."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

mode = sys.argv[1] if len(sys.argv) > 1 else "legacy"
lock = threading.Lock()
seen = []          # every notification that came in
answers = {}       # answers to our own questions, by id
held = []          # calls that wait for "release"
subscribed = []
META = "io.modelcontextprotocol/"


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(method, params):
    """Asks the client and waits for the answer."""
    key = f"q{len(answers)}-{time.monotonic_ns()}"
    box = answers[key] = {"event": threading.Event()}
    send({"id": key, "method": method, "params": params})
    box["event"].wait(20)
    return box.get("message")


def text(value):
    return {"resultType": "complete", "content": [{"type": "text", "text": json.dumps(value)}]}


def call(message):
    params = message["params"]
    arguments = params.get("arguments", {})
    name = params["name"]
    if name == "echo":
        return {"content": [], "echo": params, "vendor": {"big": 12345678901234567890}, "structuredContent": None}
    if name == "sleep":
        time.sleep(arguments["ms"] / 1000)
        return text(arguments)
    if name == "hold":
        held.append(message["id"])
        return None
    if name == "release":
        for at, id in enumerate(reversed(held)):
            send({"id": id, "result": {"content": [], "at": at}})
        held.clear()
        return text("released")
    if name == "seen":
        return text(seen)
    if name == "pid":
        return text(os.getpid())
    if name == "die":
        os._exit(3)
    if name == "env":
        return text(dict(os.environ))
    if name == "say":
        print(arguments["text"], file=sys.stderr, flush=True)
        return text("said")
    if name == "rubbish":
        with lock:
            for n in range(arguments["lines"] // 1000):
                sys.stdout.write("".join(f"rubbish {n} {m} }}{{\n" for m in range(1000)))
            sys.stdout.flush()
        return text("through")
    if name == "flood":
        with lock:
            for _ in range(arguments["megabytes"]):
                sys.stdout.write("x" * (1 << 20))
            sys.stdout.write("\n")
            sys.stdout.flush()
        return text("through")
    if name == "offspring":
        # One that stays, and one that leaves the group and the session.
        here = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        away = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                start_new_session=True)
        return text([os.getpid(), here.pid, away.pid])
    if name == "open":
        try:
            with open(arguments["path"], arguments.get("mode", "r")) as file:
                return text(file.read() if file.readable() else file.write("written"))
        except OSError as error:
            return text({"error": type(error).__name__})
    if name == "connect":
        try:
            socket.create_connection(("127.0.0.1", arguments["port"]), 5).close()
            return text("connected")
        except OSError as error:
            return text({"error": type(error).__name__})
    if name == "progress":
        for n in (1, 2, 3):
            send({"method": "notifications/progress", "params": {
                "progressToken": params["_meta"]["progressToken"], "progress": n, "x-extra": True}})
        return text("done")
    if name == "elicit":
        return text(ask("elicitation/create", {"message": "sure?", "mode": "form", "_meta": {"progressToken": 0, "keep": 1}}))
    if name == "retract":
        send({"id": "r1", "method": "elicitation/create", "params": {"message": "never mind"}})
        time.sleep(0.2)
        send({"method": "notifications/cancelled", "params": {"requestId": "r1"}})
        time.sleep(2)
        return text("retracted")
    if name == "question_flood":
        for n in range(arguments["count"]):
            send({"id": f"f{n}", "method": "elicitation/create", "params": {"message": "x" * arguments["size"]}})
        for n in range(arguments["count"]):
            send({"method": "notifications/message", "params": {"level": "info", "data": "x" * arguments["size"]}})
        time.sleep(0.5)
        return text("flooded")
    if name == "ping":
        return text(ask("ping", {}))
    if name == "strange":
        return text(ask("no/such", {}))
    if name == "log":
        send({"method": "notifications/message", "params": {"level": "info", "data": "hello"}})
        return text("logged")
    if name == "change":
        send({"method": "notifications/tools/list_changed"})
        return text("changed")
    if name == "touch":
        send({"method": "notifications/resources/updated", "params": {"uri": arguments["uri"]}})
        return text(subscribed)
    if name == "garbage":
        with lock:
            sys.stdout.write("this is not JSON\n{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"a\":1,\"a\":2}}\n" % message["id"])
            sys.stdout.flush()
        return None
    raise KeyError(name)


TOOLS = ["echo", "sleep", "hold", "release", "seen", "pid", "die", "progress", "elicit", "ping", "strange", "log", "change",
         "touch", "garbage"]
listed = 0
# Where a test keeps count of the starts; the second one has another tool.
starts = 0
if "STUB_STARTS" in os.environ:
    with open(os.environ["STUB_STARTS"], "a+") as file:
        file.write("x")
        file.seek(0)
        starts = len(file.read())
if starts > 1:
    TOOLS.append("newer")


def answer(message):
    global listed
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "serverInfo": {"name": "stub", "version": "1"},
                "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}},
                "instructions": "be kind"}
    if method == "server/discover":
        if mode == "modern":
            return {"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                    "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}}}
        if mode == "quits":
            os._exit(1)
        if mode == "silent":
            return None
        raise KeyError(method)
    if method == "tools/list":
        listed += 1
        names = TOOLS + [f"extra{listed}"]
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names], "ttlMs": 5000}
    if method == "resources/list":
        return {"resources": [{"uri": "stub://a", "name": "a"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/subscribe":
        subscribed.append(params["uri"])
        return {}
    if method == "resources/unsubscribe":
        subscribed.remove(params["uri"])
        return {}
    if method == "subscriptions/listen":
        subscribed.append(params["notifications"])
        send({"method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {META + "subscriptionId": message["id"]}, "notifications": params["notifications"]}})
        return None
    if method == "tools/call":
        return call(message)
    raise KeyError(method)


def handle(message):
    try:
        result = answer(message)
        if result is not None:
            send({"id": message["id"], "result": result})
    except KeyError as error:
        send({"id": message["id"], "error": {"code": -32601, "message": f"unknown: {error}", "data": {"x": 1}}})


if mode == "slow":
    time.sleep(2)
if mode == "hung":
    print("stub hangs", file=sys.stderr, flush=True)
    time.sleep(1000)
print("stub is up", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        box = answers.get(message["id"], {})
        box["message"] = message
        if "event" in box:
            box["event"].set()
    elif message.get("params", {}).get("name") == "deaf":
        send({"id": message["id"], "result": text("deaf")})
        time.sleep(1000)
    elif "id" in message:
        threading.Thread(target=handle, args=(message,), daemon=True).start()
    else:
        seen.append(message)
