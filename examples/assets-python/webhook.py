"""The webhook under test: it adds the label `team` to Pods and requires image tags other than `latest`."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trustme


def mutate(pod: dict) -> dict:
    metadata = pod["metadata"]
    if "team" in metadata.get("labels", {}):
        return {"allowed": True}
    operations = [{"op": "add", "path": "/metadata/labels/team", "value": "unknown"}]
    if "labels" not in metadata:
        operations.insert(0, {"op": "add", "path": "/metadata/labels", "value": {}})
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def validate(pod: dict) -> dict:
    for container in pod["spec"]["containers"]:
        _, _, tag = container["image"].rpartition("/")[2].partition(":")
        if tag in ("", "latest"):
            return {"allowed": False, "status": {"code": 403, "message": f"{container['name']}: the image needs a tag"}}
    return {"allowed": True}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers = {"/mutate": mutate, "/validate": validate}

    def do_POST(self) -> None:
        answer = self.answers.get(self.path.partition("?")[0])
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if answer is None:
            self.send_error(404)
            return
        request = review["request"]
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": request["uid"], **answer(request["object"])},
        }
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Disables the log."""


@contextmanager
def serve(authority: trustme.CA) -> Iterator[str]:
    """Serves the webhook on loopback until the context ends, and returns its URL."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
