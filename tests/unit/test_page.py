"""The page of `postrender explain --format html`, as a reader of its source sees it; tests/e2e/test_page.py opens it."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser

import pytest

from postrender import review
from postrender.options import Options
from postrender.options import Source as File
from postrender.views import page

MODELS = {"deepseek-v3-fp8": 1, "llama-3-1-405b-instruct": 3, "qwen3-235b-a22b": 7}


def runtime(model: str, size: int, ready: str, scheduler: str, key: str = "") -> str:
    return (
        f"apiVersion: ome.io/v1beta1\nkind: ClusterServingRuntime\nmetadata:\n  name: srt-{model}-multi-node\nspec:\n"
        f"  schedulerName: {scheduler}\n  engineConfig:\n    leader: {{}}\n    worker:\n      size: {size}\n"
        f"    lifecycle:\n      instanceReadyTimeout: {ready}\n" + (f"    topologyKey: {key}\n" if key else "")
    )


def many(count: int = 200) -> str:
    """Return services of one gang each as a platform's charts have them: three runtimes, and what teams write over them."""
    rng = random.Random(count)
    parts = [
        runtime("deepseek-v3-fp8", 1, "5m", "scheduler-plugins-scheduler", "network.example.com/fabric-domain"),
        runtime("llama-3-1-405b-instruct", 3, "45m", "scheduler-plugins-scheduler"),
        runtime("qwen3-235b-a22b", 7, "20m", "ome-scheduler", "topology.kubernetes.io/rack"),
    ]
    for number in range(count):
        team = rng.choice(("search", "ranking", "assist", "vision", "speech", "billing"))
        model = rng.choice(list(MODELS))
        engine = "    minReplicas: 1\n"
        if rng.random() < 0.3:
            engine += f"    leader: {{}}\n    worker:\n      size: {rng.choice((1, 3, 7, 15))}\n"
        if rng.random() < 0.2:
            engine += f"    lifecycle:\n      instanceReadyTimeout: {rng.choice(('3m', '45m', '0s'))}\n"
        if rng.random() < 0.1:
            engine += "    schedulerName: volcano\n"
        parts.append(
            f"# Source: {team}/templates/isvc-{number}.yaml\napiVersion: ome.io/v1beta1\nkind: InferenceService\n"
            f"metadata:\n  name: {team}-{model}-{number}\n  namespace: {team}-prod\nspec:\n"
            f"  runtime:\n    name: srt-{model}-multi-node\n  engine:\n{engine}"
        )
    return "---\n".join(parts)


def html(stream: str, options: Options = Options(), file: str = "in.yaml") -> str:  # noqa: B008
    return "\n".join(page.page(review.explain(stream.encode(), options), file))


class Read(HTMLParser):
    """Reads a page: all tags with their attributes, and all text outside of the style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.style = ""
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.style += data
        else:
            self.text += data


MANY = many()


@pytest.mark.parametrize("options", [Options(), Options(ome="1.3"), Options(spares=0, ome="1.3", podgroups="emit")])
def test_200_gangs_are_under_200_kb(options: Options) -> None:
    text = html(MANY, options)
    assert text.count("<figure") == 200
    assert len(text.encode()) < 200_000


def test_nothing_is_loaded_and_no_script_runs() -> None:
    read = Read(html(MANY))
    assert {tag for tag, _ in read.tags} <= {
        "html", "meta", "title", "style", "h1", "h2", "h3", "p", "small", "ul", "li", "b", "section", "div", "figure",
        "span", "i", "dl", "dt", "dd", "s", "code", "em"}  # fmt: skip
    assert {name for _, held in read.tags for name in held} <= {
        "lang",
        "charset",
        "name",
        "content",
        "class",
        "style",
        "title",
    }
    assert not re.search(r"url\(|@import|expression|//", read.style)


LONG = "n" * 63
KEY = "a" * 189 + ".example.com/" + "k" * 63
WORDS = """<script>alert(1)</script>&amp;'"></style><b onclick=x>"""
HOSTILE = f"""\
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {{name: {"b" * 45}, namespace: {LONG}}}
spec:
  runtime: {{name: "</small><img src=x>"}}
  engine:
    schedulerName: {WORDS!r}
    topologyKey: {KEY}
    leader: {{}}
    worker: {{size: 1}}
---
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {{name: "<i>&lt;", namespace: "\\u05d0\\u05d1\\u202e"}}
spec:
  engine:
    schedulerName: "\\u202e\\u05d2"
    leader: {{}}
    worker: {{size: 1}}
""".replace(repr(WORDS), '"' + WORDS.replace('"', '\\"') + '"')


def test_names_of_others_are_text() -> None:
    """What others wrote is read as they wrote it, and nothing of it is a tag; what turns writing round is shown."""
    read = Read(html(HOSTILE, file="<u>\"'&.yaml"))
    assert {tag for tag, _ in read.tags}.isdisjoint({"script", "img", "u", "a"})
    assert not any("onclick" in held or "src" in held for _, held in read.tags)
    assert read.tags.count(("style", {})) == 1
    for words in (
        WORDS,
        LONG,
        "b" * 45,
        KEY,
        "</small><img src=x>",
        "<i>&lt;",
        "\u05d0\u05d1",
        "<u>\"'&.yaml",
        "\\u202e",
    ):
        assert words in read.text, words
    assert not {"\u202e", "\x1b"} & set(read.text)


