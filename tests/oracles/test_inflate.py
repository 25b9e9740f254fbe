"""Documents that become items of a list, read by Go: an item is to kustomize what the document was."""

from __future__ import annotations

from postrender.findings import Refusal
from postrender.manifests import inflate
from tests.oracles.client import Oracle, OracleError, exact
from tests.properties.documents import documents
from tests.properties.tally import FUZZ, SEED, Tally

DOCUMENTS = FUZZ or 400
LEAST = 0.4  # of all are moved and read, or the test says little


def test_go_reads_an_item_as_it_read_the_document(oracle: Oracle) -> None:
    tally = Tally(f"moved documents read by Go, seed {SEED}")
    for case in documents(f"go-inflate-{SEED}", DOCUMENTS, alone=True):
        try:
            items = inflate.items(case.data)
            before = {reader: getattr(oracle, reader)(case.data.decode()) for reader in ("sigs", "v3")}
        except (Refusal, OracleError) as error:
            tally.add(f"passed over: {type(error).__name__}")
            continue
        for reader, document in before.items():
            after = getattr(oracle, reader)((b"items:\n" + items).decode())
            assert exact(after) == exact({"items": [document]}), f"{reader}: {case.data!r}"
        tally.add("the same")
    assert tally.under("the same") >= LEAST * DOCUMENTS
