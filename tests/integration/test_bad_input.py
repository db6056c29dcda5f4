"""Every bad input leaves through exactly one topic, and the stream goes on."""

import asyncio
import json
import random

from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from deployment import Deployment, Raw, text, unlike

NOON = 1_500_000_000_000
GOOD = text("坏消息之间的一句好话", NOON)


def value(**fields: object) -> bytes:
    return json.dumps(fields).encode()


REJECTED = {
    "tombstone": (None, "tombstone"),
    "empty value": (b"", "invalid-json"),
    "invalid UTF-8": (b'{"text": "\xff\xfe"}', "invalid-utf8"),
    "a cut UTF-8 sequence": ('{"text": "你'.encode()[:-1], "invalid-utf8"),
    "invalid JSON": (b'{"text": "a",}', "invalid-json"),
    "a raw NUL in JSON": (b'{"text": "a\x00b"}', "invalid-json"),
    "no object": (b'["text"]', "not-an-object"),
    "no text": (value(body="x"), "no-text"),
    "text a number": (value(text=5), "text-not-a-string"),
    "text null": (value(text=None), "text-not-a-string"),
    "id an object": (value(text="x", id={"a": 1}), "invalid-id"),
    "id of a megabyte": (value(text="x", id="y" * 999_000), "invalid-id"),
    "nested a hundred thousand deep": (b"[" * 100_000 + b"]" * 100_000, "invalid-json"),
}

JUDGED = {
    "one character, a megabyte of it": "啊" * 340_000,
    "over-long": "长" * 1_000_001,
    "five megabytes that compress small": "ab" * 2_600_000,
    "lone surrogate": "\ud83d 半个表情",
    "NUL": "中间\x00有空字符",
    "only emoji": "😀😀🎉",
    "only punctuation": "！！！……",
    "white space": " \t\n ",
    "empty": "",
}


def test_each_bad_input_is_rejected_with_its_reason_and_the_stream_goes_on(deployment: Deployment) -> None:
    deployment.ready()
    events = [event for bad, _ in REJECTED.values() for event in (Raw(bad, NOON), GOOD)]
    deployment.produce(events)
    outputs = deployment.until_judged(len(events))
    rejected, good = outputs[::2], outputs[1::2]
    found = {
        name: (output.kind, output.value, output.reason)
        for name, output in zip(REJECTED, rejected, strict=True)
    }
    assert found == {name: ("rejected", bad, reason) for name, (bad, reason) in REJECTED.items()}
    assert all(output.header("textsieve-error") for output in rejected)
    assert [output.kind for output in good] == ["unique"] + ["duplicates"] * (len(good) - 1)


def test_each_strange_text_is_unique_once_and_then_its_own_duplicate_only(deployment: Deployment) -> None:
    deployment.ready()
    texts = [json.dumps({"text": strange}).encode() for strange in JUDGED.values()]
    deployment.produce(
        [Raw(strange, NOON) for strange in texts * 2],
        **{"compression.type": "zstd", "message.max.bytes": 10_000_000},
    )
    outputs = deployment.until_judged(2 * len(texts))
    assert [output.value for output in outputs] == texts * 2
    assert [output.kind for output in outputs] == ["unique"] * len(texts) + ["duplicates"] * len(texts)
    for first, second in zip(outputs, outputs[len(texts) :], strict=False):
        assert second.verdict["duplicate_of"]["source"] == f"{deployment.raw}:0:{first.line}"  # type: ignore[index]
    absent = {
        name
        for name, output in zip(JUDGED, outputs, strict=False)
        if not output.header("textsieve-fingerprint")
    }
    assert absent >= {"only emoji", "only punctuation", "white space", "empty", "over-long"}


def test_a_value_near_the_limit_of_the_topic_passes(deployment: Deployment) -> None:
    deployment.ready()
    large = value(text="x", more=random.Random(1).randbytes(400_000).hex()).ljust(1_020_000)
    deployment.produce([Raw(large, NOON), GOOD], **{"message.max.bytes": 2_000_000})
    outputs = deployment.until_judged(2)
    assert outputs[0].value == large
    assert outputs[0].kind == "unique"


def test_a_tombstone_passes_where_the_setting_says_so(deployment: Deployment) -> None:
    deployment.ready(tombstones="unique")
    deployment.produce([Raw(None, NOON, b"key"), Raw(None, NOON, b"key")])
    outputs = deployment.until_judged(2)
    assert [(output.kind, output.value, output.key) for output in outputs] == [("unique", None, b"key")] * 2


def test_plain_input_is_the_value_itself(deployment: Deployment) -> None:
    deployment.ready(input_format="plain")
    plain = "没有包装的一句话".encode()
    deployment.produce([Raw(plain, NOON), Raw(plain, NOON), Raw(b"", NOON), Raw(b"\xff", NOON)])
    kinds = [output.kind for output in deployment.until_judged(4)]
    assert kinds == ["unique", "duplicates", "unique", "rejected"]


async def _produce_at(bootstrap: str, topic: str, times: list[int]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number, time in enumerate(times):
            body = value(text=unlike(number))
            await (await producer.send(topic, body, partition=0, timestamp_ms=time))


def test_a_negative_or_absurd_time_counts_as_the_stream_time(deployment: Deployment) -> None:
    deployment.ready()
    times = [NOON, -1, -5, 0, -(2**62), NOON - 1]
    asyncio.run(_produce_at(deployment.bootstrap, deployment.raw, times))
    outputs = deployment.until_judged(len(times))
    assert [output.kind for output in outputs] == ["unique"] * len(times)
    assert {output.header("textsieve-time") for output in outputs} == {str(NOON)}
    assert [output.time for output in outputs[-1:]] == [NOON - 1]


def test_an_event_that_the_broker_refuses_to_take_on_is_rejected_as_unwritable(
    deployment: Deployment,
) -> None:
    deployment.ready(compression="none")
    # Somebody narrows an output topic under the running worker, which checked it at its start.
    resource = ConfigResource(
        ResourceType.TOPIC,
        f"{deployment.prefix}.unique",
        incremental_configs=[
            ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = deployment.admin()
    admin.incremental_alter_configs([resource])[resource].result(30)
    wide = Raw(value(text="太宽的一句话", more="x" * 5000), NOON, b"key", [("trace", b"7")])
    before, after = text("之前的一句话", NOON), text("之后的另一句完全不同的话", NOON)
    deployment.produce([before, wide, after, wide._replace(key=b"k" * 70_000)])
    outputs = deployment.until_judged(4)
    assert [output.kind for output in outputs] == ["unique", "rejected", "unique", "rejected"]
    assert [(output.value, output.key, output.reason) for output in outputs if output.kind == "rejected"] == [
        (None, b"key", "unwritable"),
        (None, None, "unwritable"),
    ]
    assert outputs[1].headers[0] == ("trace", b"7")
