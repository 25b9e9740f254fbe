"""What is not ours passes untouched: any bytes at all, as long as no object of a kind we know can be in them."""

from __future__ import annotations

import random
import re

from postrender.options import Options
from postrender.pipeline import render
from tests.properties.documents import documents
from tests.properties.tally import FUZZ, SEED, Tally
from tests.properties.test_split import random_stream

STREAMS = FUZZ or 1_000
NOISE = (
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\x1b", b"\t", b"'", b'"', b"{", b"*x", b"\xe2\x80", b"\r",
    b"\xef\xbb\xbf",
)  # fmt: skip
# Every kind that is looked at; a stream of the noisy printer is made foreign by renaming them.
OURS = re.compile(rb"InferenceService|InferenceReplica|PodGroup|ServingRuntime|LeaderWorkerSet|ResourceList|\\")


def test_foreign_bytes_pass() -> None:
    tally = Tally(f"foreign streams, seed {SEED}")
    rng = random.Random(f"foreign-{SEED}")
    printed = documents(f"foreign-{SEED}", STREAMS)
    for case in printed:
        data = case.data if rng.random() < 0.5 else random_stream(rng).encode()
        data = OURS.sub(b"ConfigMap", data)
        for _ in range(rng.choice((0, 0, 1, 3))):
            at = rng.randint(0, len(data))
            data = data[:at] + rng.choice(NOISE) + data[at:]
        if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
            continue
        rendered = render(data, Options())
        assert rendered.data == data, data
        assert rendered.findings == () or list(rendered.findings) == [], (data, rendered.findings)
        tally.add("passed")
