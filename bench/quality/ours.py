"""textsieve itself: the segment table in RocksDB, the candidates of the judge, its second look.

Every text is stored, whether it is a duplicate or not, so that all pairs are met and not only those with the
originals of a stream.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.quality.contenders import Answer
from state.changelog import Record
from state.layout import Layout
from state.original import Original
from state.table import SegmentTable
from state.tables import NO_BAND
from stream.candidates import Candidates, Texts
from stream.confirm import Confirmation
from stream.rules import Rules
from stream.text import Scheme, SchemeSpec, content_key

__all__ = ["Table", "Textsieve"]

BATCH = 500
"""Texts in one call, as a worker takes them."""

_TIME = 1
"""One time for all: nothing expires."""


class Textsieve:
    """The default rules, or some of them changed.

    Parameters:
        name: how tables call it.
        rules: the rules.
        spec: what the scheme is built from.
    """

    def __init__(self, name: str, rules: Rules, spec: SchemeSpec) -> None:
        self.name = name
        self.description = (
            f"`confirm={rules.confirm}`, `numbers_matter={str(spec.numbers_matter).lower()}`, {spec.bands} bands of "
            f"{spec.rows}; the whole state in RocksDB. With `max_compared={rules.max_compared}` and "
            f"`max_crowd={rules.max_crowd}`, so that of a text with a hundred versions every pair is met, where a "
            "stream needs one"
        )
        self._rules = rules
        self._scheme = Scheme.build(spec)

    def find(self, texts: Sequence[str]) -> Answer:
        """Return the pairs that are candidates and confirmed."""
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="textsieve-") as directory:
            table = Table(Path(directory) / "state", self._scheme, self._rules)
            pairs = [table.add(texts[first : first + BATCH]) for first in range(0, len(texts), BATCH)]
            table.close()
        seconds = time.perf_counter() - begin
        found = np.array([pair for part in pairs for pair in part], np.int64).reshape(-1, 2)
        return Answer(found, np.array(table.read, np.int64), seconds)


def _indexed(bands: NDArray[np.uint16], crowded: NDArray[np.bool_] | None) -> bytes:
    return (bands if crowded is None else np.where(crowded, np.uint16(NO_BAND), bands)).tobytes()


class Table:
    """A state that takes every text, and says what each is near.

    Attributes:
        read: for each text so far how many texts were compared with it.
    """

    def __init__(self, path: Path, scheme: Scheme, rules: Rules) -> None:
        self.read: list[int] = []
        self._scheme = scheme
        self._rules = rules
        self._confirmation = Confirmation(scheme, rules)
        self._state = SegmentTable.open(
            path,
            scheme=scheme.id,
            layout=Layout(),
            window_span=1 << 40,
            bands=scheme.spec.bands,
            origin={"topic": "bench"},
        )
        self._state.apply([Record(0, 0, 0, 0, "", rules.id)], 1)

    def add(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Take in the next texts; returns the pairs that one of them is the later text of."""
        begin = len(self.read)
        fingerprints = self._scheme.fingerprint(texts)
        compared = [i for i, text in enumerate(texts) if fingerprints.present[i] and self._may_match(text)]
        salts = np.array([self._scheme.salt(texts[i]) for i in compared], np.uint64)
        banded = np.array([self._scheme.has_bands(texts[i]) for i in compared], np.bool_)
        profiles, bands = (
            np.zeros(len(compared), np.uint64),
            np.zeros((len(compared), self._state.bands), np.uint16),
        )
        signed = [text for text in map(texts.__getitem__, compared) if self._scheme.has_bands(text)]
        if signed:
            found = self._scheme.signatures(signed, salts[banded].tolist())
            profiles[banded], bands[banded] = found
        keys = Texts(
            fingerprints.values[compared] ^ salts, profiles, bands, banded, np.zeros(len(compared), np.int64)
        )
        candidates = Candidates(self._state, keys, self._rules)
        self.read += [0] * len(texts)
        originals: list[Original] = []
        pairs: list[tuple[int, int]] = []
        rows = {i: row for row, i in enumerate(compared)}
        for i, text in enumerate(texts):
            offset = begin + i
            row = rows.get(i)
            if row is None:
                continue
            choice = candidates.of(row, 0, 0)
            look = self._confirmation.look(text, int(fingerprints.values[i]), int(salts[row]))
            stored = self._state.originals(choice.stored)
            pairs += [(match.offset, offset) for o in (*stored, *choice.fresh) if (match := look.match(o))]
            self.read[offset] = len(stored) + len(choice.fresh)
            kept = self._scheme.stored(text)
            original = Original(
                offset,
                _TIME,
                int(fingerprints.values[i]),
                content_key(text),
                b"",
                kept.text,
                int(salts[row]),
                int(profiles[row]),
                _indexed(bands[row], choice.crowded) if banded[row] else b"",
                kept.sketch,
                choice.by_fingerprint,
            )
            candidates.add(row, original)
            originals.append(original)
        end = begin + len(texts)
        self._state.apply([Record(begin, end, _TIME, 0, "", self._rules.id, (), originals)], end + 1)
        self._state.merge_step()
        return pairs

    def close(self) -> None:
        """Release the state."""
        self._state.close()

    def _may_match(self, text: str) -> bool:
        return self._confirmation.can_match(text)

    def postings_met(self, texts: Sequence[str]) -> list[int]:
        """For each text with bands how many postings its profile would be compared with."""
        signed = [text for text in texts if self._scheme.has_bands(text)]
        found = self._scheme.signatures(signed, [self._scheme.salt(text) for text in signed])
        return self._state.postings_met(found.bands).tolist()  # type: ignore[no-any-return]
