"""An npm registry of the .tgz files in a directory. Prints its address and serves until it is stopped."""

import base64
import hashlib
import http.server
import json
import sys
import tarfile
import urllib.parse
from pathlib import Path

packages: dict[str, list[tuple[dict, Path]]] = {}
for path in sorted(Path(sys.argv[1]).glob("*.tgz")):
    with tarfile.open(path) as archive:
        package = json.load(archive.extractfile("package/package.json"))
    packages.setdefault(package["name"], []).append((package, path))


def packument(name: str, address: str) -> dict:
    versions = {}
    for package, path in packages[name]:
        digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        versions[package["version"]] = {**package, "dist": {"tarball": f"{address}/-/{path.name}", "integrity": f"sha512-{digest}"}}
    return {"name": name, "dist-tags": {"latest": packages[name][-1][0]["version"]}, "versions": versions}


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
        files = {f"-/{file.name}": file for entries in packages.values() for _, file in entries}
        if path in packages:
            self.reply(200, json.dumps(packument(path, f"http://{self.headers['Host']}")).encode())
        elif path in files:
            self.reply(200, files[path].read_bytes())
        else:
            self.reply(404, b"{}")

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
