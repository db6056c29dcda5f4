"""The wire: what becomes of any bytes, and what leaves with a verdict."""

import json
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.events import (
    MAX_NESTING,
    MAX_UNWRITABLE_BYTES,
    VERDICT,
    Outbox,
    RawEvent,
    decode,
    format_fingerprint,
    source,
    unwritable,
    verdict_json,
)
from stream.rules import MAX_ID_BYTES, Rules
from stream.verdict import UNWRITABLE, Duplicate, Passed, Reference, Rejected, Rejection, Text, Unique

JSON = Rules()
PLAIN = Rules(input_format="plain")
TOPICS = ("texts.unique", "texts.duplicates", "texts.rejected")
HEADROOM = 64 * 1024  # how much larger an output may be than its raw event


def raw(value, *, offset=7, timestamp=1_700_000_000_000, key=b"k", headers=()):
    return RawEvent("texts.raw", 2, offset, timestamp, key, value, headers)


def read(value, rules=JSON):
    return decode(raw(value), rules)


def read_document(document, rules=JSON):
    return read(json.dumps(document).encode(), rules)


def id_of(literal):
    """What a document with this JSON as its id gives."""
    return read(b'{"text": "t", "id": ' + literal + b"}")


# What is read


def test_an_object_with_a_text_is_read_with_its_offset_and_timestamp():
    assert read('{"text": "你好", "more": [1, {"a": null}]}'.encode()) == Text(
        7, 1_700_000_000_000, "你好", ""
    )


def test_the_fields_of_text_and_id_can_be_named():
    rules = Rules(text_field="正文", id_field="key")
    assert read_document({"正文": "a", "key": 5, "text": 1, "id": []}, rules)[2:] == ("a", "5")


def test_plain_values_are_the_text_whatever_they_look_like():
    assert read(b'{"text": "a"}', PLAIN)[2:] == ('{"text": "a"}', "")
    assert read(b"", PLAIN)[2:] == ("", "")


@pytest.mark.parametrize("rules", [JSON, PLAIN])
def test_a_byte_order_mark_is_no_part_of_the_value(rules):
    value = b'\xef\xbb\xbf{"text": "a"}'
    assert read(value, rules) == read(value[3:], rules)


@pytest.mark.parametrize(
    "text",
    ["", " \t\n", "😀🎉", "！！！…", "a\x00b", "\ud800", "\udfff\ud800", "e\u0301", "\u200b", "x" * 100_000],
)
def test_any_string_is_a_text(text):
    assert read_document({"text": text}).text == text


def test_of_a_key_that_comes_twice_the_last_counts():
    assert read(b'{"text": 1, "id": [], "text": "b", "id": 2}')[2:] == ("b", "2")


@pytest.mark.parametrize(
    ("timestamp", "time"), [(-1, None), (-(2**63), None), (0, 0), (2**63 - 1, 2**63 - 1)]
)
def test_a_negative_timestamp_is_none_and_any_other_is_taken(timestamp, time):
    for value, rules in ((b'{"text": "a"}', JSON), (b"a", PLAIN), (None, Rules(tombstones="unique"))):
        assert decode(raw(value, timestamp=timestamp), rules).time == time


# Ids


@pytest.mark.parametrize(
    "literal", [b"0", b"-0", b"12345678901234567890", b"1.10", b"1e400", b"-1E-7", b"0.1000000000000000055"]
)
def test_a_number_is_echoed_to_the_letter(literal):
    assert id_of(literal).id == literal.decode()


@pytest.mark.parametrize("id", ["", "a", '"', "\\", "\n\x00", "é", "帖子-1", "\ud800", "1"])
def test_a_string_is_echoed_as_the_same_string(id):
    assert json.loads(id_of(json.dumps(id).encode()).id) == id


def test_two_spellings_of_a_string_are_one_id():
    assert id_of('"帖"'.encode()).id == id_of(b'"\\u5e16"').id


def test_a_string_and_a_number_are_different_ids():
    assert id_of(b"1").id != id_of(b'"1"').id


def test_a_missing_id_and_null_are_no_id():
    assert id_of(b"null").id == read(b'{"text": "t"}').id == ""


