"""A small operator with admission handlers, as the documentation of Kopf shows them."""

import os
from typing import Any

import kopf

PROXY = {"name": "proxy", "image": "registry.example/proxy:1.4"}


@kopf.on.startup()
def listen(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        port=int(os.environ["PORT"]),
        certfile=os.environ["CERTIFICATE"],
        pkeyfile=os.environ["KEY"],
    )


@kopf.on.mutate("pods", operations=["CREATE"], annotations={"proxy.example/inject": "true"})
def inject(patch: kopf.Patch, **_: Any) -> None:
    """Adds a sidecar to the Pods that ask for it, and a label by which they are found."""
    patch.metadata.labels["proxy.example/injected"] = "true"
    patch.fns.append(add_proxy)


def add_proxy(body: dict[str, Any]) -> None:
    containers = body["spec"]["containers"]
    if all(container["name"] != PROXY["name"] for container in containers):
        containers.append(PROXY)


@kopf.on.validate("pods", operations=["CREATE"])
def tags(spec: kopf.Spec, **_: Any) -> None:
    """Refuses images that may be another one tomorrow."""
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        if container["image"].endswith(":latest"):
            raise kopf.AdmissionError(f"{container['name']}: the image needs a tag other than latest", code=403)


@kopf.on.validate("configmaps", operations=["DELETE"])
def protect(meta: kopf.Meta, **_: Any) -> None:
    """Keeps the ConfigMaps that say so."""
    if meta.annotations.get("proxy.example/keep") == "true":
        raise kopf.AdmissionError("remove the annotation proxy.example/keep first", code=403)
