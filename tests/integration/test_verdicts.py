"""The main job on a real Kafka: raw texts in; unique, duplicate and rejected texts out."""

import signal

import pytest
from deployment import Deployment, Raw, text, unlike

HOUR = 3_600_000
NOON = 1_500_000_000_000


def test_of_two_equal_texts_in_one_batch_one_is_unique_and_the_other_names_it(deployment: Deployment) -> None:
    deployment.ready()
    deployment.produce(
        [
            text("今天天气真不错，我们去公园玩吧", NOON, id="a"),
            text("今天天气真不错，我们去公园玩吧", NOON, id="b"),
        ]
    )
    first, second = deployment.until_judged(2)
    assert (first.kind, second.kind) == ("unique", "duplicates")
    assert second.verdict == {
        "v": 1,
        "id": "b",
        "source": f"{deployment.raw}:0:1",
        "duplicate_of": {"id": "a", "source": f"{deployment.raw}:0:0", "time": NOON},
        "reason": "exact",
        "measure": "content",
        "similarity": 1.0,
        "hamming_distance": 0,
        "capped": False,
        "fingerprint": first.header("textsieve-fingerprint"),
    }


def test_a_text_sent_again_by_its_producer_is_named_redelivered(deployment: Deployment) -> None:
    deployment.ready()
    deployment.produce([text("同一条消息", NOON, id=7), text("同一条消息", NOON, id=7)])
    _, again = deployment.until_judged(2)
    assert again.verdict["reason"] == "redelivered"
    assert again.verdict["id"] == 7


@pytest.mark.parametrize("restarted", [False, True], ids=["in one run", "over a restart"])
def test_a_text_repeated_after_the_retention_is_unique_again(deployment: Deployment, restarted: bool) -> None:
    worker = deployment.ready(retention="48h")
    repeated = "走丢的孩子找到了，谢谢大家的关心和转发"
    deployment.produce([text(repeated, NOON), text(repeated, NOON + 47 * HOUR)])
    deployment.until_judged(2)
    if restarted:
        assert worker.stop() == 0
        deployment.ready(retention="48h")
    deployment.produce([text(repeated, NOON + 48 * HOUR), text(repeated, NOON + 49 * HOUR)])
    kinds = [output.kind for output in deployment.until_judged(4)]
    assert kinds == ["unique", "duplicates", "unique", "duplicates"]


def test_two_raw_topics_are_two_scopes(deployment: Deployment) -> None:
    other = f"{deployment.prefix}.other"
    worker = deployment.start(raw_topics=f"{deployment.raw},{other}")
    worker.until_said(f"{deployment.raw}:0 is open")
    worker.until_said(f"{other}:0 is open")
    once = text("两个主题里的同一句话", NOON)
    deployment.produce([once, once, once._replace(topic=other), once._replace(topic=other)])
    outputs = deployment.until_judged(4)
    unique = [output.source for output in outputs if output.kind == "unique"]
    assert unique == [(other, 0, 0), (deployment.raw, 0, 0)]


def test_three_partitions_on_two_workers_are_three_scopes(deployment: Deployment) -> None:
    first = deployment.start(partitions=3, data_dir=deployment.directory / "one")
    for partition in range(3):
        first.until_said(f"{deployment.raw}:{partition} is open")
    sentences = [text(unlike(number), NOON) for number in range(40)]
    events = [event._replace(partition=partition) for event in sentences for partition in range(3)]
    deployment.produce(events)
    deployment.until_judged(len(events))

    second = deployment.start(partitions=3, data_dir=deployment.directory / "two")
    second.until_said("is open at offset")
    deployment.produce(events)
    outputs = deployment.until_judged(2 * len(events))
    for partition in range(3):
        mine = [output for output in outputs if output.source[1] == partition]
        assert [output.kind for output in mine[40:]] == ["duplicates"] * 40, (
            "the second worker knows what the first judged"
        )
        assert {output.partition for output in mine} == {partition}
        assert all(
            output.verdict["source"] == f"{deployment.raw}:{partition}:{output.line}" for output in mine[40:]
        )


def test_value_key_headers_and_timestamp_come_out_as_they_went_in(deployment: Deployment) -> None:
    deployment.ready()
    value = '{ "extra": [1, 2.50],\n "text" : "\\u4f60\\u597d，世界 &amp; 你" , "id": 1.10 }'.encode()
    headers = [
        ("trace", b"\x00\xff"),
        ("trace", b"second"),
        ("none", None),
        ("textsieve-source", b"not:ours:1"),
    ]
    event = Raw(value, NOON + 7, b"\xff\xfekey", headers)
    deployment.produce([event, event, Raw(b"no json", NOON + 9, None, headers)])
    for output, kind in zip(deployment.until_judged(3), ("unique", "duplicates", "rejected"), strict=True):
        assert output.kind == kind
        assert output.headers[:4] == headers
        assert all(name.startswith("textsieve-") for name, _ in output.headers[4:])
        if kind != "rejected":
            assert (output.value, output.key, output.time) == (value, b"\xff\xfekey", NOON + 7)
        else:
            assert (output.value, output.key, output.time) == (b"no json", None, NOON + 9)


@pytest.mark.parametrize(
    "twin",
    [
        "Ｋａｆｋａ　４．０　正式发布，快来看看吧",
        "Kaf\u200bka 4.0 正\u200b式发布，快来\ufeff看看吧",
        "  KAFKA   4.0\t正式发布，快来看看吧\n",
        "kafka 4.0 正式发布&#xff0c;快来看看吧",
    ],
    ids=["full width", "zero width inside words", "white space and case", "entities"],
)
def test_a_text_has_the_fingerprint_of_its_clean_twin(deployment: Deployment, twin: str) -> None:
    deployment.ready()
    deployment.produce([text("kafka 4.0 正式发布，快来看看吧", NOON), text(twin, NOON)])
    first, second = deployment.until_judged(2)
    assert second.kind == "duplicates"
    assert second.verdict["reason"] == "exact"
    assert second.verdict["fingerprint"] == first.header("textsieve-fingerprint")


def test_traditional_script_is_another_text_unless_a_setting_folds_it(deployment: Deployment) -> None:
    events = [text("台湾的面条很好吃，欢迎来尝", NOON), text("台灣的麵條很好吃，歡迎來嚐", NOON)]
    worker = deployment.ready()
    deployment.produce(events)
    assert [output.kind for output in deployment.until_judged(2)] == ["unique", "unique"]
    assert worker.stop() == 0


def test_traditional_script_folds_where_the_setting_says_so(deployment: Deployment) -> None:
    deployment.ready(fold_script=True)
    deployment.produce([text("台湾的面条很好吃，欢迎来看", NOON), text("台灣的麵條很好吃，歡迎來看", NOON)])
    assert [output.kind for output in deployment.until_judged(2)] == ["unique", "duplicates"]


def test_texts_without_han_characters_are_judged_too(deployment: Deployment) -> None:
    deployment.ready()
    same = "The quick brown fox jumps over the lazy dog near the river bank"
    deployment.produce(
        [text(same, NOON), text(same.upper(), NOON), text("Совсем другой текст о погоде", NOON)]
    )
    outputs = deployment.until_judged(3)
    assert [output.kind for output in outputs] == ["unique", "duplicates", "unique"]
    assert outputs[2].header("textsieve-fingerprint") is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_stop_ends_with_code_0_and_lets_go_of_its_state(
    deployment: Deployment, number: int
) -> None:
    worker = deployment.ready()
    deployment.produce([text("停止之前的一句话", NOON)])
    deployment.until_judged(1)
    assert worker.stop(number) == 0
    assert "is closed" in worker.said()
