"""The loop: look at everything, do the next thing, look again."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.cluster import ApiError
from tests.e2e.cluster.api import Api
from tests.e2e.faults.kubeconfig import Kubeconfig

from . import definitions, shape
from .instances import GROUPS, REPLICAS, SERVICES, Instances
from .shape import Object, Plan
from .things import key, passed_over, terminating

DEFINED = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class OmeNative:
    """The stand-in, in a thread; a context.

    `ready_timeout` and `clamp` are the cluster's settings in seconds, as OME's chart has them. `wrong` are the errors
    that passes ended with: an API server that is away or says no is tried again, and is nothing to fail of.
    """

    def __init__(
        self,
        kubeconfig: Path,
        every: float = 0.25,
        ready_timeout: float = 1800,
        clamp: tuple[float, float] | None = (60, 600),
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = Kubeconfig(kubeconfig, Path(folder))
            assert config.client, "the kubeconfig has no client certificate"
            self.api = Api(config.port, config.ca, *config.client)
        self.every = every
        self.ready_timeout = ready_timeout
        self.clamp = clamp
        # Whether PodGroups were a kind of the cluster when this started; it is not asked again.
        self.gangs = False
        self.wrong: list[str] = []
        self.passes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="OMENative stand-in", daemon=True)

    def __enter__(self) -> OmeNative:
        self._define()
        self.gangs = served(self.api, GROUPS)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def settle(self, seconds: float = 30.0) -> None:
        """Return when what is there now has been looked at, and nothing was left to do at once."""
        wanted = self.passes + 3
        end = time.monotonic() + seconds
        while self.passes < wanted:
            assert time.monotonic() < end, (
                f"{wanted - self.passes} passes are missing after {seconds:g} s: {self.wrong}"
            )
            time.sleep(0.05)

    def _define(self) -> None:
        for one in definitions.documents():
            try:
                self.api.request("POST", DEFINED, one)
            except ApiError as error:
                if error.status != 409:
                    raise
        end = time.monotonic() + 30
        while not all(served(self.api, name) for name in definitions.NAMES):
            assert time.monotonic() < end, "the definitions are not served after 30 s"
            time.sleep(0.1)

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            try:
                Pass(self).run()
                self.passes += 1
            except (ApiError, OSError, http.client.HTTPException) as error:
                self.wrong.append(str(error))
            except Exception:
                self.wrong.append(traceback.format_exc())


class Pass:
    """One look at everything, and what follows from it."""

    def __init__(self, ome: OmeNative) -> None:
        self.ome = ome
        self.api = ome.api

    def run(self) -> None:
        """Project the services, then see to each InferenceReplica; one that fails keeps no other back."""
        services = {key(one): one for one in self.api.list(SERVICES)}
        replicas = {key(one): one for one in self.api.list(REPLICAS)}
        for service in services.values():
            if not terminating(service):
                with self.noted():
                    self.project(service, replicas)
        self.pods = self.api.list("pods", labelSelector=f"{shape.MANAGED_BY}={shape.NATIVE}")
        # None: PodGroups were a kind of the cluster, and are none now; that is no error.
        self.groups = self.listed_groups() if self.ome.gangs else None
        for replica in replicas.values():
            if not terminating(replica):
                with self.noted():
                    place, base = replica["metadata"]["namespace"], Plan(replica).base
                    Instances(self, replica, services.get((place, base))).run()

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Remember what went wrong with one object, and go on with the next; without an API server there is no next."""
        try:
            yield
        except ApiError as error:
            self.ome.wrong.append(str(error))
        except (OSError, http.client.HTTPException):
            raise
        except Exception:
            self.ome.wrong.append(traceback.format_exc())

    def listed_groups(self) -> dict[tuple[str, str], Object] | None:
        """All PodGroups, by namespace and name."""
        if not served(self.api, GROUPS):
            return None
        return {key(one): one for one in self.api.list(GROUPS)}

    def project(self, service: Object, replicas: dict[tuple[str, str], Object]) -> None:
        """Keep a service's InferenceReplicas as it says; those of components that it has no more go."""
        namespace, uid = service["metadata"]["namespace"], service["metadata"]["uid"]
        wanted = {one["metadata"]["name"]: one for one in shape.replicas(service).values()}
        for name, new in wanted.items():
            there = replicas.get((namespace, name))
            if there is None:
                replicas[namespace, name] = self.api.create(new)
                continue
            if (shape.controller(there) or {}).get("uid") != uid:
                continue  # it is of a service before this one, and will be collected
            if service["spec"][new["spec"]["component"]].get("autoscaler"):
                new["spec"]["replicas"] = there["spec"]["replicas"]
            if there["spec"] != new["spec"]:
                replicas[namespace, name] = self.replace(REPLICAS, {**there, "spec": new["spec"]})
        for (place, name), there in [*replicas.items()]:
            ours = place == namespace and (shape.controller(there) or {}).get("uid") == uid
            if ours and name not in wanted and not terminating(there):
                self.delete(REPLICAS, there)
                del replicas[place, name]

    def replace(self, kind: str, new: Object) -> Object:
        """Write an object whole; a conflict if it has changed since it was read."""
        path = self.api.path(kind, new["metadata"]["namespace"], new["metadata"]["name"])
        return dict(self.api.request("PUT", path, new))

    def delete(self, kind: str, thing: Object) -> None:
        """Delete this very object, and none that has come in its place."""
        path = self.api.path(kind, thing["metadata"]["namespace"], thing["metadata"]["name"])
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": thing["metadata"]["uid"]}}
        with passed_over(404):
            self.api.request("DELETE", path, options)

    def event(self, about: Object, reason: str, message: str) -> None:
        """Post a Warning."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = about["metadata"]
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"{metadata['name']}.{time.time_ns():x}", "namespace": metadata["namespace"]},
                "involvedObject": {
                    "apiVersion": about["apiVersion"],
                    "kind": about["kind"],
                    **{name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")},
                },
                "type": "Warning",
                "reason": reason,
                "message": message,
                "source": {"component": "omenative-stand-in"},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            }
        )


def served(api: Api, name: str) -> bool:
    """Whether a kind is there to be read now; what was discovered before does not count."""
    resource, _, group = name.partition(".")
    version = "v1alpha1" if group == "scheduling.x-k8s.io" else "v1beta1"
    try:
        api.request("GET", f"/apis/{group}/{version}/{resource}", limit="1")
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True
