"""The time of a line of JSON: epoch seconds or milliseconds, or ISO 8601, as milliseconds since 1970."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

_MILLISECONDS_FROM: Final = 10**11
"""A number from here on is milliseconds (March 1973 and later), below it seconds (until the year 5138)."""

_LATEST: Final = 253_402_300_799_999
"""The end of the year 9999. Later are only microseconds taken for milliseconds, and one such time would let
everything before it expire."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_DATE_DIGITS: Final = 8
_LONE_DIGIT: Final = re.compile(r"(?<![\d.])(\d)(?![\d])", re.ASCII)


class _Number(str):
    """A JSON number as it was written: a float would round it."""

    __slots__ = ()


_DECODER: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number)


class TimeField:
    """Reads the time of each line and counts what it could not read.

    Parameters:
        name: the field that holds it.

    Attributes:
        missing: how many lines had no such field, or null or an empty string in it.
        unreadable: how many had something in it that is no time from 1970 to 9999.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.missing = 0
        self.unreadable = 0

    def read(self, line: bytes) -> int | None:
        """The time of a line that holds a JSON object, in ms since 1970; None where it has no usable one."""
        try:
            value = _DECODER.decode(line.decode("utf-8-sig")).get(self.name)
            if value is None or value == "":
                self.missing += 1
                return None
            return parse_time(value)
        except (ValueError, RecursionError):
            self.unreadable += 1
            return None


def parse_time(value: object) -> int:
    """The milliseconds since 1970 that a value of JSON stands for, rounded down.

    A number, or a string of one, is seconds or, from 100,000,000,000 on, milliseconds; eight digits in a string
    are a date. Other strings are ISO 8601, where month, day and hour may have one digit, a date alone is its
    midnight, and a time without an offset is UTC.

    Raises:
        ValueError: it is none of these, or not from 1970 to 9999.
    """
    if not isinstance(value, str):
        raise ValueError("a time is a number or a string")
    time = _parse(value, isinstance(value, _Number))
    if not 0 <= time <= _LATEST:
        raise ValueError("a time is from 1970 to 9999")
    return time


def _parse(value: str, is_number: bool) -> int:
    text = value.strip()
    if _NUMBER.fullmatch(text) and (is_number or len(text) != _DATE_DIGITS):
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise ValueError("not a number") from None
        return int(number if abs(number) >= _MILLISECONDS_FROM else number * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.fromisoformat(_LONE_DIGIT.sub(r"0\1", text))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND
