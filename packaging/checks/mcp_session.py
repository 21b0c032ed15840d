"""Holds an MCP session with a command on its standard input and output: initialize, tools/list, and a call of time_now.

    mcp_session.py [--without PROGRAM] COMMAND [ARGUMENT...]

--without: fail if a process of that name is in the process tree of the command during the session.
"""

import argparse
import json
import os
import subprocess
import sys
import threading

TIMEOUT = 45


def tree(pid: int) -> dict[int, str]:
    """The process and all its descendants, with the programs that they run."""
    parents, programs = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as stat:
                parents[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
            programs[int(entry)] = os.path.basename(os.readlink(f"/proc/{entry}/exe"))
        except OSError:
            continue
    found, waiting = {}, [pid]
    while waiting:
        one = waiting.pop()
        found[one] = programs.get(one, "?")
        waiting += [child for child, parent in parents.items() if parent == one]
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--without")
    options.add_argument("command", nargs=argparse.REMAINDER)
    args = options.parse_args()
    server = subprocess.Popen(args.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(TIMEOUT, server.kill)
    timer.start()

    def send(message: dict) -> None:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()

    def request(number: int, method: str, params: dict) -> dict:
        send({"id": number, "method": method, "params": params})
        for line in server.stdout:
            reply = json.loads(line)
            if reply.get("id") == number:
                return reply["result"] if "result" in reply else sys.exit(f"{method}: {reply['error']}")
        sys.exit(f"{method}: the server ended without a reply (limit: {TIMEOUT} seconds)")

    hello = request(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}})
    assert hello["serverInfo"]["name"] == "octoprox", hello
    send({"method": "notifications/initialized"})
    tools = {tool["name"] for tool in request(2, "tools/list", {})["tools"]}
    assert "tools_find" in tools, tools
    result = request(3, "tools/call", {"name": "time_now", "arguments": {"timezone": "UTC"}})
    assert not result.get("isError") and result["structuredContent"]["timezone"] == "UTC", result

    processes = tree(server.pid)
    assert any(program.startswith("octoprox") for program in processes.values()), processes
    if args.without and any(program.startswith(args.without) for program in processes.values()):
        sys.exit(f"a {args.without} process is left: {processes}")
    server.stdin.close()
    status = server.wait()
    timer.cancel()
    if status != 0:
        sys.exit(f"the server ended with status {status}")
    print(f"session: {len(tools)} tools, processes {sorted(processes.values())}")


main()
