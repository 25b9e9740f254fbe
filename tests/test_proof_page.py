"""docs/proof.md and its drawing are those of the record of a run; the record's claims hold."""

import re

import pytest

from tests.e2e.proof import record
from tests.e2e.proof.__main__ import DRAWING, FIRST
from tests.e2e.proof.drawing import drawing
from tests.e2e.proof.page import PAGE, README, SUMMARY, page, summary
from tests.e2e.proof.scenarios import ALL
from tests.e2e.proof.whole_way import LIMITS, WAYS

RECORD = record.load()
PAIRS = record.pairs(RECORD)


def test_the_page_is_of_the_record():
    assert PAGE.read_text() == page(RECORD)


def test_a_number_of_the_record_is_a_number_of_the_page():
    first = RECORD["scenarios"]["two-gangs"]["with"]["gangs"][0]
    other = {**RECORD, "scenarios": {**RECORD["scenarios"]}}
    other["scenarios"]["two-gangs"] = {
        **RECORD["scenarios"]["two-gangs"],
        "with": {**RECORD["scenarios"]["two-gangs"]["with"], "gangs": [{**first, "pods": 77, "bound": 76}]},
    }
    assert "76 of 77" in page(other)


def test_readme_says_what_the_record_says():
    assert SUMMARY.findall(README.read_text()) == [summary(RECORD)]


def test_the_drawing_is_of_the_record():
    assert DRAWING.read_text() == drawing(PAIRS[FIRST.name])


def test_the_drawing_shows_each_pod_once():
    pods = re.findall(r">(blue|green)</text>", DRAWING.read_text())
    assert sorted(pods) == ["blue"] * 8 + ["green"] * 8  # four pods of two gangs, twice


@pytest.mark.parametrize("scenario", ALL + WAYS, ids=lambda scenario: scenario.name)
def test_a_recorded_claim(scenario):
    without, ours = PAIRS[scenario.name]
    assert scenario.claim(ours)
    assert not scenario.claim(without)


def test_the_record_is_of_all_scenarios():
    assert set(PAIRS) == {one.name for one in ALL + WAYS + LIMITS}


def test_no_gang_is_partial_at_scale():
    facts = RECORD["scale"]["facts"]
    assert facts["gangs partial"] == 0
    assert facts["gangs whole"] + facts["gangs with nothing"] == facts["gangs of 8 pods"]
