"""Tests a Python webhook with the API server in KUBEBUILDER_ASSETS."""

import base64
import json

import pytest
import trustme
from kubernetes import client, watch

import webhook
from api_server import api_server, poll


@pytest.fixture(scope="session")
def api(tmp_path_factory):
    authority = trustme.CA()
    with webhook.serve(authority) as url, api_server(tmp_path_factory.mktemp("api-server")) as api:
        install(api, url, base64.b64encode(authority.cert_pem.bytes()).decode())
        poll(lambda: is_called(client.CoreV1Api(api)), "the webhooks are called")
        yield api


@pytest.fixture
def core(api):
    return client.CoreV1Api(api)


def install(api, url, ca_bundle):
    def entry(path):
        return {
            "name": f"{path}.pods.example.com",
            "clientConfig": {"url": f"{url}/{path}", "caBundle": ca_bundle},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }

    admission = client.AdmissionregistrationV1Api(api)
    metadata = {"name": "pods.example.com"}
    admission.create_mutating_webhook_configuration({"metadata": metadata, "webhooks": [entry("mutate")]})
    admission.create_validating_webhook_configuration({"metadata": metadata, "webhooks": [entry("validate")]})


def is_called(core):
    """Reports whether both webhooks are called, which takes a moment after their configurations were created."""
    labels = None
    try:
        labels = core.create_namespaced_pod("default", pod("probe", "app:1.2"), dry_run="All").metadata.labels
        core.create_namespaced_pod("default", pod("probe", "app"), dry_run="All")
    except client.ApiException as refused:
        return "validate.pods.example.com" in refused.body and labels is not None
    return False


def pod(name, image, **metadata):
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }


def test_a_pod_gets_the_label(core):
    created = core.create_namespaced_pod("default", pod("labeled", "registry.example.com/app:1.2"))
    assert created.metadata.labels == {"team": "unknown"}
    assert core.read_namespaced_pod("labeled", "default").metadata.labels == {"team": "unknown"}


def test_a_label_that_is_there_stays(core):
    created = core.create_namespaced_pod("default", pod("own", "app:1.2", labels={"team": "payments"}))
    assert created.metadata.labels == {"team": "payments"}


@pytest.mark.parametrize("image", ["app", "app:latest", "registry.example.com:5000/app"])
def test_an_image_without_a_tag_is_denied(core, image):
    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_pod("default", pod("denied", image))
    assert refused.value.status == 403
    message = 'admission webhook "validate.pods.example.com" denied the request: main: the image needs a tag'
    assert json.loads(refused.value.body)["message"] == message
    assert "denied" not in [pod.metadata.name for pod in core.list_namespaced_pod("default").items]


def test_a_watch_shows_the_pod_as_the_webhook_left_it(core):
    start = core.list_namespaced_pod("default").metadata.resource_version
    core.create_namespaced_pod("default", pod("watched", "app:1.2"))
    events = watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=start, timeout_seconds=30)
    event = next(event for event in events if event["object"].metadata.name == "watched")
    assert event["type"] == "ADDED"
    assert event["object"].metadata.labels == {"team": "unknown"}
