"""From text to fingerprint: normalise, segment, weigh, hash; and the similarity of two texts.

Pure: nothing here knows of Kafka, Faust, RocksDB or settings. `Scheme` is the sum of it.
"""

from stream.text.content import content_key, raw_key
from stream.text.minhash import Signatures, signatures
from stream.text.normalize import Normalization, Part, normalize
from stream.text.scheme import Feature, Scheme, SchemeSpec, Stored
from stream.text.segment import Engine, Segmenter
from stream.text.simhash import (
    Fingerprints,
    format_hex,
    hamming_distance,
    hamming_distances,
    parse_hex,
)
from stream.text.similarity import (
    cosine,
    cosine_of_characters,
    cosine_of_keywords,
    cosine_thousandths,
    edit_distance,
    edit_similarity,
)
from stream.text.sketch import estimated_resemblance, exact_resemblance, sketch

__all__ = [
    "Engine",
    "Feature",
    "Fingerprints",
    "Normalization",
    "Part",
    "Scheme",
    "SchemeSpec",
    "Segmenter",
    "Signatures",
    "Stored",
    "content_key",
    "cosine",
    "cosine_of_characters",
    "cosine_of_keywords",
    "cosine_thousandths",
    "edit_distance",
    "edit_similarity",
    "estimated_resemblance",
    "exact_resemblance",
    "format_hex",
    "hamming_distance",
    "hamming_distances",
    "normalize",
    "parse_hex",
    "raw_key",
    "signatures",
    "sketch",
]
