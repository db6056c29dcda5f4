"""The page `docs/quality.md` and its plots: what was measured, in tables and a few sentences each."""

import math
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bench.quality import growth, plots
from bench.quality.contenders import Answer, Contender
from bench.quality.corpora import Corpus, Measure
from bench.quality.growth import Size
from bench.quality.measure import (
    MARGIN,
    THRESHOLD,
    Judged,
    Part,
    Score,
    judge,
    lengths,
    numbers,
    similarities,
)
from bench.quality.policies import STREAMS, Policy
from bench.quality.truth import Truth
from stream.rules import Rules

__all__ = ["Result", "write"]

_PACKAGES = ("numpy", "rapidfuzz", "jieba", "rjieba", "simhash", "datasketch")
_KINDS: dict[Measure, str] = {
    "edit": "edit similarity (1 - edit distance / length of the longer text)",
    "resemblance": "resemblance (Jaccard similarity of the sets of character 4-grams)",
}

Row = Sequence[object]


@dataclass(frozen=True, eq=False)
class Result:
    """What was found in a corpus.

    Attributes:
        corpus: the texts.
        truth: their similar pairs.
        answers: what each contender found, in the order of the contenders.
        rule: the score of the classic rule at each distance from 0 on; empty for very short texts.
    """

    corpus: Corpus
    truth: Truth
    answers: Sequence[Answer]
    rule: Sequence[Score]

    def judged(self) -> list[Judged]:
        """Return each contender's pairs beside the similar ones."""
        return [judge(self.corpus, self.truth, answer.pairs) for answer in self.answers]


def write(
    results: Sequence[Result],
    contenders: Sequence[Contender],
    checked: int,
    grown: Sequence[Size],
    effects: Sequence[Policy],
    page: Path,
) -> None:
    """Write the page, and its plots into the directory of the page's name.

    Args:
        results: of every corpus.
        contenders: in the order of the answers.
        checked: how many similar pairs the check of the truth's filter has found.
        grown: what a lookup costs at each size.
        effects: what each policy does to real streams.
        page: the file, `….md`.
    """
    names = [contender.name for contender in contenders]
    measured = [result for result in results if result.corpus.measure != "identity"]
    very_short = [result for result in results if result.corpus.measure == "identity"]
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    plots.classic_rule(
        {result.corpus.name: (result.corpus.measure, result.rule) for result in measured},
        pictures / "classic-rule.png",
    )
    plots.recall_by_similarity(
        {result.corpus.name: _shares(result, names) for result in measured},
        pictures / "recall-by-similarity.png",
    )
    blocks = [
        *_introduction(contenders, checked),
        *_classic_rule(measured, pictures.name),
        "## Every contender",
        "What each one takes for near-duplicates, by the similarity that the two texts really have. A good one "
        "rises steeply at the threshold, 0.80 for short texts and 0.70 for long ones.",
        f"![Share of the pairs taken, by similarity]({pictures.name}/recall-by-similarity.png)",
        *(block for result in measured for block in _corpus(result, names)),
        *_very_short(very_short, names),
        *_growth(grown, pictures.name),
        *_policies(effects),
    ]
    plots.growth(grown, growth.MOST, pictures / "growth.png")
    page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _introduction(contenders: Sequence[Contender], checked: int) -> Iterator[str]:
    packages = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    yield "# Quality: what is found, what is missed, at what price"
    yield (
        "Written by `make quality` (`python -m bench.quality`); do not edit. Measured on "
        f"{os.cpu_count()} cores ({platform.machine()}, {platform.system()}) with Python "
        f"{platform.python_version()}, {packages}. Times are of one run in one process and vary by a good part "
        "from run to run; everything else is the same in every run."
    )
    yield (
        "Two texts are near-duplicates if their "
        + ", or for texts of 500 characters and more their ".join(
            f"{kind} is {THRESHOLD[measure] / 1000:.2f} or more" for measure, kind in _KINDS.items()
        )
        + ". Which pairs are was found by comparing all texts with all, whatever a contender finds; so recall is "
        f"recall of everything there is. Pairs within {MARGIN / 1000:.2f} of the threshold are left out of "
        "precision, recall and F1. The comparison skips pairs that cannot be similar; on a sample of each short "
        f"corpus, with versions at the very limit, that was compared with skipping nothing: the same {checked:,} "
        "pairs in every run, or there is no page."
    )
    yield (
        "Texts are normalised, and each distinct one is taken once: equal texts are no question of quality. A text "
        "is looked up among those before it and then added. *Compared* is the number of texts (or of entries of "
        "tables, where one text can be in several) that a lookup compares the text with; *µs* is the time per "
        "text from the normalised text to the pairs."
    )
    yield "\n".join(f"- **{contender.name}**: {contender.description}." for contender in contenders)


