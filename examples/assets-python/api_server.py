"""Starts etcd and kube-apiserver from KUBEBUILDER_ASSETS for tests, as envtest does."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trustme
from kubernetes import client
from urllib3.exceptions import HTTPError

PATIENCE = 60
"""The timeout in seconds for starting and stopping a program."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def process(program: str, folder: Path, *flags: str) -> Iterator[subprocess.Popen]:
    """A program from KUBEBUILDER_ASSETS that writes its log to `folder`."""
    path = Path(os.environ["KUBEBUILDER_ASSETS"], program)
    with (folder / f"{program}.log").open("wb") as log:
        running = subprocess.Popen([path, *flags], stdout=log, stderr=log)
        try:
            yield running
        finally:
            running.terminate()
            running.wait(timeout=PATIENCE)


@contextmanager
def api_server(folder: Path) -> Iterator[client.ApiClient]:
    """Starts an API server with files in `folder`, and returns a client for a cluster administrator."""
    authority = trustme.CA()
    serving = authority.issue_cert("127.0.0.1")
    admin = authority.issue_cert("admin", common_name="admin", organization_name="system:masters")
    authority.cert_pem.write_to_path(folder / "ca.crt")
    for name, certificate in {"serving": serving, "admin": admin}.items():
        certificate.cert_chain_pems[0].write_to_path(folder / f"{name}.crt")
        certificate.private_key_pem.write_to_path(folder / f"{name}.key")

    etcd_url, peer_url = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(process(
            "etcd", folder,
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={etcd_url}",
            f"--advertise-client-urls={etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--unsafe-no-fsync",
        ))
        server = stack.enter_context(process(
            "kube-apiserver", folder,
            f"--etcd-servers={etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={folder / 'serving.crt'}",
            f"--tls-private-key-file={folder / 'serving.key'}",
            f"--client-ca-file={folder / 'ca.crt'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://127.0.0.1",
            f"--service-account-key-file={folder / 'serving.crt'}",
            f"--service-account-signing-key-file={folder / 'serving.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount",
        ))
        configuration = client.Configuration(host=f"https://127.0.0.1:{port}")
        configuration.ssl_ca_cert = str(folder / "ca.crt")
        configuration.cert_file = str(folder / "admin.crt")
        configuration.key_file = str(folder / "admin.key")
        api = stack.enter_context(client.ApiClient(configuration))
        poll(lambda: is_ready(server, api), "kube-apiserver is ready")
        yield api


def is_ready(server: subprocess.Popen, api: client.ApiClient) -> bool:
    if server.poll() is not None:
        raise ChildProcessError(f"kube-apiserver ended with status {server.returncode}; see its log")
    try:
        # Disable retries, each of which would log a warning.
        url = f"{api.configuration.host}/readyz"
        return api.rest_client.pool_manager.request("GET", url, retries=False).status == 200
    except HTTPError:
        return False


def poll(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE} s: {what}")
        time.sleep(0.02)
