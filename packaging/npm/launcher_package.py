"""Writes the npm package octoprox: the launcher, with the platform packages of this version as optional dependencies."""

import argparse
import json
import re
import shutil
from pathlib import Path

options = argparse.ArgumentParser()
for name in ("version", "packages", "folder"):
    options.add_argument(f"--{name}", required=True)
args = options.parse_args()

platforms = sorted(match[1] for file in Path(args.packages).iterdir()
                   if (match := re.fullmatch(rf"octoprox-cli-(.+?)-{re.escape(args.version)}\.tgz", file.name)))
folder = Path(args.folder)
shutil.copytree(Path(__file__).parent / "launcher", folder)
package = {
    "name": "octoprox",
    "version": args.version,
    "description": "Tool hub for AI agents: native tools and a gateway to your MCP servers, in one binary",
    "license": "Apache-2.0",
    "keywords": ["mcp", "model-context-protocol", "agents", "gateway"],
    "bin": {"octoprox": "octoprox.js"},
    "engines": {"node": ">=18"},
    "optionalDependencies": {f"@octoprox/cli-{platform}": args.version for platform in platforms},
}
(folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
(folder / "octoprox.js").chmod(0o755)
(folder / "README.md").chmod(0o644)
