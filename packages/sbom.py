#!/usr/bin/env python3
"""Prints the software bill of materials of the admit command: CycloneDX 1.5 in JSON. Requires cargo and Python 3.11."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(ROOT / "Cargo.toml")]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in locked}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

    # Only what the command contains or what builds it: no dependencies of tests.
    [root] = [package["id"] for package in metadata["packages"] if package["name"] == "admit"]
    edges: dict[str, list[str]] = {}
    remaining = [root]
    while remaining:
        package = remaining.pop()
        if package in edges:
            continue
        edges[package] = sorted(
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
        )
        remaining += edges[package]

    def purl(package: str) -> str:
        return f"pkg:cargo/{packages[package]['name']}@{packages[package]['version']}"

    def component(package: str) -> dict:
        described = packages[package]
        name, version = described["name"], described["version"]
        result = {"type": "library", "bom-ref": purl(package), "name": name, "version": version, "purl": purl(package)}
        if described["license"]:
            # Some crates use the old separator.
            result["licenses"] = [{"expression": described["license"].replace("/", " OR ")}]
        if checksums[name, version]:
            result["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
        return result

    ordered = sorted(edges, key=purl)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(root) | {"type": "application"}},
        "components": [component(package) for package in ordered if package != root],
        "dependencies": [
            {"ref": purl(package), "dependsOn": [purl(dependency) for dependency in edges[package]]}
            for package in ordered
        ],
    }
    json.dump(bom, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