@pytest.mark.parametrize("literal", [b"[]", b'{"a": 1}', b"true", b"false", b'["a"]'])
def test_an_id_that_is_neither_string_nor_number_is_rejected(literal):
    assert id_of(literal)[:2] == (7, "invalid-id")


@pytest.mark.parametrize("character", ["a", "é", "帖", "😀", "\x01"])
def test_an_id_has_at_most_256_bytes(character):
    size = len(character.encode())
    longest = character * (MAX_ID_BYTES // size)
    longest += "a" * (MAX_ID_BYTES - len(longest.encode()))
    assert json.loads(id_of(json.dumps(longest).encode()).id) == longest
    assert id_of(json.dumps(longest + "a").encode()).reason == "invalid-id"


def test_an_id_of_a_megabyte_or_of_100_000_digits_is_rejected():
    assert id_of(b'"' + b"a" * 1_000_000 + b'"').reason == "invalid-id"
    assert id_of(b"9" * 100_000).reason == "invalid-id"
    assert id_of(b"9" * 256).id == "9" * 256


# What is rejected


def test_a_tombstone_is_rejected_or_passed_as_the_rules_say():
    assert read(None) == Rejection(7, "tombstone", "The event has no value.")
    assert read(None, Rules(tombstones="unique")) == Passed(7, 1_700_000_000_000)
    assert read(None, Rules(tombstones="unique", input_format="plain")) == Passed(7, 1_700_000_000_000)


REJECTED = [
    (b"", "invalid-json"),
    (b" ", "invalid-json"),
    (b"\xff\xfe", "invalid-utf8"),
    (b'{"text": "\xe4\xbd"}', "invalid-utf8"),
    (b'{"text": "\xed\xa0\x80"}', "invalid-utf8"),  # a surrogate in UTF-8
    ('{"text": "a"}'.encode("utf-16"), "invalid-utf8"),
    (b"\x1f\x8b\x08\x00\x00", "invalid-utf8"),
    (b"plain", "invalid-json"),
    (b'{"text": "a"} x', "invalid-json"),
    (b'{"text": "a"}{"text": "a"}', "invalid-json"),
    (b'{"text": "a",}', "invalid-json"),
    (b"{'text': 'a'}", "invalid-json"),
    (b'{"text": "a", "n": NaN}', "invalid-json"),
    (b'{"text": "a", "n": Infinity}', "invalid-json"),
    (b'{"text": "a", "n": -Infinity}', "invalid-json"),
    (b'{"text": "a", "n": 01}', "invalid-json"),
    (b'{"text": "a", "n": +1}', "invalid-json"),
    ('{"text": "a", "n": １}'.encode(), "invalid-json"),
    (b'{"text": "a\nb"}', "invalid-json"),
    (b'{"text": "a\x00b"}', "invalid-json"),
    (b'{"text": "\\x"}', "invalid-json"),
    (b'{"text": "\\ud8"}', "invalid-json"),
    (b'{"text": "a', "invalid-json"),
    (b'{"text"', "invalid-json"),
    (b"\xef\xbb\xbf\xef\xbb\xbf{}", "invalid-json"),
    (b'["text"]', "not-an-object"),
    (b'"text"', "not-an-object"),
    (b"null", "not-an-object"),
    (b"5", "not-an-object"),
    (b"{}", "no-text"),
    (b'{"Text": "a"}', "no-text"),
    (b'{"text": null}', "text-not-a-string"),
    (b'{"text": 5}', "text-not-a-string"),
    (b'{"text": 5.5}', "text-not-a-string"),
    (b'{"text": true}', "text-not-a-string"),
    (b'{"text": ["a"]}', "text-not-a-string"),
    (b'{"text": {"text": "a"}}', "text-not-a-string"),
]


@pytest.mark.parametrize(("value", "reason"), REJECTED)
def test_what_is_no_object_with_a_text_is_rejected_with_its_reason(value, reason):
    rejection = read(value)
    assert isinstance(rejection, Rejection)
    assert (rejection.offset, rejection.reason) == (7, reason)
    assert rejection.error.endswith(".")


def test_an_error_says_at_which_byte_or_character():
    assert "at byte 13" in read(b'\xef\xbb\xbf{"text": "\xff"}').error
    assert "(character 14)" in read('{"text": "好"} x'.encode()).error


def nested(depth, bracket=b"["):
    """A document whose brackets lie `depth` deep."""
    opened, closed = (b"[", b"]") if bracket == b"[" else (b'{"a":', b"}")
    return (
        b'{"side": [{}, []], "text": "a", "x": ' + opened * (depth - 1) + b"1" + closed * (depth - 1) + b"}"
    )


@pytest.mark.parametrize("bracket", [b"[", b"{"])
def test_nesting_is_bounded_by_a_rule_of_ours(bracket):
    assert read(nested(MAX_NESTING, bracket)).text == "a"
    for depth in (MAX_NESTING + 1, 900, 5000, 100_000):
        assert read(nested(depth, bracket)).reason == "invalid-json"
    assert read(b"[" * 100_000).reason == "invalid-json"
    assert read(b'{"a":' * 100_000).reason == "invalid-json"


def test_brackets_in_strings_and_side_by_side_are_no_nesting():
    text = '[{"\\' * 1000
    assert read_document({"text": text, "x": [[[]]] * 1000}).text == text
    assert (
        read(b'{"text": "a", "x": "' + b"\\\\" * 9 + b'", "y": ' + b"[" * 255 + b"]" * 255 + b"}").text == "a"
    )


def test_the_verdict_on_nesting_does_not_depend_on_how_deep_the_caller_stands():
    answers = []

    def at_depth(frames):
        if frames:
            at_depth(frames - 1)
        else:
            answers.append([type(read(nested(depth))) for depth in (MAX_NESTING, MAX_NESTING + 1)])

    limit = sys.getrecursionlimit()
    thread = threading.Thread(
        target=at_depth, args=(limit // 2,)
    )  # a stack of its own, whoever runs the tests
    thread.start()
    thread.join()
    assert answers == [[Text, Rejection]]


def test_a_huge_number_in_a_field_of_no_interest_does_no_harm():
    assert read(b'{"text": "a", "n": ' + b"9" * 100_000 + b"}").text == "a"
    assert read(b'{"text": "a", "n": 1e999999999}').text == "a"


# Whatever comes

CONTENT = "秘密zebra"


@pytest.mark.parametrize(
    "value",
    [
        f'{{"text": "{CONTENT}',
        f'{{"text": {CONTENT}}}',
        f'{{"{CONTENT}": 1}}',
        f'{{"text": "a", "id": ["{CONTENT}"]}}',
        f'{{"text": "a", "id": "{CONTENT * 100}"}}',
        f'{{"text": ["{CONTENT}"]}}',
        f'["{CONTENT}"]',
        f'{{"text": "\\{CONTENT}"}}',
        f'{{"text": "a"}} {CONTENT}',
        CONTENT,
    ],
)
def test_the_sentence_of_a_rejection_never_quotes_the_event(value):
    for data in (value.encode(), value.encode() + b"\xff"):
        rejection = read(data)
        assert isinstance(rejection, Rejection)
        assert not any(part in rejection.error for part in ("秘", "密", "zebra"))


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
STRINGS = st.text(st.characters(codec=None, exclude_categories=()))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "id", "a"]), inner),
    max_leaves=8,
)


