"""What pages are called."""

from __future__ import annotations

from stabkit.report.files import page_name
from tests.figures.fake_runs import spec


def test_a_page_is_named_by_its_command_and_its_grid() -> None:
    some = [spec(key, n) for n in (18, 6) for key in ("post-ln", "deepnorm")]
    name = page_name("sweep", some)
    assert name.startswith("sweep-6L-18L-post-ln-deepnorm-") and len(name.rpartition("-")[2]) == len("1f3a.html")
    assert page_name("sweep", some[:3]) != name and page_name("slope", some).startswith("slope-")


def test_a_long_grid_is_counted() -> None:
    many = [spec(key, n) for n in (2, 3, 4, 5, 6) for key in ("post-ln", "deepnorm", "admin", "pre-ln")]
    assert page_name("sweep", many).startswith("sweep-2L-to-6L-4-methods-")


def test_a_name_has_no_sign_that_a_shell_or_an_address_would_read() -> None:
    assert set(page_name("sweep", [spec("../x y", 2)])) <= set("abcdefghijklmnopqrstuvwxyz0123456789L-.")
