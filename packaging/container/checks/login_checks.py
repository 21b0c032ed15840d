"""An OAuth login at an upstream server, with a browser on the host and the hub in a container."""
import contextlib
import json
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import http_client
from compose_checks import Project
from engine import REPOSITORY, TOKEN, loopback_of_host

ADMIN = "http://127.0.0.1:3100"


def run(engine, report):
    engine.image()
    variables = engine.service_part("npm", "playwright", "oidc", "programs")
    node = variables["NODE24"]
    with contextlib.ExitStack() as stack:
        servers = stack.enter_context(subprocess.Popen([node, REPOSITORY / "scripts/oidc/serve.mjs"], env=variables,
                                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        stack.callback(servers.kill)
        addresses = json.loads(servers.stdout.readline())
        ports = [urlsplit(addresses[name]).port for name in ("issuer", "mcp")]
        project = Project(engine)
        with open(project.directory / ".env", "a") as settings:
            settings.write("OCTOPROX_NET_ALLOW=" + ",".join(f"127.0.0.1:{port}" for port in ports) + "\n")
        (project.paths["config"] / "servers.yaml").write_text(
            f"servers:\n  protected:\n    url: {addresses['mcp']}\n    auth: {{type: oauth2-pkce}}\n")
        project.up()
        stack.callback(project.down)
        pid = engine.podman("inspect", "--format={{.State.Pid}}", project.container("octoprox")).strip()
        stack.enter_context(loopback_of_host(pid, *ports))

        with report.check("login in a browser") as check:
            code, _, text = http_client.request(f"{ADMIN}/servers/protected/auth/start", {}, TOKEN)
            check.equal(code, 200)
            action = json.loads(text)["result"]
            check.true(action["url"].startswith("http://localhost:3100/auth/start/"), text)
            began = time.monotonic()
            playwright = Path(variables["PLAYWRIGHT_MCP"]).parents[2] / "playwright-core"
            browser = subprocess.run([node, Path(__file__).with_name("login.mjs"), playwright, action["url"]],
                                     capture_output=True, text=True, timeout=120)
            check.equal((browser.returncode, browser.stderr), (0, ""))
            check.say(f"last page “{browser.stdout.strip()}” after {time.monotonic() - began:.1f} s, nothing pasted")

        with report.check("use of the login") as check:
            status = json.loads(http_client.request(f"{ADMIN}/servers/protected/auth/status", token=TOKEN)[2])["result"]
            check.equal(status["connected"], True)
            who = http_client.call("http://127.0.0.1:8001", TOKEN, "protected__whoami", {})
            check.true("ada" in json.dumps(who), who)
            check.say("connected, protected__whoami answers as ada")