@st.composite
def mutated_json(draw):
    """JSON with some bytes put in, taken out or doubled."""
    value = json.dumps(draw(JSON_VALUES), ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(value)))
        length = draw(st.integers(0, 3))
        value = value[:at] + draw(st.binary(max_size=3)) + value[at + length :]
    return value


@settings(max_examples=300, derandomize=True)
@given(value=st.binary() | mutated_json(), rules=st.sampled_from([JSON, PLAIN]), timestamp=st.integers(-5, 5))
def test_whatever_the_bytes_there_is_an_answer_that_can_be_written(value, rules, timestamp):
    answer = decode(raw(value, timestamp=timestamp), rules)
    assert answer.offset == 7
    if isinstance(answer, Rejection):
        assert len(answer.error.encode()) < 1000
    else:
        assert isinstance(answer, Text)
        assert answer.time == (timestamp if timestamp >= 0 else None)
        assert not answer.id or isinstance(json.loads(answer.id), str | int | float)


@settings(max_examples=100, derandomize=True)
@given(others=st.dictionaries(STRINGS, JSON_VALUES, max_size=3), text=STRINGS, id=STRINGS | st.integers())
def test_any_document_with_a_text_is_read_back(others, text, id):
    answer = read_document({**others, "text": text, "id": id})
    assert (answer.text, json.loads(answer.id)) == (text, id)


