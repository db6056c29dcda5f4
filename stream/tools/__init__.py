"""One module for each command: it does the work and returns values; `stream.cli` parses and prints."""
