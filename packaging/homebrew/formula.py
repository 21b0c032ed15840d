"""Renders the Homebrew formula with the address and checksum of each tarball of this version."""

import argparse
import hashlib
from pathlib import Path

options = argparse.ArgumentParser()
for name in ("version", "url", "packages", "out"):
    options.add_argument(f"--{name}", required=True)
args = options.parse_args()

downloads = ""
for arch, block in (("x86_64", "on_intel"), ("aarch64", "on_arm")):
    # A static binary runs everywhere, so it comes first.
    for libc in ("musl", "gnu"):
        tarball = Path(args.packages) / f"octoprox-{args.version}-{arch}-unknown-linux-{libc}.tar.gz"
        if tarball.exists():
            digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
            downloads += f'  {block} do\n    url "{args.url.rstrip("/")}/{tarball.name}"\n    sha256 "{digest}"\n  end\n\n'
            break

template = (Path(__file__).parent / "octoprox.rb.in").read_text()
Path(args.out).write_text(template.replace("@VERSION@", args.version).replace("@DOWNLOADS@\n", downloads))
