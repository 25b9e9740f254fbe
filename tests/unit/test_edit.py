"""Edits beyond the golden cases: places of refusals, the reading back, and what a planner must not ask for."""

import pytest

from postrender.findings import Place, Refusal
from postrender.manifests import edit, editor, lookup, stream, tree
from postrender.manifests.change import Add, Extend, Replace, Set, Spot


def splice(data: bytes, *changes: object) -> bytes:
    return edit.splice(data, stream.cut(data), changes)


LABEL = Set(Spot(0), ("spec", "labels", "a"), "b")


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"spec: {labels: [a]}\n", 1, 16),
        (b"# c\nspec:\n  labels: text\n", 3, 11),
        (b"spec:\r\n  labels:\r\n  - a\r\n", 3, 3),
        (b"\xef\xbb\xbfspec: {labels: 5}\n", 1, 16),
        ("# ü\nspec: {ü: ü, labels: 5}\n".encode(), 2, 22),
        (b"x: &x {}\nspec: {labels: {}}\nspec: {}\n", 3, 1),
        (b"spec:\r  labels: text\r", 2, 11),
        (b"spec: {labels: {! 'a': c}}\n", 1, 17),
        (b"spec: {!x labels: {}}\n", 1, 8),
    ],
)
def test_a_refusal_names_line_and_column(data, line, column):
    with pytest.raises(Refusal) as refused:
        splice(data, LABEL)
    finding = refused.value.finding
    assert finding.code == "edit-refused"
    assert (finding.place.line, finding.place.column) == (line, column)
    assert finding.remedy


def test_a_refusal_in_a_later_document_counts_from_the_top():
    data = b"---\na: 1\n---\n# Source: chart/templates/x.yaml\nspec: {labels: 5}\n"
    with pytest.raises(Refusal) as refused:
        splice(data, LABEL._replace(spot=Spot(1)))
    assert refused.value.finding.place == Place(5, 16, "chart/templates/x.yaml")


def test_what_is_read_back_must_be_the_input_plus_the_change(monkeypatch):
    """Whatever goes wrong between the plan of an edit and its text, nothing wrong comes out."""
    data = b"spec:\n  labels: {x: y}\n  other: {}\n"
    wrong = [
        lambda old, text, edits: old,
        lambda old, text, edits: old.replace(b"x: y", b"x: y, a: c"),
        lambda old, text, edits: old.replace(b"x: y", b"a: b"),
        lambda old, text, edits: old.replace(b"other: {}", b"other: {a: b}"),
        lambda old, text, edits: b"spec:\n  labels: {x: y, a: b}\n  other: []\n",
        lambda old, text, edits: b"spec:\n  labels: {x: 'y', a: b}\n  other: {}\n",
        lambda old, text, edits: b"spec:\n  labels: {x: y, a: b}\n  other: {}\n---\nmore: 1\n",
        lambda old, text, edits: b"spec:\n  labels: {x: y, a: b\n",
        lambda old, text, edits: b"",
    ]
    for apply in wrong:
        monkeypatch.setattr(edit, "apply", apply)
        with pytest.raises(Refusal, match="read back"):
            splice(data, LABEL)
    monkeypatch.setattr(edit, "apply", lambda old, text, edits: b"spec:\n  labels: {x: y, a: b}\n  other: {}\n")
    assert splice(data, LABEL) == b"spec:\n  labels: {x: y, a: b}\n  other: {}\n"


@pytest.mark.parametrize(
    ("data", "made"),
    [
        (b"spec: {labels: {<<: {x: y}}}\n", b"spec: {labels: {a: b, <<: {x: y}}}\n"),
        (b"spec: {labels: &l {}}\nx: *l\n", b"spec: {labels: &l {a: b}}\nx: *l\n"),
        (b"spec: {labels: {}}\nx: !t y\n", b"spec: {labels: {a: b}}\nx: y\n"),
        (b"spec: {labels: {}}\nx: &y y\n", b"spec: {labels: {a: b}}\nx: y\n"),
        (b"a: &x y\nspec: {labels: {}}\nb: &x y\nc: *x\n", b"a: &x y\nspec: {labels: {a: b}}\nc: &x y\nb: *x\n"),
        (b"x: &x y\nz: [&x y, *x]\nspec: {labels: {}}\n", b"x: &x y\nz: [*x , &x y]\nspec: {labels: {a: b}}\n"),
    ],
)
def test_the_reading_back_sees_what_only_some_readers_see(monkeypatch, data, made):
    """Merge order, shared anchors, tags, and which node an alias stands for."""
    monkeypatch.setattr(editor.Editor, "_own", lambda *_: None)
    monkeypatch.setattr(edit, "apply", lambda *_: made)
    with pytest.raises(Refusal, match="read back"):
        splice(data, LABEL)


