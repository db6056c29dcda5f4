"""The state of a scope: originals in RocksDB, the segment table over them, and the changelog record.

Where to begin: `table.SegmentTable` with its `Position`, `Matches` and `NONE_ALIVE`; `layout.Layout`;
`original.Original`; `changelog.Record` with `encode`, `decode`, `packed_size` and `MAX_RECORD_BYTES`; `errors`.
Everything else is inside. Nothing in here knows of events, text or Kafka's wire.
"""
