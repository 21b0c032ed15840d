"""Writes package.json of @octoprox/cli-linux-CPU, the package that holds the binary of one platform."""

import argparse
import json
from pathlib import Path

options = argparse.ArgumentParser()
for name in ("version", "cpu", "libc", "folder"):
    options.add_argument(f"--{name}", required=True)
args = options.parse_args()

package = {
    "name": f"@octoprox/cli-linux-{args.cpu}",
    "version": args.version,
    "description": f"The octoprox binary for Linux on {args.cpu}. Install the package octoprox instead.",
    "license": "Apache-2.0",
    "os": ["linux"],
    "cpu": [args.cpu],
    "preferUnplugged": True,
}
if args.libc == "gnu":
    package["libc"] = ["glibc"]

folder = Path(args.folder)
folder.mkdir(parents=True)
(folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
(folder / "README.md").write_text("The octoprox binary of one platform. Install `octoprox` instead: it selects the right one.\n")