def _classic_rule(results: Sequence[Result], pictures: str) -> Iterator[str]:
    yield "## The classic rule at every distance"
    yield (
        "Simhash of weighted words, near if at most so many of 64 bits differ; every fingerprint compared with "
        "every other, so no table loses anything. The distance at which F1 is best: "
        + ", ".join(f"{result.corpus.name} {_best(result.rule)}" for result in results)
        + "."
    )
    yield f"![Precision and recall over the distance]({pictures}/classic-rule.png)"
    for measure, title in (("edit", "Short texts"), ("resemblance", "Long texts")):
        chosen = [result for result in results if result.corpus.measure == measure]
        if chosen:
            yield f"{title}, precision / recall of the pairs at that distance or less:"
            yield _table(
                ["distance", *(result.corpus.name for result in chosen)],
                (
                    [distance, *(f"{_ratio(s.precision)} / {_ratio(s.recall)}" for s in scores)]
                    for distance, scores in enumerate(zip(*(r.rule for r in chosen), strict=True))
                ),
            )


def _corpus(result: Result, names: Sequence[str]) -> Iterator[str]:
    corpus, threshold = result.corpus, THRESHOLD[result.corpus.measure]
    judged = result.judged()
    away = result.truth.similarity > threshold + MARGIN
    near = np.abs(result.truth.similarity - threshold) <= MARGIN
    yield f"### {corpus.name}"
    yield (
        f"{len(corpus.texts):,} {corpus.contents}. {np.count_nonzero(away):,} pairs are to be found; "
        f"{np.count_nonzero(near):,} near the threshold are left out."
    )
    yield _table(
        ["", "precision", "recall", "F1", "pairs taken", "compared, mean", "99th percentile", "µs"],
        (
            [
                name,
                *map(_ratio, (score.precision, score.recall, score.f1)),
                f"{len(answer.pairs):,}",
                f"{answer.candidates.mean():,.1f}",
                f"{np.percentile(answer.candidates, 99):,.0f}",
                f"{answer.seconds / len(corpus.texts) * 1e6:,.0f}",
            ]
            for name, answer, score in zip(names, result.answers, (j.score() for j in judged), strict=True)
        ),
    )
    yield (
        f"Share of the pairs that each takes, by similarity; from {threshold / 1000:.2f} on it should be all of "
        "them, below none."
    )
    yield _table(
        ["similarity", "pairs", *names],
        (
            [parts[0].name, f"{_listed(judged[0], parts[0]):,}", *map(_ratio, shares)]
            for parts, shares in _bands(result, judged)
        ),
    )
    yield "Precision / recall by the length of the longer text, in characters, and by whether their numbers agree."
    yield _table(
        ["", "to be found", *names],
        [*_parts(corpus, judged, lengths), *_parts(corpus, judged, numbers)],
    )


