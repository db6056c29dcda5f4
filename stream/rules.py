"""The rules of a verdict: everything outside the scheme that can change one, as a value with an id."""

import json
from dataclasses import asdict, dataclass
from typing import Final, Literal

import xxhash

InputFormat = Literal["json", "plain"]
TombstonePolicy = Literal["reject", "unique"]

MAX_ID_BYTES: Final = 256
"""A producer's id is stored with every original and echoed in every verdict that names it; a longer one is
not an id but a document, and would let one event grow the state without bound."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One set of rules; a batch is judged under exactly one, and every output names it by `id`.

    What shapes the stored state (normalisation, dictionary, weights, bits) is the scheme, not here.
    """

    max_distance: int = 3
    """Two texts whose fingerprints differ in at most this many bits are near-duplicates."""
    retention: int = 2 * 24 * 3600 * 1000
    """How long an original is kept for comparison, in ms of stream time."""
    input_format: InputFormat = "json"
    """`json`: an object with the text in a field; `plain`: the value is the text."""
    text_field: str = "text"
    """The field that holds the text."""
    id_field: str = "id"
    """The field that holds the producer's id."""
    tombstones: TombstonePolicy = "reject"
    """What an event with a null value becomes: a rejected event, or a unique one that is never compared."""
    max_text_chars: int = 1_000_000
    """A text of more characters is judged by its exact content only."""

    def canonical(self) -> str:
        """The rules as JSON with sorted keys and no spaces: what `id` is the hash of."""
        return json.dumps({"v": 1, **asdict(self)}, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @property
    def id(self) -> str:
        """16 hex digits that name this set of rules on any machine."""
        return xxhash.xxh3_64_hexdigest(self.canonical().encode())
