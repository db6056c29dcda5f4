"""A worker like any other, whose windows and merges come after thousands of originals instead of a million.

So that they are dropped and merged often enough, in a stream of minutes, for a fault to fall into one. A merge is
cut into more slices, too, or it would be over within a batch.
"""

from state import merge
from state.table import SegmentTable
from stream.cli import run

WINDOW_FLOOR = 1_500
MERGE_AT = 700
SLICE_LISTS = 256
READ_LISTS = 64

if __name__ == "__main__":
    SegmentTable.open.__func__.__kwdefaults__.update(window_floor=WINDOW_FLOOR, merge_at=MERGE_AT)
    merge._SLICE_LISTS, merge._READ_LISTS = SLICE_LISTS, READ_LISTS
    run()
