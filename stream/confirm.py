"""The second look at a pair of texts that may be near-duplicates: how similar they are, and by which measure.

What is measured is a property of the pair, whichever came first: two short texts are compared as they are,
any other pair by the resemblance that their sketches show. Similarities are thousandths, computed in integers.
"""

from typing import NamedTuple

from state.original import Original
from stream.rules import Rules
from stream.text import (
    Scheme,
    cosine_thousandths,
    edit_similarity,
    estimated_resemblance,
    hamming_distance,
    sketch,
)
from stream.verdict import Measure


class Match(NamedTuple):
    """An original that a text duplicates."""

    offset: int
    """The original's."""
    measure: Measure
    similarity: int
    """In thousandths."""
    distance: int | None
    """The Hamming distance of the fingerprints; None where there are none."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """The lowest is the match that counts: of the highest similarity, then distance, then the lower offset."""
        return -self.similarity, self.distance or 0, self.offset


class Confirmation:
    """Compares texts with originals under one set of rules.

    Parameters:
        scheme: how texts are sketched and weighed, and which are short.
        rules: the measures and their thresholds.
    """

    def __init__(self, scheme: Scheme, rules: Rules) -> None:
        self._scheme = scheme
        self._rules = rules

    def can_match(self, normalized: str) -> bool:
        """Whether a text is long enough to be a near-duplicate of any other."""
        return self._rules.confirm == "none" or len(normalized) >= self._scheme.spec.near_from

    def look(self, normalized: str, fingerprint: int, salt: int) -> "Look":
        """Begin to compare one text, given with its fingerprint and salt."""
        return Look(self._scheme, self._rules, normalized, fingerprint, salt)


class Look:
    """One text that is compared with originals. What is computed of it is computed once."""

    def __init__(self, scheme: Scheme, rules: Rules, normalized: str, fingerprint: int, salt: int) -> None:
        self._scheme = scheme
        self._rules = rules
        self._text = normalized
        self._fingerprint = fingerprint
        self._salt = salt
        self._short = len(normalized) < scheme.spec.short_chars
        self._sketch: bytes | None = None
        self._weights: dict[str, int] | None = None

    def match(self, original: Original) -> Match | None:
        """Return the match of the text and an original that has a fingerprint; None if they are no near-duplicates."""
        if original.fingerprint is None or original.salt != self._salt:
            return None
        if self._rules.confirm == "none":
            distance = hamming_distance(self._fingerprint, original.fingerprint)
            return Match(original.offset, "hamming", _agreement(distance), distance)
        # Only a short original has no sketch.
        if not self._short or original.sketch:
            measure, similarity, least = self._resemblance(original)
        elif len(original.text) < self._scheme.spec.near_from:
            return None
        elif self._rules.confirm == "cosine":
            measure, similarity, least = self._cosine(original)
        else:
            measure, least = "edit", self._rules.min_edit_similarity
            similarity = edit_similarity(self._text, original.text, floor=least)
        if similarity < least:
            return None
        distance = hamming_distance(self._fingerprint, original.fingerprint)
        return Match(original.offset, measure, similarity, distance)

    def _resemblance(self, original: Original) -> tuple[Measure, int, int]:
        if self._sketch is None:
            self._sketch = sketch(self._text)
        theirs = original.sketch or sketch(original.text)
        return "resemblance", estimated_resemblance(self._sketch, theirs), self._rules.min_resemblance

    def _cosine(self, original: Original) -> tuple[Measure, int, int]:
        if self._weights is None:
            self._weights = self._weigh(self._text)
        similarity = cosine_thousandths(self._weights, self._weigh(original.text))
        return "cosine", similarity, self._rules.min_cosine

    def _weigh(self, normalized: str) -> dict[str, int]:
        return {feature.word: feature.weight for feature in self._scheme.features(normalized)}


def _agreement(distance: int, bits: int = 64) -> int:
    """The share of the bits that agree in thousandths, halves up."""
    return (2000 * (bits - distance) + bits) // (2 * bits)
