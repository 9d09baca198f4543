"""Tests the module and the pytest plugin of an installed wheel."""

import base64
import json
import subprocess
import urllib.request

import pytest

import admit

MANIFEST = """\
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a-team}
webhooks:
- name: team.example.com
  clientConfig: {caBundle: CA_BUNDLE, service: {namespace: team, name: webhook, path: /mutate}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  reinvocationPolicy: IfNeeded
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a-team}
webhooks:
- name: deny.example.com
  clientConfig: {url: "https://placeholder.invalid/validate", caBundle: "CA_BUNDLE"}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]
  sideEffects: None
  admissionReviewVersions: [v1]
"""

FAKES = """\
version: 1
name: b-labels
webhooks:
- name: labels
  type: mutating
  behavior: always-mutate
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
"""

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"


def app(environ, start_response):
    """Adds a field at /mutate, and denies every object at /validate."""
    request = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))["request"]
    response = {"uid": request["uid"], "allowed": False, "status": {"message": "not today"}}
    if environ["PATH_INFO"] == "/mutate":
        patch = json.dumps([{"op": "add", "path": "/data", "value": {"team": "unknown"}}]).encode()
        patch = base64.b64encode(patch).decode()
        response = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(review).encode()]


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "webhook.yaml"
    path.write_text(MANIFEST)
    return path


def test_webhook_changes_the_object(admit_server, admit_webhook, manifest):
    admit_webhook(manifest, app)
    created = admit_server.create(CONFIGMAPS, {"metadata": {"name": "settings"}})
    assert created["data"] == {"team": "unknown"}
    [call] = admit_server.calls()
    assert (call.webhook, call.type, call.round, call.outcome, call.changed) == (
        "team.example.com", "mutating", 1, "allowed", True
    )
    assert call.changes == [admit.Change("data", None, {"team": "unknown"})]
    assert call.object["metadata"]["namespace"] == "default"


def test_denial_raises_the_message_of_the_server(admit_server, admit_webhook, manifest):
    admit_webhook(manifest, app)
    with pytest.raises(admit.StatusError) as error:
        admit_server.create(SECRETS, {"metadata": {"name": "key"}})
    assert str(error.value) == 'admission webhook "deny.example.com" denied the request: not today'
    request = admit_server.requests()[-1]
    assert (request.operation, request.resource, request.name, request.allowed) == ("CREATE", "secrets", "key", False)


def test_webhook_is_reinvoked_after_a_fake(admit_server, admit_webhook, manifest, tmp_path):
    admit_webhook(manifest, app)
    (tmp_path / "fakes.yaml").write_text(FAKES)
    admit_server.fakes(tmp_path / "fakes.yaml")
    admit_server.create(CONFIGMAPS, {"metadata": {"name": "settings"}})
    rounds = [(call.configuration, call.round) for call in admit_server.calls()]
    assert rounds == [("a-team", 1), ("b-labels", 1), ("a-team", 2)]


def test_manifest_without_a_webhook_configuration_is_rejected(admit_server, tmp_path):
    manifest = tmp_path / "service.yaml"
    manifest.write_text("apiVersion: v1\nkind: Service\n")
    with pytest.raises(ValueError, match="does not contain a webhook configuration"):
        admit_server.register(manifest, "https://127.0.0.1:1", "")


class TestArguments:
    @pytest.fixture
    def admit_args(self):
        return ["--enable-admission-plugins", "AlwaysPullImages"]

    def test_arguments_are_passed_to_the_server(self, admit_server):
        spec = {"containers": [{"name": "web", "image": "nginx:1"}]}
        pod = admit_server.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "web"}, "spec": spec})
        assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"


def test_server_stops_at_the_end_of_the_with_statement():
    with admit.start() as server:
        server.create(CONFIGMAPS, {"metadata": {"name": "settings"}})
    with pytest.raises(urllib.error.URLError):
        server.create(CONFIGMAPS, {"metadata": {"name": "other"}})


def test_error_of_the_server_is_raised():
    with pytest.raises(RuntimeError, match="admit serve stopped: .*--unknown"):
        admit.start("--unknown")


def test_invalid_environment_variable_is_an_error(monkeypatch):
    monkeypatch.setenv("ADMIT", "/missing/admit")
    with pytest.raises(FileNotFoundError, match="invalid environment variable ADMIT: /missing/admit"):
        admit.binary()


def test_command_prints_its_version():
    printed = subprocess.run([admit.binary(), "--version"], check=True, capture_output=True, text=True).stdout
    assert printed.startswith("admit 0.")
