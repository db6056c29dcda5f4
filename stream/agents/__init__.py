"""Faust agents: thin shells around what judges and commits."""

from stream.agents.sieve import sieve

__all__ = ["sieve"]