def test_the_reading_back_wants_strings_that_are_strings_to_all(monkeypatch):
    monkeypatch.setattr(edit, "apply", lambda *_: b"spec: {labels: {a: y}}\n")
    with pytest.raises(Refusal, match="read back"):
        splice(b"spec: {labels: {}}\n", LABEL._replace(value="y"))


def test_the_limit_of_values_is_one_of_each_item(monkeypatch):
    monkeypatch.setattr(tree, "MAX_NODES", 20)
    items = b"apiVersion: v1\nkind: List\nitems:\n" + b"- {a: b, c: d}\n" * 100
    assert splice(items, Set(Spot(0, 99), ("a",), "e")).endswith(b"- {a: e, c: d}\n")


def test_a_quoted_merge_key_is_none():
    assert lookup.find(tree.read(b'{"<<": {a: b}, c: d}'), "a") is None


def test_a_new_document_is_read_back(monkeypatch):
    monkeypatch.setattr(edit, "block", lambda *_: "kind: B\n")
    with pytest.raises(Refusal, match="read back"):
        splice(b"kind: A\n", Add(Spot(0), (("kind", "C"),)))


def test_no_change_gives_the_same_object():
    data = b"spec: {labels: {a: b}}\n"
    assert splice(data) is data
    assert splice(data, LABEL) is data


def test_invalid_utf_8_has_a_place():
    with pytest.raises(Refusal, match="not UTF-8: byte 0xff") as refused:
        splice("a: ü\nb: ".encode() + b"\xff\n", LABEL)
    assert refused.value.finding.place[:2] == (2, 4)


@pytest.mark.parametrize(
    ("data", "out"),
    [
        (b"%YAML 1.1\n---\nkind: A\n", b"---\nkind: New\n...\n%YAML 1.1\n---\nkind: A\n"),
        (b"# c\n%YAML 1.1\n---\nkind: A\n", b"---\nkind: New\n...\n# c\n%YAML 1.1\n---\nkind: A\n"),
        (b"# c\nkind: A\n", b"kind: New\n---\n# c\nkind: A\n"),
        (b"--- # c\nkind: A\n", b"---\nkind: New\n--- # c\nkind: A\n"),
        (b"---\r\nkind: A\r\n", b"---\r\nkind: New\r\n---\r\nkind: A\r\n"),
        (b'{"kind": "A"}', b'kind: New\n---\n{"kind": "A"}'),
    ],
)
def test_a_document_before_a_document(data, out):
    assert splice(data, Add(Spot(0), (("kind", "New"),))) == out


def test_two_changes_that_want_different_things_are_a_mistake():
    with pytest.raises(ValueError, match=r"different things at spec\.labels"):
        splice(b"spec: {}\n", LABEL, LABEL._replace(value="c"))
    with pytest.raises(ValueError, match="different things"):
        splice(b"spec: {}\n", LABEL._replace(path=("spec",)), LABEL)
    with pytest.raises(ValueError, match="no such object"):
        splice(b"kind: List\nitems: []\n", LABEL._replace(spot=Spot(0, 3)))


def test_replace_keeps_what_stands_around():
    data = b"# above\nkind: A\nspec: {x: y}\n# below\n"
    assert splice(data, Replace(Spot(0), (("kind", "B"),))) == b"# above\nkind: B\n# below\n"


@pytest.mark.parametrize("size", [10, 5_000])
def test_a_large_list_is_edited_like_a_small_one(size):
    """Above a megabyte the text is looked at through its bytes."""
    items = [b"- kind: A\n  x: %s\n" % (b"%d" % number).zfill(300) for number in range(size)]
    data = b"kind: List\nitems:\n" + b"".join(items)
    assert (len(data) > 1 << 20) == (size > 10)
    out = splice(data, Set(Spot(0, size - 1), ("spec", "a"), "b"), Add(Spot(0, 1), (("kind", "New"),)))
    items[-1] += b"  spec:\n    a: b\n"
    items[1] = b"- kind: New\n" + items[1]
    assert out == b"kind: List\nitems:\n" + b"".join(items)


MORE = Extend(Spot(0), "results", ((("message", "m"),), (("message", "n"), ("tags", (("code", "c"),)))))
LIST = "kind: ResourceList\nitems: []\n"


