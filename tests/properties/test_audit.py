"""A check finds nothing on what a render makes: the rules across objects never say what is not so.

For made-up streams under every option that changes what is made, and for every golden case with an output.
"""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from postrender import render, review
from postrender.findings import ERROR
from postrender.options import Options, Source
from tests.properties.tally import FUZZ, SEED, Tally
from tests.properties.test_rules import LABEL, Object, maybe, metadata, noted, pick, runner, sometimes, worlds, written
from tests.test_cases import FILTERED

if TYPE_CHECKING:
    from postrender.pipeline import Rendered

Draw = Any  # hypothesis' draw
Said = tuple[str, str]

DRAWS = FUZZ or 60
TALLY = Tally(f"check on a render's output, seed {SEED}")
# Shares of the draws, so that the test stays about what it is about.
LEAST_RENDERED, LEAST_GANGS = 0.5, 0.25

# The golden cases whose input holds what somebody else made wrong, which a render leaves and a check names; and why.
FOREIGN = {
    "plan/below-1.3/label/single-pod": "podgroup-missing",  # a label on single pods
    "plan/below-1.3/podgroup/of-another-namespace": "same-name-two-namespaces",  # a PodGroup of the same name
    "plan/below-1.3/size/zero-and-a-foreign-label": "podgroup-missing",  # a label on single pods
    "plan/finding/other-gang-system/koordinator-pod-group-label": "legacy-label",  # and Koordinator's scheduler not named
    "plan/leaderworkerset/label/foreign-on-groups-of-one": "podgroup-missing",
    "plan/leaderworkerset/podgroup/foreign-elsewhere": "same-name-two-namespaces",  # a PodGroup of the same name
    "plan/leaderworkerset/podgroup/not-asked-for": "no-gang-scheduler",  # a labelled set that no render looks at
    "plan/leaderworkerset/template/leader-alone": "min-member-above-pods",  # a set that the API server refuses
    "plan/podgroup-in-another-namespace": "same-name-two-namespaces",  # a PodGroup of the same name
}
RENDERED = [case for case in FILTERED if case.name.startswith("plan/") and case.expected_name in case.files]

OMES = ("", "", "1.2", "1.2.2", "1.3", "1.4")


def leader_worker_set(draw: Draw, name: str, namespace: str | None) -> Object:
    inner: Object = {"size": pick(draw, (1, 2, 3, 4)), "workerTemplate": template(draw)}
    maybe(draw, 50, inner, "leaderTemplate", lambda: template(draw))
    maybe(draw, 10, inner, "size", lambda: None)
    spec: Object = {"leaderWorkerTemplate": inner}
    maybe(draw, 70, spec, "replicas", lambda: pick(draw, (0, 1, 1, 2, 3)))
    maybe(draw, 20, spec, "startupPolicy", lambda: pick(draw, ("LeaderCreated", "LeaderCreated", "LeaderReady")))
    surge = {"rollingUpdateConfiguration": {"maxSurge": pick(draw, (1, "50%"))}}
    maybe(draw, 25, spec, "rolloutStrategy", lambda: surge)
    found = metadata(draw, name, namespace)
    maybe(draw, 25, found, "annotations", lambda: noted(draw))
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": found, "spec": spec}


def template(draw: Draw) -> Object:
    found: Object = {"spec": {**runner(draw), "containers": []}}
    found["spec"].pop("runner", None)
    maybe(draw, 40, found, "metadata", lambda: {"labels": {"app": "x"}})
    return found


@st.composite
def streams(draw: Draw) -> tuple[list[Object], list[Object], Object, bool]:
    """A stream, its context, options of every mode, and whether labels and PodGroups of somebody else may be there."""
    stream, context, options = draw(worlds())
    if sometimes(draw, 30):
        for name in ("set", "other-set")[: pick(draw, (1, 2))]:
            stream.append(leader_worker_set(draw, name, pick(draw, ("llm", "team-b", None))))
        options["leaderworkersets"] = sometimes(draw, 80)
    if sometimes(draw, 60):
        options["ome"] = pick(draw, OMES)
    maybe(draw, 50, options, "replicas", lambda: pick(draw, ("policy", "whole")))
    foreign = sometimes(draw, 15)
    if not foreign:
        stream, context = (
            [without_labels(one) for one in held if one["kind"] != "PodGroup"] for held in (stream, context)
        )
    return draw(st.permutations(stream)), context, options, foreign


