"""The image with Node and uv: MCP servers of npm and PyPI start in the container, through the hub."""
import json
import os
import time

import http_client
from engine import LOCKED_DOWN, PREFIX, TOKEN, Hub, free_port

NOTION_VERSION = "2.5.2"
CALCULATOR_VERSION = "0.2.1"
STATE = PREFIX + "runtimes-cache"


def servers(engine):
    npm = {
        "everything": f"@modelcontextprotocol/server-everything@{engine.pinned('EVERYTHING')}",
        "filesystem": f"@modelcontextprotocol/server-filesystem@{engine.pinned('SERVER_FILESYSTEM')}",
        "memory": f"@modelcontextprotocol/server-memory@{engine.pinned('SERVER_MEMORY')}",
        "thinking": f"@modelcontextprotocol/server-sequential-thinking@{engine.pinned('SERVER_SEQUENTIAL_THINKING')}",
        "context7": f"@upstash/context7-mcp@{engine.pinned('CONTEXT7')}",
        "playwright": f"@playwright/mcp@{engine.pinned('PLAYWRIGHT_MCP')}",
        "notion": f"@notionhq/notion-mcp-server@{NOTION_VERSION}",
    }
    pypi = {
        "git": ("mcp-server-git", engine.pinned("SERVER_GIT")),
        "fetch": ("mcp-server-fetch", engine.pinned("SERVER_FETCH")),
        "time": ("mcp-server-time", engine.pinned("SERVER_TIME")),
        "sqlite": ("mcp-server-sqlite", engine.pinned("SERVER_SQLITE")),
        "calculator": ("mcp-server-calculator", CALCULATOR_VERSION),
    }
    more = {"filesystem": ["/mnt/workspace"], "sqlite": ["--db-path", "/var/lib/octoprox/check.db"]}
    # The certificate authorities of this machine, if it has its own.
    authorities = {name: "/run/authorities.crt" for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS") if name in os.environ}
    all = {}
    for name, package in npm.items():
        all[f"npm_{name}"] = {"command": "npx", "args": ["-y", package, *more.get(name, [])]}
    for name, (package, version) in pypi.items():
        sdk = ["--with", f"mcp=={engine.pinned('SERVER_SQLITE_SDK')}"] if name == "sqlite" else []
        all[f"pypi_{name}"] = {"command": "uvx", "args": [*sdk, f"{package}@{version}", *more.get(name, [])]}
    for server in all.values():
        server |= {"env": authorities, "start_timeout_seconds": 300}
    return all


def run(engine, report):
    with report.check("image") as check:
        image, seconds = engine.image("runtimes")
        check.say(f"{engine.inspect(image)['Size'] / 1e6:.1f} MB, built in {seconds:.1f} s")

    with report.check("versions") as check:
        for program in ("node", "npm", "uv", "python3"):
            said = engine.podman("run", "--rm", *LOCKED_DOWN, f"--entrypoint={program}", image, "--version")
            check.say(f"{program} {said.split()[-1] if program != 'uv' else said.split()[1]}")

    all = servers(engine)
    config = engine.directory("runtimes-config")
    (config / "servers.yaml").write_text(json.dumps({"servers": all}))
    volumes = [f"--volume={STATE}:/var/lib/octoprox", f"--volume={config}:/etc/octoprox:ro", "--network=host"]
    if "SSL_CERT_FILE" in os.environ:
        volumes.append(f"--volume={os.environ['SSL_CERT_FILE']}:/run/authorities.crt:ro")
    is_cold = engine.podman("volume", "ls", "--quiet", f"--filter=name={STATE}").strip() == ""
    for turn in (["first start, packages are downloaded"] if is_cold else []) + ["next start, packages are cached"]:
        with report.check(turn) as check:
            listed(engine, check, image, volumes, all)


def listed(engine, check, image, volumes, all):
    port, admin = free_port(), free_port()
    engine.podman("create", "--name", PREFIX + "runtimes", *LOCKED_DOWN, "--env", f"GATEWAY_TOKEN={TOKEN}",
                  f"--env=OCTOPROX_PORT={port}", f"--env=OCTOPROX_ADMIN_PORT={admin}", *volumes, image)
    hub = Hub(engine, PREFIX + "runtimes", f"http://127.0.0.1:{port}")
    try:
        hub.start()
        began, seconds, problems = time.monotonic(), {}, {}
        while len(seconds) < len(all) and time.monotonic() - began < 600:
            for name in all:
                if name in seconds:
                    continue
                # Connects the server: a listing from an earlier start does not count.
                code, _, text = http_client.request(f"http://127.0.0.1:{admin}/servers/{name}/connect", {}, TOKEN, timeout=330)
                if code == 200:
                    seconds[name] = time.monotonic() - began
                else:
                    problems[name] = text[:300]
            time.sleep(1)
        names = http_client.Mcp(hub.url, TOKEN).tools()
        counts = {name: sum(tool.startswith(name + "__") for tool in names) for name in all}
        missing = [f"{name}: {problems.get(name)}" for name in all if name not in seconds or not counts[name]]
        check.true(not missing, f"not started: {missing}")
        check.say(f"{len(all)} servers ({', '.join(f'{name} {count}' for name, count in counts.items())} tools)")
        check.say(f"all listed after {max(seconds.values()):.1f} s")
    finally:
        engine.podman("rm", "--force", "--time=5", hub.name)
