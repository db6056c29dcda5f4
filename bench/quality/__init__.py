"""How many near-duplicates are found, how much of what is found is right, and at what price.

Every contender gets the same texts and is held against the same exhaustive comparison of them. The result is a
page, `docs/quality.md`, that only this package writes.

Run: python -m bench.quality (or `make quality`); it needs the extra `quality` and the real texts.
"""