@pytest.mark.parametrize(
    ("data", "out"),
    [
        (LIST, LIST + "results:\n- message: m\n- message: \"n\"\n  tags:\n    code: c\n"),
        (LIST + "results:\n- a: b\n", LIST + "results:\n- a: b\n- message: m\n- message: \"n\"\n  tags:\n    code: c\n"),
        (LIST + "results:\n  - message: m\n", LIST + "results:\n  - message: m\n  - message: \"n\"\n    tags:\n      code: c\n"),
        (LIST + "results: # c\n", LIST + "results: # c\n- message: m\n- message: \"n\"\n  tags:\n    code: c\n"),
        (LIST + "results: ~ # c\n", LIST + "results: [{message: m}, {message: \"n\", tags: {code: c}}] # c\n"),
        (LIST + "results: [ # c\n  ]\n", LIST + "results: [{message: m}, {message: \"n\", tags: {code: c}} # c\n  ]\n"),
        (LIST + "results: [{message: m} ]\n", LIST + "results: [{message: m}, {message: \"n\", tags: {code: c}} ]\n"),
        ("{kind: ResourceList}", "{results: [{message: m}, {message: \"n\", tags: {code: c}}], kind: ResourceList}"),
        ('{"kind":"ResourceList","results":null}', '{"kind":"ResourceList","results":[{"message":"m"},{"message":"n","tags":{"code":"c"}}]}'),
        ("{kind: ResourceList, results: }", "{kind: ResourceList, results: [{message: m}, {message: \"n\", tags: {code: c}}] }"),
        (LIST + "? results\n", LIST + "? results\n: [{message: m}, {message: \"n\", tags: {code: c}}]\n"),
        ("kind: ResourceList\nitems:\n- a: b", "kind: ResourceList\nitems:\n- a: b\nresults:\n- message: m\n- message: \"n\"\n  tags:\n    code: c"),
    ],
)  # fmt: skip
def test_a_list_beside_the_items_is_made_longer(data, out):
    assert splice(data.encode(), MORE) == out.encode()
    assert splice(out.encode(), MORE) == out.encode()


@pytest.mark.parametrize(
    "data",
    [
        LIST + "results: {a: b}\n",
        LIST + "results: text\n",
        LIST + "x: &x [a]\nresults: *x\n",
        LIST + "<<: {results: []}\n",
        LIST + "results: &x [a]\nx: *x\n",
        LIST + "results: &x\nx: *x\n",
        LIST + "results:\n- |\n  text",
    ],
)
def test_a_list_that_cannot_be_made_longer_is_refused(data):
    with pytest.raises(Refusal) as refused:
        splice(data.encode(), MORE)
    assert refused.value.finding.code == "edit-refused"


@pytest.mark.parametrize(
    "made",
    [
        LIST + "results:\n- a: b\n- message: m\n",
        LIST + "results:\n- a: b\n- message: m\n- message: \"n\"\n",
        LIST + "results:\n- message: m\n- a: b\n- message: \"n\"\n  tags: {code: c}\n",
        LIST + "results:\n- a: b\n- message: m\n- message: \"n\"\n  tags: {code: c}\nmore: x\n",
        LIST + "results:\n- a: c\n- message: m\n- message: \"n\"\n  tags: {code: c}\n",
        LIST + "results: [{a: b}, {message: m}, {message: \"n\", tags: {code: c}}]\n",
        "kind: ResourceList\nitems: [{}]\nresults:\n- a: b\n- message: m\n- message: \"n\"\n  tags: {code: c}\n",
        "kind: ResourceList\nresults:\n- a: b\n- message: m\n- message: \"n\"\n  tags: {code: c}\n",
        LIST + "results:\n- a: b\n",
        LIST + "results: {}\n",
    ],
)  # fmt: skip
def test_a_longer_list_is_read_back(monkeypatch, made):
    monkeypatch.setattr(edit, "apply", lambda *_: made.encode())
    with pytest.raises(Refusal, match="read back"):
        splice((LIST + "results:\n- a: b\n").encode(), MORE)


@pytest.mark.parametrize(
    "made",
    [
        LIST,
        LIST + "results:\n- message: m\n",
        LIST + "result:\n- message: m\n- message: \"n\"\n  tags: {code: c}\n",
        LIST + "results:\n- message: m\n- message: \"n\"\n  tags: {code: c}\nresults: []\n",
        LIST + "results: &x\n- message: m\n- message: \"n\"\n  tags: {code: c}\n",
    ],
)  # fmt: skip
def test_a_new_list_is_read_back(monkeypatch, made):
    monkeypatch.setattr(edit, "apply", lambda *_: made.encode())
    with pytest.raises(Refusal, match="read back"):
        splice(LIST.encode(), MORE)
