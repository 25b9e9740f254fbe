"""Where options come from: precedence over every option of the table, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from postrender import options, sources
from postrender.options import (
    CHOICE,
    CODES,
    DURATION,
    FILE,
    FILES,
    INTEGER,
    LIST,
    NUMBER,
    SECOND,
    SWITCH,
    TABLE,
    VERSION,
)
from postrender.views import schema

if TYPE_CHECKING:
    from pathlib import Path

    from postrender.options import Option

# For each kind three words that differ from the default, and what they come to; files are named in a folder.
WORDS: dict[str, tuple[tuple[str, Any], ...]] = {
    VERSION: (("1.3", "1.3"), ("v1.4.2", "v1.4.2"), ("2.0.0-rc1", "2.0.0-rc1")),
    DURATION: (("90s", 90 * SECOND), ("1h30m", 5400 * SECOND), ("0", 0)),
    NUMBER: (("1", 1), ("2", 2), ("1000", 1000)),
    INTEGER: (("-1", "-1"), ("0", "0"), ("-007", "-7")),
    LIST: (("a", ("a",)), ("b, c", ("b", "c")), ("d", ("d",))),
    CODES: (("name-too-long", ("name-too-long",)), ("ome-not-said", ("ome-not-said",)), ("podgroup-crd-missing",) * 2),
    "text": (("a", "a"), ("b", "b"), ("c", "c")),
}


def words(option: Option, folder: Path) -> list[tuple[str, Any]]:
    if option.kind == CHOICE:
        named = [(choice, choice) for choice in option.choices]
        return [named[-1], named[0], named[len(named) // 2]]
    if option.kind == SWITCH:
        return [("true", True), ("false", False), ("1", True)]
    if option.kind in (FILE, FILES):
        read = []
        for name in ("one.yaml", "two.yaml", "three.yaml"):
            path = folder / name
            path.write_text(f"# {name}\n")
            source = options.Source(str(path), path.read_bytes())
            read.append((str(path), source if option.kind == FILE else (source,)))
        return read
    listed = WORDS[option.kind]
    return [(word, (value,) if option.kind == CODES and isinstance(value, str) else value) for word, value in listed]


def settled(option: Option, flags: dict[str, Any], environ: dict[str, str]) -> Any:
    found = sources.settle(flags, environ)
    held = found.form if option.field in found.form._fields else found.options
    return getattr(held, option.field)


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_environment_beats_function_config_beats_file(
    option: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where paths of a functionConfig must lie
    (variable, second), (given, first), (key, _) = words(option, tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(f"{option.name}: {json.dumps(key)}\n")
    function = {option.name: sources.Given(given, "functionConfig", field=f"spec.{option.name}")}
    environ = {"POSTRENDER_CONFIG": str(config)}
    field = option.field
    for around, value in ((environ, first), ({**environ, option.environment: variable}, second)):
        found = sources.settle({}, around, function)
        assert getattr(found.form if field in found.form._fields else found.options, field) == value


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_flag_beats_environment_beats_file_beats_default(option: Option, tmp_path: Path) -> None:
    (flag, first), (variable, second), (key, third) = words(option, tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(f"{option.name}: {json.dumps(key)}\n")
    flags = {option.name: [flag] if option.kind in (LIST, CODES, FILES) else flag}
    environ = {option.environment: variable}
    beside = {"POSTRENDER_CONFIG": str(config)}
    default = getattr(options.Options(), option.field, getattr(options.Form(), option.field, None))
    assert settled(option, flags, {**environ, **beside}) == first
    assert settled(option, {}, {**environ, **beside}) == second
    assert settled(option, {}, beside) == third
    assert settled(option, {"config": str(config)}, {}) == third
    assert settled(option, {}, {option.environment: ""}) == default
    origins = [
        dict(sources.settle(given, around).options.origins).get(option.name)
        for given, around in ((flags, environ), ({}, environ), ({}, beside), ({}, {}))
    ]
    assert origins == [
        f"--{option.name}",
        option.environment,
        f"{config}:1:{len(option.name) + 3}: {option.name}",
        None,
    ]


def test_every_option_is_a_field_and_has_a_flag() -> None:
    fields = {*options.Options._fields, *options.Form._fields} - {"origins"}
    assert {option.field for option in TABLE} == fields
    from postrender import cli

    flags = {name for param in cli.render.params for name in param.opts}
    assert {f"--{option.name}" for option in TABLE} <= flags


def test_the_config_of_the_environment_gives_way_to_the_flag(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"namespace: {name}\n")
    environ = {"POSTRENDER_CONFIG": str(tmp_path / "two")}
    assert sources.settle({"config": str(tmp_path / "one")}, environ).options.namespace == "one"


def test_foreign_names_come_after_our_own() -> None:
    environ = {"KUBE_API_VERSIONS": "v1,apps/v1"}
    assert sources.settle({}, environ).options.api_versions == ("v1", "apps/v1")
    assert sources.settle({}, {**environ, "POSTRENDER_API_VERSIONS": "v2"}).options.api_versions == ("v2",)


def test_paths_in_a_file_start_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "config.yaml").write_text("context: [runtimes.yaml, ../other.json]\n")
    (tmp_path / "inner" / "runtimes.yaml").write_text("a: 1\n")
    (tmp_path / "other.json").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    read = sources.settle({"config": "inner/config.yaml"}, {}).options.context
    assert [source.data for source in read] == [b"a: 1\n", b"{}\n"]


def test_a_folder_gives_its_manifests_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c/d.json", "c/README.md", ".hidden.yaml", ".git/config.yaml", "c/.x.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    read = sources.settle({"context": str(tmp_path)}, {}).options.context
    assert [source.name.removeprefix(f"{tmp_path}/") for source in read] == ["a.yml", "b.yaml", "c/d.json"]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"POSTRENDER_STRCT": "1"}, "POSTRENDER_STRCT: there is no such option; did you mean POSTRENDER_STRICT?"),
        ({"POSTRENDER_STRICT": "yes"}, "POSTRENDER_STRICT: 'yes': write true or false"),
        ({"POSTRENDER_SPARES": "-1"}, "POSTRENDER_SPARES: '-1' is not a number from 0 to 1,000"),
        ({"POSTRENDER_SPARES": "1001"}, "POSTRENDER_SPARES: '1001' is not a number from 0 to 1,000"),
        ({"POSTRENDER_SPARES": "٣"}, "POSTRENDER_SPARES: '٣' is not a number from 0 to 1,000"),
        ({"POSTRENDER_OME": "latest"}, "POSTRENDER_OME: 'latest' is not a version; write one such as 1.3"),
        ({"POSTRENDER_OME": "1"}, "POSTRENDER_OME: '1' is not a version; write one such as 1.3"),
        ({"POSTRENDER_OME_INSTALL": "helm"}, "POSTRENDER_OME_INSTALL: 'helm' is not one of chart, kustomize, none"),
        (
            {"POSTRENDER_GANG_TIMEOUT_MAX": "30d"},
            "POSTRENDER_GANG_TIMEOUT_MAX: '30d' is not a duration: there is no unit 'd', only ns, us, ms, s, m and h;"
            " write one such as 90s, 30m or 1h30m",
        ),
        ({"POSTRENDER_GANG_TIMEOUT_MIN": "-1s"}, "POSTRENDER_GANG_TIMEOUT_MIN: '-1s' is negative; write 0 for none"),
        ({"POSTRENDER_ACCEPT": "name-to-long"}, "POSTRENDER_ACCEPT: there is no finding 'name-to-long'; did you mean name-too-long?"),
        (
            {"POSTRENDER_ACCEPT": "unreadable"},
            "POSTRENDER_ACCEPT: 'unreadable' cannot be accepted: there would be no sound output",
        ),
        ({"POSTRENDER_SCHEDULER_NAME": "a\nb"}, "POSTRENDER_SCHEDULER_NAME: 'a\\nb' is not a name"),
    ],
)  # fmt: skip
def test_misuse_of_the_environment(environ: dict[str, str], message: str) -> None:
    with pytest.raises(sources.Misuse) as misuse:
        sources.settle({}, environ)
    assert str(misuse.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strict: maybe", "1:9: strict: 'maybe': write true or false"),
        ("\n  strict: [true]\n", "2:11: strict: is a list; write one value"),
        ("spares: 1\nspares: 2", "2:1: spares: the key spares stands twice; remove one of the two"),
        ("strct: true", "1:1: strct: there is no such option; did you mean strict?"),
        ("- strict", "1:1: the file is no map of options; write lines of `name: value`"),
        ("config: other.yaml", "1:1: config: there is no such option"),
        ("context: [{a: b}]", "1:11: context[0]: is a map; write one value"),
        ("ome: [", "1:7: not valid YAML: did not find expected node content"),
    ],
)
def test_misuse_of_a_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(sources.Misuse) as misuse:
        sources.settle({"config": str(path)}, {})
    assert str(misuse.value) == f"{path}:{message}"


@pytest.mark.parametrize("text", ["", "# nothing\n", "strict:\n", "ome: ''\n", "context: []\n"])
def test_a_file_may_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert sources.settle({"config": str(tmp_path / "config.yaml")}, {}).options == options.Options()


@pytest.mark.parametrize("name", ["context", "ome-values", "config"])
def test_a_file_that_is_missing(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "missing.yaml")
    for flags, environ, origin in (
        ({name: path}, {}, f"--{name}"),
        ({}, {"POSTRENDER_" + name.replace("-", "_").upper(): path}, "POSTRENDER_" + name.replace("-", "_").upper()),
    ):
        with pytest.raises(sources.Unreadable) as unreadable:
            sources.settle(flags, environ)
        assert str(unreadable.value) == f"{origin}: {path} cannot be read: No such file or directory"


def test_what_kubernetes_sets_for_a_service_of_our_name_is_no_option() -> None:
    links = (
        "POSTRENDER_SERVICE_HOST",
        "POSTRENDER_SERVICE_PORT",
        "POSTRENDER_SERVICE_PORT_HTTP",
        "POSTRENDER_PORT",
        "POSTRENDER_PORT_8080_TCP_ADDR",
        "POSTRENDER_METRICS_SERVICE_HOST",
    )
    assert sources.settle({}, dict.fromkeys(links, "10.0.0.1")).options == options.Options()


def test_the_schema_of_a_config_file_is_that_of_the_table() -> None:
    made = schema.config()
    assert list(made["properties"]) == [option.name for option in TABLE]
    assert made["additionalProperties"] is False
    for option in TABLE:
        said = made["properties"][option.name]
        assert said.pop("description") == option.help
        assert said, option.name
