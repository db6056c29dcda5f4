"""`textsieve idf build`: an IDF table from texts of one's own, in a file or a topic.

Reference for the bound of the memory: Misra and Gries, "Finding repeated elements", Science of Computer
Programming 2 (1982): words are forgotten together, and it is known how much the counts have lost by that.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from stream.admin import Admin
from stream.connection import IN_DOUBT
from stream.errors import BrokerError, InputError
from stream.events import RawEvent, decode
from stream.reader import open_log
from stream.rules import Rules
from stream.settings import Settings
from stream.text import Scheme
from stream.text.weigh import IDF_NAME, idf_table
from stream.tools.files import STANDARD_INPUT, LineReader, OutputError, results
from stream.verdict import Text

TOPIC: Final = "topic:"
"""What a source begins with that is a topic and no file."""

MIN_DOCUMENTS: Final = 2
"""A word of a single document is a name, a number or a slip; of most vocabularies that is more than half. Without
them the table is small, and they weigh what every word weighs that it lacks."""

MAX_WORDS: Final = 1_000_000
"""Words that are counted at a time: some 150 MB. A year of headlines has 41,000 of them, 96,000 comments
have 63,000, jieba's table 270,000."""

MAX_WORD_CHARACTERS: Final = 64
"""A longer word is no word but a run of letters, and would take memory that no number of words bounds."""

Progress = Callable[[int, int, int | None], None]
"""Told of texts counted, of bytes (a file) or offsets (a topic) read, and of how many there are, if that is known."""


class Report(NamedTuple):
    """What a table was built from, and what it holds."""

    documents: int
    """Texts that were counted, repeated ones as often as they come."""
    left_out: int
    """Lines or events that are no text, or a text that is too long to be cut into words."""
    words: int
    """Words in the table."""
    undercount: int
    """By how much a word's document frequency may be too low, as the memory is bounded; 0 where it did not matter."""


