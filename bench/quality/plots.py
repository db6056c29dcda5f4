"""The plots of the page, small PNG files that are the same for the same figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.quality.corpora import Measure
from bench.quality.growth import Size
from bench.quality.measure import Score

__all__ = ["classic_rule", "growth", "recall_by_similarity"]

_DPI = 90
_KINDS: tuple[tuple[Measure, str], ...] = (("edit", "short texts"), ("resemblance", "long texts"))


def classic_rule(scores: Mapping[str, tuple[Measure, Sequence[Score]]], path: Path) -> None:
    """Draw recall (solid) and precision (dashed) of the classic rule over the distance, short texts beside long.

    Args:
        scores: for each corpus its measure, and the score at each distance from 0 on.
        path: the file.
    """
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, len(_KINDS), sharey=True)
    for panel, (kind, title) in zip(panels, _KINDS, strict=True):
        for name, (measure, by_distance) in scores.items():
            if measure == kind:
                (line,) = panel.plot([score.recall for score in by_distance], label=name)
                panel.plot([score.precision for score in by_distance], "--", color=line.get_color())
        panel.set(
            title=f"{title}: recall —, precision - -", xlabel="Hamming distance at most", ylim=(-0.02, 1.02)
        )
        panel.set_xticks(range(0, 13, 2))
        panel.grid(alpha=0.3)
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, fontsize="small")
    _save(figure, path)


def recall_by_similarity(curves: Mapping[str, Mapping[str, Sequence[tuple[str, float]]]], path: Path) -> None:
    """Draw, for each corpus, the share of pairs that each contender takes, by band of similarity.

    Args:
        curves: for each corpus and contender the name of each band and the share; nan where there is no pair.
        path: the file.
    """
    columns = 2
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(9, 2.8 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for panel in panels.flat[len(curves) :]:
        panel.set_visible(False)
    for panel, (corpus, contenders) in zip(panels.flat, curves.items(), strict=False):
        for name, points in contenders.items():
            panel.plot(
                [band for band, _ in points], [share for _, share in points], "o-", markersize=3, label=name
            )
        panel.set(title=corpus, ylim=(-0.02, 1.02))
        panel.tick_params(axis="x", labelsize="x-small")
        panel.grid(alpha=0.3)
    panels.flat[0].set_ylabel("share of the pairs taken")
    figure.legend(
        *panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize="small"
    )
    _save(figure, path)


def growth(grown: Sequence[Size], most: int, path: Path) -> None:
    """Draw postings met and texts read over the number of live texts, with a line through the last two to `most`."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    panel = figure.subplots()
    columns = (
        ("postings met", [size.met for size in grown]),
        ("texts read, mean", [size.read for size in grown]),
        ("texts read, 99th percentile", [size.read_most for size in grown]),
    )
    texts = [size.texts for size in grown]
    for name, values in columns:
        (line,) = panel.loglog(texts, [max(value, 0.01) for value in values], "o-", markersize=3, label=name)
        end = values[-1] * most / texts[-1]
        panel.loglog([texts[-1], most], [values[-1], end], "--", color=line.get_color())
    panel.axhline(50, color="gray", linewidth=0.8)
    panel.set(xlabel="live texts", title="work of a lookup; dashed: in proportion")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    # Without the name and version of the program the file changes only with the figures.
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})
