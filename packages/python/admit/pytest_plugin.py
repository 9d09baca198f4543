"""The pytest plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from . import Server


@pytest.fixture
def admit_args() -> list[str]:
    """Returns the arguments of `admit serve`. Override this fixture to change them."""
    return []


@pytest.fixture
def admit_server(request: pytest.FixtureRequest, admit_args: list[str]) -> Iterator[Server]:
    """Starts an API server that calls admission webhooks, and stops it with the test."""
    with Server(*admit_args, directory=request.path.parent) as server:
        yield server


@pytest.fixture
def admit_webhook(admit_server: Server) -> Callable[..., str]:
    """Returns a function that serves a WSGI application and registers it from a manifest."""
    return admit_server.webhook