# What leaves

OUTBOX = Outbox(TOPICS, "0123456789abcdef", "fedcba9876543210")
TAIL = (
    ("textsieve-source", b"texts.raw:2:7"),
    ("textsieve-time", b"1234"),
    ("textsieve-scheme", b"0123456789abcdef"),
    ("textsieve-rules", b"fedcba9876543210"),
)
THEIRS = (("trace", b"1"), ("empty", b""), ("trace", b"2"), ("null", None), ("textsieve-time", b"9"))
EVENT = raw(b"value \xff", key=b"\x00key", headers=THEIRS)
ORIGINAL = Reference(3, 1000, '"a"')
NEAR = Duplicate(7, 1234, "1.10", 0xAB, ORIGINAL, "near", "hamming", 953, 3)


@pytest.mark.parametrize(
    ("verdict", "topic", "ours"),
    [
        (Unique(7, 1234, 0xAB), "texts.unique", (("textsieve-fingerprint", b"00000000000000ab"),)),
        (Unique(7, 1234, None), "texts.unique", ()),
        (NEAR, "texts.duplicates", ((VERDICT, verdict_json(NEAR, "texts.raw", 2)),)),
        (
            Rejected(7, 1234, "no-text", "A sentence."),
            "texts.rejected",
            (("textsieve-reason", b"no-text"), ("textsieve-error", b"A sentence.")),
        ),
    ],
)
def test_an_event_leaves_untouched_with_our_headers_appended(verdict, topic, ours):
    output = OUTBOX.output(EVENT, verdict)
    assert output[:5] == (topic, 2, EVENT.timestamp, EVENT.key, EVENT.value)
    assert output.headers == (*THEIRS, *ours, *TAIL)


@pytest.mark.parametrize("timestamp", [0, -1, 1, 2**63 - 1])
@pytest.mark.parametrize(("key", "value"), [(None, None), (b"", b""), (b"k", None)])
def test_null_and_empty_and_odd_timestamps_stay_what_they_are(timestamp, key, value):
    event = raw(value, timestamp=timestamp, key=key)
    for verdict in (Unique(7, 1234, None), NEAR, Rejected(7, 1234, "tombstone", "A.")):
        assert OUTBOX.output(event, verdict)[2:5] == (timestamp, key, value)


def test_the_verdict_of_a_duplicate_to_the_letter():
    assert verdict_json(NEAR, "texts.raw", 2) == (
        b'{"v":1,"id":1.10,"source":"texts.raw:2:7",'
        b'"duplicate_of":{"id":"a","source":"texts.raw:2:3","time":1000},'
        b'"reason":"near","measure":"hamming","similarity":0.953,"hamming_distance":3,'
        b'"fingerprint":"00000000000000ab","capped":false}'
    )


def test_what_is_not_defined_in_a_verdict_is_null():
    verdict = Duplicate(7, 1234, "", None, ORIGINAL._replace(id=""), "exact", "content", 1000, None)
    document = json.loads(verdict_json(verdict, "texts.raw", 2))
    assert list(document) == [
        "v", "id", "source", "duplicate_of", "reason", "measure", "similarity", "hamming_distance", "fingerprint",
        "capped",
    ]  # fmt: skip
    assert (document["id"], document["duplicate_of"]["id"]) == (None, None)
    assert (document["hamming_distance"], document["fingerprint"], document["similarity"]) == (None, None, 1)


IDS = st.none() | st.text(st.characters(codec=None, exclude_categories=()), max_size=60) | st.integers()


