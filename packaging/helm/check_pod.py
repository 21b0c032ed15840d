"""Runs the hub as the rendered pod would: its variables, user, volumes, read-only root and probes.

    unshare --mount --net python3 check_pod.py CASE MANIFESTS_JSON OCTOPROX

Needs root in mount and network namespaces of its own. Volumes have the owners and modes that the kubelet gives them.
"""

import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NO_NEW_PRIVS = 38


class Pod:
    def __init__(self, manifests, binary, top):
        self.configs = {m["metadata"]["name"]: m["data"] for m in manifests if m["kind"] == "ConfigMap"}
        [self.workload] = [m for m in manifests if m["kind"] in ("StatefulSet", "Deployment")]
        self.spec = self.workload["spec"]["template"]["spec"]
        [self.container] = self.spec["containers"]
        self.user = self.spec["securityContext"]
        self.root = top / "root"
        self.volumes = top / "volumes"
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.address = "fd00::3" if self.literal("OCTOPROX_HOST") == "::" else "10.1.2.3"
        self.build(binary)
        self.env = self.environment()

    def literal(self, name):
        return next((v["value"] for v in self.container["env"] if v["name"] == name and "value" in v), None)

    def environment(self):
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        for variable in self.container["env"]:
            source = variable.get("valueFrom", {})
            if "secretKeyRef" in source:
                value = secret(source["secretKeyRef"])
            elif "fieldRef" in source:
                assert source["fieldRef"]["fieldPath"] == "status.podIP"
                value = self.address
            else:
                value = re.sub(r"\$\((\w+)\)", lambda found: env[found[1]], variable["value"])
            env[variable["name"]] = value
        return env

    def build(self, binary):
        self.root.mkdir()
        mount("-t", "tmpfs", "-o", "mode=755", "root", self.root)
        for name in ("bin", "lib", "lib64", "sbin"):
            if (path := Path("/", name)).is_symlink():
                (self.root / name).symlink_to(os.readlink(path))
            elif path.exists():
                self.bind(path, f"/{name}")
        for path in ("/usr", "/dev", "/proc", "/etc/ssl"):
            if Path(path).exists():
                self.bind(path, path)
        (self.root / "octoprox").write_bytes(Path(binary).read_bytes())
        (self.root / "octoprox").chmod(0o755)
        self.volumes.mkdir()
        for volume in self.container["volumeMounts"]:
            self.bind(self.volume(volume["name"]), volume["mountPath"], bool(volume.get("readOnly")))
        mount("-o", "remount,ro", self.root)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", self.address, "dev", "lo"], check=True)

    def bind(self, source, target, read_only=False):
        place = self.root / str(target).lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        mount("--rbind", source, place)
        if read_only:
            mount("-o", "remount,bind,ro", place)

    def volume(self, name):
        """A directory as the kubelet makes it: it belongs to root and to the group of the pod."""
        path = self.volumes / name
        path.mkdir()
        [source] = [v for v in self.spec["volumes"] if v["name"] == name] or [{"claim": {}}]
        path.chmod(0o2775 if "claim" in source or "persistentVolumeClaim" in source else 0o2777)
        os.chown(path, 0, self.user["fsGroup"])
        if "configMap" in source:
            config = source["configMap"]
            assert config.get("optional") or config["name"] in self.configs, f"no ConfigMap {config['name']}"
            self.write_config(path, self.configs.get(config["name"], {}))
        return path

    def write_config(self, path, files):
        """Switches a symlink to a new directory, which is how the kubelet updates a volume."""
        version = Path(tempfile.mkdtemp(prefix="..version-", dir=path))
        version.chmod(0o755)
        for name, text in files.items():
            (version / name).write_text(text)
            if not (path / name).is_symlink():
                (path / name).symlink_to(f"..data/{name}")
        (path / "..data_tmp").symlink_to(version.name)
        (path / "..data_tmp").rename(path / "..data")

    def settings_volume(self):
        [mount_] = [m for m in self.container["volumeMounts"] if m["mountPath"] == "/etc/octoprox"]
        return self.volumes / mount_["name"]

    def start(self, *arguments):
        def enter():
            os.chroot(self.root)
            os.chdir("/mnt/workspace")
            os.setgroups([self.user["fsGroup"]])
            os.setgid(self.user["runAsGroup"])
            os.setuid(self.user["runAsUser"])
            ctypes.CDLL(None).prctl(NO_NEW_PRIVS, 1, 0, 0, 0)

        return subprocess.Popen(
            ["/octoprox", *arguments], env=self.env, preexec_fn=enter, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )

    def status(self, path, host, port="http", method="GET", token=None):
        """The status and body of a request to the address of the pod."""
        connection = http.client.HTTPConnection(self.address, self.ports[port], timeout=10)
        with contextlib.closing(connection):
            headers = {"Host": host, **({"Authorization": f"Bearer {token}"} if token else {})}
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    def probe(self, kind):
        request = self.container[f"{kind}Probe"]["httpGet"]
        [host] = [header["value"] for header in request["httpHeaders"] if header["name"] == "Host"]
        return self.status(request["path"], host, request["port"])[0]

    def wait_until_started(self, hub):
        probe = self.container["startupProbe"]
        end = time.monotonic() + probe["periodSeconds"] * probe["failureThreshold"]
        while time.monotonic() < end and hub.poll() is None:
            with contextlib.suppress(OSError):
                if self.probe("startup") == 200:
                    return
            time.sleep(0.1)
        hub.kill()
        raise AssertionError(f"the hub did not start: {hub.communicate()[0]}")

    def stop(self, hub):
        hub.send_signal(signal.SIGTERM)
        output, _ = hub.communicate(timeout=self.spec["terminationGracePeriodSeconds"])
        assert hub.returncode == 0, f"exit code {hub.returncode}: {output}"
        return output


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def secret(reference):
    return f"value-of-{reference['name']}-{reference['key']}"


