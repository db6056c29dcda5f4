"""`python -m stream` is `textsieve`."""

from stream.cli import run

run()
