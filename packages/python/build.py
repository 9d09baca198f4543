#!/usr/bin/env python3
"""Builds a wheel with the module admit and an existing admit binary. Requires only Python."""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The Linux binaries are linked statically.
PLATFORMS = {
    "linux-x86_64": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "darwin-x86_64": "macosx_11_0_x86_64",
    "darwin-arm64": "macosx_11_0_arm64",
}

METADATA = """\
Metadata-Version: 2.3
Name: admit
Version: {version}
Summary: Test admission webhooks as kube-apiserver calls them, without a cluster
License: Apache-2.0
Project-URL: Source, https://github.com/admit-dev/admit
Classifier: Framework :: Pytest
Requires-Python: >=3.9
Description-Content-Type: text/markdown

"""

WHEEL = """\
Wheel-Version: 1.0
Generator: admit
Root-Is-Purelib: false
"""

ENTRY_POINTS = """\
[pytest11]
admit = admit.pytest_plugin
"""


def version() -> str:
    """Returns the version in Cargo.toml."""
    manifest = (HERE.parents[1] / "Cargo.toml").read_text()
    return re.search(r'^version = "(.*)"$', manifest, re.MULTILINE).group(1)


def build(binary: Path, platform: str, out: Path) -> Path:
    tags = PLATFORMS[platform]
    name = f"admit-{version()}"
    info = f"{name}.dist-info"
    expanded = [f"py3-none-{tag}" for tag in tags.split(".")]
    files: dict[str, bytes] = {
        f"admit/{path.name}": path.read_bytes() for path in sorted((HERE / "admit").iterdir()) if path.is_file()
    }
    files[f"{name}.data/scripts/admit"] = binary.read_bytes()
    readme = (HERE / "README.md").read_text()
    files[f"{info}/METADATA"] = (METADATA.format(version=version()) + readme).encode()
    files[f"{info}/WHEEL"] = (WHEEL + "".join(f"Tag: {tag}\n" for tag in expanded)).encode()
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    files[f"{info}/licenses/LICENSE"] = (HERE.parents[1] / "LICENSE").read_bytes()
    record = f"{info}/RECORD"
    lines = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()

    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-py3-none-{tags}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # A fixed time makes the wheel reproducible.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(entry, content, compresslevel=6)
    return wheel


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True, help="put this binary into the wheel")
    parser.add_argument("--platform", choices=PLATFORMS, required=True, help="the platform of the binary")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="write the wheel to this directory")
    options = parser.parse_args()
    print(build(options.binary, options.platform, options.out))


if __name__ == "__main__":
    main()