# -- what is drawn ---------------------------------------------------------------------------------------------------


def service(engine: str, name: str = "llm") -> str:
    return (
        f"apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {{name: {name}}}\n"
        f"spec:\n  runtime: {{name: rt}}\n  engine: {{{engine}}}\n"
    )


RT = "apiVersion: ome.io/v1beta1\nkind: ClusterServingRuntime\nmetadata: {name: rt}\nspec: {}\n---\n"
BOXES = re.compile(r"<div class=n>(\d+) <b></b><i style=--n:(\d+)></i>(?:<em>\+([\d,]+)</em>)?</div>")


def figures(text: str) -> list[str]:
    return re.findall(r"<figure.*?</figure>", text)


@pytest.mark.parametrize(
    ("engine", "options", "kinds", "boxes"),
    [
        ("leader: {}, worker: {size: 3}", Options(), [""], [[("0", "3", "")]]),
        ("leader: {}, worker: {size: 15}", Options(), [""], [[("0", "15", "")]]),
        ("leader: {}, worker: {size: 1600}", Options(), [""], [[("0", "15", "1,585")]]),
        ("minReplicas: 2, leader: {}, worker: {size: 1}", Options(), ["", ""], [[("0", "1", "")], [("1", "1", "")]]),
        ("topologyKey: rack, leader: {}, worker: {size: 1}", Options(), ["t"], [[("0", "1", "")]]),
        ("leader: {}, worker: {size: 1}", Options(spares=1), ["", "p"], [[("0", "1", "")], [("1", "1", "")]]),
        ("topologyKey: rack, leader: {}, worker: {size: 1}", Options(spares=1), ["t", "t p"], [[("0", "1", "")], [("1", "1", "")]]),
        ("minReplicas: 2, leader: {}, worker: {size: 1}", Options(ome="1.2", replicas="whole"), [""], [[("0", "1", ""), ("1", "1", "")]]),
        ("minReplicas: 1, leader: {}", Options(), [], []),
    ],
)  # fmt: skip
def test_a_frame_for_a_podgroup_a_row_for_an_instance_a_box_for_a_pod(engine, options, kinds, boxes) -> None:
    found = figures(html(RT + service(engine), options))
    assert [Read(figure).tags[0][1].get("class") or "" for figure in found] == kinds
    assert [BOXES.findall(figure) for figure in found] == boxes


def test_more_instances_of_one_gang_than_are_drawn_are_a_number() -> None:
    [figure] = figures(
        html(RT + service("minReplicas: 20, leader: {}, worker: {size: 1}"), Options(ome="1.2", replicas="whole"))
    )
    assert [index for index, _, _ in BOXES.findall(figure)] == [str(index) for index in range(12)]
    assert "and 8 Instances more" in figure


# The bar from 60 to 600 s: of 540 s in between, this many are behind.
@pytest.mark.parametrize(
    ("ready", "percent"), [("330s", 50), ("600s", 100), ("30m", 100), ("141s", 15), ("60s", 3), ("1s", 3)]
)
def test_the_bar_stands_between_the_bounds_of_the_clamp(ready: str, percent: int) -> None:
    text = html(RT + service(f"leader: {{}}, worker: {{}}, lifecycle: {{instanceReadyTimeout: {ready}}}"))
    assert re.findall(r"<i style=width:(\d+)%>", text) == [str(percent)]
    assert "bar: the timeout, from 60 to 600 s" in text


def test_without_a_clamp_there_is_no_bar() -> None:
    text = html(RT + service("leader: {}, worker: {}"), Options(ome_install="kustomize"))
    assert "class=b" not in text
    assert "bar:" not in text


def section(text: str, name: str) -> str:
    [found] = re.findall(rf"<section><h2>{name} .*?</section>", text, re.DOTALL)
    return str(found)


def test_a_finding_stands_beside_its_object() -> None:
    text = html(
        RT + service("leader: {}, worker: {size: 0}", "bad") + "---\n" + service("leader: {}, worker: {}", "good")
    )
    assert "<li class=e><b>error</b>" in section(text, "bad")
    assert "invalid-field" in section(text, "bad")
    assert "invalid-field" not in section(text, "good")
    assert "surge-without-spare" in section(text, "good")
    # Of no object: above them all.
    assert text.index("ome-not-said") < text.index("<section>")


def test_what_is_said_often_is_said_once_and_counted() -> None:
    names = [f"s{number}" for number in range(4)]
    text = html(RT + "---\n".join(service("leader: {}, worker: {}", name) for name in names))
    assert text.count("an update moves an Instance") == 1
    assert "<b>warning</b> 4 times: an update moves an Instance" in text
    for name in names:
        assert "<b>surge-without-spare</b>" in section(text, name)


