"""HTTP, REST and MCP requests to a hub."""
import json
import urllib.error
import urllib.request


def request(url, body=None, token=None, method=None, timeout=60, **headers):
    """Returns status, headers and text."""
    data = None if body is None else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if data is not None:
        sent["Content-Type"] = "application/json"
    if token:
        sent["Authorization"] = f"Bearer {token}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, sent, method=method), timeout=timeout) as reply:
            return reply.status, reply.headers, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def status(url, *arguments, **options):
    """The status, or None without an answer."""
    try:
        return request(url, *arguments, **options)[0]
    except OSError:
        return None


def call(url, token, tool, arguments, timeout=120):
    """Calls a tool over REST and returns its result."""
    code, _, text = request(f"{url}/tools/{tool}", arguments, token, timeout=timeout)
    if code != 200:
        raise RuntimeError(f"{tool}: status {code}: {text[:1000]}")
    return json.loads(text)["result"]


class Mcp:
    """A session over HTTP."""

    def __init__(self, url, token):
        self.url, self.token, self.headers, self.count = url + "/mcp", token, {}, 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
        self.server = self.ask("initialize", hello)
        self.headers["MCP_Protocol_Version"] = self.server["protocolVersion"]
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method, params=None):
        self.count += 1
        text = self._post({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params or {}})
        for line in text.splitlines():
            message = line.removeprefix("data:").strip()
            if message.startswith("{") and json.loads(message).get("id") == self.count:
                return json.loads(message)["result"]
        raise RuntimeError(f"{method}: no result in {text[:500]}")

    def tools(self):
        names, cursor = [], {}
        while True:
            page = self.ask("tools/list", cursor)
            names += [tool["name"] for tool in page["tools"]]
            if not page.get("nextCursor"):
                return names
            cursor = {"cursor": page["nextCursor"]}

    def _post(self, message):
        accept = "application/json, text/event-stream"
        code, headers, text = request(self.url, message, self.token, Accept=accept, **self.headers)
        if code not in (200, 202):
            raise RuntimeError(f"{message['method']}: status {code}: {text[:500]}")
        if headers.get("Mcp-Session-Id"):
            self.headers["Mcp_Session_Id"] = headers["Mcp-Session-Id"]
        return text
