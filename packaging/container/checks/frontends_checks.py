"""The tests of all frontends (tests/tests/frontends.rs), with every command and hub inside a container."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from engine import LOCKED_DOWN, PREFIX, USER

# Needs Chromium, which is not in this image.
SKIPPED = "pictures_come_over_every_face"
# The directory of a test belongs to root, and the hub is another user.
WRAPPER = """#!/bin/sh
chown -R {user}:{user} "$HOME"
export CONTAINERS_CONF={conf} CONTAINERS_STORAGE_CONF={storage}
exec podman exec -i --user {user} --workdir "$PWD" --env HOME="$HOME" --env OCTOPROX_CONFIG="$OCTOPROX_CONFIG" \\
    --env OCTOPROX_STATE_DIR="$OCTOPROX_STATE_DIR" {container} \\
    env -u OCTOPROX_HOST -u OCTOPROX_PORT -u OCTOPROX_ADMIN_HOST -u OCTOPROX_WORKSPACE octoprox "$@"
"""


def run(engine, report):
    with report.check("all frontends") as check:
        image, _ = engine.image()
        target = Path(os.environ.get("CARGO_TARGET_DIR", "target"), "debug")
        tests = [path for path in (target / "deps").glob("frontends-*") if path.suffix == "" and os.access(path, os.X_OK)]
        check.true(tests, f"no tests in {target}: run `cargo build --workspace --all-targets`")
        # Tests run the programs beside them.
        place = engine.scratch / "frontends"
        (place / "deps").mkdir(parents=True)
        (place / "homes").mkdir()
        test = shutil.copy(max(tests, key=lambda path: path.stat().st_mtime), place / "deps")
        shutil.copy(target / "mcp-fixture", place)
        name = PREFIX + "frontends"
        engine.podman("run", "--detach", "--name", name, "--network=host", f"--volume={place}:{place}", *LOCKED_DOWN,
                      "--entrypoint=sleep", image, "infinity")
        wrapper = place / "octoprox"
        wrapper.write_text(WRAPPER.format(user=USER, container=name, conf=os.environ["CONTAINERS_CONF"],
                                          storage=os.environ["CONTAINERS_STORAGE_CONF"]))
        wrapper.chmod(0o755)
        done = subprocess.run([test, "--test-threads=2", f"--skip={SKIPPED}"], cwd=place, capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": str(place / "homes"), "RUST_BACKTRACE": "0"}, timeout=600)
        said = done.stdout + done.stderr
        check.true(done.returncode == 0, said[-3000:])
        check.say(re.search(r"test result: (.*)\. \d+ ignored|test result: (.*)", said)[0])
