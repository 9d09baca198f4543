"""Starts admit, an API server that calls admission webhooks as kube-apiserver does, for tests."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sysconfig
import tempfile
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, Callable, Union
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from ._record import Call, Change, Request, read_records

__all__ = ["Call", "Change", "Request", "Server", "StatusError", "binary", "start"]

_STOP_TIMEOUT = 10
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
_SEPARATOR = re.compile(r"^---.*$", re.MULTILINE)
_KIND = re.compile(r"""^kind: *["']?(Mutating|Validating)WebhookConfiguration\b""", re.MULTILINE)
# A CA certificate or a placeholder. `register` replaces it, and the server rejects a placeholder.
_CA_BUNDLE = re.compile(r"""\bcaBundle: *(\$\{[^}]*\}|"[^"]*"|'[^']*'|[^\s,}|>"'][^\s,}]*)""")
_FROM_SOURCE = "build admit from source: cargo install --locked --git https://github.com/admit-dev/admit admit"

_Path = Union[str, "os.PathLike[str]"]


class StatusError(Exception):
    """The server rejected a request."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code
        self.message = message


def binary() -> str:
    """Returns the path of the binary: `ADMIT`, the one that was installed with this module, or admit on `PATH`."""
    name = os.environ.get("ADMIT")
    if name:
        found = shutil.which(name)
        if found is None:
            raise FileNotFoundError(f"invalid environment variable ADMIT: {name} is not an executable file")
        return found
    found = shutil.which("admit", path=sysconfig.get_path("scripts")) or shutil.which("admit")
    if found is None:
        raise FileNotFoundError(f"admit not found: the wheel for this platform contains it; {_FROM_SOURCE}")
    return found


def start(*args: str, directory: _Path = ".") -> Server:
    """Starts an API server. `args` are additional arguments of `admit serve`; relative paths start at `directory`."""
    return Server(*args, directory=directory)


class Server:
    """A running API server. It stops when it is closed, or at the end of a `with` statement."""

    def __init__(self, *args: str, directory: _Path = "."):
        self._binary = binary()
        self._directory = Path(directory)
        with ExitStack() as stack:
            self._temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="admit-")))
            self.kubeconfig = str(self._temporary / "kubeconfig")
            """The path of a kubeconfig for a cluster administrator."""
            records = ["--record", str(self._temporary / "records")]
            process = self._run(stack, "serve", "--kubeconfig-out", self.kubeconfig, *records, *args)
            # The kubeconfig is complete when the second line, with its path, is printed.
            if not (process.stdout.readline() and process.stdout.readline()):
                raise RuntimeError(f"admit serve stopped: {self._log('serve')}")
            content = Path(self.kubeconfig).read_text()
            self.url = _field(content, "server")
            """The address of the server, such as `https://127.0.0.1:6443`."""
            self.token = _field(content, "token")
            """The bearer token of a cluster administrator."""
            self.ca = base64.b64decode(_field(content, "certificate-authority-data")).decode()
            """The PEM certificates that verify the server."""
            self._stack = stack.pop_all()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the server, its fakes, and the applications that `webhook` serves."""
        self._stack.close()

    def webhook(self, manifest: _Path, app: Callable[..., Any]) -> str:
        """Serves a WSGI application over TLS, registers the webhook configurations in a manifest, and returns the URL."""
        certificate = self._temporary / "webhook"
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca = self.certificate(certificate)
        tls.load_cert_chain(certificate / "tls.crt", certificate / "tls.key")
        server = self._stack.enter_context(
            make_server("127.0.0.1", 0, app, server_class=_Server, handler_class=_Handler)
        )
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(server.shutdown)
        url = f"https://127.0.0.1:{server.server_port}"
        self.register(manifest, url, ca)
        return url

    def certificate(self, directory: _Path) -> str:
        """Writes `tls.crt`, `tls.key`, and `ca.crt` for a server on loopback, and returns the CA certificate."""
        command = [self._binary, "certs", "--ip", "127.0.0.1", "--dns", "localhost", "--force", "--out", str(directory)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return Path(directory, "ca.crt").read_text()

    def register(self, manifest: _Path, url: str, ca: str) -> None:
        """Registers the webhook configurations in a manifest with the URL of a webhook server and the PEM certificates
        that verify it. The paths in the manifest stay as they are; objects of other kinds are ignored.
        """
        registered = 0
        for document in _SEPARATOR.split((self._directory / manifest).read_text()):
            kind = _KIND.search(document)
            if kind is None:
                continue
            collection = f"{_CONFIGURATIONS}/{kind.group(1).lower()}webhookconfigurations"
            # A dry run converts YAML to JSON.
            body = _CA_BUNDLE.sub("caBundle: null", document).encode()
            configuration = self._post(f"{collection}?dryRun=All", body)
            for webhook in configuration.get("webhooks", []):
                config = webhook["clientConfig"]
                path = config["service"].get("path", "") if "service" in config else urlsplit(config["url"]).path
                webhook["clientConfig"] = {"url": url + path, "caBundle": base64.b64encode(ca.encode()).decode()}
            for name in ("uid", "creationTimestamp", "generation", "managedFields"):
                configuration["metadata"].pop(name, None)
            self.create(collection, configuration)
            registered += 1
        if registered == 0:
            raise ValueError(f"{manifest} does not contain a webhook configuration")

    def fakes(self, file: _Path) -> None:
        """Starts the fakes in a file for `admit fakes`, and registers them.

        By default, fakes are called only in namespaces with the label `admit-fakes=enabled`.
        """
        path = str(self._directory / file)
        process = self._run(self._stack, "fakes", "-f", path, "--listen", "127.0.0.1:0", "-o", "json")
        # The list ends with a line that contains only a brace.
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.rstrip() == "}":
                break
        else:
            raise RuntimeError(f"admit fakes stopped: {self._log('fakes')}")
        for configuration in json.loads("".join(lines))["items"]:
            self.create(f"{_CONFIGURATIONS}/{configuration['kind'].lower()}s", configuration)

    def create(self, collection: str, object: dict[str, Any]) -> dict[str, Any]:
        """Creates an object in a collection, such as `/api/v1/namespaces/default/pods`, and returns it as stored."""
        return self._post(collection, json.dumps(object).encode())

    def requests(self) -> list[Request]:
        """Returns all requests that could have changed an object, in the order in which they ended."""
        return read_records(self._temporary / "records")

    def calls(self) -> list[Call]:
        """Returns the webhook calls of all requests, in the order in which they ended."""
        return [call for request in self.requests() for call in request.calls]

    def _post(self, path: str, body: bytes) -> dict[str, Any]:
        # Every JSON document is a YAML document.
        headers = {"Content-Type": "application/yaml", "Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.url + path, body, headers)
        tls = ssl.create_default_context(cadata=self.ca)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )
        try:
            with opener.open(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                status = json.load(error)
            raise StatusError(error.code, status.get("message", "")) from None

    def _run(self, stack: ExitStack, command: str, *args: str) -> subprocess.Popen[str]:
        """Starts admit, and stops it with the stack."""
        with open(self._temporary / f"{command}.log", "ab") as log:
            process = subprocess.Popen([self._binary, command, *args], stdout=subprocess.PIPE, stderr=log, text=True)
        stack.callback(_stop, process)
        return process

    def _log(self, command: str) -> str:
        return (self._temporary / f"{command}.log").read_text().strip()


def _field(kubeconfig: str, name: str) -> str:
    """Returns a field of a kubeconfig in the form in which admit serve writes it."""
    found = re.search(rf"^ *{name}: (\S+)$", kubeconfig, re.MULTILINE)
    if found is None:
        raise ValueError(f"the kubeconfig of admit serve does not contain {name}")
    return found.group(1)


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Disables the log of requests."""
