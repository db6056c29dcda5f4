"""The state of a scope: originals in RocksDB, the segment table over them, and the changelog record."""
