"""The stream processor: text to fingerprint, the judge, and the Faust application around it."""
