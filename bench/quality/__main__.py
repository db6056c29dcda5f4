"""Measure every contender on every corpus and write the page.

Run: python -m bench.quality [--page docs/quality.md]
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.quality import growth, policies, report
from bench.quality.contenders import ClassicTable, Contender, Datasketch, PyPISimhash, classic_rule
from bench.quality.corpora import Corpus, data_directory, read_corpora
from bench.quality.measure import judge
from bench.quality.ours import Textsieve
from bench.quality.truth import FLOOR, check_filter, truth_of
from state.errors import TextsieveError
from stream.rules import Rules
from stream.text import Scheme, SchemeSpec

CACHE = Path(".quality")
"""Where the truth is kept from run to run, in the working directory."""

MOST = 12
"""The largest Hamming distance at which the classic rule is measured."""

SAMPLE = 1000
"""Texts of a corpus on which the truth's filter is checked, and as many versions of them."""


def contenders(scheme: Scheme) -> list[Contender]:
    """Return everyone who takes part, in the order of the tables; who joins needs no change elsewhere."""
    # So that of a text with a hundred versions all are found, and not only the nearest.
    rules = Rules(max_compared=1000, max_crowd=1000)
    ours = Textsieve("textsieve", rules, SchemeSpec())
    others: list[Contender] = [PyPISimhash(), Datasketch(0.5), Datasketch(0.6), Datasketch(0.7)]
    return [ours, ClassicTable(scheme), *others]


def measure(page: Path, progress: Progress) -> None:
    """Compute or load the truth, ask every contender, write the page."""
    scheme = Scheme.build(SchemeSpec())
    corpora = read_corpora(data_directory(), scheme)
    everyone = contenders(scheme)
    task = progress.add_task("", total=len(corpora) * (len(everyone) + 2))

    def begin(corpus: Corpus, what: str) -> None:
        progress.update(task, description=f"{corpus.name}: {what}")

    checked, results = 0, []
    for corpus in corpora:
        begin(corpus, "all with all")
        if corpus.measure == "edit":
            checked += check_filter(corpus.texts, FLOOR["edit"], SAMPLE)
        truth = truth_of(corpus, CACHE)
        progress.advance(task)
        begin(corpus, f"the classic rule to distance {MOST}")
        found = classic_rule(scheme, corpus.texts, MOST) if corpus.measure != "identity" else []
        rule = [judge(corpus, truth, pairs).score() for pairs in found]
        progress.advance(task)
        answers = []
        for contender in everyone:
            begin(corpus, contender.name)
            answers.append(contender.find(corpus.texts))
            progress.advance(task)
        results.append(report.Result(corpus, truth, answers, rule))
    progress.update(task, description="growth")
    live = [text for corpus in corpora if corpus.measure == "edit" for text in corpus.texts]
    grown = list(growth.sizes(live, scheme))
    progress.update(task, description="policies")
    effects = list(policies.policies(data_directory()))
    progress.update(task, description="the page")
    report.write(results, everyone, checked, grown, effects, page)


def main() -> None:
    """Run the command; a known error ends it with its sentence."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__.partition("\n")[0])
    parser.add_argument("--page", type=Path, default=Path("docs/quality.md"), help="the page to write")
    page = parser.parse_args().page
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console) as progress:
            measure(page, progress)
    except TextsieveError as error:
        sys.exit(str(error))
    console.print(f"Written: {page}")


if __name__ == "__main__":
    main()
