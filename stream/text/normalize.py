"""Normalisation: the one form under which texts that look the same are the same.

Unicode's own folding (UAX 15 and 21) does most of it; what it leaves in a text although a reader does not
see it (zero-width characters, controls, the kind of a space, HTML) is folded here. What a reader does see and
a policy may disregard all the same (URLs, names, the script) is too.
"""

import html
import importlib.metadata
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from stream.errors import SettingsError

__all__ = ["Normalization", "Part", "normalization_description", "normalize"]

Part = Literal["keep", "ignore"]
"""What becomes of a part of a text: it counts like the rest, or is left out."""

_ROUNDS = 8
"""How often the folds are run over one text until nothing changes.

Two are the rule (the second sees that nothing changed). More are needed where one fold uncovers work for
another: `&amp;lt;`, an entity in full-width letters, an entity cut in two by a zero-width space. Eight are
past everything in real texts; without an end, a crafted text of a megabyte would cost minutes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalization:
    """The policies of normalisation. Part of a scheme: another policy makes other fingerprints.

    Attributes:
        html_entities: `&amp;`, `&#20013;` and the like become the characters that they stand for. Only
            with their semicolon: in `?a=1&copy=2` nothing is an entity.
        fold_script: traditional characters become simplified ones (OpenCC's `t2s`), so that a text and its
            copy in the other script are equal.
        html_tags: tags and comments. `<br>` and other ends of lines become a space, the rest nothing.
        urls: `http://…`, `https://…`, `www.…` and the short `t.cn/…`, up to the first character that is not
            ASCII. Texts that differ in nothing else are then the same.
        mentions: `@name`, and the `//@name:` of a repost.
    """

    html_entities: bool = True
    fold_script: bool = False
    html_tags: Part = "ignore"
    urls: Part = "keep"
    mentions: Part = "keep"


def normalize(text: str, policy: Normalization = Normalization()) -> str:
    """Return the form in which a text is compared with others.

    HTML entities are unescaped, what the policy ignores is taken out, characters that show nothing
    (zero-width ones, controls, variation selectors, also inside words) are dropped, then NFKC, then case
    folding; white space becomes one space between words and none at the ends.

    Any `str` is accepted, lone surrogates and NUL too. The result is a fixed point: normalising it again
    changes nothing.

    Raises:
        SettingsError: the policy folds scripts and the package `opencc` is not installed.
    """
    fold_script = _script_folder() if policy.fold_script else None
    for _ in range(_ROUNDS):
        folded = _fold(text, policy, fold_script)
        if folded == text:
            return text
        text = folded
    if "&" in text or "<" in text:
        # Entities or tags nested this deep are made to cost time. Without these characters there are none.
        return normalize(text.replace("&", " ").replace("<", " "), policy)
    return text


def normalization_description(policy: Normalization) -> dict[str, object]:
    """Return the policies as JSON can hold them, with the version of what folds scripts."""
    return {
        "html_entities": policy.html_entities,
        "fold_script": importlib.metadata.version("opencc") if policy.fold_script else None,
        "html_tags": policy.html_tags,
        "urls": policy.urls,
        "mentions": policy.mentions,
    }


def _fold(text: str, policy: Normalization, fold_script: Callable[[str], str] | None) -> str:
    if policy.html_entities and "&" in text:
        text = _ENTITY.sub(_unescape, _NESTED_AMPERSAND.sub("&", text))
    if policy.html_tags == "ignore" and "<" in text:
        text = _TAG.sub("", _LINE_END_TAG.sub(" ", text))
    text = _INVISIBLE.sub("", text)
    if policy.urls == "ignore":
        text = _URL.sub(" ", text)
    if policy.mentions == "ignore":
        text = _MENTION.sub(" ", text)
    text = unicodedata.normalize("NFKC", text).casefold()
    if fold_script is not None:
        text = fold_script(text)
    return " ".join(text.split())


_NESTED_AMPERSAND = re.compile(r"&(?:amp;|#0*38;|#x0*26;)+", re.IGNORECASE)
"""`&amp;amp;amp;` in one step, however deep."""

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def _unescape(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


_LINE_END_TAG = re.compile(
    r"</?(?:br|p|div|li|ul|ol|tr|td|th|table|h[1-6]|hr|blockquote|section|article)(?:\s[^<>=]*+=[^<>]*+)?\s*+/?>",
    re.IGNORECASE,
)

_TAG = re.compile(r"</?[a-z][a-z0-9]*+(?:\s[^<>=]*+=[^<>]*+)?\s*+/?>|<!--[^<>]*-->", re.IGNORECASE)
"""Only what HTML can mean: neither `a < b`, nor `a<b c>d`, nor `<三体>`."""

_URL = re.compile(r"(?:https?://|www\.|(?<![a-z0-9.])t\.cn/)[!#-;=?-~]*", re.IGNORECASE)
"""Up to a space, a quotation mark, an angle bracket, or a character that is not ASCII."""

_MENTION = re.compile(r"(?://)?(?<![A-Za-z0-9._%+-])[@\uff20][\w-]{1,30}[:\uff1a]?")
"""No part of an e-mail address. Names on Weibo have at most 30 characters."""

_INVISIBLE = re.compile(
    "["
    # Controls (Cc) except those that are white space, which are folded with the other spaces.
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    # Default_Ignorable_Code_Point of the Unicode database: soft hyphen, joiners, marks of direction, fillers,
    # variation selectors, byte order mark, tags.
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
    # Interlinear annotation marks.
    "\ufff9-\ufffb"
    "]+"
)


@cache
def _script_folder() -> Callable[[str], str]:
    try:
        # Only a policy that folds scripts needs the package.
        from opencc import OpenCC  # noqa: PLC0415 - an extra that few install
    except ImportError as error:
        raise SettingsError(
            "Folding traditional to simplified characters needs the package opencc. "
            "Install it (pip install opencc), or turn script folding off."
        ) from error
    convert: Callable[[str], str] = OpenCC("t2s").convert

    def fold_script(text: str) -> str:
        # OpenCC takes UTF-8, in which a lone surrogate cannot be written.
        return _SURROGATES_APART.sub(lambda run: convert(run[0]), text)

    return fold_script


_SURROGATES_APART = re.compile("[^\ud800-\udfff]+")
