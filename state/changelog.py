"""The changelog record: what one transaction added to a scope's state, packed for Kafka.

Layout, little-endian: magic and version, the fixed header, topic id, rules, unwritable offsets, then the
originals by column (numbers, content keys, lengths, and at the end the variable parts), and a checksum.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from state.errors import RecordError
from state.original import COMPARED, CONTENT_BYTES, NO_FINGERPRINT, Original

MAX_RECORD_BYTES = 512 * 1024
"""Above this a transaction's originals are split over several records.

A broker takes record batches up to 1,048,588 bytes by default (`message.max.bytes`): half of that leaves room
for the header, the rules, the unwritable offsets and the batch's own frame. A larger value would make a topic
with the default refuse a record for ever; a much smaller one would only cost records.
"""

_MAGIC = b"tsv"
_VERSION = 2
_PREFIX = struct.Struct("<3sB")
# Begin, next, time, boundary; then the sizes of topic id, rules, unwritable and originals.
_HEADER = struct.Struct("<qqqqHIII")
_CHECKSUM = struct.Struct("<Q")
# Per original: offset, time, fingerprint, salt, profile, what its fingerprint is for, content, four lengths.
_FIXED_BYTES = 5 * 8 + 1 + CONTENT_BYTES + 4 * 4


class Record(NamedTuple):
    """What a transaction did: the events it judged, and the originals among them."""

    begin: int
    "The offset of the first raw event that it covers."

    next: int
    "The offset after the last raw event that it covers; equal to `begin` where it covers none."

    time: int
    "The stream time at its end, in milliseconds."

    boundary: int
    "The offset below which nothing is a candidate any more."

    topic_id: str
    "The raw topic's id in the cluster."

    rules: str
    "The id of the rules that its events were judged under."

    unwritable: tuple[int, ...] = ()
    "The offsets whose event the broker refused to take on."

    originals: Sequence[Original] = ()
    "The texts judged unique, in the order of their offsets."


def packed_size(original: Original) -> int:
    """How many bytes `original` adds to a record."""
    return (
        _FIXED_BYTES
        + len(original.id)
        + len(original.bands)
        + len(original.sketch)
        + len(original.text.encode("utf-8", "surrogatepass"))
    )


def encode(record: Record) -> bytes:
    """`record` as the value of a changelog record.

    Raises:
        ValueError: A content key is not 16 bytes long.
    """
    originals = record.originals
    if any(len(original.content) != CONTENT_BYTES for original in originals):
        raise ValueError(f"Every content key has {CONTENT_BYTES} bytes.")
    topic_id = record.topic_id.encode()
    rules = record.rules.encode()
    ids = [original.id for original in originals]
    bands = [original.bands for original in originals]
    sketches = [original.sketch for original in originals]
    texts = [original.text.encode("utf-8", "surrogatepass") for original in originals]
    lengths = [[len(part) for part in column] for column in (ids, bands, sketches, texts)]
    body = b"".join(
        (
            _PREFIX.pack(_MAGIC, _VERSION),
            _HEADER.pack(
                record.begin,
                record.next,
                record.time,
                record.boundary,
                len(topic_id),
                len(rules),
                len(record.unwritable),
                len(originals),
            ),
            topic_id,
            rules,
            np.array(record.unwritable, "<i8").tobytes(),
            np.array([original.offset for original in originals], "<i8").tobytes(),
            np.array([original.time for original in originals], "<i8").tobytes(),
            np.array([original.fingerprint or 0 for original in originals], "<u8").tobytes(),
            np.array([original.salt for original in originals], "<u8").tobytes(),
            np.array([original.profile for original in originals], "<u8").tobytes(),
            bytes([original.fingerprint_use for original in originals]),
            *(original.content for original in originals),
            np.array(lengths, "<u4").tobytes(),
            *ids,
            *bands,
            *sketches,
            *texts,
        )
    )
    return body + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(body))


def decode(data: bytes) -> Record:
    """The record that `encode` packed.

    Raises:
        RecordError: `data` is truncated, damaged, or of another format.
    """
    if len(data) < _PREFIX.size or data[:3] != _MAGIC:
        raise RecordError(f"These {len(data)} bytes are no changelog record: another program wrote them.")
    if data[3] != _VERSION:
        raise RecordError(
            f"The changelog record has format {data[3]}, this version reads format {_VERSION}: "
            "run the version of textsieve that wrote it, or a newer one."
        )
    body = data[: -_CHECKSUM.size]
    if len(body) < _PREFIX.size + _HEADER.size:
        raise RecordError(f"The changelog record is truncated: only {len(data)} bytes are left.")
    if _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0] != xxhash.xxh3_64_intdigest(body):
        raise RecordError(f"The changelog record of {len(data)} bytes is damaged: its checksum differs.")
    try:
        return _unpack(body)
    except (ValueError, IndexError) as error:
        # The checksum holds, so these bytes were written so: only a faulty writer does that.
        raise RecordError(f"The changelog record contradicts itself: {error}.") from error


def _unpack(body: bytes) -> Record:
    begin, next_, time, boundary, topic_size, rules_size, unwritable_count, count = _HEADER.unpack_from(
        body, _PREFIX.size
    )
    reader = _Reader(body, _PREFIX.size + _HEADER.size)
    topic_id = reader.take(topic_size).decode()
    rules = reader.take(rules_size).decode()
    unwritable = tuple(reader.numbers("<i8", unwritable_count))
    offsets = reader.numbers("<i8", count)
    times = reader.numbers("<i8", count)
    fingerprints = reader.numbers("<u8", count)
    salts = reader.numbers("<u8", count)
    profiles = reader.numbers("<u8", count)
    uses = reader.take(count)
    contents = reader.parts([CONTENT_BYTES] * count)
    lengths = reader.numbers("<u4", 4 * count)
    ids, bands, sketches, texts = (
        reader.parts(lengths[column * count : (column + 1) * count]) for column in range(4)
    )
    if reader.at != len(body):
        raise ValueError(f"{len(body) - reader.at} bytes are left over")
    originals = [
        Original(
            offset=offsets[i],
            time=times[i],
            fingerprint=None if uses[i] == NO_FINGERPRINT else fingerprints[i],
            content=contents[i],
            id=ids[i],
            text=texts[i].decode("utf-8", "surrogatepass"),
            salt=salts[i],
            profile=profiles[i],
            bands=bands[i],
            sketch=sketches[i],
            by_fingerprint=uses[i] != COMPARED,
        )
        for i in range(count)
    ]
    return Record(begin, next_, time, boundary, topic_id, rules, unwritable, originals)


class _Reader:
    """Takes one part after another from the bytes of a record."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def take(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        if len(part) != size:
            raise ValueError(f"{size} bytes are promised at {self.at}, only {len(part)} are there")
        self.at += size
        return part

    def numbers(self, dtype: str, count: int) -> list[int]:
        numbers: list[int] = np.frombuffer(self.take(np.dtype(dtype).itemsize * count), dtype).tolist()
        return numbers

    def parts(self, sizes: Sequence[int]) -> list[bytes]:
        return [self.take(size) for size in sizes]
