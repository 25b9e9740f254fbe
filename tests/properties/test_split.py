"""The promises of cutting: spans tile the input, hold the documents that libyaml finds, and hide none that matters."""

from __future__ import annotations

import random
from typing import Any

import yaml

from postrender.manifests import stream
from tests.properties.reading import LOADER
from tests.properties.tally import FUZZ, SEED, Tally

STREAMS = 60_000 if FUZZ else 2_000
SPELLINGS = 60_000 if FUZZ else 2_000
BREAKS = ("\n", "\n", "\n", "\r\n", "\r\n", "\r", "\u2028", "\u2029", "\x85")
FRAGMENTS = (
    "---", "---", "---", "--- ", "---\t", "--- # c", "--- a: 1", "--- x", "--- {a: 1}", "--- |", "--- >-", "--- &a",
    "--- !!map", "--- 'q", "---x", "----", " ---", "--- ---", "...", "...", "... ", "... # c", "...x", " ...", "....",
    "%YAML 1.1", "%TAG !e! tag:e,2000:", "%", " %YAML 1.1", "a: 1", "b: 2", "  c: 3", "- x", "- |", "  text",
    "   ---", "  ...", "k: |", "k: |+", "k: >-", "q: 'one", "  two'", 'q: "one', '  two"', "  ---'", "f: {a: 1,",
    "  b: 2}", "[1,", "2]", '{"a":', '"b"}', "\t{}", "", "", "# c", "# ---", "x", "!e!t x", "\ufeff", "*a", "é: 🙂",
    "? a", ": b", "a: %b",
)  # fmt: skip
NEEDLE = "InferenceService"


def test_spans_hold_the_documents_of_the_stream() -> None:
    tally = Tally(f"cutting, seed {SEED}")
    rng = random.Random(f"split-{SEED}")
    for _ in range(STREAMS):
        data = random_stream(rng).encode()
        if rng.random() < 0.05:
            data = data.replace(b"\n", b"\n\xff", 1)
        tally.add("streams")
        spans = stream.cut(data)
        assert_tiled(data, spans)
        whole = documents(data)
        if whole is None:
            tally.add("not YAML: only tiled")
            continue
        parts = [documents(data[span.start : span.stop], first=span.start == 0) for span in spans]
        assert None not in parts, (data, spans)
        assert [one for part in parts for one in part or ()] == whole, (data, spans)
        assert max(map(len, filter(None, parts)), default=0) <= 1, (data, spans)
        tally.add("with several documents" if len(whole) > 1 else "with one document" if whole else "with none")
    assert tally.under("with") >= STREAMS * 0.1
    assert tally.under("with several") >= STREAMS * 0.02


def test_a_mark_at_the_start_of_a_line_always_cuts() -> None:
    """Where no directive and no rare break is about: the cuts are known without a parser, in invalid streams too."""
    rng = random.Random(f"marks-{SEED}")
    for _ in range(STREAMS):
        text = random_stream(rng, ("\n",)).replace("%", "").replace("\ufeff", "")
        spans = stream.cut(text.encode())
        lines = text.split("\n")
        marks = sum(line[:3] == "---" and line[3:4] in ("", " ", "\t") for line in lines[1:])
        starts = {span.start for span in spans}
        at = 0
        for line in lines:
            assert not (at and line[:3] == "---" and line[3:4] in ("", " ", "\t")) or at in starts, (text, spans)
            at += len((line + "\n").encode())
        assert len(spans) <= marks + sum(line.startswith("...") for line in lines) + 1, (text, spans)


