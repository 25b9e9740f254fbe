"""The reconciler's manifests, held against the program that they run and against each other; no real program is needed."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

import postrender
from postrender import cli
from postrender.hosts.policy import policy
from postrender.reconciler import decide, events, watch
from postrender.reconciler.metrics import FAMILIES, PREFIX

PLACE = pathlib.Path(__file__).parents[2] / "plugins/reconciler"
CHART = PLACE / "chart"


def one(name: str) -> Any:
    return yaml.safe_load((PLACE / name).read_text())


def container() -> Any:
    [found] = one("base/deployment.yaml")["spec"]["template"]["spec"]["containers"]
    return found


def test_versions() -> None:
    chart, deployment = one("chart/Chart.yaml"), one("base/deployment.yaml")
    written = {
        chart["version"],
        chart["appVersion"],
        deployment["metadata"]["labels"]["app.kubernetes.io/version"],
        container()["image"].partition(":")[2],
    }
    assert written == {postrender.__version__}


def test_the_program_listens_and_asks_as_the_manifests_say() -> None:
    """The manifests name the port, and repeat the rate and the burst that are the program's own."""
    defaults = {parameter.name: parameter.default for parameter in cli.cli.commands["reconcile"].params}
    [port] = container()["ports"]
    assert defaults["listen"] == f":{port['containerPort']}"
    command, *words = container()["args"]
    assert command == cli.cli.commands["reconcile"].name
    assert words == [f"--rate={defaults['rate']:g}", f"--burst={defaults['burst']}"]


