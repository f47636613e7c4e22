"""Names, links and values in a store that no command of ours writes: a line each, and every other page is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hostile.looking import commands, files, look, report
from tests.hostile.stores import KINDS, NAMES, put
from tests.hostile.values import odd_watches

pytestmark = [pytest.mark.hostile]


@pytest.mark.parametrize("folder", KINDS)
def test_a_folder_of_any_name_costs_a_line(folder: str, tmp_path: Path) -> None:
    for name in NAMES:
        put(tmp_path, folder, {}, name)
    look(tmp_path)
    done = commands(tmp_path, "runs verify --out")
    assert sum(line.startswith(("sound ", "corrupt ")) for line in done.out) == len(NAMES), done.lines


def test_pages_of_watches_of_any_name_have_short_plain_names_and_stand_together(tmp_path: Path) -> None:
    for name in (*NAMES, b"aaa-good", b"zzz-good"):
        put(tmp_path, "own", {}, name)
    before = files(tmp_path)
    done = report(tmp_path)
    added = sorted(set(files(tmp_path)) - set(before))
    odd = [name for name in added if not re.fullmatch(r"reports/[A-Za-z0-9][\w.-]{0,120}\.html", name, re.ASCII)]
    assert not odd and done.codes == [0] and len(added) == len(NAMES) + 2, (odd, done.codes, len(added), done.err)
    assert not [name for name in added if b"\x1b" in (tmp_path / name).read_bytes()]


def test_watches_of_odd_values_cost_a_line_each_and_nobody_elses_page(tmp_path: Path) -> None:
    odd = odd_watches(tmp_path)
    for name in (b"aaa-good", b"zzz-good"):
        put(tmp_path, "own", {}, name)
    look(tmp_path), commands(tmp_path, *(f"runs show {name} --out" for name in odd))
    done, pages = report(tmp_path), files(tmp_path / "reports")
    names = " ".join(pages)
    assert done.codes == [0] and "aaa-good" in names and "zzz-good" in names, (done.codes, names, done.err)
    lost = [name for name in odd if name not in names and sum(name in line for line in done.err) != 1]
    raw = [name for name, page in pages.items() if b"\x1b" in page]
    other = [line for line in done.err if not line.startswith("warning: ")]
    assert not (lost or raw or other), (lost, raw, other)


def test_a_link_is_not_written_through_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    for folder, kind in KINDS.items():
        put(tmp_path / "other", folder, {})
        out = tmp_path / f"{folder}-linked"
        (out / "runs").mkdir(parents=True)
        (out / folder).rmdir() if folder == "runs" else None
        (out / folder).symlink_to(tmp_path / "other" / folder)
        single = tmp_path / f"{folder}-single"
        (single / folder).mkdir(parents=True), (single / "runs").mkdir(exist_ok=True)
        (single / folder / kind.name).symlink_to(tmp_path / "other" / folder / kind.name)
        before = files(tmp_path / "other")
        look(out), look(single)
        if folder in ("own", "runs"):
            commands(single, f"runs rm {kind.name} --out")
            assert not (single / folder / kind.name).is_symlink()
        assert {name: body for name, body in files(tmp_path / "other").items() if name in before} == before, folder


def test_pages_are_not_written_through_a_link(tmp_path: Path) -> None:
    put(tmp_path / "out", "own", {})
    (tmp_path / "aim").mkdir()
    (tmp_path / "out" / "reports").symlink_to(tmp_path / "aim")
    done = report(tmp_path / "out")
    assert not list((tmp_path / "aim").iterdir()) and done.codes == [5] and len(done.err) == 1, done