class DocumentFrequencies:
    """Counts in how many documents each word is, in bounded memory.

    Where there are more than `max_words`, those of the lowest counts are forgotten, at least half of all. Which
    ones depends on the counts alone, so that the same documents in the same order always give the same result.

    Parameters:
        max_words: how many words are counted at a time; one document may pass it by its own.

    Attributes:
        documents: how many were counted.
        undercount: no word was in more documents than its count and this together.
    """

    def __init__(self, max_words: int = MAX_WORDS) -> None:
        self.documents = 0
        self.undercount = 0
        self._max_words = max_words
        self._counts: dict[str, int] = {}

    def add(self, words: Iterable[str]) -> None:
        """Count one more document, given by its words."""
        counts = self._counts
        self.documents += 1
        for word in set(words):
            if len(word) <= MAX_WORD_CHARACTERS:
                counts[word] = counts.get(word, 0) + 1
        if len(counts) > self._max_words:
            self._forget()

    def at_least(self, documents: int) -> dict[str, int]:
        """The words that are known to be in so many documents, with their counts."""
        return {word: count for word, count in self._counts.items() if count >= documents}

    def _forget(self) -> None:
        lost = sorted(self._counts.values())[self._max_words // 2]
        self._counts = {word: count for word, count in self._counts.items() if count > lost}
        # What is not counted now was in no more documents than it could have lost before, and these.
        self.undercount += lost


class Corpus:
    """Takes the values of events, and counts the words of those that are texts, as the worker would cut them.

    Parameters:
        rules: where in a value the text is, and how long it may be.
        scheme: how texts are normalised and cut into words.
        max_words: see `DocumentFrequencies`.

    Attributes:
        frequencies: what was counted.
        left_out: how many values were no text, or one that is too long.
    """

    def __init__(self, rules: Rules, scheme: Scheme, max_words: int = MAX_WORDS) -> None:
        self.frequencies = DocumentFrequencies(max_words)
        self.left_out = 0
        self._rules = rules
        self._scheme = scheme

    def add(self, value: bytes | None) -> None:
        """Take the next value."""
        event = decode(RawEvent("", 0, 0, -1, None, value, ()), self._rules)
        if isinstance(event, Text) and len(event.text) <= self._rules.max_text_chars:
            self.frequencies.add(self._scheme.words(self._scheme.normalize(event.text)))
        else:
            self.left_out += 1


def counting_scheme(settings: Settings) -> Scheme:
    """The scheme of the settings but for their own IDF table: that may be the very one that has to be built anew.

    Raises:
        SettingsError: see `Scheme.build`.
    """
    return Scheme.build(replace(settings.scheme_spec, idf_table=None))


def build(
    source: str,
    output: Path,
    *,
    settings: Settings,
    scheme: Scheme,
    min_documents: int = MIN_DOCUMENTS,
    max_words: int = MAX_WORDS,
    progress: Progress = lambda texts, position, size: None,
) -> Report:
    """Count the words of a source and write the table; a table that is there already is replaced as a whole.

    Parameters:
        source: a file as `LineReader` takes it, or `topic:NAME`, which is read from its beginning to the end
            that it has now, committed events only.
        output: the file of the table.
        settings: how to read events, and how to reach the broker.
        scheme: how texts are cut into words: `counting_scheme`.
        min_documents: words of fewer documents are left out.
        max_words: see `DocumentFrequencies`.
        progress: told how far it is.

    Raises:
        InputError: the source cannot be read, there is no such topic, or no word is in enough documents.
        OutputError: the table cannot be written, or a file of another kind is there.
        BrokerError: the broker does not answer, or has deleted events while they were read.
    """
    corpus = Corpus(settings.rules, scheme, max_words)
    _require_replaceable(output)
    topic = source.removeprefix(TOPIC) if source.startswith(TOPIC) else None
    file = source if topic is None else STANDARD_INPUT
    with results(output.parent, [output.name], replace=True, source=file) as files:
        if topic is None:
            _count_file(corpus, LineReader(source), progress)
        else:
            _count_topic(corpus, settings, topic, progress)
        frequencies = corpus.frequencies
        words = frequencies.at_least(min_documents)
        if not words:
            raise InputError(
                f"{source}: no word is in {min_documents} or more of {frequencies.documents} texts "
                f"({corpus.left_out} lines or events are no texts). Is it the right source, and are the format and "
                "the text field right?"
            )
        facts = {
            "min_documents": min_documents,
            "undercount": frequencies.undercount,
            "words_of": {name: scheme.description[name] for name in _WHAT_MAKES_WORDS},
        }
        for line in idf_table(words, frequencies.documents, facts):
            files.write(output.name, line.encode())
    return Report(frequencies.documents, corpus.left_out, len(words), frequencies.undercount)


_WHAT_MAKES_WORDS: Final = ("normalization", "unicode", "segmenter", "dictionary", "user_dictionary")
"""The parts of a scheme's description that decide which words a text has."""


def _require_replaceable(output: Path) -> None:
    try:
        with output.open("rb") as file:
            start = file.read(len(IDF_NAME))
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"The table cannot be written to {output}: {error.strerror}.") from error
    if start and start != IDF_NAME.encode():
        raise OutputError(f"{output} is no IDF table and would be replaced: choose another --output.")


def _count_file(corpus: Corpus, reader: LineReader, progress: Progress) -> None:
    for number, line in enumerate(reader, start=1):
        corpus.add(line)
        if number % _PROGRESS_LINES == 0:
            progress(corpus.frequencies.documents, reader.position, reader.size)


_PROGRESS_LINES: Final = 1000


def _count_topic(corpus: Corpus, settings: Settings, topic: str, progress: Progress) -> None:
    found = Admin(settings).describe([topic])
    if topic not in found:
        raise InputError(f"{TOPIC}{topic}: there is no such topic on the broker {settings.broker}.")
    try:
        asyncio.run(_read_topic(corpus, settings, topic, found[topic].partitions, progress))
    except OffsetOutOfRangeError as error:
        raise BrokerError(
            f"The broker deleted events of {topic} while they were read. Begin again, or let it keep them longer "
            "(retention.ms)."
        ) from error
    except IN_DOUBT as error:
        raise BrokerError(f"The broker gave no answer: {error!r}") from error


async def _read_topic(
    corpus: Corpus, settings: Settings, topic: str, partitions: int, progress: Progress
) -> None:
    async with open_log(settings) as reader:
        places = [TopicPartition(topic, partition) for partition in range(partitions)]
        bounds = [await reader.bounds(place) for place in places]
        size = sum(end - begin for begin, end in bounds)
        before = 0
        for place, (begin, end) in zip(places, bounds, strict=True):
            async for records in reader.read(place, begin, end):
                for record in records:
                    corpus.add(record.value)
                progress(corpus.frequencies.documents, before + records[-1].offset + 1 - begin, size)
            before += end - begin
