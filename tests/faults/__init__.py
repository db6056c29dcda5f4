"""Faults at random moments under a stream of real texts, and a check that nothing was lost, doubled or misjudged."""
