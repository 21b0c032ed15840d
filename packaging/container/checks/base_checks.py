"""The default image: size, start, confinement, tools over REST and MCP, health, signals."""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import http_client
from engine import LOCKED_DOWN, TOKEN, USER

MAX_START_MS = {"release": 300, "debug": 1500}
MAX_STOP_SECONDS = 10
# Prints every program with a library that is missing.
MISSING_LIBRARIES = r"""
for program in /usr/bin/* /usr/local/bin/* /usr/lib/git-core/* /usr/lib/openssh/*; do
    [ ! -x "$program" ] || LD_TRACE_LOADED_OBJECTS=1 "$program" </dev/null 2>&1 | sed -n "s|.*not found.*|$program: &|p"
done
"""


def run(engine, report):
    with report.check("image") as check:
        image, seconds = engine.image()
        facts = engine.inspect(image)
        check.say(f"{facts['Size'] / 1e6:.1f} MB")
        check.say(f"{len(facts['RootFS']['Layers'])} layers")
        archive = engine.scratch / "image.tar"
        engine.podman("push", "--quiet", image, f"oci-archive:{archive}")
        check.say(f"{archive.stat().st_size / 1e6:.1f} MB compressed")
        archive.unlink()
        check.say(f"built in {seconds:.1f} s")

    with report.check("contents") as check:
        root = Path(engine.podman("image", "mount", image).strip())
        engine.stack.callback(engine.podman, "image", "unmount", image, check=False)
        entries = [(path, os.lstat(path)) for path in root.rglob("*")]
        check.equal([str(path) for path, about in entries if about.st_mode & 0o6000 and not path.is_dir()], [])
        for absent in ("usr/bin/perl", "usr/bin/apt-get", "usr/bin/dpkg", "usr/bin/curl"):
            check.true(not (root / absent).exists(), f"{absent} is in the image")
        state = os.stat(root / "var/lib/octoprox")
        check.equal((state.st_uid, state.st_gid, state.st_mode & 0o777), (USER, USER, 0o700))
        engine.podman("image", "unmount", image)
        check.equal(engine.podman("run", "--rm", "--entrypoint=bash", image, "-c", MISSING_LIBRARIES), "")
        check.say(f"{len(entries)} files, no set-user-ID file, no perl, no package manager, no missing library")

    with report.check("start") as check:
        times = []
        for turn in range(5):
            hub = engine.create(f"start{turn}", image, *LOCKED_DOWN)
            times.append(hub.start())
            engine.podman("rm", "--force", "--volumes", "--time=2", hub.name)
        requested, started = min(one[0] for one in times), min(one[1] for one in times)
        check.say(f"/ready {started:.0f} ms after the start of the container")
        check.say(f"{requested:.0f} ms after `podman start` (best of 5)")
        facts = engine.podman("run", "--rm", image, "--version", "--verbose")
        limit = MAX_START_MS[re.search(r"^profile: (\w+)$", facts, re.M)[1]]
        check.true(started < limit, f"the limit is {limit} ms")

    workspace = engine.directory("workspace")
    repository = workspace / "repository"
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repository], check=True)
    (repository / "new.txt").write_text("new\n")
    engine.run("chown", "-R", f"{USER}:{USER}", workspace)
    options = [*LOCKED_DOWN, f"--volume={workspace}:/mnt/workspace", "--env=OCTOPROX_ENABLE_SHELL=true"]
    hub = engine.start("base", image, *options)

    with report.check("confinement") as check:
        about = dict(line.split(":\t", 1) for line in Path(f"/proc/{hub.pid}/status").read_text().splitlines())
        check.equal(about["Uid"].split()[0], str(USER))
        check.equal(about["CapEff"], "0" * 16)
        check.equal(about["CapBnd"], "0" * 16)
        check.equal(about["NoNewPrivs"], "1")
        for place in ("/x", "/usr/x", "/etc/x"):
            touched = subprocess.run(["podman", "exec", hub.name, "touch", place], capture_output=True, text=True)
            check.true("Read-only file system" in touched.stderr, f"touch {place}: {touched.stderr}")
        check.say(f"uid {USER}, no capabilities, no new privileges, read-only root")

    with report.check("probes") as check:
        for path in ("/health", "/ready"):
            check.equal(http_client.status(hub.url + path), 200)
        check.say("/health 200, /ready 200")

    with report.check("refused requests") as check:
        tool = hub.url + "/tools/time_now"
        check.equal(http_client.status(tool, {}), 401)
        check.equal(http_client.status(tool, {}, "wrong"), 401)
        check.equal(http_client.status(tool, {}, TOKEN, Host="somewhere.example"), 421)
        check.say("no token 401, wrong token 401, foreign Host 421")

    with report.check("REST") as check:
        check.true(hub.call("time_now", timezone="Europe/Berlin")["timezone"] == "Europe/Berlin", "no time")
        hub.call("fs_write_text", path="note.txt", content="from the container\n")
        check.equal((workspace / "note.txt").read_text(), "from the container\n")
        check.equal((workspace / "note.txt").stat().st_uid, USER)
        check.true("from the container" in hub.call("fs_read_text", path="note.txt")["content"], "other content")
        check.true("new.txt" in json.dumps(hub.call("git_status", repo_path="repository")), "new.txt is not in git_status")
        check.say("time_now, fs_write_text, fs_read_text, git_status")

    for name, more in (("default", []), ("unmask=ALL", ["--security-opt=unmask=ALL"])):
        with report.check(f"commands, {name}") as check:
            other = engine.start("sandbox", image, *options, *more) if more else hub
            ran = other.call("shell_exec", command="id -u; git --version; (echo x >/mnt/x) 2>&1")
            check.equal(ran["stdout"].split("\n")[0], str(USER))
            check.true("git version" in ran["stdout"], ran)
            check.equal(ran["sandbox"], "bubblewrap" if more else "landlock")
            check.say(f"sandbox {ran['sandbox']}")
            if more:
                engine.podman("rm", "--force", "--volumes", "--time=2", other.name)

    with report.check("MCP") as check:
        session = http_client.Mcp(hub.url, TOKEN)
        names = session.tools()
        check.true({"tools_find", "fs_read_text", "git_status", "shell_exec"} <= set(names), names)
        reply = session.ask("tools/call", {"name": "fs_read_text", "arguments": {"path": "note.txt"}})
        check.true("from the container" in json.dumps(reply), reply)
        check.say(f"initialize ({session.server['protocolVersion']}), tools/list ({len(names)} tools), tools/call")

    with report.check("health check") as check:
        healthy = lambda: subprocess.run(["podman", "healthcheck", "run", hub.name], capture_output=True).returncode
        check.equal(healthy(), 0)
        processes = hub.processes()
        try:
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            check.equal(healthy(), 1)
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)
        check.equal(healthy(), 0)
        check.say("healthy, unhealthy while the hub is suspended, healthy again")

    with report.check("orphans") as check:
        hub.execute("bash", "-c", "for i in 1 2 3; do (sleep 0.3 &); done")
        children = []
        deadline = time.monotonic() + 10
        while len(children) != 1 or children[0].startswith("Z"):
            check.true(time.monotonic() < deadline, f"children of the first process: {children}")
            time.sleep(0.1)
            children = engine.run("ps", "-o", "stat=", "--ppid", hub.pid, check=False).split()
        check.say("3 orphaned processes were reaped")

    with report.check("SIGTERM") as check:
        began = time.monotonic()
        engine.podman("stop", "--time=60", hub.name)
        seconds = time.monotonic() - began
        state = engine.inspect(hub.name)["State"]
        check.equal(state["ExitCode"], 0)
        check.true(seconds < MAX_STOP_SECONDS, f"{seconds:.1f} s")
        check.say(f"exit code 0 after {seconds:.1f} s")

    with report.check("crash") as check:
        hub.start()
        # Its child, where process 1 only reaps orphans.
        os.kill(max(hub.processes()), signal.SIGKILL)
        code = int(engine.podman("wait", hub.name, timeout=10))
        check.true(code != 0, "exit code 0")
        check.say(f"exit code {code} after SIGKILL of the hub")

    with report.check("no token") as check:
        refused = subprocess.run(["podman", "run", "--rm", *LOCKED_DOWN, image], capture_output=True, text=True, timeout=20)
        check.true(refused.returncode != 0 and "token" in refused.stderr, refused.stderr)
        check.say("a hub without a token does not start")
