"""Builds the MCP bundle: a zip file with manifest.json and the binary, which desktop clients install with a click."""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fixed_zip import FixedZip  # noqa: E402

options = argparse.ArgumentParser()
for name in ("binary", "version", "license", "out"):
    options.add_argument(f"--{name}", required=True)
args = options.parse_args()

manifest = json.loads((Path(__file__).parent / "manifest.json").read_text())
manifest["version"] = args.version
with FixedZip(args.out) as bundle:
    bundle.add("manifest.json", (json.dumps(manifest, indent=2) + "\n").encode())
    bundle.add("LICENSE", Path(args.license).read_bytes())
    bundle.add(manifest["server"]["entry_point"], Path(args.binary).read_bytes(), 0o755)
