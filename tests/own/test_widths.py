"""`stabkit probe --widths` from the command line and from Python: what it refuses, its table, its document."""

from __future__ import annotations

from pathlib import Path

import pytest

import stabkit
from stabkit.errors import UsageError
from stabkit.report.result import WidthsResult
from stabkit.results.own.widths import over_widths
from tests.commands import stabkit as command
from tests.commands import strict
from tests.own.probing import cell

pytestmark = pytest.mark.usefixtures("undrawn")
MODULE = "tests.own.carried_models"


@pytest.mark.slow
def test_a_result_has_a_row_a_width_and_a_page(tmp_path: Path) -> None:
    found = stabkit.probe(f"{MODULE}:tiny", 2, widths=(16, 32, 64), seeds=0, steps=4, out=tmp_path)
    assert isinstance(found, WidthsResult) and list(found.runs["width"]) == [16, 32, 64]
    assert found.page.exists() and found.verdict.startswith("tiny ")


@pytest.mark.slow
def test_the_command_has_a_table_a_document_and_an_exit_code(tmp_path: Path) -> None:
    asked = ("probe", f"{MODULE}:tiny", "--depths", "2", "--widths", "16,32,64", "--steps", "2", "--out", str(tmp_path))
    body = strict(command(*asked, "--json").stdout)
    assert [row["width"] for row in body["words"]] == [16, 32, 64] and body["answer"].startswith("tiny ")
    again = command(*asked, "--strict")
    assert again.returncode == 8 and "--strict needs a model that trains" in again.stderr


def test_a_factory_that_ignores_its_width_is_refused() -> None:
    with pytest.raises(UsageError, match="wide at every width asked for"):
        over_widths([cell("pre_ln", 4, steps=2)], 0, 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--depths", "2", "--widths", "16"), "--widths needs several widths"),
        (("--depths", "2,4", "--widths", "16,32"), "--widths takes one depth"),
        (("--widths", "16,32"), "--widths takes one depth"),
        (("--depths", "2", "--widths", "16,32", "--lr", "1e-3,1e-2"), "give one --lr"),
        (("--depths", "2", "--predict", "64"), "--predict needs --widths"),
        (("--depths", "2", "--widths", "16,32", "--predict", "64", "--steps", "4"), "--predict needs forecasts"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ended = command("probe", f"{MODULE}:tiny", *words, "--out", str(tmp_path))
    assert ended.returncode == 2 and said in ended.stderr and len(ended.stderr.strip().splitlines()) == 1
