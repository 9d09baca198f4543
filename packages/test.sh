#!/usr/bin/env bash
# Builds, installs, and runs the packages of each channel from local files, and the examples that use them.
#   packages/test.sh [CHANNEL]...    without arguments, all but `crates`
# Each channel prints `CHANNEL: pass` or `skipped: admit packages CHANNEL: REASON`. ADMIT is the path of the binary;
# by default, cargo builds it.
set -euo pipefail
cd -P "$(dirname "$0")/.."
root=$PWD

usual=(go python npm java rust containers envtest manifests)
# `crates` compiles every crate twice, so it runs only on request.
channels=("${usual[@]}" crates)
[ $# != 0 ] || set -- "${usual[@]}"

target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
maven=(mvn -DfailIfNoTests=true --batch-mode --no-transfer-progress --quiet "-Dmaven.repo.local=$target/packages/maven")
if [ -z "${ADMIT:-}" ]; then
  cargo build --quiet --bin admit
  ADMIT=$target/debug/admit
fi
export ADMIT
scratch=$(mktemp -d)
server=
clean() {
  [ -z "$server" ] || kill "$server"
  # setup-envtest and the Go module cache create read-only directories.
  chmod -R u+w "$scratch"
  rm -rf "$scratch"
}
trap clean EXIT

# needs CHANNEL PROGRAM...: reports that the channel is skipped if a program is missing
needs() {
  local channel=$1 program
  shift
  for program in "$@"; do
    command -v "$program" >/dev/null || {
      echo "skipped: admit packages $channel: no $program on PATH"
      return 1
    }
  done
}

# needs_python_311: reports that the step is skipped if Python is older, which cannot read TOML
needs_python_311() {
  python3 -c 'import tomllib' 2>/dev/null || {
    echo 'skipped: admit packages: python3 is older than 3.11'
    return 1
  }
}

# offline COMMAND...: runs a command without a network, or with it if this system has no network namespaces
offline() {
  if unshare --user --map-root-user --net true 2>/dev/null; then
    # A new namespace has a loopback device that is down.
    unshare --user --map-root-user --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
  else
    echo 'no network namespaces: the network remains' >&2
    "$@"
  fi
}

# platform: this machine as the release names it, such as linux-x86_64
platform() {
  uname -sm | tr '[:upper:] ' '[:lower:]-'
}

# check_go_module DIR: checks the format and the requirements of a Go module, and runs its tests
check_go_module() {
  local module=$1 unformatted
  (
    cd "$module"
    unformatted=$(gofmt -l .)
    [ -z "$unformatted" ] || { echo "error: run gofmt -w in $module: $unformatted" >&2 && exit 1; }
    go mod tidy -diff
    go vet ./...
    go test -count=1 ./...
  )
}

# The Go module, its submodule, and the example with controller-runtime.
go_module() {
  needs go go || return 0
  local module
  for module in go/admittest go/admittest/rest examples/go; do
    check_go_module "$module"
  done
  echo 'go: pass'
}

# The wheel in a new virtual environment: the command, the module, the pytest plugin, and the example.
python_wheel() {
  needs python python3 || return 0
  # Debian has a separate package for it.
  python3 -c 'import ensurepip, venv' 2>/dev/null || {
    echo 'skipped: admit packages python: no venv in python3'
    return 0
  }
  local python=$scratch/venv/bin
  python3 packages/python/build.py --binary "$ADMIT" --platform "$(platform)" --out "$scratch/wheels" >/dev/null
  python3 -m venv "$scratch/venv"
  "$python/pip" install --quiet --disable-pip-version-check 'pytest>=7' "$scratch"/wheels/*.whl
  "$python/admit" --version
  offline "$python/admit" run --quiet features/rules.feature
  # Without ADMIT, the module uses the binary of the wheel.
  for tests in packages/python/tests examples/python; do
    offline env --unset=ADMIT PYTHONDONTWRITEBYTECODE=1 "$python/python" -m pytest --quiet -p no:cacheprovider "$tests"
  done
  echo 'python: pass'
}

# The npm packages in an empty project: the command, the module, and the example in TypeScript.
npm_packages() {
  needs npm node npm || return 0
  local packages=$scratch/npm project=$scratch/project archives own
  node packages/npm/build.mjs --out "$packages" "$(platform)=$ADMIT"
  own=$(cd "$packages" && echo "$(node -p 'process.platform')-$(node -p 'process.arch')")
  (cd "$packages" && npm pack --silent ./admit "./$own" >/dev/null)
  archives=("$packages"/*.tgz)
  cp -r examples/typescript "$project"
  # The packages of the other platforms, and those of the example, are not in the registry before a release.
  (
    cd "$project"
    npm pkg delete 'devDependencies.@admit-dev/admit'
    npm install --silent --no-audit --no-fund "${archives[@]}"
    npx admit --version
    offline node_modules/.bin/admit run --quiet "$root/features/rules.feature"
    unset ADMIT
    offline npm test --silent
    cp "$root/packages/npm/tests/admit.test.mjs" .
    offline node --test admit.test.mjs
  )
  echo 'npm: pass'
}

# The example in Rust, which uses the crate admit-testing.
rust() {
  # Naming the package alone would build its dependencies again with other features.
  cargo test --quiet --test webhook
  echo 'rust: pass'
}

# The JUnit extension, installed in a local repository, and the example.
junit() {
  needs java mvn javac || return 0
  "${maven[@]}" --file packages/junit/pom.xml -Dfolder="$scratch/junit" install
  "${maven[@]}" --file examples/java/pom.xml -Dfolder="$scratch/java" test
  echo 'java: pass'
}

# The Testcontainers modules for Go and Java. ADMIT_IMAGE is the image; by default, the one that tools/images.sh builds.
containers() {
  needs containers docker go mvn javac || return 0
  local version error
  version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
  export ADMIT_IMAGE=${ADMIT_IMAGE:-admit:$version}
  if ! error=$(docker image inspect "$ADMIT_IMAGE" 2>&1 >/dev/null); then
    echo "skipped: admit packages containers: ${error//$'\n'/ } (\`just image admit\` builds it)"
    return 0
  fi
  # Ryuk removes the containers of a test that was killed. Its image would have to be downloaded.
  export TESTCONTAINERS_RYUK_DISABLED=true
  check_go_module go/admittest/container
  "${maven[@]}" --file packages/testcontainers/pom.xml -Dfolder="$scratch/testcontainers" install
  echo 'containers: pass'
}

# The crates: each one compiles from its archive, and the command is installed from source and runs.
crates() {
  cargo package --quiet --locked --allow-dirty --workspace --exclude tests --exclude benches --exclude mirror
  # The binary chooses the version of k8s-openapi: a user of `cargo install` does not have the variable of
  # .cargo/config.toml, which is empty here. A string cannot be replaced with a table that has `force`.
  env --unset=K8S_OPENAPI_ENABLED_VERSION cargo --config 'env.K8S_OPENAPI_ENABLED_VERSION=""' \
    install --quiet --locked --debug --path . --root "$scratch/cargo" --target-dir "$target"
  "$scratch/cargo/bin/admit" --version
  "$scratch/cargo/bin/admit" run --quiet features/rules.feature
  echo 'crates: pass'
}

# archives DIR: writes archives like those of a release. The one for this machine contains the binary, the others a text.
archives() {
  local name machine
  [ ! -e "$1/SHA256SUMS" ] || return 0
  machine=$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]')
  mkdir -p "$1" "$scratch/other" "$scratch/own"
  echo 'a binary for another platform' >"$scratch/other/admit"
  cp "$ADMIT" "$scratch/own/admit"
  # A debug build without debug information is compressed much faster.
  ! command -v strip >/dev/null || strip "$scratch/own/admit"
  for name in x86_64-linux aarch64-linux x86_64-darwin arm64-darwin; do
    local content=$scratch/other
    [ "$name" != "$machine" ] || content=$scratch/own
    tar -czf "$1/admit-$name.tar.gz" LICENSE -C "$content" admit
  done
  (cd "$1" && sha256sum admit-*.tar.gz >SHA256SUMS)
}

# serve DIR: serves a directory on loopback and sets `url`
serve() {
  # The shell that starts the server in the background may open the log later than it is read.
  : >"$scratch/serve.log"
  python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$1" >"$scratch/serve.log" 2>&1 &
  server=$!
  url=
  while [ -z "$url" ]; do
    kill -0 "$server" || { cat "$scratch/serve.log" >&2 && exit 1; }
    sleep 0.05
    url=$(sed -n 's|.*(\(http://[0-9.:]*\)/).*|\1|p' "$scratch/serve.log")
  done
}

# setup-envtest installs admit from an index on loopback, and an envtest suite runs on it.
setup_envtest() {
  needs envtest go python3 || return 0
  local url assets bin=$scratch/bin
  archives "$scratch/archives"
  mkdir -p "$scratch/envtest"
  serve "$scratch/envtest"
  packages/release.py envtest --archives "$scratch/archives" --out "$scratch/envtest" --base-url "$url"
  GOBIN=$bin go install sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1
  assets=$("$bin/setup-envtest" use 1.37.x --index "$url/envtest-releases.yaml" --bin-dir "$scratch/binaries" -p path)
  kill "$server"
  server=
  ls "$assets"
  (cd examples/go && KUBEBUILDER_ASSETS=$assets go test -count=1 -run Envtest -v . | grep -- '--- PASS')

  # The script kubectl runs the one on PATH, and not itself.
  mkdir "$scratch/kubectl"
  printf '#!/bin/sh\necho "kubectl of PATH: $*"\n' >"$scratch/kubectl/kubectl"
  chmod +x "$scratch/kubectl/kubectl"
  PATH="$assets:$scratch/kubectl:$PATH" kubectl get pods | grep -x 'kubectl of PATH: get pods'
  local status=0 program
  mkdir "$scratch/without"
  for program in dirname grep head; do ln -s "$(command -v $program)" "$scratch/without"; done
  PATH="$assets:$scratch/without" kubectl 2>"$scratch/error" || status=$?
  if [ "$status" != 127 ] || ! grep '^error: no kubectl on PATH' "$scratch/error"; then
    echo "error: without a kubectl, the script exits with $status" >&2 && exit 1
  fi
  echo 'envtest: pass'
}

# The Homebrew formula, the krew and Scoop manifests, the Nix expression, and the checksums of the Go module.
manifests() {
  needs manifests python3 && needs_python_311 || return 0
  local out=$scratch/manifests archive
  archive=admit-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]').tar.gz
  archives "$scratch/archives"
  packages/release.py manifests --sums "$scratch/archives/SHA256SUMS" --out "$out"
  python3 - <<'END'
import re, tomllib
from pathlib import Path

assets = set(re.findall(r"asset: (\S+)", Path(".github/workflows/release.yml").read_text()))
cargo = tomllib.loads(Path("Cargo.toml").read_text())
overrides = cargo["package"]["metadata"]["binstall"]["overrides"]
named = {target["pkg-url"].rpartition("/")[2] for target in overrides.values()}
assert named == assets, f"cargo-binstall downloads {named}, and the release has {assets}"

version = cargo["workspace"]["package"]["version"]
for name, dependency in cargo["workspace"]["dependencies"].items():
    if "path" in dependency:
        assert dependency["version"] == version, f"{name} has another version under [workspace.dependencies]"
for file, line in {
    "go/admittest/checksums.go": f'const Version = "{version}"\n',
    "packages/junit/pom.xml": f"<artifactId>admit-junit</artifactId>\n  <version>{version}</version>\n",
    "packages/testcontainers/pom.xml": f"<artifactId>admit-testcontainers</artifactId>\n  <version>{version}</version>\n",
    "examples/java/pom.xml": f"<artifactId>admit-junit</artifactId>\n      <version>{version}</version>\n",
    "examples/typescript/package.json": f'"@admit-dev/admit": "{version}"',
}.items():
    assert line in Path(file).read_text(), f"{file} has another version than Cargo.toml: {version}"
END
  [ ! -e "$out/admit.json" ] || { echo 'error: there is a Scoop manifest, but no archive for Windows' >&2 && exit 1; }
  echo "$(printf '0%.0s' {1..64})  admit-x86_64-windows.zip" | cat "$scratch/archives/SHA256SUMS" - >"$scratch/windows-sums"
  packages/release.py manifests --sums "$scratch/windows-sums" --out "$out"
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["architecture"]["64bit"]["hash"] == "0" * 64' "$out/admit.json"
  if grep -n '@' "$out"/*; then
    echo 'error: a placeholder remains' >&2 && exit 1
  fi

  # The checksums belong to no release: they are written to a copy.
  mkdir -p "$scratch/copy/packages"
  cp packages/release.py "$scratch/copy/packages"
  cp Cargo.toml "$scratch/copy"
  cp -r --parents go/admittest "$scratch/copy"
  "$scratch/copy/packages/release.py" checksums --sums "$scratch/archives/SHA256SUMS"
  grep -c '^[[:space:]]*"admit-.*": *"[0-9a-f]\{64\}",$' "$scratch/copy/go/admittest/checksums.go" | grep -qx 4
  if needs manifests-go gofmt; then
    [ -z "$(gofmt -l "$scratch/copy/go/admittest")" ]
  fi

  if needs krew go git; then
    export KREW_ROOT=$scratch/krew KREW_NO_UPGRADE_CHECK=1
    GOBIN=$scratch/bin go install sigs.k8s.io/krew/cmd/krew@v0.5.0
    "$scratch/bin/krew" install --manifest "$out/krew.yaml" --archive "$scratch/archives/$archive" 2>"$scratch/krew.log" ||
      { cat "$scratch/krew.log" >&2 && exit 1; }
    "$KREW_ROOT/bin/kubectl-admit" --version
    echo 'krew: pass'
  fi
  if needs homebrew ruby; then
    ruby -c "$out/admit.rb"
    echo 'homebrew: pass (syntax)'
  fi
  if needs nix nix-instantiate; then
    nix-instantiate --parse "$out/default.nix" >/dev/null
    echo 'nix: pass (syntax)'
  fi
  if needs sbom cargo && needs_python_311; then
    packages/sbom.py >"$out/admit.cdx.json"
    grep -q '"bom-ref": "pkg:cargo/admit@' "$out/admit.cdx.json"
    grep -q '"bom-ref": "pkg:cargo/rustls@' "$out/admit.cdx.json"
    if grep 'pkg:cargo/mirror' "$out/admit.cdx.json"; then
      echo 'error: the bill of materials contains a package of tests' >&2 && exit 1
    fi
    echo 'sbom: pass'
  fi
  if needs build.sh node npm; then
    packages/build.sh "$scratch/archives" "$scratch/dist"
    [ "$(find "$scratch/dist" -name '*.whl' | wc -l)" = 4 ]
    [ "$(find "$scratch/dist" -name 'admit-dev-*.tgz' | wc -l)" = 5 ]
    [ "$(find "$scratch/dist" -name 'envtest-*' | wc -l)" = 5 ]
    [ -e "$scratch/dist/admit.rb" ] && [ -e "$scratch/dist/krew.yaml" ] && [ -e "$scratch/dist/default.nix" ]
    echo 'build.sh: pass'
  fi
  echo 'manifests: pass'
}

for channel in "$@"; do
  case $channel in
  go) go_module ;;
  python) python_wheel ;;
  npm) npm_packages ;;
  java) junit ;;
  rust) rust ;;
  containers) containers ;;
  crates) crates ;;
  envtest) setup_envtest ;;
  manifests) manifests ;;
  *) echo "error: unknown channel $channel: must be one of ${channels[*]}" >&2 && exit 2 ;;
  esac
done
