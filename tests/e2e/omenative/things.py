"""What is asked of any object, and of the API server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.e2e.cluster import ApiError

from .shape import Object


def key(thing: Object) -> tuple[str, str]:
    """Namespace and name."""
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


def terminating(thing: Object) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in thing["metadata"]


@contextlib.contextmanager
def passed_over(status: int) -> Iterator[None]:
    """Take one refusal as an answer."""
    try:
        yield
    except ApiError as error:
        if error.status != status:
            raise