def without_labels(one: Any) -> Any:
    """The same without a pod-group label that somebody else has written."""
    if isinstance(one, dict):
        return {key: without_labels(value) for key, value in one.items() if key != LABEL}
    return [without_labels(value) for value in one] if isinstance(one, list) else one


@seed(int(SEED) if SEED.isdigit() else SEED)
@settings(
    max_examples=DRAWS,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
@given(streams(), st.sampled_from((False, False, False, True)))
def check_again(world: tuple[list[Object], list[Object], Object, bool], listed: bool) -> None:
    stream, context, options, foreign = world
    given_options = dict(options)
    if options.get("ome_values") is not None:
        given_options["ome_values"] = Source("values.yaml", written([options["ome_values"]], listed=False))
    if context:
        given_options["context"] = (Source("context.yaml", written(context, listed=False)),)
    TALLY.add("draws")
    data = written(stream, listed=listed)
    settled = Options(**given_options)
    rendered = render(data, settled)
    if rendered.refused:
        return
    TALLY.add("rendered")
    if rendered.data != data:
        TALLY.add("with changes")
    for mode in ("replicas", "leaderworkersets", "podgroups", "spares", "ome"):
        if options.get(mode) and rendered.data != data:
            TALLY.add(f"with changes: {mode} {options[mode]}")
    more = said_more(rendered, settled)
    assert foreign or not more
    assert said(review.check(data, settled).findings) == sorted([*said(rendered.findings), *more])
    probed(stream, settled, listed)


def probed(stream: list[Object], options: Options, listed: bool) -> None:
    """Check that what a render leaves alone is found on the line where it stands, whatever is added around it."""
    probes: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"probe-{number}", "labels": {LABEL: f"nowhere-{number}"}},
            "spec": {"containers": []},
        }
        for number in range(len(stream) + 1)
    ]
    mixed = [one for pair in zip_longest(probes, stream) for one in pair if one is not None]
    data = written(mixed, listed=listed)
    wanted = [at for at, line in enumerate(data.split(b"\n"), 1) if b": nowhere-" in line]
    found = [one for one in review.check(data, options).findings if one.ref and one.ref.name.startswith("probe-")]
    assert [one.place and one.place.line for one in found if one.code == "podgroup-missing"] == wanted


def said_more(rendered: Rendered, options: Options) -> list[Said]:
    """Check what a render has made; return what is said beyond what was said when it was made."""
    again = review.check(rendered.data, options, rendered=True)
    assert not again.changed
    assert not [finding for finding in again.findings if finding.severity == ERROR]
    assert not beyond(said(rendered.findings), said(again.findings))
    return beyond(said(again.findings), said(rendered.findings))


def beyond(more: list[Said], less: list[Said]) -> list[Said]:
    return sorted((Counter(more) - Counter(less)).elements())


def said(findings: Any) -> list[Said]:
    return sorted((finding.code, "/".join(finding.ref) if finding.ref else "") for finding in findings)


def test_a_check_of_what_a_render_makes_says_no_more_than_the_render() -> None:
    check_again()
    assert TALLY.under("rendered") >= LEAST_RENDERED * TALLY.under("draws")
    assert TALLY.under("with changes") >= LEAST_GANGS * TALLY.under("draws")


def test_a_check_of_a_golden_case_says_no_more_than_the_render() -> None:
    said = {}
    for case in RENDERED:
        more = said_more(render(case.data, case.options), case.options)
        if more:
            said[case.name] = [code for code, _ in more]
    assert said == {name: [code] for name, code in FOREIGN.items() if name in {case.name for case in RENDERED}}
