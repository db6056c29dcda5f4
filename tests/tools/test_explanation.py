"""`textsieve explain`: the names that it takes, and what it shows."""

import json
from io import StringIO

import pytest
from rich.console import Console

from stream.errors import InputError
from stream.text import Scheme, SchemeSpec
from stream.tools.explanation import Event, Explanation, Source, as_json, as_table, parse_source
from stream.tools.pair import measure

DUPLICATE = Explanation(
    source="texts.raw:0:7",
    outcome="duplicate",
    output="texts.duplicates:0:3",
    headers={"time": "1500000000000", "scheme": "s", "rules": "r"},
    verdict={
        "v": 1,
        "id": "b[b]",
        "source": "texts.raw:0:7",
        "duplicate_of": {"id": None, "source": "texts.raw:0:2", "time": 4070908800000000},
        "reason": "near",
        "measure": "hamming",
        "similarity": 0.98,
        "hamming_distance": 1,
        "fingerprint": None,
        "added_later": True,
    },
    original=Event("texts.raw:0:2", None, "texts.raw:0:2 has passed"),
    event=Event("texts.raw:0:7", "[red]text", None),
    pair=None,
    notes=["a note"],
)


def printed(explanation: Explanation) -> str:
    out = StringIO()
    Console(file=out, width=100, highlight=False).print(as_table(explanation))
    return out.getvalue()


def test_a_source_is_a_topic_a_partition_and_an_offset():
    assert parse_source("texts.raw:0:1234") == Source("texts.raw", 0, 1234)
    assert str(parse_source("a-b_c.d:12:0")) == "a-b_c.d:12:0"


@pytest.mark.parametrize(
    "junk",
    ["", "texts.raw", "texts.raw:0", "texts.raw:0:", ":0:1", "texts.raw:0:-1", "texts.raw:0:1 ", "a b:0:1", "a:0:1:2",
     "texts.raw:0:1\n", "texts.raw:x:1", "texts.raw:0:１", "texts.raw:0:1_0", "t:0:" + "9" * 19, "\ud800:0:1"],
)  # fmt: skip
def test_anything_else_is_an_error_that_shows_the_form(junk: str):
    with pytest.raises(InputError, match="write topic:partition:offset"):
        parse_source(junk)


def test_everything_that_a_verdict_says_is_shown_also_what_later_versions_add():
    shown = printed(DUPLICATE)
    assert shown.startswith("texts.raw:0:7 is a near-duplicate of texts.raw:0:2\n")
    rows = {line[:28].strip(): line[28:].strip() for line in shown.splitlines()}
    assert rows["similarity"] == "0.980"
    assert rows["added later"] == "true"
    assert rows["id"] == '"b[b]"'
    assert rows["stream time"] == "1500000000000 (2017-07-14 02:40:00+00:00)"
    assert rows["stream time of the original"] == "4070908800000000", "no year has it"
    assert rows["output"] == "texts.duplicates:0:3"
    assert "texts.raw:0:2 has passed" in shown
    assert "a note" in shown


def test_the_pair_is_shown_with_which_text_is_which():
    pair = measure("[b]一样的话", "一样的花", Scheme.build(SchemeSpec()))
    of = Event("texts.raw:0:2", "", None)
    shown = printed(DUPLICATE._replace(pair=pair, original=of))
    assert "A is texts.raw:0:2, B is texts.raw:0:7." in shown
    assert "{+花+}" in shown
    as_one = as_json(DUPLICATE._replace(pair=pair, original=of))
    assert as_one["pair"]["edit_distance"] == 4
    json.dumps(as_one)


def test_why_an_event_is_unique_or_rejected_is_one_sentence():
    unique = DUPLICATE._replace(outcome="unique", verdict=None, original=None, event=None)
    assert printed(unique).startswith("texts.raw:0:7 is unique: when it was judged, no live original")
    headers = {"reason": "no-text", "error": "The object has no field 'text'."}
    rejected = unique._replace(outcome="rejected", headers=headers)
    assert printed(rejected).startswith("texts.raw:0:7 was rejected: The object has no field 'text'.")
    assert json.loads(json.dumps(as_json(rejected)))["headers"] == headers