def _very_short(results: Sequence[Result], names: Sequence[str]) -> Iterator[str]:
    if not results:
        return
    yield "## Very short texts"
    yield (
        "So few characters carry no evidence: one other character is another text. Every pair taken here is "
        "wrong. Pairs taken, and the most and the mean number of texts compared."
    )
    yield _table(
        ["", *(f"{result.corpus.name} ({len(result.corpus.texts):,} texts)" for result in results)],
        (
            [
                name,
                *(
                    f"{len(answer.pairs):,} pairs; {answer.candidates.max():,}, {answer.candidates.mean():,.1f}"
                    for answer in answers
                ),
            ]
            for name, *answers in zip(names, *(result.answers for result in results), strict=True)
        ),
    )


def _growth(grown: Sequence[Size], pictures: str) -> Iterator[str]:
    last = grown[-1]
    scale = growth.MOST / last.texts
    yield "## How a lookup grows"
    yield (
        "The default rules over the short corpora together, which are all the texts of ten characters and more "
        "that the data have, in random order; each size is asked by the 2,000 texts that come last. *Postings "
        "met* are compared with a text by one XOR and one bit count each; *texts "
        f"read* by edit similarity. Both grow in proportion, so {growth.MOST:,} live texts would mean "
        f"{last.met * scale:,.0f} postings (besides those of other texts with the same key, "
        f"{growth.MOST / 65_535:,.0f} a band) and {last.read * scale:,.0f} texts; as no more than "
        f"{Rules().max_compared} that share a band are read, it is {Rules().max_compared} at most."
    )
    yield f"![Postings met and texts read over live texts]({pictures}/growth.png)"
    yield _table(
        ("live texts", "postings met", "texts read, mean", "99th percentile"),
        (
            (f"{size.texts:,}", f"{size.met:.1f}", f"{size.read:.2f}", f"{size.read_most:.0f}")
            for size in grown
        ),
    )


def _policies(effects: Sequence[Policy]) -> Iterator[str]:
    yield "## What each policy does"
    yield (
        "Duplicates in real streams under each setting, every other one at its default: of the same content + near. "
        "The comments are the first 20,000."
    )
    yield _table(
        ("setting", *STREAMS),
        ((policy.name, *(f"{same:,} + {near:,}" for same, near in policy.duplicates)) for policy in effects),
    )


def _parts(
    corpus: Corpus, judged: Sequence[Judged], divide: Callable[[Corpus, Judged], Iterable[Part]]
) -> Iterator[Row]:
    for parts in zip(*(divide(corpus, each) for each in judged), strict=True):
        scores = [each.score(part) for each, part in zip(judged, parts, strict=True)]
        ratios = (f"{_ratio(score.precision)} / {_ratio(score.recall)}" for score in scores)
        yield [parts[0].name, f"{scores[0].right + scores[0].missed:,}", *ratios]


def _bands(result: Result, judged: Sequence[Judged]) -> Iterator[tuple[tuple[Part, ...], list[float]]]:
    """Each band of similarity, as every contender's pairs have it, and the share that each has taken."""
    for parts in zip(*(similarities(result.corpus, each) for each in judged), strict=True):
        shares = []
        for each, part in zip(judged, parts, strict=True):
            listed = _listed(each, part)
            taken = np.count_nonzero(part.chosen & each.accepted)
            shares.append(int(taken) / listed if listed else math.nan)
        yield parts, shares


def _shares(result: Result, names: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
    bands = list(_bands(result, result.judged()))
    return {
        name: [(parts[0].name.replace(" to ", "–"), shares[place]) for parts, shares in bands]
        for place, name in enumerate(names)
    }


def _best(rule: Sequence[Score]) -> str:
    distance = max(range(len(rule)), key=lambda at: np.nan_to_num(rule[at].f1))
    return f"{distance} ({_ratio(rule[distance].f1)})"


def _listed(judged: Judged, part: Part) -> int:
    return int(np.count_nonzero(part.chosen & (judged.similarity > 0)))


def _ratio(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _table(head: Sequence[str], rows: Iterable[Row]) -> str:
    """A table of Markdown, the first column to the left and the others to the right."""
    lines = [head, [":--", *("--:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
