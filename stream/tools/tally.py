"""How many events became what, and the law that they obey."""

from typing import NamedTuple


class Tally(NamedTuple):
    """Counts of events. As a string it is the law, to be read by people."""

    raw: int
    unique: int
    duplicates: int
    rejected: int

    @property
    def lawful(self) -> bool:
        """Whether every event left in exactly one way."""
        return self.raw == self.unique + self.duplicates + self.rejected

    def __str__(self) -> str:
        sign = "=" if self.lawful else "≠"
        return f"raw {self.raw} {sign} unique {self.unique} + duplicates {self.duplicates} + rejected {self.rejected}"
