"""Reads the record of `admit serve --record`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Change:
    """A change of one field by a call."""

    path: str
    """Such as `spec.containers[1]`."""
    before: Any = None
    after: Any = None


@dataclass(frozen=True)
class Call:
    """A call of a webhook."""

    type: str
    """`mutating` or `validating`."""
    configuration: str
    """The name of the webhook configuration."""
    webhook: str
    """The name of the webhook."""
    round: int
    """1, or 2 for a reinvocation."""
    outcome: str
    """`allowed`, `denied`, `failedOpen`, `failedClosed`, or `refused`."""
    message: str = ""
    """Why the webhook did not allow the request."""
    patch: list[dict[str, Any]] | None = None
    """The JSON Patch that the webhook returned."""
    changed: bool = False
    """Whether the patch changed the object."""
    changes: list[Change] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    request: dict[str, Any] = field(default_factory=dict, repr=False)
    """The request of the AdmissionReview as the webhook received it."""

    @property
    def object(self) -> dict[str, Any] | None:
        """The object as the webhook received it; `None` for a deletion."""
        return self.request.get("object")


@dataclass(frozen=True)
class Request:
    """A request that could change an object."""

    operation: str
    """`CREATE`, `UPDATE`, `DELETE`, or `CONNECT`."""
    resource: str
    """The resource, such as `pods`."""
    namespace: str
    name: str
    allowed: bool
    code: int
    """The HTTP status code."""
    message: str
    """What kubectl would print."""
    calls: list[Call]
    report: dict[str, Any] = field(repr=False)
    """The whole `AdmissionReport`, as `admit review --record DIR -o json` prints it."""


def read_records(directory: Path) -> list[Request]:
    requests = []
    for file in sorted(directory.glob("*.jsonl")):
        # A line without its end is still being written.
        lines = file.read_text().split("\n")[:-1]
        requests += [_request(json.loads(line)) for line in lines]
    return requests


def _request(report: dict[str, Any]) -> Request:
    request, decision = report["request"], report["decision"]
    return Request(
        operation=request["operation"],
        resource=request["resource"]["resource"],
        namespace=request.get("namespace", ""),
        name=request.get("name", ""),
        allowed=decision["allowed"],
        code=decision["code"],
        message=decision["message"],
        calls=[_call(call) for call in report["calls"]],
        report=report,
    )


def _call(call: dict[str, Any]) -> Call:
    return Call(
        changes=[Change(change["path"], change.get("from"), change.get("to")) for change in call["changes"]],
        **{name: call[name] for name in Call.__dataclass_fields__ if name in call and name != "changes"},
    )
