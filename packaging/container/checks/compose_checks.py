"""compose.yaml with podman-compose: names in the network, the profiles postgres and tool-gateway, secrets."""
import json
import os
import re
import shutil
import subprocess
import time

import http_client
import stand_ins
from engine import PREFIX, REPOSITORY, TOKEN, USER

PODMAN_COMPOSE_VERSION = "1.6.0"
POSTGRES_PASSWORD = "a-password-that-only-this-check-knows"
# The image of the other container has no HTTP client.
CALL_A_TOOL = r"""
exec 3<>"/dev/tcp/$1/$2"
printf '%s\r\n' 'POST /tools/time_now HTTP/1.1' "Host: $1:$2" "Authorization: Bearer $TOKEN" 'Content-Type: application/json' \
    'Content-Length: 2' 'Connection: close' '' >&3
printf '{}' >&3
cat <&3
"""


class Project:
    """A copy of compose.yaml with a filled-in .env.example."""

    def __init__(self, engine, **settings):
        self.engine = engine
        tools = engine.home / f"podman-compose-{PODMAN_COMPOSE_VERSION}"
        if not (tools / "bin/podman-compose").exists():
            engine.run("python3", "-m", "venv", tools)
            engine.run(tools / "bin/pip", "install", "-q", f"podman-compose=={PODMAN_COMPOSE_VERSION}")
        self.program = tools / "bin/podman-compose"
        self.directory = engine.scratch / "project"
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "packaging/container").mkdir(parents=True)
        shutil.copy(REPOSITORY / "compose.yaml", self.directory)
        for name in ("searxng.yml", "postgres-init.sh"):
            shutil.copy(REPOSITORY / "packaging/container" / name, self.directory / "packaging/container")
        self.paths = {name: engine.directory(f"compose-{name}") for name in
                      ("workspace", "repos", "downloads", "playbooks", "config")}
        settings |= {f"{name.upper()}_PATH": path for name, path in self.paths.items()}
        text = (REPOSITORY / ".env.example").read_text()
        for name, value in {"GATEWAY_TOKEN": TOKEN, "PUID": USER, "PGID": USER, **settings}.items():
            # None: the value of the example.
            text, found = re.subn(rf"^#?{name}=(.*)$", lambda line: f"{name}={line[1] if value is None else value}", text,
                                  flags=re.M)
            if found != 1:
                raise RuntimeError(f".env.example has {name} {found} times")
        (self.directory / ".env").write_text(text)

    def compose(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if name not in ("GATEWAY_TOKEN",)}
        environment["PODMAN_COMPOSE_NAME_SEPARATOR_COMPAT"] = "true"
        return self.engine.run(self.program, "--project-name", PREFIX[:-1], *arguments, cwd=self.directory, env=environment)

    def up(self):
        """Returns the seconds until the hub is ready."""
        for port in (8001, 3100):
            if http_client.status(f"http://127.0.0.1:{port}/") is not None:
                raise RuntimeError(f"another program uses port {port}")
        began = time.monotonic()
        self.compose("up", "--detach", "--no-build")
        while http_client.status("http://127.0.0.1:8001/ready") != 200:
            if time.monotonic() - began > 60:
                raise RuntimeError("not ready: " + self.compose("logs", "octoprox")[-1500:])
            time.sleep(0.05)
        return time.monotonic() - began

    def container(self, service):
        labels = f"--filter=label=com.docker.compose.service={service}"
        return self.engine.podman("ps", "--quiet", labels).strip()

    def down(self):
        self.compose("down", "--volumes", "--timeout=10")


