"""Which tests a change leaves out."""

from __future__ import annotations

import pytest

from tests import changed


@pytest.mark.parametrize(
    ("files", "out"),
    [
        (["stabkit/storage/locks.py"], set(changed.RESTS)),
        (["studies/rows.py"], {"tests/test_notebook.py", "tests/test_package.py"}),
        (["docs/notebooks/your_model.ipynb"], {"tests/test_package.py"}),
        (["stabkit/version.py"], {"tests/studies", "tests/test_notebook.py"}),
        (["stabkit/storage/locks.py", "tests/conftest.py"], set()),
    ],
)
def test_tests_that_rest_on_nothing_changed_are_left_out(files: list[str], out: set[str]) -> None:
    assert set(changed.of(files)) == out


def test_what_tests_rest_on_is_there() -> None:
    named = {*changed.ALWAYS, *changed.RESTS, *(path for paths in changed.RESTS.values() for path in paths)}
    assert [path for path in named if not (changed.ROOT / path).exists()] == []


def test_without_history_or_git_all_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    changed.left_out.cache_clear()
    monkeypatch.setattr(changed, "_git", lambda *words: "")
    assert changed.left_out() == ("", ())
    changed.left_out.cache_clear()
