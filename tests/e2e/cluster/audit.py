"""Who asked the API server for what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PARTS = "cluster:parts"  # the group of the cluster's own programs
OURSELVES = ["system:masters", PARTS, "system:serviceaccounts:kube-system"]

# The first rule that fits counts. Of the tests' admin and the cluster's own programs only writes are kept, or the file would
# hold little else; of everyone else all requests, and what they wrote.
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
        {"level": "None", "userGroups": OURSELVES, "verbs": ["get", "list", "watch"]},
        {
            "level": "None",
            "userGroups": OURSELVES[1:],
            "resources": [
                {"group": "", "resources": ["events"]},
                {"group": "events.k8s.io", "resources": ["events"]},
                {"group": "coordination.k8s.io"},
            ],
        },
        {"level": "Metadata", "userGroups": OURSELVES},
        {"level": "Metadata", "verbs": ["get", "list", "watch"]},
        {"level": "Request"},
    ],
}


class AuditLog:
    """Reads the audit log while the API server writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def position(self) -> int:
        """Where it ends now: give it to `requests` to leave out what was before."""
        return self.path.stat().st_size if self.path.exists() else 0

    def requests(
        self, since: int = 0, user: str | None = None, verb: str | None = None, resource: str | None = None
    ) -> list[dict[str, Any]]:
        """The requests written since a position, each once; a resource may name its part: "podgroups/status".

        A request is written when its answer is, so the last one may come a moment later than its answer.
        """
        if not self.path.exists():
            return []
        with self.path.open("rb") as log:
            log.seek(since)
            lines = log.read().split(b"\n")[:-1]  # what follows the last line break is not written to its end
        found: dict[str, dict[str, Any]] = {}
        for line in lines:
            event = json.loads(line)
            thing = event.get("objectRef", {})
            asked = "/".join(filter(None, [thing.get("resource"), thing.get("subresource")]))
            if (
                user in (None, event["user"]["username"])
                and verb in (None, event["verb"])
                and resource in (None, asked)
            ):
                found[event["auditID"]] = event  # a watch has two entries: when it starts and when it ends
        return list(found.values())
