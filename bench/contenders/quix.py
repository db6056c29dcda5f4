"""A Quix Streams application that removes exact duplicates by key, with its state in RocksDB and exactly-once.

The key of an event is the hash of its text, made by whoever produced it: state in Quix Streams is kept by key. Only
exact duplicates are removed, and nothing expires. Runs in an environment of its own, without textsieve.

Run: python bench/contenders/quix.py BROKER GROUP RAW OUTPUT DIRECTORY
"""

import sys

from quixstreams import Application, State

BATCH = 500


def main(broker: str, group: str, raw: str, output: str, directory: str) -> None:
    """Run until it is told to stop."""
    app = Application(
        broker_address=broker,
        consumer_group=group,
        state_dir=directory,
        processing_guarantee="exactly-once",
        auto_offset_reset="earliest",
        commit_every=BATCH,
        commit_interval=0.1,
        auto_create_topics=True,
        loglevel="WARNING",
    )
    events = app.dataframe(app.topic(raw, key_deserializer="bytes", value_deserializer="bytes"))

    def is_new(_: bytes, state: State) -> bool:
        if state.get("seen"):
            return False
        state.set("seen", True)
        return True

    events = events.filter(is_new, stateful=True)
    events.to_topic(app.topic(output, key_serializer="bytes", value_serializer="bytes"))
    app.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
