"""The rules of a verdict: everything outside the scheme that can change one, as a value with an id."""

import json
from dataclasses import asdict, dataclass
from typing import Final, Literal, Self

import xxhash

InputFormat = Literal["json", "plain"]
TombstonePolicy = Literal["reject", "unique"]
ConfirmPolicy = Literal["edit", "cosine", "none"]

MAX_ID_BYTES: Final = 256
"""A producer's id is stored with every original and echoed in every verdict that names it; a longer one is
not an id but a document, and would let one event grow the state without bound."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One set of rules; a batch is judged under exactly one, and every output names it by `id`.

    What shapes the stored state (normalisation, dictionary, weights, bits) is the scheme, not here.
    """

    max_distance: int = 3
    """Two texts whose fingerprints differ in at most this many bits are candidates; without a confirmation they
    are near-duplicates."""
    confirm: ConfirmPolicy = "edit"
    """How candidates are looked at a second time. Two short texts: by `edit` similarity or by the `cosine` of
    their words; otherwise: by resemblance. `none`: not at all, and only fingerprints make candidates."""
    min_edit_similarity: int = 800
    """Two short texts are near-duplicates from this edit similarity on, in thousandths."""
    min_cosine: int = 800
    """Two short texts are near-duplicates from this cosine of their weighted words on, in thousandths."""
    min_resemblance: int = 700
    """Two texts, one of them not short, are near-duplicates from this resemblance on, in thousandths."""
    max_profile_distances: tuple[int, ...] = (10, 14, 18)
    """Two texts that share one band are candidates if their profiles differ in at most the first number of bits;
    those that share two, the second; and so on, the last for all that share more."""
    max_crowd: int = 32
    """Where this many live originals share a band with a text, or are near by fingerprint, and have a near profile,
    it will not be found by that band, or by its fingerprint: a hundred thousand texts of one template are a crowd, in
    which each is found by what it has of its own. Without a confirmation there are no crowds."""
    max_compared: int = 24
    """Of the candidates that share a band with a text, this many are compared, those of the nearest profiles."""
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

    @classmethod
    def parse(cls, canonical: str) -> Self:
        """The rules that `canonical` wrote.

        Raises:
            ValueError: it is of another version, or no rules.
        """
        document = json.loads(canonical)
        if not isinstance(document, dict) or document.pop("v", None) != 1:
            raise ValueError("these rules are of a version that is not known here")
        try:
            return cls(**document | {"max_profile_distances": tuple(document["max_profile_distances"])})
        except (TypeError, KeyError) as error:
            raise ValueError(f"these are no rules: {error}") from error

    @property
    def id(self) -> str:
        """16 hex digits that name this set of rules on any machine."""
        return xxhash.xxh3_64_hexdigest(self.canonical().encode())
