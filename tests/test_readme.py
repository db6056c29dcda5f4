"""Both READMEs say what the code does, and the same."""

import re
from pathlib import Path

import pytest

from stream.cli import main
from stream.settings import PREFIX, Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
README_ZH = (ROOT / "README.zh-CN.md").read_text()
BOTH = pytest.mark.parametrize("readme", [README, README_ZH], ids=["English", "中文"])

UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


def shown(name: str) -> str:
    """The default of a setting as one would write it in the environment."""
    default = Settings.model_fields[name].default
    if default is None:
        return ""
    if isinstance(default, tuple):
        return f"`{','.join(map(str, default))}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if name in {
        "retention",
        "topic_retention",
        "batch_wait",
        "transaction_timeout",
        "session_timeout",
        "deadline",
    }:
        unit, size = next((unit, size) for unit, size in UNITS if default % size == 0)
        return f"`{default // size}{unit}`"
    if name in {"min_edit_similarity", "min_cosine", "min_resemblance"}:
        return f"`{default / 1000}`"
    return f"`{default}`"


def meaning(name: str) -> str:
    return " ".join(str(Settings.model_fields[name].description).split())


def rows(readme: str) -> list[list[str]]:
    cells = (line.strip("|").split(" | ") for line in readme.splitlines() if line.startswith(f"| `{PREFIX}"))
    return [[cell.strip() for cell in row] for row in cells]


def test_the_table_of_settings_is_that_of_the_code() -> None:
    expected = [[f"`{PREFIX}{name.upper()}`", shown(name), meaning(name)] for name in Settings.model_fields]
    assert rows(README) == expected, "\n".join(f"| {' | '.join(row)} |" for row in expected)


def test_the_chinese_table_has_the_same_settings_and_defaults() -> None:
    assert [row[:2] for row in rows(README_ZH)] == [row[:2] for row in rows(README)]
    assert all(re.search(r"[\u4e00-\u9fff]", row[2]) for row in rows(README_ZH))


def blocks(readme: str) -> list[str]:
    return re.findall(r"^```(?:bash|text|json|mermaid)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)


def test_both_have_the_same_headings_and_commands() -> None:
    levels = [re.findall(r"^(#+) \S", readme, re.MULTILINE) for readme in (README, README_ZH)]
    assert levels[0] == levels[1]
    assert blocks(README) == blocks(README_ZH)


@BOTH
def test_every_make_target_command_and_setting_that_is_named_exists(readme: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", readme, re.MULTILINE)) <= targets
    code = "\n".join(blocks(readme)) + "\n".join(re.findall(r"`(textsieve [^`]+)`", readme))
    assert set(re.findall(r"\btextsieve ([a-z]+)\b", code)) <= set(main.commands)
    names = set(re.findall(rf"{PREFIX}([A-Z_]+)", readme)) - {"TEST_BOOTSTRAP"}
    assert {name.lower() for name in names} <= set(Settings.model_fields)


@BOTH
def test_every_file_that_is_named_exists(readme: str) -> None:
    for path in re.findall(r"`((?:stream|state|tests|bench)(?:/[\w./]+)?)`", readme):
        assert (ROOT / path).exists(), path