def run(engine, report):
    engine.image()
    stand_ins.postgres(engine)
    project = Project(engine, COMPOSE_PROFILES="postgres,tool-gateway", POSTGRES_PASSWORD=POSTGRES_PASSWORD,
                      OCTOPROX_ENABLE_DATABASE=None, OCTOPROX_DATABASE_CONNECTIONS=None, OCTOPROX_DATABASE_READERS=None)
    (project.paths["playbooks"] / "hello.yaml").write_text("prompts:\n  hello:\n    description: Greets\n    template: Hello\n")
    with report.check("up") as check:
        check.say(f"ready after {project.up():.1f} s with podman-compose {PODMAN_COMPOSE_VERSION}")
    hub = project.container("octoprox")

    with report.check("names in the network") as check:
        network = next(iter(engine.inspect(hub)["NetworkSettings"]["Networks"]))
        for host, port in (("tools-api", 8001), ("octoprox", 8001), ("tool-gateway", 8081)):
            said = engine.podman("run", "--rm", "--name", PREFIX + "client", "--network", network, "--env", f"TOKEN={TOKEN}",
                                 "docker.io/library/debian:trixie-slim", "bash", "-c", CALL_A_TOOL, "bash", host, port)
            check.true(said.startswith("HTTP/1.1 200") and '"success":true' in said, f"{host}:{port}: {said[:500]}")
            check.say(f"http://{host}:{port}")

    with report.check("roots") as check:
        call = lambda tool, **arguments: http_client.call("http://127.0.0.1:8001", TOKEN, tool, arguments)
        for root in ("workspace", "repos"):
            call("fs_write_text", path=f"/mnt/{root}/a.txt", content="a\n")
            check.equal((project.paths[root] / "a.txt").read_text(), "a\n")
        for root in ("downloads", "playbooks"):
            refused = http_client.status("http://127.0.0.1:8001/tools/fs_write_text",
                                         {"path": f"/mnt/{root}/a.txt", "content": "a\n"}, TOKEN)
            check.true(refused != 200, f"/mnt/{root} is writable")
            (project.paths[root] / "b.txt").write_text("b\n")
            check.true("b" in call("fs_read_text", path=f"/mnt/{root}/b.txt")["content"], root)
        prompts = http_client.request("http://127.0.0.1:8001/prompts", token=TOKEN)[2]
        check.true('"hello"' in prompts, prompts[:500])
        check.say("workspace and repos are writable, downloads and playbooks are not, prompts are loaded")

    with report.check("PostgreSQL") as check:
        deadline = time.monotonic() + 30
        while True:
            try:
                call("db_execute", sql="CREATE TABLE tea (name text)")
                break
            except RuntimeError:
                if time.monotonic() > deadline:
                    check.say(project.compose("logs", "postgres")[-1500:])
                    raise
                time.sleep(0.5)
        call("db_execute", sql="INSERT INTO tea VALUES ('Sencha')")
        rows = call("db_query", sql="SELECT name, current_user FROM tea")
        check.true("Sencha" in json.dumps(rows) and "octoprox_reader" in json.dumps(rows), rows)
        server = project.container("postgres")
        login = subprocess.run(["podman", "exec", "--env", f"PGPASSWORD={POSTGRES_PASSWORD}", server, "bash", "-c",
                                "psql -h $(hostname -i) -U postgres -c 'SELECT 1'"], capture_output=True, text=True)
        check.true(login.returncode != 0, "the superuser can log in over the network")
        check.say("db_execute as octoprox, db_query as octoprox_reader, no login of the superuser")

    with report.check("secrets") as check:
        for name in engine.podman("ps", "--quiet").split():
            about = engine.inspect(name)
            # The environment, and podman's record of the options that set it.
            environment = about["Config"].pop("Env"), about["Config"].pop("CreateCommand")
            check.true(TOKEN not in json.dumps(about), f"{about['Name']}: {about}")
            check.true(POSTGRES_PASSWORD not in json.dumps(about), f"{about['Name']}: {about}")
            if name == hub[:12]:
                check.true(TOKEN in json.dumps(environment), "the token is not in the environment")
        image = json.dumps(engine.inspect("localhost/octoprox:default"))
        check.true(TOKEN not in image, image)
        check.say("only in the environment of a container; not in labels, arguments or the image")

    with report.check("down") as check:
        began = time.monotonic()
        project.down()
        check.say(f"{time.monotonic() - began:.1f} s")
