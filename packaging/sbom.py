"""Writes the SBOM (CycloneDX 1.6) of the binary from Cargo.lock.

It lists the crates that the package octoprox needs, over all targets and features that the lock file resolves. The lock file does not
tell dev-dependencies of workspace members from others; their manifests do.
"""

import argparse
import datetime
import json
import os
import tomllib
import uuid
from pathlib import Path


def runtime_names(manifest: dict) -> set[str]:
    """Packages that a workspace member needs to build and run."""
    tables = [manifest, *manifest.get("target", {}).values()]
    return {spec.get("package", name) if isinstance(spec, dict) else name
            for table in tables for kind in ("dependencies", "build-dependencies") for name, spec in table.get(kind, {}).items()}


def purl(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("version", "workspace", "out"):
        options.add_argument(f"--{name}", required=True)
    args = options.parse_args()
    workspace = Path(args.workspace)
    lock = (workspace / "Cargo.lock").read_text()
    packages = tomllib.loads(lock)["package"]
    renamed = {name: spec["package"]
               for name, spec in tomllib.loads((workspace / "Cargo.toml").read_text())["workspace"]["dependencies"].items()
               if isinstance(spec, dict) and "package" in spec}
    members = {}
    for path in workspace.glob("crates/*/Cargo.toml"):
        manifest = tomllib.loads(path.read_text())
        members[manifest["package"]["name"]] = {renamed.get(name, name) for name in runtime_names(manifest)}

    by_name: dict[str, list[dict]] = {}
    for package in packages:
        by_name.setdefault(package["name"], []).append(package)

    def dependencies(package: dict) -> list[dict]:
        found = []
        for reference in package.get("dependencies", []):
            name, *version = reference.split(" ")
            if "source" not in package and name not in members[package["name"]]:
                continue  # a dev-dependency
            found += [one for one in by_name[name] if not version or one["version"] == version[0]]
        return found

    [root] = by_name["octoprox"]
    reached, waiting = {}, [root]
    while waiting:
        package = waiting.pop()
        if purl(package) not in reached:
            reached[purl(package)] = package
            waiting += dependencies(package)

    def component(package: dict) -> dict:
        entry = {"type": "application" if package is root else "library", "bom-ref": purl(package), "name": package["name"],
                 "version": package["version"], "purl": purl(package)}
        if package is root:
            entry["licenses"] = [{"license": {"id": "Apache-2.0"}}]
        if checksum := package.get("checksum"):
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return entry

    date = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, args.version + lock)}",
        "version": 1,
        "metadata": {"timestamp": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": component(root)},
        "components": [component(reached[ref]) for ref in sorted(reached) if reached[ref] is not root],
        "dependencies": [{"ref": ref, "dependsOn": sorted({purl(one) for one in dependencies(reached[ref])})} for ref in sorted(reached)],
    }
    if root["version"] != args.version:
        raise SystemExit(f"sbom: Cargo.lock has octoprox {root['version']}, the binary says {args.version}")
    Path(args.out).write_text(json.dumps(bom, indent=2) + "\n")


main()
