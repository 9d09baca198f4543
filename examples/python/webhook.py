"""A mutating webhook that makes Pods pull all images from a mirror: a WSGI application without dependencies."""

import base64
import json

REGISTRY = "mirror.example.com/"


def mutate(pod: dict) -> list:
    return [
        {"op": "replace", "path": f"/spec/containers/{index}/image", "value": REGISTRY + container["image"]}
        for index, container in enumerate(pod["spec"]["containers"])
        if not container["image"].startswith(REGISTRY)
    ]


def app(environ, start_response):
    request = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))["request"]
    response = {"uid": request["uid"], "allowed": True}
    operations = mutate(request["object"])
    if operations:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(review).encode()]
