"""Rules as a value with an id."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace

import pytest

from stream.rules import Rules

CHANGED = {
    "max_distance": 2,
    "confirm": "cosine",
    "min_edit_similarity": 850,
    "min_cosine": 850,
    "min_resemblance": 750,
    "max_profile_distances": (8, 12),
    "max_crowd": 100,
    "max_compared": 10,
    "retention": 1,
    "input_format": "plain",
    "text_field": "body",
    "id_field": "key",
    "tombstones": "unique",
    "max_text_chars": 10,
}


def test_every_rule_changes_the_id():
    assert set(CHANGED) == {field.name for field in fields(Rules)}
    ids = {replace(Rules(), **{name: value}).id for name, value in CHANGED.items()}
    assert len(ids | {Rules().id}) == len(CHANGED) + 1


def test_equal_rules_have_the_same_id_in_any_process():
    code = "from stream.rules import Rules; print(Rules(retention=5, text_field='正文').id)"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert answer.stdout.decode().strip() == Rules(retention=5, text_field="正文").id


def test_the_id_of_the_default_rules_stands_in_every_output_and_must_not_change_by_accident():
    assert Rules().id == "b8821247bdd493d7"


def test_rules_can_be_read_back_from_their_canonical_json():
    rules = Rules(retention=5, text_field='正"文\udc80', tombstones="unique")
    assert json.loads(rules.canonical())["v"] == 1
    assert Rules.parse(rules.canonical()) == rules
    assert rules.canonical().isascii()


@pytest.mark.parametrize(
    "document", ["{}", '{"v":2}', "[]", '{"v":1}', '{"v":1,"max_profile_distances":[1],"x":1}']
)
def test_what_is_no_set_of_rules_is_refused(document):
    with pytest.raises(ValueError, match=r"not known|no rules"):
        Rules.parse(document)


@pytest.mark.parametrize("name", CHANGED)
def test_rules_cannot_be_changed_once_made(name):
    with pytest.raises(AttributeError):
        setattr(Rules(), name, CHANGED[name])
