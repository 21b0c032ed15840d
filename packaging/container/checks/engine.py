"""podman and buildah with settings, images and networks of their own, and what the checks start with them."""
import contextlib
import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import http_client
import stand_ins

REPOSITORY = Path(__file__).resolve().parents[3]
PREFIX = "octoprox-check-"
TOKEN = "a-token-that-only-this-check-knows"
USER = 1000
# Unlike podman, Docker mounts nothing writable into a container with a read-only root.
LOCKED_DOWN = ["--read-only", "--read-only-tmpfs=false", "--tmpfs=/tmp:rw,noexec,nosuid,nodev", "--cap-drop=all",
               "--security-opt=no-new-privileges"]
DEBIAN_PACKAGES = {"buildah": "buildah", "podman": "podman", "runc": "runc", "mmdebstrap": "mmdebstrap",
                   "iptables": "iptables", "/usr/lib/podman/netavark": "netavark",
                   "/usr/lib/podman/aardvark-dns": "aardvark-dns"}
# The ulimits and runc let podman run inside another container or virtual machine without further privileges.
CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{home}/networks"
"""
STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{home}/storage"
runroot = "{home}/run"
"""


class Engine:
    def __init__(self, binary):
        self.binary = binary
        self.services = Path(os.environ.get("OCTOPROX_SERVICES", Path.home() / ".cache/octoprox-services"))
        self.home = self.services / "containers"
        self.stack = contextlib.ExitStack()
        self.images = {}

    def __enter__(self):
        self.home.mkdir(parents=True, exist_ok=True)
        self._install()
        for name, text in (("containers.conf", CONTAINERS_CONF), ("storage.conf", STORAGE_CONF)):
            (self.home / name).write_text(text.format(home=self.home))
        os.environ["CONTAINERS_CONF"] = str(self.home / "containers.conf")
        os.environ["CONTAINERS_STORAGE_CONF"] = str(self.home / "storage.conf")
        self.scratch = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX)))
        self.scratch.chmod(0o755)
        self.stack.callback(self._prune)
        self.stack.callback(self.remove_all)
        self.remove_all()
        return self

    def __exit__(self, *error):
        self.stack.close()

    def _prune(self):
        """Removes what builds that were cut off left behind, and images of older binaries."""
        self.run("buildah", "rm", "--all")
        self.podman("image", "prune", "--force")

    def _install(self):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        missing = [package for program, package in DEBIAN_PACKAGES.items() if not shutil.which(program, path=path)]
        if missing:
            install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing]
            if subprocess.run(install, stdout=subprocess.DEVNULL).returncode:
                self.run("apt-get", "update", "-q")
                self.run(*install)

    def run(self, *command, check=True, timeout=900, **options):
        """Runs a program and returns what it printed on standard output."""
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL, **options)
        if check and done.returncode:
            raise RuntimeError(f"{command[0]} {command[1]}: status {done.returncode}: {done.stderr[-2000:].strip()}")
        return done.stdout

    def podman(self, *arguments, **options):
        return self.run("podman", *arguments, **options)

    def inspect(self, name):
        return json.loads(self.podman("inspect", name))[0]

    def service_part(self, *parts):
        """Installs parts of scripts/services and returns their variables."""
        script = REPOSITORY / "scripts/services"
        self.run(script, "install", *parts)
        lines = self.run("bash", "-c", f'eval "$({script} env 2>/dev/null)"; env -0').split("\0")
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def pinned(self, name):
        """A version that scripts/services pins."""
        return re.search(rf"^{name}_VERSION=(\S+)$", (REPOSITORY / "scripts/services").read_text(), re.M)[1]

    def image(self, variant="default"):
        """Builds an image, once; returns its name and the seconds that it took."""
        if variant not in self.images:
            began = time.monotonic()
            dockerfile = (REPOSITORY / "Dockerfile").read_text()
            stand_ins.debian(self, dockerfile)
            if variant in ("runtimes", "full"):
                stand_ins.node(self, dockerfile)
            context = self.scratch / "context"
            if not context.exists():
                (context / "dist").mkdir(parents=True)
                shutil.copy2(self.binary, context / "dist/octoprox")
                (context / "packaging/container").mkdir(parents=True)
                shutil.copy2(REPOSITORY / "packaging/container/make-root", context / "packaging/container")
                for name in ("Dockerfile", ".dockerignore", "LICENSE"):
                    shutil.copy2(REPOSITORY / name, context)
            # A named image of each root survives the pruning of images of older binaries.
            roots = {"default": ["root"], "full": ["chromium-root", "runtimes-root"]}.get(variant, [f"{variant}-root"])
            for target in roots:
                self._build(context, target, f"octoprox-check-cache:{target}")
            self._build(context, variant, f"octoprox:{variant}")
            self.images[variant] = time.monotonic() - began
        return f"localhost/octoprox:{variant}", self.images[variant]

    def _build(self, context, target, tag):
        self.run("nice", "buildah", "bud", "--format=docker", "--layers", "--pull=never", "--network=host",
                 "--build-arg=BINARY=prebuilt", f"--target={target}", f"--tag={tag}", context, timeout=1800)

    def directory(self, name):
        """A directory that belongs to the user of the hub."""
        path = self.scratch / name
        path.mkdir(exist_ok=True)
        os.chown(path, USER, USER)
        return path

    def create(self, name, image, *options, command=()):
        """Creates a hub that is reachable at a free port of loopback."""
        port = free_port()
        self.podman("create", "--name", PREFIX + name, "--env", f"GATEWAY_TOKEN={TOKEN}",
                    "--publish", f"127.0.0.1:{port}:7000", *options, image, *command)
        return Hub(self, PREFIX + name, f"http://127.0.0.1:{port}")

    def start(self, name, image, *options, command=()):
        hub = self.create(name, image, *options, command=command)
        hub.start()
        return hub

    def remove_all(self):
        """Stops and removes every container, volume and network of the checks, except caches."""
        for line in self.podman("ps", "--all", "--quiet", f"--filter=name=^{PREFIX[:-1]}").split():
            self.podman("rm", "--force", "--volumes", "--time=2", line, check=False)
        for name in self.podman("volume", "ls", "--quiet").split():
            if not name.endswith("-cache"):
                self.podman("volume", "rm", "--force", name, check=False)
        for name in self.podman("network", "ls", "--format={{.Name}}").split():
            if name.startswith(PREFIX[:-1]):
                self.podman("network", "rm", "--force", name, check=False)


