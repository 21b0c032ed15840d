"""Builds the wheel. It holds the binary as a script: pip and uvx put it on the PATH as it is, and no Python runs when it starts."""

import argparse
import base64
import hashlib
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fixed_zip import FixedZip  # noqa: E402

SUMMARY = "Tool hub for AI agents: native tools and a gateway to your MCP servers, in one binary"


def python_version(version: str) -> str:
    """1.2.3-rc.1 as PEP 440 writes it: 1.2.3rc1."""
    match = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if not match:
        sys.exit(f"build_wheel: PyPI has no form for the version {version}")
    return match[1] + (f"{ {'alpha': 'a', 'beta': 'b', 'rc': 'rc'}[match[2]] }{match[3]}" if match[2] else "")


def platform_tag(arch: str, glibc: str) -> str:
    """A static binary runs with any libc; one that is linked to glibc needs the release that has its symbols."""
    if not glibc:
        return f"manylinux_2_17_{arch}.musllinux_1_1_{arch}"
    major, minor = max(tuple(map(int, glibc.split("."))), (2, 17))
    return f"manylinux_{major}_{minor}_{arch}"


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("binary", "version", "arch", "glibc", "readme", "license", "out"):
        options.add_argument(f"--{name}", required=True)
    args = options.parse_args()
    version, platform = python_version(args.version), platform_tag(args.arch, args.glibc)
    info, data = f"octoprox-{version}.dist-info", f"octoprox-{version}.data"
    metadata = f"""\
Metadata-Version: 2.4
Name: octoprox
Version: {version}
Summary: {SUMMARY}
License-Expression: Apache-2.0
License-File: LICENSE
Keywords: mcp,model-context-protocol,agents,gateway
Description-Content-Type: text/markdown

{Path(args.readme).read_text()}"""
    tags = "".join(f"Tag: py3-none-{tag}\n" for tag in platform.split("."))
    files = {
        f"{data}/scripts/octoprox": Path(args.binary).read_bytes(),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: octoprox\nRoot-Is-Purelib: false\n{tags}".encode(),
        f"{info}/licenses/LICENSE": Path(args.license).read_bytes(),
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n"
        for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with FixedZip(os.path.join(args.out, f"octoprox-{version}-py3-none-{platform}.whl")) as wheel:
        for name, content in files.items():
            wheel.add(name, content, 0o755 if "/scripts/" in name else 0o644)


main()
