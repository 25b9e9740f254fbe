"""A stand-in for OMENative of OME 1.3. It is not OME: nothing of OME's code is in it.

OME 1.3 is not released, so there is nothing to run. What the stand-in does with pods and PodGroups is what OME's
documentation of 1.3 and its published sources say; tests that use it show how we get on with that, and no more.

    with OmeNative(kubeconfig) as ome:
        cluster.apply(service)
        cluster.wait(lambda: cluster.list("pods", namespace), 10, "pods")
        ome.settle()  # whatever is there now has been dealt with

It brings definitions of InferenceService and InferenceReplica that accept anything, where there are none. Then, for the
components of InferenceServices that are OMENative, and for InferenceReplicas that somebody else wrote:

* one InferenceReplica a component, and for each of its Instances the pods `<service>-<component>-<index>-<runner>-<ordinal>`;
* for each Instance of several pods a PodGroup that the InferenceReplica controls, kept as it should be, made before the
  pods; if PodGroups were no kind of the cluster when the stand-in started, none, but the pods are labelled all the same;
* a PodGroup of that name that somebody else made is a conflict: no pods, a failure in the status, an Event;
* a changed component comes up at new indices before the old ones go (SurgeThenDrain; the lowest free index is taken);
* a Failed PodGroup is deleted and made anew once no member is Failed; a Failed pod takes its Instance with it.

What it leaves out: runtimes and models (a component is what the InferenceService says), webhooks and their refusals,
defaults of the cluster other than the two timeouts, other update strategies, partitions and revisions, migration,
deadlines, Services, autoscalers (a component with an `autoscaler` keeps the replicas that its InferenceReplica has).
Where the status has fields that no documentation names, their names are ours. Deletion is left to the garbage collector.
"""

from .controller import OmeNative

__all__ = ["OmeNative"]