@settings(max_examples=200, derandomize=True)
@given(
    ids=st.tuples(IDS, IDS),
    similarity=st.integers(0, 1000),
    distance=st.none() | st.integers(0, 64),
    fingerprint=st.none() | st.integers(0, 2**64 - 1),
)
def test_every_verdict_is_valid_json_that_says_what_the_judge_said(ids, similarity, distance, fingerprint):
    own, original = ("" if id is None else json.dumps(id) for id in ids)
    reference = Reference(2**40, 2**41, original)
    verdict = Duplicate(2**62, 5, own, fingerprint, reference, "exact", "content", similarity, distance)
    data = verdict_json(verdict, "a.b_c-D", 999)
    assert json.loads(data) == {
        "v": 1,
        "id": ids[0],
        "source": f"a.b_c-D:999:{2**62}",
        "duplicate_of": {"id": ids[1], "source": f"a.b_c-D:999:{2**40}", "time": 2**41},
        "reason": "exact",
        "measure": "content",
        "similarity": similarity / 1000,
        "hamming_distance": distance,
        "fingerprint": None if fingerprint is None else format_fingerprint(fingerprint),
        "capped": False,
    }
    assert b'"similarity":%d.%03d,' % divmod(similarity, 1000) in data


def test_sources_and_fingerprints_have_one_form():
    assert source("texts.raw", 0, 12) == "texts.raw:0:12"
    assert format_fingerprint(0) == "0" * 16
    assert format_fingerprint(2**64 - 1) == "f" * 16


def test_our_headers_stay_far_below_the_room_that_output_topics_have():
    topic, name = "t" * 249, "\U000e0001" * 256
    rules = Rules(text_field=name, id_field=name + "x")
    worst_id = read_document({name: "t", name + "x": "\x01" * MAX_ID_BYTES}, rules).id
    assert len(worst_id) == 2 + 6 * MAX_ID_BYTES
    original = Reference(2**63 - 1, 2**63 - 1, worst_id)
    duplicate = Duplicate(2**63 - 1, 2**63 - 1, worst_id, 0, original, "redelivered", "content", 1000, 0)
    rejections = [read_document({}, rules), read_document({name: "t", name + "x": "\x01" * 10**6}, rules)]
    rejected = [Rejected(2**63 - 1, 2**63 - 1, *rejection[1:]) for rejection in rejections]
    for verdict in (duplicate, *rejected):
        output = OUTBOX.output(RawEvent(topic, 999, 2**63 - 1, 0, None, None, ()), verdict)
        size = sum(len(name) + len(value or b"") + 10 for name, value in output.headers)
        assert size < HEADROOM / 8


# What the broker refuses


def test_what_the_broker_refused_leaves_without_value_and_timestamp():
    rejection = unwritable(7, "MessageSizeTooLargeError")
    assert rejection[:2] == (7, UNWRITABLE)
    output = OUTBOX.output(EVENT, Rejected(7, 1234, *rejection[1:]))
    assert output[:5] == ("texts.rejected", 2, None, EVENT.key, None)
    assert output.headers == (
        *THEIRS,
        ("textsieve-reason", b"unwritable"),
        ("textsieve-error", b"The broker refused the event's output: MessageSizeTooLargeError."),
        *TAIL,
    )


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        (b"k" * MAX_UNWRITABLE_BYTES, (("a", None),)),
        (None, (("a", b"h" * MAX_UNWRITABLE_BYTES),)),
        (None, tuple(("", None) for _ in range(MAX_UNWRITABLE_BYTES // 10 + 1))),
        (None, (("名" * (MAX_UNWRITABLE_BYTES // 3), b"1"),)),
    ],
)
def test_large_keys_and_headers_are_left_out_of_it(key, headers):
    verdict = Rejected(7, 1234, UNWRITABLE, "A.")
    output = OUTBOX.output(raw(b"v", key=key, headers=headers), verdict)
    assert (output.key, output.value) == (None, None)
    assert [name for name, _ in output.headers][:2] == ["textsieve-reason", "textsieve-error"]


def test_the_largest_keys_and_headers_that_are_kept():
    verdict = Rejected(7, 1234, UNWRITABLE, "A.")
    key, headers = b"k" * (MAX_UNWRITABLE_BYTES - 13), (("a", b"bc"),)
    output = OUTBOX.output(raw(b"v", key=key, headers=headers), verdict)
    assert (output.key, output.headers[0]) == (key, ("a", b"bc"))
