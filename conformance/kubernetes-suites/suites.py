#!/usr/bin/env python3
"""Runs Kubernetes' integration tests on admit, and compares the results with those of kube-apiserver.

    suites.py run [PACKAGE...]      runs the packages, such as apiserver/cel, or all packages of results.json, and fails if a
                                    result is not the recorded one. A test that newly fails on admit also runs on kube-apiserver
    suites.py record [PACKAGE...]   runs the packages on admit, and the tests that do not pass there on kube-apiserver, and
                                    records the results
    suites.py page [--check]        writes docs/project/kubernetes-tests.md from results.json, or fails if it is outdated

Options of run and record:
    --only REGEX      only the test functions that match
    --admit PATH      the admit command; by default the repository is built
    --limit SECONDS   time limit for a test function; 300 by default

Needs Go, and KUBEBUILDER_ASSETS with etcd, kube-apiserver, and kubectl. The logs are in target/kubernetes-suites/logs.
"""

import argparse
import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target" / "kubernetes-suites"
RESULTS = HERE / "results.json"
REPLACEMENTS = HERE / "_replacements"

# The lines of `go test -v` that report results.
RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(", re.M)
OUTCOMES = {"PASS": "pass", "FAIL": "fail", "SKIP": "skip"}

# The modules whose tests run. go.mod expects their sources in TARGET.
EXTENSIONS = "apiextensions-apiserver"
MODULES = ("kubernetes", EXTENSIONS)

SERVERS = ("admit", "kube-apiserver")


def main():
    options = parse_options()
    results = load()
    if options.command == "page":
        return page.check(results) if options.check else page.write(results)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        sys.exit("suites.py: set KUBEBUILDER_ASSETS: export KUBEBUILDER_ASSETS=$(conformance/kubernetes/build)")
    runner = Runner(Path(assets), prepare_admit(options.admit), options.limit)
    prepare_sources()
    complaints, count = [], 0
    for package in options.packages or [name for name, functions in results["packages"].items() if functions]:
        compile_tests(package)
        functions = [function for function in runner.functions(package) if re.search(options.only, function)]
        recorded = results["packages"].get(package, {})
        count += len(functions)
        if options.command == "run":
            missing = [name for name in recorded if re.search(options.only, name) and name not in functions]
            complaints += [f"{package} {name}: recorded, but the package does not have it" for name in missing]
            for function in functions:
                complaints += compare(runner, package, function, recorded.get(function))
            continue
        for server in SERVERS:
            for function in functions:
                record(runner, server, package, function)
    if not count:
        complaints.append("no test function was run")
    if options.command == "record":
        page.write(load())
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page").add_argument("--check", action="store_true")
    for name in ("run", "record"):
        command = commands.add_parser(name)
        command.add_argument("packages", nargs="*", metavar="PACKAGE")
        command.add_argument("--only", default="", metavar="REGEX")
        command.add_argument("--admit", type=Path, metavar="PATH")
        command.add_argument("--limit", type=int, default=300, metavar="SECONDS")
    return parser.parse_args()


def compare(runner, package, function, recorded):
    """Returns how the result of a test function on admit differs from the recorded one."""
    admit = runner.run("admit", package, function)
    name = f"{package} {function}"
    if not recorded:
        if admit["result"] in ("pass", "skip"):
            return []
        recorded = {"admit": {"result": "pass"}}
    expected = recorded["admit"]
    if admit["result"] == "pass" and expected["result"] != "pass":
        return [f"{name} passes: record it"]
    if admit["result"] == "skip" and expected["result"] == "pass":
        return [f"{name} is skipped; recorded: pass"]
    failed, known = set(admit.get("failed", [])), set(expected.get("failed", []))
    complaints = [f"{name}: {subtest} passes: record it" for subtest in sorted(known - failed)] if admit["result"] == expected["result"] else []
    if admit["result"] != expected["result"] or failed - known:
        real = runner.run("kube-apiserver", package, function)
        if page.differs(admit, real):
            complaints.append(f"{name}: {admit['result']} on admit, {real['result']} on kube-apiserver; recorded on admit: {expected['result']}")
            complaints += [f"  {subtest}" for subtest in sorted(failed - known - set(real.get("failed", [])))]
    return complaints


def record(runner, server, package, function):
    """Records the result of a test function: on kube-apiserver only if it does not pass on admit."""
    entry = load()["packages"].get(package, {}).get(function, {})
    passes = server == "kube-apiserver" and entry["admit"]["result"] in ("pass", "skip")
    result = None if passes else runner.run(server, package, function)
    # Reads the file again, so that reasons can be written while a test runs.
    results = load()
    entry = results["packages"].setdefault(package, {}).setdefault(function, {})
    if passes:
        entry.pop("kube-apiserver", None)
        entry.pop("reason", None)
    else:
        entry[server] = result
    results["date"] = datetime.date.today().isoformat()
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def load():
    return json.loads(RESULTS.read_text())


class Runner:
    """Runs test functions, each in its own process."""

    def __init__(self, assets, admit, limit):
        self.assets, self.limit = assets, limit
        self.servers = {"admit": admit / "kube-apiserver", "kube-apiserver": assets / "kube-apiserver"}

    def functions(self, package):
        listed = self.start("admit", package, ["-test.list", "^Test"], TARGET / "logs" / "list.log")
        return [line for line in listed[1].splitlines() if line.startswith("Test")]

    def run(self, server, package, function):
        """Returns the result of a test function, the number of its subtests that pass, and the subtests that fail."""
        log = TARGET / "logs" / server / package / f"{function}.log"
        arguments = ["-test.v", f"-test.run=^{function}$", f"-test.timeout={self.limit}s", "-test.parallel=4"]
        finished, output = self.start(server, package, arguments, log)
        tests = {name: result for result, name in RESULT.findall(output)}
        leaves = {name: result for name, result in tests.items() if not any(other.startswith(name + "/") for other in tests)}
        timed_out = not finished or "panic: test timed out" in output
        result = {"result": OUTCOMES.get(tests.get(function), "timeout" if timed_out else "fail")}
        leaves.pop(function, None)
        if leaves and all(outcome == "SKIP" for outcome in leaves.values()):
            result["result"] = "skip"
        if leaves:
            result["passed"] = sum(outcome == "PASS" for outcome in leaves.values())
        failed = [name.removeprefix(function + "/") for name, outcome in leaves.items() if outcome == "FAIL"]
        if failed:
            result["failed"] = sorted(failed)
        print(f"{server}: {package} {function}: {result['result']}, {result.get('passed', 0)} of {len(leaves)} subtests pass", flush=True)
        return result

    def start(self, server, package, arguments, log):
        """Runs a test binary, and returns whether it finished in time, and its output."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
            open(log, "wb") as output,
            etcd(self.assets, scratch) if package.startswith(EXTENSIONS) else contextlib.nullcontext({}) as storage,
        ):
            environment = os.environ | storage | {
                "PATH": f"{self.assets}:{os.environ['PATH']}",
                "TMPDIR": scratch,
                "SUITES_SERVER": str(self.servers[server]),
                "SUITES_ADMIT": "true" if server == "admit" else "",
                "SUITES_LOGS": str(log.parent),
            }
            # Clients send the name of the program as user agent, and tests expect the name that `go test` uses.
            name = f"{Path(package).name}.test"
            process = subprocess.Popen(
                [name, *arguments], executable=binary(package), cwd=working_directory(package), env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )
            finished = True
            try:
                process.wait(self.limit + 20)
            except subprocess.TimeoutExpired:
                finished = False
            finally:
                stop_group(process)
        return finished, log.read_text(errors="replace")


@contextlib.contextmanager
def etcd(assets, directory):
    """Runs etcd, and returns the variable with its URL. Tests of the module kubernetes start their own."""
    with socket.socket() as client, socket.socket() as peer:
        for listener in (client, peer):
            listener.bind(("127.0.0.1", 0))
        url, peer_url = (f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in (client, peer))
    process = subprocess.Popen([
        assets / "etcd", f"--data-dir={directory}/etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}", "--log-level=error",
    ])
    try:
        yield {"KUBE_INTEGRATION_ETCD_URL": url}
    finally:
        process.kill()
        process.wait()


def stop_group(process):
    """Stops a process, and the servers that it has left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def binary(package):
    return TARGET / "tests" / (package.replace("/", "-") + ".test")


def prepare_admit(command):
    """Returns the directory with admit as kube-apiserver."""
    if not command:
        subprocess.run(["cargo", "build", "--quiet", "--bin", "admit"], cwd=ROOT, check=True)
        command = ROOT / "target" / "debug" / "admit"
    assets = TARGET / "admit"
    subprocess.run([command, "assets", "--dir", assets], check=True, stdout=subprocess.DEVNULL)
    return assets


def prepare_sources():
    """Links the sources of the modules to where go.mod expects them, and lists the replaced files."""
    versions = HERE.parent / "kubernetes" / "control-plane"
    names = [f"k8s.io/{module}" for module in MODULES]
    subprocess.run(["go", "mod", "download", *names], cwd=versions, check=True)
    listed = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", *names], cwd=versions, check=True, capture_output=True, text=True)
    TARGET.mkdir(parents=True, exist_ok=True)
    for module, directory in zip(MODULES, listed.stdout.splitlines(), strict=True):
        link = TARGET / module
        if not link.exists() or str(link.readlink()) != directory:
            link.unlink(missing_ok=True)
            link.symlink_to(directory)
    overlay = {str(TARGET / path.relative_to(REPLACEMENTS)): str(path) for path in REPLACEMENTS.rglob("*.go")}
    (TARGET / "overlay.json").write_text(json.dumps({"Replace": overlay}))


def module_path(package):
    """Returns the module of a package, and the path of the package in it."""
    module, _, rest = package.partition("/")
    return (EXTENSIONS, f"test/{rest}") if module == EXTENSIONS else ("kubernetes", f"test/integration/{package}")


def working_directory(package):
    """Returns a copy of the directory of a package, because scripts in the module cache are not executable."""
    module, path = module_path(package)
    copy = TARGET / "packages" / (TARGET / module).readlink().name / path
    if not copy.exists():
        shutil.copytree(TARGET / module / path, copy)
        for script in copy.rglob("*.sh"):
            script.chmod(0o444 if "not-executable" in script.name else 0o555)
    return copy


def compile_tests(package):
    """Compiles the tests of a package. -trimpath shares compiled packages with conformance/kubernetes/build."""
    compiled = subprocess.run(
        ["go", "test", "-c", "-trimpath", "-ldflags=-s -w", f"-overlay={TARGET / 'overlay.json'}", "-o", binary(package),
         "/".join(["k8s.io", *module_path(package)])],
        cwd=HERE, env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
    )
    if compiled.returncode:
        sys.exit(f"suites.py: the tests of {package} do not compile")


if __name__ == "__main__":
    sys.exit(main())
