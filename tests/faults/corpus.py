"""The stream that is judged under fire: real texts, out of time here and there, with bad inputs in between."""

import json
import lzma
import random
from collections.abc import Iterator
from itertools import count as numbers
from pathlib import Path

from tests.integration.deployment import Raw

BEGIN_MS = 1_500_000_000_000
STEP_MS = 1_000
"""How much time passes from one event to the next."""
BAD_SHARE = 0.02
WIDE_EVERY = 1_000
"""One event in so many is wider than an output topic takes: the raw topic took it compressed."""
WIDE_BYTES = 1_200_000

HEADERS = [("trace", b"\x00\xff"), ("trace", b"again"), ("none", None), ("textsieve-source", b"not:ours:1")]
BAD = (
    Raw(None),
    Raw(None, key=b"key"),
    Raw(b""),
    Raw(b'{"text": "\xff\xfe"}'),
    Raw('{"text": "你'.encode()[:-1]),
    Raw(b'{"text": "a",}'),
    Raw(b'["text"]'),
    Raw(b'{"body": "x"}'),
    Raw(b'{"text": 5}'),
    Raw(b'{"text": null}'),
    Raw(b'{"text": "x", "id": {"a": 1}}'),
    Raw(json.dumps({"text": "x", "id": "y" * 5_000}).encode()),
    Raw(b"[" * 2_000 + b"]" * 2_000),
    Raw(json.dumps({"text": "\ud83d 半个表情"}).encode()),
    Raw(json.dumps({"text": "😀😀🎉"}).encode()),
    Raw(json.dumps({"text": "！！！……"}).encode()),
    Raw(json.dumps({"text": ""}).encode()),
    Raw(json.dumps({"text": "长" * 30_000}).encode()),
)


def stream(data: Path, count: int, seed: int) -> Iterator[Raw]:
    """`count` events: the real comments and posts over and over, each round at a later time."""
    chance = random.Random(seed)
    texts = _texts(data)
    for number in range(count):
        time = BEGIN_MS + number * STEP_MS + chance.choice((0, 0, 0, -5 * STEP_MS, -3_600_000, 200))
        key = None if chance.random() < 0.5 else b"%d" % number
        headers = HEADERS if chance.random() < 0.05 else ()
        if chance.random() < BAD_SHARE:
            yield chance.choice(BAD)._replace(time=time)
        else:
            wide = {"more": "x" * WIDE_BYTES} if chance.random() * WIDE_EVERY < 1 else {}
            fields = wide | {"text": next(texts)} | ({"id": number} if chance.random() < 0.5 else {})
            yield Raw(json.dumps(fields, ensure_ascii=False).encode(), time, key, headers)


def _texts(data: Path) -> Iterator[str]:
    for round_ in numbers():
        for name in ("weibo-comments", "weibo-posts", "weibo-headlines-2023"):
            with lzma.open(data / f"{name}.jsonl.xz") as lines:
                for line in lines:
                    text = json.loads(line)["text"]
                    # Every other one of a later round is another text, so that there is always something new.
                    yield text if not round_ or len(text) % 2 else f"{text}（第{round_}轮）"
