"""A worker like any other, whose windows and merges come after thousands of originals instead of a million.

So that they are dropped and merged often enough, in a stream of minutes, for a fault to fall into one.
"""

from state.table import SegmentTable
from stream.cli import run

WINDOW_FLOOR = 1_500
MERGE_AT = 700

if __name__ == "__main__":
    SegmentTable.open.__func__.__kwdefaults__.update(window_floor=WINDOW_FLOOR, merge_at=MERGE_AT)
    run()
