"""Texts a second on one core, from the raw text to the fingerprint and to all that is stored of it.

Run: python -m bench text
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import jieba
from jieba.analyse import extract_tags
from simhash import Simhash

from bench.model import real_texts
from bench.results import Options, Result, Table, Target, number, spread
from stream.text import Scheme, SchemeSpec

FILES = ("weibo-comments", "weibo-posts", "news-2020")
ROUNDS = 7
BATCH = 500
"""Texts in one call, as a worker takes them."""
MOST = 20_000
"""Texts of one file."""
RIVALS_SHARE = 20
"""Of so many texts the slow contender is given one: its time is per text all the same."""


def segmentation(scheme: Scheme, forms: Sequence[str]) -> None:
    """Cut normalised texts into words, and nothing else."""
    for form in forms:
        scheme.words(form)


def fingerprints(scheme: Scheme, texts: Sequence[str]) -> None:
    """From raw texts to fingerprints."""
    for first in range(0, len(texts), BATCH):
        scheme.fingerprint([scheme.normalize(text) for text in texts[first : first + BATCH]])


def everything(scheme: Scheme, texts: Sequence[str]) -> None:
    """From raw texts to all that the default rule stores of them: fingerprint, profile, bands, text or sketch."""
    for first in range(0, len(texts), BATCH):
        forms = [scheme.normalize(text) for text in texts[first : first + BATCH]]
        scheme.fingerprint(forms)
        banded = [form for form in forms if scheme.has_bands(form)]
        scheme.signatures(banded, [scheme.salt(form) for form in banded])
        for form in forms:
            scheme.stored(form)


def rival(texts: Sequence[str]) -> None:
    """The library that most Python users know, as its documentation shows it: features are four characters each."""
    for text in texts:
        Simhash(text)


def rival_of_words(texts: Sequence[str]) -> None:
    """The same library with what its users take for Chinese: jieba's words and TF-IDF weights, as we do."""
    for text in texts:
        Simhash(extract_tags(text, topK=None, withWeight=True))


def main(options: Options) -> None:
    """Measure, and save the result."""
    scheme = Scheme.build(SchemeSpec())
    jieba.setLogLevel("ERROR")
    result = Result(
        "text",
        "From text to fingerprint",
        "How many texts a second does one core take from the raw text to its 64-bit fingerprint (normalised, cut into "
        "words, weighed, hashed), and to all that the default rule stores (profile, twelve bands, text or sketch "
        "besides)? Beside them cutting into words alone, and 1e0ng's simhash, both with its own features, which are "
        "all runs of four characters, and with jieba's words and TF-IDF weights, which are ours.",
    )
    table = Table(
        f"Texts a second on one core: median of {ROUNDS} rounds, and quartiles",
        (
            "texts",
            "confirm=none",
            "default rule",
            "cutting alone",
            "1e0ng, runs of four",
            "1e0ng, words",
            "ours / runs of four",
            "ours / words",
        ),
    )
    for name in FILES:
        texts = list(real_texts(options.data, (name,)))[:MOST]
        few = texts[::RIVALS_SHARE]
        forms = [scheme.normalize(text) for text in texts]
        contenders: dict[str, tuple[Callable[[], object], int]] = {
            "fingerprint": (partial(fingerprints, scheme, texts), len(texts)),
            "everything": (partial(everything, scheme, texts), len(texts)),
            "segmentation": (partial(segmentation, scheme, forms), len(texts)),
            "1e0ng": (partial(rival, few), len(few)),
            "1e0ng of words": (partial(rival_of_words, few), len(few)),
        }
        rates: dict[str, list[float]] = {contender: [] for contender in contenders}
        for _ in range(ROUNDS):
            for contender, (work, count) in contenders.items():
                begin = time.perf_counter()
                work()
                rates[contender].append(count / (time.perf_counter() - begin))
        result.samples[name] = rates
        found = {contender: spread(values) for contender, values in rates.items()}
        ours = found["fingerprint"].median
        ratios = [ours / found[contender].median for contender in ("1e0ng", "1e0ng of words")]
        table.rows.append((name, *map(str, found.values()), *map(number, ratios)))
        if name == "weibo-comments":
            result.targets += [
                Target(
                    "comments a second on one core, text → fingerprint",
                    "at least 15,000",
                    number(ours),
                    ours >= 15_000,
                ),
                Target(
                    "the same beside 1e0ng simhash: of words / of runs of four characters",
                    "at least 20 times",
                    f"{number(ratios[1])} / {number(ratios[0])} times",
                    min(ratios) >= 20,
                ),
            ]
    result.tables.append(table)
    result.notes.append(
        "1e0ng's simhash is no longer slow: release 2 sums its bits in numpy. With words as features it spends its "
        "time in jieba's own segmenter; with runs of four characters it segments nothing. We segment, in Rust: that is "
        "more than half of our time (*cutting alone*), so that without it we would still be only some five times as "
        "fast."
    )
    result.save("simhash", "jieba")