def test_no_scalar_with_a_needle_is_missed() -> None:
    tally = Tally(f"needles, seed {SEED}")
    rng = random.Random(f"needle-{SEED}")
    for _ in range(SPELLINGS):
        pieces = [random_stream(rng) if rng.random() < 0.3 else spelled_document(rng) for _ in range(rng.randint(1, 3))]
        data = "\n---\n".join(pieces).encode()
        whole = documents(data)
        if whole is None:
            tally.add("not YAML")
            continue
        spans = stream.cut(data)
        looked_at = stream.candidates(data, spans, [NEEDLE.encode()])
        for number, span in enumerate(spans):
            held = documents(data[span.start : span.stop], first=span.start == 0) or []
            said = any(NEEDLE in (value or "") for one in held for _, _, _, value in one)
            assert number in looked_at or not said, (data, span)
            written = data[span.start : span.end]
            assert number not in looked_at or NEEDLE.encode() in written or b"\\" in written, (data, span)
            if said:
                assert not stream.is_quiet(data, [NEEDLE.encode()]), data
                tally.add("found" if NEEDLE.encode() in written else "found, by its escapes")
            else:
                tally.add("looked at, for nothing" if number in looked_at else "passed over")
    assert tally.under("found, by") >= SPELLINGS * 0.2
    assert tally.under("passed over") >= SPELLINGS * 0.05


def random_stream(rng: random.Random, breaks: tuple[str, ...] = BREAKS) -> str:
    """Fragments, each on a line; mostly one kind of break."""
    usual = rng.choice(breaks)
    mixed = rng.random() < 0.3
    text = "\ufeff" if rng.random() < 0.03 else ""
    for _ in range(rng.randint(1, 9)):
        text += rng.choice(FRAGMENTS) + (rng.choice(breaks) if mixed else usual)
    return text if rng.random() < 0.7 else text.rstrip("\r\n\x85\u2028\u2029")


def spelled_document(rng: random.Random) -> str:
    """A document with the needle, or nearly, in one of the ways to write a string."""
    near = (NEEDLE + "List", "x" + NEEDLE, "Inference Service", NEEDLE[:-1], "\\" + NEEDLE)
    word = NEEDLE if rng.random() < 0.4 else rng.choice(near)
    usual = rng.choice(BREAKS)
    way = rng.random()
    if way < 0.7:
        shown = '"' + "".join(spelled(char, rng, usual) for char in word) + '"'
    else:
        shown = rng.choice((word, f"'{word}'", f"|{usual}  {word}", f"&a {word}{usual}again: *a", f"!!str {word}"))
    return rng.choice(("kind: {}", "{{kind: {} }}", "- {}", "? {}\n: v", "a:\n  kind: {}")).format(shown) + usual


def spelled(char: str, rng: random.Random, usual: str) -> str:
    code = ord(char)
    kind = rng.random()
    if kind < 0.6:
        shown = "\\\\" if char == "\\" else char
    else:
        shown = rng.choice((f"\\x{code:02x}", f"\\x{code:02X}", f"\\u{code:04x}", f"\\u{code:04X}", f"\\U{code:08x}"))
    if rng.random() < 0.05:
        shown = "\\" + rng.choice((usual, usual, *BREAKS)) + rng.choice(("", " ", "  ", "\t", "    ")) + shown
    return shown


def documents(data: bytes, *, first: bool = True) -> list[list[tuple[Any, ...]]] | None:
    """The events of each document, without their marks; None where libyaml finds no way to read it."""
    found: list[list[tuple[Any, ...]]] = []
    try:
        text = data.decode()
        for event in yaml.parse(text.removeprefix("\ufeff") if first else text, Loader=LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                found.append([])
            elif isinstance(event, (yaml.NodeEvent, yaml.CollectionEndEvent)):
                found[-1].append((type(event), *(getattr(event, name, None) for name in ("anchor", "tag", "value"))))
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    return found


def assert_tiled(data: bytes, spans: list[stream.Span]) -> None:
    at = 0
    for span in spans:
        assert span.start == at, (data, spans)
        assert span.start <= span.stop <= span.end, (data, spans)
        at = span.end
    assert at == len(data), (data, spans)
    assert all(span.end > span.start for span in spans[1:]), (data, spans)
