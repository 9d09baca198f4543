#!/usr/bin/env bash
# Runs assets-python and assets-java on the binaries of `admit assets` and, with KUBEBUILDER_ASSETS, on the real binaries.
# Requires Python with pip, and Java 17 with Maven and kubectl; examples with missing tools are skipped.
#   examples/run.sh [python|java]...    without arguments, both
set -euo pipefail
cd "$(dirname "$0")"
[ $# != 0 ] || set -- python java

cargo build --quiet --manifest-path ../Cargo.toml --bin admit
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
real=${KUBEBUILDER_ASSETS:-}
# Both use the real kubectl.
folders=("$(PATH=${real:+$real:}$PATH "$target/debug/admit" assets --dir "$scratch/assets")")
[ -z "$real" ] || folders+=("$real")

# needs EXAMPLE PROGRAM...: reports that the example is skipped if a program is missing
needs() {
  local example=$1 program
  shift
  for program in "$@"; do
    command -v "$program" >/dev/null || {
      echo "skipped: admit examples $example: no $program on PATH"
      return 1
    }
  done
}

python() {
  needs python python3 || return 0
  # Debian has a separate package for it.
  python3 -c 'import ensurepip, venv' 2>/dev/null || {
    echo 'skipped: admit examples python: no venv in python3'
    return 0
  }
  python3 -m venv "$target/examples/python"
  "$target/examples/python/bin/pip" install --quiet --disable-pip-version-check --requirement assets-python/requirements.txt
  for assets in "${folders[@]}"; do
    echo "python, on $assets"
    KUBEBUILDER_ASSETS=$assets PYTHONDONTWRITEBYTECODE=1 "$target/examples/python/bin/python" -m pytest \
      --quiet -p no:cacheprovider --basetemp="$scratch/python" assets-python
  done
}

java() {
  PATH=${real:+$real:}$PATH needs java mvn javac kubectl || return 0
  local machine number=0
  machine=$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
  for assets in "${folders[@]}"; do
    echo "java, on $assets"
    # The folder of binaries and certificates for kube-api-test.
    local home=$scratch/java$((number++))
    mkdir -p "$home/k8s"
    ln -s "$assets" "$home/k8s/1.37.1-$machine"
    KUBE_API_TEST_DIR=$home mvn --batch-mode --no-transfer-progress --file assets-java/pom.xml -Dfolder="$target/examples/java" test
  done
}

for example in "$@"; do
  case $example in
  python | java) "$example" ;;
  *) echo "error: unknown example $example: must be python or java" >&2 && exit 2 ;;
  esac
done
