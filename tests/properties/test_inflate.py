"""Documents that become items of a list: each item means what the document meant, and none is lost or added."""

from __future__ import annotations

import yaml

from postrender.findings import Refusal
from postrender.manifests import inflate, stream
from tests.properties import reading
from tests.properties.documents import documents
from tests.properties.tally import FUZZ, SEED, Tally

STREAMS = FUZZ or 600
MOST_REFUSED = 0.3  # of what the noisy printer prints: directives, content on the line of ---, no objects, no YAML


def test_an_item_means_what_its_document_meant() -> None:
    tally = Tally(f"documents moved into a list, seed {SEED}")
    for case in documents(f"inflate-{SEED}", STREAMS):
        tally.add("streams")
        try:
            items = inflate.items(case.data)
        except Refusal as refusal:
            tally.add("refused")
            tally.add(f"refused: {refusal.finding.message[:50]}")
            continue
        for order in (reading.OWN_WINS, reading.IN_ORDER):
            before = [one for one in meanings(case.data, order) if one != (reading.NULL, "")]
            (root,) = reading.documents((b"items:\n" + items).decode())
            after = reading.meaning(root, order)[reading.STR, "items"]
            assert (after if items else []) == before, case.name
        tally.add("moved")
    assert tally.under("refused:") <= MOST_REFUSED * STREAMS


def meanings(data: bytes, order: str) -> list[object]:
    found: list[object] = []
    for span in stream.cut(data):
        try:
            roots = reading.documents(stream.document(data, span).decode())
            found.extend(reading.meaning(root, order) for root in roots)
        except yaml.YAMLError as error:
            raise AssertionError(f"moved, though PyYAML cannot read it: {error}") from error
    return found