def test_what_is_the_same_for_all_gangs_is_told_once() -> None:
    text = html(RT + "---\n".join(service("leader: {}, worker: {size: 2}", f"s{number}") for number in range(4)))
    common = section(text.replace("<h2>The same for all gangs</h2>", "<h2>common </h2>"), "common")
    assert "<dt>mode<dd><b>OMENative</b> leader and worker are both there" in common
    assert text.count("<dt>mode<") == 1
    assert text.count("<dt>workers<") == 4  # each from a place of its own


def test_leader_and_worker_are_told_once_where_they_are_alike() -> None:
    same = html(RT + service("schedulerName: a, leader: {}, worker: {}"))
    assert same.count("schedulerName<dd>") == 1
    assert "<dt>schedulerName<dd><b>a</b>" in same
    apart = html(RT + service("leader: {schedulerName: a}, worker: {schedulerName: b}"))
    assert "<dt>leader.schedulerName<dd><b>a</b>" in apart
    assert "<dt>worker.schedulerName<dd><b>b</b>" in apart


def test_two_runtimes_of_one_name_are_told_apart() -> None:
    """A bare name stands for a runtime only where it can be no other."""
    spec = "spec: {engineConfig: {leader: {}, worker: {size: 2}}}\n---\n"
    cluster = RT.replace("spec: {}\n---\n", spec)
    own = cluster.replace("ClusterServingRuntime", "ServingRuntime").replace("{name: rt}", "{name: rt, namespace: ml}")
    by_kind = "runtime: {name: rt, kind: ServingRuntime}"
    one = service("minReplicas: 1")
    two = one.replace("{name: llm}", "{name: own, namespace: ml}").replace("runtime: {name: rt}", by_kind)
    assert "<dt>workers<dd><b>2</b> runtime rt, line 4<" in html(cluster + one)
    both = html(cluster + own + one + "---\n" + two)
    assert "<dt>workers<dd><b>2</b> ClusterServingRuntime 'rt', line 4<" in both
    assert "<dt>workers<dd><b>2</b> ServingRuntime 'rt', line 9<" in both


def test_a_place_in_another_file_names_it() -> None:
    spec = RT.replace("spec: {}\n---\n", "spec: {engineConfig: {leader: {}, worker: {size: 2}}}\n")
    text = html(service("minReplicas: 1"), Options(context=(File("ctx/rt.yaml", spec.encode()),)))
    assert "<dt>workers<dd><b>2</b> runtime rt, ctx/rt.yaml line 4<" in text


@pytest.mark.parametrize("leader", ["{}", "{schedulerName: a}"])
def test_a_scheduler_that_a_runtime_may_name_is_not_named_as_far_as_is_known(leader: str) -> None:
    words = "no scheduler named" if leader == "{}" else "a for the leader, none for workers"
    text = (
        "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: llm}\nspec:\n"
        f"  runtime: {{name: rt}}\n  engine:\n    leader: {leader}\n    worker: {{size: 1}}\n"
    )
    known = (
        "---\napiVersion: ome.io/v1beta1\nkind: ClusterServingRuntime\nmetadata: {name: rt}\nspec: {engineConfig: {}}\n"
    )
    assert f"{words} as far as is known<" in html(text)
    assert f"{words}<" in html(text + known)


def test_nothing_to_draw_is_said() -> None:
    text = html("kind: ConfigMap\n")
    assert "<p>Nothing here comes to a gang: no InferenceService, no InferenceReplica." in text
    assert "<section>" not in text


# -- colors ----------------------------------------------------------------------------------------------------------

STYLE = Read(html("")).style
THEMES = {"light": STYLE.index(":root{"), "dark": STYLE.index(":root{", STYLE.index("prefers-color-scheme:dark"))}


def palette(theme: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+):(#\w+)", STYLE[THEMES[theme] :].partition("}")[0].replace("\n", "")))


def luminance(color: str) -> float:
    """Return the relative luminance (WCAG 2.2)."""
    digits = color.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_boxes_can_be_told_from_what_is_behind_them(theme: str) -> None:
    """WCAG 2.2: 4.5 for text (1.4.3), 3 for what is drawn (1.4.11)."""
    colors = palette(theme)
    assert len(colors) == 11
    assert (luminance(colors["paper"]) > 0.5) == (theme == "light")
    for text in ("ink", "soft", "error", "warning", "note"):
        for behind in ("paper", "box"):
            assert contrast(colors[text], colors[behind]) >= 4.5, (text, behind)
    for drawn in ("leader", "worker", "spare"):
        assert contrast(colors[drawn], colors["box"]) >= 3, drawn


def test_contrast_is_computed_right() -> None:
    assert contrast("#fff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_paper_is_white() -> None:
    """The dark theme is for screens; boxes keep their colors when printed, and an object is not cut in two."""
    assert "@media screen and (prefers-color-scheme:dark)" in STYLE
    printed = STYLE[STYLE.index("@media print") :]
    assert "--paper:#fff" in printed
    assert "print-color-adjust:exact" in printed
    assert "break-inside:avoid-page" in STYLE
