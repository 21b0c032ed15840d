"""The image with Chromium: the browser tools read a page, with what Chromium's sandbox needs."""
import http.server
import json
import threading
import time

import http_client
from engine import LOCKED_DOWN, TOKEN, loopback_of_host

# Name, options and the sandbox that the hub then uses; None if it refuses to start a browser.
MODES = [
    ("default", [], None),
    ("seccomp=unconfined", ["--security-opt=seccomp=unconfined"], "Chromium's sandbox"),
    ("seccomp=unconfined and unmask=ALL", ["--security-opt=seccomp=unconfined", "--security-opt=unmask=ALL"],
     "bubblewrap, and Chromium's sandbox"),
]

PAGE = "<title>Tea</title><h1>Teas of the season</h1><script>document.write('<button>Add ' + 'Sencha</button>')</script>"


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *_):
        pass


def run(engine, report):
    with report.check("image") as check:
        image, seconds = engine.image("chromium")
        check.say(f"{engine.inspect(image)['Size'] / 1e6:.1f} MB, built in {seconds:.1f} s")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    for name, options, sandbox in MODES:
        with report.check(f"browser, {name}") as check:
            hub = engine.start(f"chromium-{MODES.index((name, options, sandbox))}", image, *LOCKED_DOWN, *options,
                               "--env=OCTOPROX_ENABLE_BROWSER=true", f"--env=OCTOPROX_NET_ALLOW=127.0.0.1:{port}")
            with loopback_of_host(hub.pid, port):
                use(check, hub, port, sandbox)
            engine.podman("rm", "--force", "--volumes", "--time=5", hub.name)
    server.shutdown()

    with report.check("image with runtimes too") as check:
        image, seconds = engine.image("full")
        for program in ("chromium", "npx", "uvx"):
            engine.podman("run", "--rm", *LOCKED_DOWN, f"--entrypoint={program}", image, "--version")
        check.say(f"{engine.inspect(image)['Size'] / 1e6:.1f} MB, built in {seconds:.1f} s")


def use(check, hub, port, sandbox):
    page = {"url": f"http://127.0.0.1:{port}/"}
    if sandbox is None:
        code, _, text = http_client.request(f"{hub.url}/tools/browser_navigate", page, TOKEN)
        check.equal(code, 503)
        check.say("refused, because Chromium's sandbox does not work")
        return
    began = time.monotonic()
    check.equal(hub.call("browser_navigate", **page)["title"], "Tea")
    seconds = time.monotonic() - began
    tree = hub.call("browser_snapshot")
    check.true('button \\"Add Sencha\\"' in json.dumps(tree), tree)
    picture = hub.call("browser_screenshot")
    check.true(any(block["type"] == "image" for block in picture["content"]), "no picture")
    logs = hub.engine.podman("logs", hub.name)
    used = next(json.loads(line)["sandbox"] for line in logs.splitlines() if '"browser started"' in line)
    check.equal(used, sandbox)
    check.say(f"{used}, first browser_navigate {seconds:.1f} s, browser_snapshot, browser_screenshot")
