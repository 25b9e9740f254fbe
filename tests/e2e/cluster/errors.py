"""What can go wrong, with words that say what to do."""

from __future__ import annotations


class ClusterError(Exception):
    """The cluster cannot do what was asked."""


class ApiError(ClusterError):
    """The API server said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