class Hub:
    """A container of the hub."""

    def __init__(self, engine, name, url):
        self.engine, self.name, self.url = engine, name, url

    def start(self, timeout=20):
        """Returns the milliseconds until /ready answers with 200: since the start was requested, and since it happened."""
        requested = time.time()
        self.engine.podman("start", self.name)
        while http_client.status(self.url + "/ready") != 200:
            if time.time() - requested > timeout:
                logs = self.engine.run("podman", "logs", self.name, check=False)
                raise RuntimeError(f"not ready after {timeout} s: {logs[-1500:]}")
            time.sleep(0.002)
        ready = time.time()
        started = self.engine.podman("inspect", "--format={{.State.StartedAt.UnixMilli}}", self.name)
        return (ready - requested) * 1000, ready * 1000 - int(started)

    @property
    def pid(self):
        return int(self.engine.podman("inspect", "--format={{.State.Pid}}", self.name))

    def processes(self):
        """Process ids on the host."""
        return [int(pid) for pid in self.engine.podman("top", self.name, "hpid").split()[1:]]

    def call(self, tool, **arguments):
        return http_client.call(self.url, TOKEN, tool, arguments)

    def execute(self, *command, **options):
        return self.engine.podman("exec", self.name, *command, **options)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def loopback_of_host(pid, *ports):
    """Inside the network of a container, forwards ports of loopback to the same ports of the host's loopback."""
    libc = ctypes.CDLL(None, use_errno=True)
    listeners = []
    with open("/proc/thread-self/ns/net", "rb") as host, open(f"/proc/{pid}/ns/net", "rb") as container:
        if libc.setns(container.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            listeners += [socket.create_server(("127.0.0.1", port)) for port in ports]
        finally:
            libc.setns(host.fileno(), 0)

    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def accept(listener, port):
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", port))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=copy, args=pair, daemon=True).start()

    for listener, port in zip(listeners, ports):
        threading.Thread(target=accept, args=(listener, port), daemon=True).start()
    try:
        yield
    finally:
        for listener in listeners:
            listener.close()