def expect(actual, wanted, what):
    assert actual == wanted, f"{what}: {actual} instead of {wanted}"


def check(case, manifests, pod):
    checked = pod.start("config", "check")
    output, _ = checked.communicate(timeout=30)
    assert checked.returncode == 0, output
    assert "unknown" not in output, output
    yield "config check accepts the settings and variables"

    hub = pod.start("serve")
    try:
        pod.wait_until_started(hub)
        for kind in ("startup", "liveness", "readiness"):
            expect(pod.probe(kind), 200, f"{kind} probe")
        yield "probes answer 200 with their Host header"

        token = pod.env["GATEWAY_TOKEN"]
        shown = f"[{pod.address}]" if ":" in pod.address else pod.address
        hosts = [host for host in pod.env["OCTOPROX_ALLOWED_HOSTS"].split(",") if host != "fd00::3"]
        outside = [r["host"] for m in manifests if m["kind"] == "Ingress" for r in m["spec"]["rules"]]
        outside += [h for m in manifests if m["kind"] == "HTTPRoute" for h in m["spec"]["hostnames"]]
        [service] = [m["metadata"]["name"] for m in manifests if m["kind"] == "Service"]
        inside = [f"{service}:7000", f"{service}.agents.svc", f"{shown}:7000"]
        for host in hosts + outside + inside:
            expect(pod.status("/ready", host)[0], 200, f"/ready with the host {host}")
        expect(pod.status("/ready", "other.example")[0], 421, "/ready with another host")
        yield f"{len(set(hosts + outside))} host names are allowed, others get 421"

        expect(pod.status("/tools", "localhost")[0], 401, "/tools without a token")
        for name in ("GATEWAY_TOKEN", "OCTOPROX_ADMIN_TOKEN"):
            if name in pod.env:
                expect(pod.status("/tools", "localhost", token=pod.env[name])[0], 200, f"/tools with {name}")
        yield "tokens of the Secret are required and accepted"

        scrape = token
        for monitor in (m for m in manifests if m["kind"] == "ServiceMonitor"):
            scrape = secret(monitor["spec"]["endpoints"][0]["authorization"]["credentials"])
        expect(pod.status("/metrics", f"{shown}:7000")[0], 401, "/metrics without a token")
        expect(pod.status("/metrics", f"{shown}:7000", token=scrape)[0], 200, "/metrics")
        yield "metrics are readable at the address of the pod"

        if callback := pod.env.get("TOOL_GATEWAY_CALLBACK_URL"):
            host = callback.removeprefix("https://").partition("/")[0]
            expect(pod.status("/auth/callback", host, "admin")[0], 200, "the OAuth callback")
            expect(pod.status("/servers", host, "admin")[0], 401, "the admin API without a token")
            yield "the admin port serves the OAuth callback"
        else:
            pod.ports["admin"] = 3100
            with contextlib.suppress(ConnectionRefusedError):
                pod.status("/health", "localhost", "admin")
                raise AssertionError("the admin port leaves the pod")
            yield "the admin port does not leave the pod"

        if "OCTOPROX_PROMPTS" in pod.env:
            _, prompts = pod.status("/prompts", "localhost", token=token)
            assert "review_change" in prompts, prompts
            yield "prompts are listed"

        expect(pod.status("/tools/time_now", "localhost", method="POST", token=token)[0], 200, "a call")
        [settings] = [c["octoprox.yaml"] for c in pod.configs.values() if "octoprox.yaml" in c]
        assert "limits" not in settings
        limits = json.dumps([{"tools": ["time_now"], "per_minute": 1}])
        base = "" if settings.strip() == "{}" else settings
        began = time.monotonic()
        pod.write_config(pod.settings_volume(), {"octoprox.yaml": f"{base}\nlimits: {limits}\n"})
        while pod.status("/tools/time_now", "localhost", method="POST", token=token)[0] != 429:
            assert time.monotonic() - began < 10, "changed settings are not applied"
            time.sleep(0.1)
        yield f"a changed ConfigMap is applied after {time.monotonic() - began:.1f} s"

        pod.stop(hub)
        hub = pod.start("serve")
        pod.wait_until_started(hub)
        expect(pod.probe("readiness"), 200, "readiness after a restart")
        pod.stop(hub)
        yield "SIGTERM ends the hub in time, and it starts again with its state"
    finally:
        if hub.poll() is None:
            hub.kill()


def main():
    case, manifests, binary = sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), sys.argv[3]
    with tempfile.TemporaryDirectory() as top:
        mount("-t", "tmpfs", "-o", "mode=755", "top", top)
        try:
            for line in check(case, manifests, Pod(manifests, binary, Path(top))):
                print(f"ok    {case}: hub: {line}", flush=True)
        except AssertionError as error:
            sys.exit(f"FAIL  {case}: hub: {error}")
        finally:
            subprocess.run(["umount", "--recursive", "--lazy", top], check=True)


if __name__ == "__main__":
    main()
