#!/usr/bin/env python3
"""Renders the files of a release from its archives.

  release.py envtest --archives DIR --out DIR --base-url URL
      Write an archive for setup-envtest from each archive of the release, and the index envtest-releases.yaml.
  release.py manifests --sums SHA256SUMS --out DIR [--base-url URL]
      Write the Homebrew formula, the krew manifest, the Nix expression, and, if the release has an archive for
      Windows, the Scoop manifest.
  release.py checksums --sums SHA256SUMS
      Write the checksums into go/admittest/checksums.go.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "packages" / "templates"

# The archives of a release, with the names of Go for their platforms.
ARCHIVES = {
    "admit-x86_64-linux.tar.gz": ("linux", "amd64"),
    "admit-aarch64-linux.tar.gz": ("linux", "arm64"),
    "admit-x86_64-darwin.tar.gz": ("darwin", "amd64"),
    "admit-arm64-darwin.tar.gz": ("darwin", "arm64"),
}

# The templates for archives that a release may lack.
OPTIONAL = {"admit.json": "admit-x86_64-windows.zip"}


def manifest_field(pattern: str, path: str) -> str:
    found = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: {path} does not match {pattern}")
    return found.group(1)


def version() -> str:
    return manifest_field(r'^version = "(.*)"$', "Cargo.toml")


def kubernetes_version() -> str:
    """Returns the version of Kubernetes that admit supports, such as 1.37.1."""
    return manifest_field(r"^\tk8s\.io/kubernetes v(\S+)", "conformance/kubernetes/control-plane/go.mod")


def read_sums(path: Path) -> dict[str, str]:
    """Reads the output of sha256sum, which must contain the archives of all platforms."""
    sums = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.fullmatch(r"([0-9a-f]{64}) [ *](\S+)", line)
        if found is None:
            raise SystemExit(f"error: {path}:{number}: must be a SHA-256 checksum and a file name")
        sums[found.group(2)] = found.group(1)
    missing = sorted(set(ARCHIVES) - set(sums))
    if missing:
        raise SystemExit(f"error: {path} does not contain {', '.join(missing)}")
    return sums


def checksums(sums: dict[str, str]) -> None:
    file = ROOT / "go" / "admittest" / "checksums.go"
    source = file.read_text()
    width = max(map(len, ARCHIVES)) + 3
    lines = "".join(f'\t{chr(34) + name + chr(34) + ":":<{width}} "{sums[name]}",\n' for name in sorted(ARCHIVES))
    source = re.sub(r'const Version = ".*"', f'const Version = "{version()}"', source)
    source = re.sub(r"map\[string\]string\{[^}]*\}", lambda _: f"map[string]string{{\n{lines}}}", source)
    file.write_text(source)


def manifests(sums: dict[str, str], out: Path, base_url: str) -> None:
    values = {"VERSION": version(), "BASE_URL": base_url}
    values |= {name: sums[name] for name in ARCHIVES}
    values |= {name: sums[name] for name in OPTIONAL.values() if name in sums}
    out.mkdir(parents=True, exist_ok=True)
    for template in sorted(TEMPLATES.iterdir()):
        if OPTIONAL.get(template.name, "VERSION") not in values:
            continue
        rendered = re.sub(r"@([^@\s]+)@", lambda found: values[found.group(1)], template.read_text())
        (out / template.name).write_text(rendered)


def envtest(archives: Path, out: Path, base_url: str) -> None:
    """setup-envtest ignores links: the archive contains two copies of admit. It has no kubectl, only a script."""
    kubernetes = kubernetes_version()
    out.mkdir(parents=True, exist_ok=True)
    index = [f"releases:\n  v{kubernetes}:\n"]
    found = [name for name in ARCHIVES if (archives / name).exists()]
    if not found:
        raise SystemExit(f"error: {archives} does not contain an archive of the release")
    for name in found:
        system, machine = ARCHIVES[name]
        with tarfile.open(archives / name) as archive:
            admit = archive.extractfile("admit").read()
        kubectl = (ROOT / "packages" / "envtest" / "kubectl").read_bytes()
        content = io.BytesIO()
        # Without times, the archive depends only on its contents.
        with gzip.GzipFile(fileobj=content, mode="wb", mtime=0, compresslevel=6) as zipped:
            with tarfile.open(fileobj=zipped, mode="w") as archive:
                for program, data in {"kube-apiserver": admit, "etcd": admit, "kubectl": kubectl}.items():
                    entry = tarfile.TarInfo(f"controller-tools/envtest/{program}")
                    entry.size, entry.mode = len(data), 0o755
                    archive.addfile(entry, io.BytesIO(data))
        file = f"envtest-v{kubernetes}-{system}-{machine}.tar.gz"
        (out / file).write_bytes(content.getvalue())
        digest = hashlib.sha512(content.getvalue()).hexdigest()
        index.append(f"    {file}:\n      hash: {digest}\n      selfLink: {base_url}/{file}\n")
    (out / "envtest-releases.yaml").write_text("".join(index))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["envtest", "manifests", "checksums"])
    parser.add_argument("--archives", type=Path, help="the directory of the archives")
    parser.add_argument("--sums", type=Path, help="the checksums of the archives")
    parser.add_argument("--out", type=Path, help="write to this directory")
    parser.add_argument("--base-url", default=f"https://github.com/admit-dev/admit/releases/download/v{version()}")
    options = parser.parse_args()
    required = {"envtest": ["archives", "out"], "manifests": ["sums", "out"], "checksums": ["sums"]}
    for name in required[options.command]:
        if getattr(options, name) is None:
            parser.error(f"{options.command} requires --{name}")
    if options.command == "envtest":
        envtest(options.archives, options.out, options.base_url)
    elif options.command == "manifests":
        manifests(read_sums(options.sums), options.out, options.base_url)
    else:
        checksums(read_sums(options.sums))


if __name__ == "__main__":
    main()