def test_one_pod_that_may_do_nothing() -> None:
    """What Pod Security does not ask for, and a cluster would not miss."""
    deployment = one("base/deployment.yaml")["spec"]
    pod = deployment["template"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert one("base/serviceaccount.yaml")["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is True
    assert "volumes" not in pod
    assert container()["securityContext"]["readOnlyRootFilesystem"] is True
    # A limit of CPU would throttle probes.
    assert container()["resources"] == {"requests": {"cpu": "10m", "memory": "48Mi"}, "limits": {"memory": "128Mi"}}


def test_who_finds_whom() -> None:
    """The monitor finds the Service, the Service and the NetworkPolicy the pod, all by the port's name."""
    pod = one("base/deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    service, monitor = one("base/service.yaml"), one("components/servicemonitor/servicemonitor.yaml")
    network = one("components/networkpolicy/networkpolicy.yaml")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    for selector in (service["spec"]["selector"], network["spec"]["podSelector"]["matchLabels"]):
        assert selector
        assert selector.items() <= pod.items()
    [named], [exposed], [scraped] = container()["ports"], service["spec"]["ports"], monitor["spec"]["endpoints"]
    [let_in] = network["spec"]["ingress"][0]["ports"]
    probed = [container()[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")]
    assert {named["name"], exposed["targetPort"], let_in["port"], *probed} == {named["name"]}
    assert (scraped["port"], scraped["path"]) == (exposed["name"], "/metrics")


@pytest.mark.parametrize("copy", ["components/policy/policy.yaml", "chart/files/policy.yaml"])
def test_the_policy_is_the_one_that_is_printed(copy: str) -> None:
    assert (PLACE / copy).read_bytes() == policy(None)


# Alerts

RULES = [rule for group in one("chart/files/rules.yaml")["groups"] for rule in group["rules"]]
METRIC = re.compile(rf"{PREFIX}(\w+)(?:{{([^}}]*)}})?")
REASONS = {word for name, word in vars(events).items() if name.isupper() and isinstance(word, str)}
HELD = {
    decide.OWNER_MISSING,
    decide.OWNER_DELETED,
    decide.FAILED_MEMBER,
    decide.ELSEWHERE,
    decide.BACK_OFF,
    decide.SUSPENDED,
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_reads_metrics_that_there_are(rule: Any) -> None:
    families = {family.name: family for family in FAMILIES}
    read = METRIC.findall(rule["expr"])
    assert read
    for name, matchers in read:
        for matcher in filter(None, matchers.split(",")):
            label, words = re.fullmatch(r'(\w+)(?:=|!~)"([^"]*)"', matcher).groups()  # type: ignore[union-attr]
            assert label in families[name].labels
            assert label != "reason" or {*words.split("|")} <= HELD
    grouped = re.search(r"by \(([^)]*)\)", rule["expr"])
    labels = set(re.split(r", ", grouped[1])) if grouped else set()
    assert labels <= {label for name, _ in read for label in families[name].labels}
    texts = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", texts)) <= labels
    assert set(re.findall(r"reason=(\w+)", texts)) <= REASONS


def test_the_rules_of_both_are_one() -> None:
    assert one("components/alerts/alerts.yaml")["spec"] == one("chart/files/rules.yaml")


# The schema of the values

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
NOT_READ = {"enabled", "global"}  # what a parent chart hands over


def schemas(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")


def test_every_value_is_described_and_nothing_else_is_taken() -> None:
    for path, schema in schemas(SCHEMA):
        assert schema["description"].endswith("."), path
        if schema["type"] == "object" and path != ".global":
            assert schema["additionalProperties"] in (False, {"type": "string"}), path


def names(values: Any, schema: Any, path: str = "") -> Iterator[str]:
    """Yield the values that are written, down to where the schema leaves the names to the user."""
    if "properties" not in schema:
        yield path
        return
    for name in schema["properties"]:
        if name in values:
            yield from names(values[name], schema["properties"][name], f"{path}.{name}")


def test_every_value_has_a_default_and_is_used() -> None:
    values = one("chart/values.yaml")
    assert set(SCHEMA["required"]) == set(values) == set(SCHEMA["properties"]) - NOT_READ
    templates = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    for path in names(values, SCHEMA):
        last = path.rpartition(".")[2] if not path.startswith(".resources") else "resources"
        assert re.search(rf"\.{last}\b", templates), path


# What the pages say of it

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGE, NIGHT = (DOCS / "reconciler.md").read_text(), (DOCS / "night.md").read_text()


def section(page: str, title: str) -> str:
    return re.split(r"^## ", page.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def table(page: str, title: str) -> list[list[str]]:
    """Return the rows of a section's table, without its head."""
    rows = [line.strip("|").split("|") for line in section(page, title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def quoted(*texts: str) -> list[str]:
    return [word for text in texts for word in re.findall(r"`([^`]*)`", text)]


def test_the_page_names_every_metric_and_its_labels() -> None:
    rows = table(PAGE, "Metrics")
    # Behind a colon stand the values of a label.
    said = {name: quoted(row[1].partition(":")[0]) for row in rows for name in quoted(row[0])}
    assert said == {PREFIX + family.name: list(family.labels) for family in FAMILIES}
    assert len(said) == sum(len(quoted(row[0])) for row in rows)
    [held] = [row for row in rows if "resets_held" in row[0]]
    assert {*quoted(held[1])} == {"reason", *HELD}


def test_the_page_names_every_event() -> None:
    said = [row[0] for row in table(PAGE, "Events")]
    assert sorted(quoted(*said)) == sorted(events._ACTIONS)


def test_both_pages_name_every_alert() -> None:
    severities = {row[0].strip("`"): row[1] for row in table(PAGE, "Alerts")}
    assert severities == {rule["alert"]: rule["labels"]["severity"] for rule in RULES}
    assert quoted(*(row[0] for row in table(NIGHT, "An alert of the reconciler"))) == list(severities)


def test_the_page_names_every_right() -> None:
    """A row for each verb of each rule, the resource with its group as kubectl writes it."""
    role = next(
        one for one in yaml.safe_load_all((PLACE / "base/rbac.yaml").read_text()) if one["kind"] == "ClusterRole"
    )
    granted = set()
    for rule in role["rules"]:
        [group] = rule["apiGroups"]
        for resource in rule["resources"]:
            name, *part = resource.split("/")
            whole = "/".join([f"{name}.{group}" if group else name, *part])
            granted |= {(whole, verb) for verb in rule["verbs"]}
    said = [row[0].split(": ") for row in table(PAGE, "Rights")]
    assert {(name.strip("`"), verb) for name, verbs in said for verb in verbs.split(", ")} == granted


def test_the_page_names_every_value() -> None:
    named = {word.partition(".")[0] for word in quoted(section(PAGE, "Install"))}
    assert set(SCHEMA["required"]) <= named


@pytest.mark.parametrize(
    ("number", "said", "text"),
    [
        (decide.FIRST_WAIT, 5, "waits 5 s, twice as long each time"),
        (decide.LONGEST_WAIT, 5 * 60, "up to 5 min;"),
        (decide.MOST_RESETS, 10, "after ten resets within an hour"),
        (decide.WINDOW, 3600, "after ten resets within an hour"),
        (decide.PAUSE, 3600, "leaves the gang alone for an hour"),
        (decide.FIRST_LOOK, 5, "looks again after 5 s, then after 10 s"),
        (decide.LONGEST_LOOK, 60, "and so on up to a minute"),
        (watch.Pace().silence, 90, "is noticed after 90 s"),
        (watch.Pace().relist, 10 * 60, "after 10 min, for the list is read anew"),
        (decide.TOLD_AFTER, 15 * 60, "| 15 min after a reset became due"),
    ],
)
def test_the_page_says_the_programs_numbers(number: float, said: int, text: str) -> None:
    assert number == said
    assert text in " ".join(PAGE.split())


def test_the_night_page_fits_a_narrow_terminal() -> None:
    assert [line for line in NIGHT.splitlines() if len(line) > 80 and not line.startswith("|")] == []
