"""The documentation: its tutorials run as printed, its recipes work, the site builds without a loose end."""

from __future__ import annotations

import html
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from benchmarks import library_models, zoo
from stabkit.claims import CLAIMS
from stabkit.cli.app import app
from stabkit.methods import KEYS
from stabkit.probes import PROBES
from stabkit.report.cards import card
from stabkit.running import executors
from studies.markdown import csv_rows
from tests.commands import stabkit
from tests.figures.fake_runs import plausible, spec

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
RECIPES = (DOCS / "extend.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", RECIPES + (DOCS / "blocks.md").read_text(encoding="utf-8"), re.S)
COMMANDS = re.findall(r"^\$ stabkit (.*)$", RECIPES, re.M)
TESTED = re.findall(r"^\$ python3 dev.py test (.*)$", RECIPES, re.M)
CODES = {"audit": 6}
"""Exit codes that a tutorial announces."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of a page's blocks, in order."""
    return re.findall(r"```(python|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its order, in one folder, where `mine.py` is that of `my_model`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(executors.EXECUTORS, "processes", executors.EXECUTORS["inline"])
    mine = next(text for language, text in blocks(DOCS / "tutorials" / "my_model.md") if language == "python")
    (tmp_path / "mine.py").write_text(mine, encoding="utf-8")
    found = blocks(page)
    assert any(language == "console" for language, _ in found)
    for language, text in found:
        if language == "python" and (named := re.match(r"# (\w+\.py)\n", text)):
            (tmp_path / named[1]).write_text(text, encoding="utf-8")
        elif language == "python" and "import stabkit" in text:
            exec(text, {})  # our own page, not input
        for line in re.findall(r"^\$ (.*)$", text, re.M) if language == "console" else ():
            words = shlex.split(line)
            assert words[0] == "stabkit", line
            done = stabkit(*words[1:], cwd=tmp_path)
            assert done.returncode == CODES.get(words[1], 0), f"{line}: {done.stderr}"


@pytest.mark.slow
def test_the_site_builds_without_a_loose_end_and_asks_nothing_of_a_network(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    pages = {page.relative_to(tmp_path / "site"): page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")}
    own = {name: text for name, text in pages.items() if name.parts[0] not in ("reports", "_modules")}
    assert {Path("index.html"), Path("start.html"), Path("commands.html"), Path("gallery.html")} <= set(own)
    for name, text in own.items():
        for tag in re.findall(r"<(?:script|img|link|iframe)[^>]*>", text):
            assert "://" not in tag, (name, tag)
        assert "@import" not in text
    assert "mermaid" not in own[Path("architecture.html")] and "<b>running</b>" in own[Path("architecture.html")]
    formulas = own[Path("formulas.html")]
    assert formulas.count("<math") > 6 and "mathjax.js" not in formulas.lower()
    for report in (ROOT / "reports").rglob("*.html"):
        assert report.relative_to(ROOT) in pages, "each committed page is in the site"
    for report in (ROOT / "reports").glob("*.html"):
        assert f'href="reports/{report.name}"' in own[Path("gallery.html")]
    for command in ("sweep", "probe", "runs verify"):
        assert f">{command}<" in own[Path("commands.html")]
    for key in KEYS:
        assert f'href="methods/{key}.html"' in own[Path("methods.html")]


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return runpy.run_path(str(DOCS / "_ext" / "generated.py"))["pages"]()


@pytest.mark.slow
def test_the_gallery_and_the_table_of_methods_are_committed_as_they_are_generated(generated: dict[str, str]) -> None:
    for name in runpy.run_path(str(DOCS / "_ext" / "generated.py"))["COMMITTED"]:
        kept = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert kept == generated[name], f"{name}.md: `python docs/_ext/generated.py` writes it anew"


@pytest.mark.slow
def test_every_command_claim_probe_and_method_has_its_section(generated: dict[str, str]) -> None:
    def titles(name: str) -> list[str]:
        return re.findall(r"^## (.*)$", generated[name], re.M)

    root: Any = get_command(app)
    commands = [name for name in root.commands if name != "runs"]
    assert titles("commands") == [*commands, *(f"runs {name}" for name in root.commands["runs"].commands)]
    for name, command in root.commands.items():
        assert all(
            option in generated["commands"] for one in command.params for option in one.opts if one.name != "help"
        )
        assert name == "runs" or f"$ stabkit {name}" in generated["commands"]
    assert titles("probes") == [probe.name for probe in PROBES]
    assert len(re.findall(r"^\*\*.+\*\* \(", generated["claims"], re.M)) == len(CLAIMS)
    for claim in CLAIMS:
        assert f"**{html.escape(claim.sentence, quote=False)}**" in generated["claims"]
    assert {f"methods/{key}" for key in KEYS} == {name for name in generated if name.startswith("methods/")}
    for key in KEYS:
        assert f"| `{key}` |" in generated["methods"]
        assert all(f"\n{part}" in generated[f"methods/{key}"] for part in ("- Source: ", "## Constants", "| 18L-18L "))


def test_the_docs_are_short_and_their_first_pages_have_few_long_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(DOCS / "_ext" / "words.py"))["main"]
    main([])
    assert int(re.findall(r"(\d+) words of docs", capsys.readouterr().out)[0]) <= 32_000
    main([str(ROOT / "README.md"), str(DOCS / "start.md"), str(DOCS / "own_model.md")])
    rows = re.findall(r"(\d+) of +(\d+) sentences", capsys.readouterr().out)
    assert len(rows) == 3 and sum(int(long) for long, _ in rows) <= 0.03 * sum(int(of) for _, of in rows)


def test_git_ignores_the_pages_that_are_built(generated: dict[str, str]) -> None:
    tools = runpy.run_path(str(DOCS / "_ext" / "words.py"))
    built = set(generated) - set(runpy.run_path(str(DOCS / "_ext" / "generated.py"))["COMMITTED"])
    assert {"commands", "claims", "probes", "methods/deepnorm"} <= built
    assert not {f"docs/{name}.md" for name in built} & {
        path.relative_to(ROOT).as_posix() for path in tools["committed"]()
    }


def test_the_pages_of_models_are_what_their_rows_give() -> None:
    for table in (library_models, zoo):
        assert table.PAGE.read_text(encoding="utf-8") == table.page(csv_rows(table.ROWS)), table.__name__
    right, left, wrong = (sum(int(row[word]) for row in csv_rows(zoo.ROWS)) for word in zoo.COUNTS)
    assert wrong == 0 and left <= 0.08 * (right + left) and right >= 400


def test_the_map_of_the_code_is_made_from_the_package() -> None:
    made = runpy.run_path(str(DOCS / "_ext" / "code_map.py"))
    assert (DOCS / "architecture.md").read_text(encoding="utf-8") == made["page"](), (
        "`python3 docs/_ext/code_map.py` writes it anew"
    )


def test_the_picture_of_the_rooms_names_each_in_the_order_of_the_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    order = project["tool"]["importlinter"]["contracts"][0]["layers"]
    level = {room: number for number, rooms in enumerate(order) for room in rooms.split(" | ")}
    picture = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("```mermaid")[2].partition("```")[0]
    named = [room for bold in re.findall(r"<b>(.*?)</b>", picture) for room in bold.split(" · ")]
    assert set(named) == set(level)
    for arrows in re.findall(r"^ *(\w+(?: --> \w+)+)$", picture, re.M):
        ends = arrows.split(" --> ")
        assert ends == sorted(ends, key=lambda name: picture.index(f" {name}[")), (
            "the site draws boxes as they are written"
        )
    assert [level[room] for room in named] == sorted(level[room] for room in named)


@pytest.fixture
def recipes(tmp_path):
    """A directory with the files of the two recipes, as their reader has it."""
    (tmp_path / "my.py").write_text(BLOCKS[0], encoding="utf-8")
    (tmp_path / "mine.py").write_text(BLOCKS[2], encoding="utf-8")
    (tmp_path / "slow.py").write_text(BLOCKS[1], encoding="utf-8")
    return tmp_path


def printed(part):
    """The commands of the page that name a file of one's own, with this in them."""
    return [command for command in COMMANDS if " ./" in command and part in command]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "said"),
    [
        (0, "x ← ω·x + γ·f(LN(x)); after each stack LN(x)"),
        (1, "x ← x + f(LN(x + s)), s ← ¾·s + ¼·x, s₀ = x₀; output x + s"),
    ],
)
def test_the_methods_of_the_docs_keep_the_contract(recipes, which, said):
    """As printed, the models of 100 layers too; the second's wiring has two streams."""
    file, option, name = shlex.split(TESTED[which])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", file, option, name.replace("./", f"{recipes}/")],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert said in stabkit("methods", name, cwd=recipes).stdout


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_recipes_of_the_docs_are_swept_and_seen(recipes):
    """The printed commands in one, at a size for a test."""
    (method,), (probe,) = printed("--models"), printed("--probes")
    words = [*shlex.split(method), *shlex.split(probe)[1:3]]
    words[words.index("--depths") + 1] = "2,3"
    small = ("--steps", "2", "--hidden", "16", "--ffn", "24", "--vocab", "200", "--max-tokens", "128")
    done = stabkit(*words, *small, "--warmup", "4000", "--quiet", "--out", recipes / "out", cwd=recipes)
    assert done.returncode == 0, done.stderr
    runs = sorted(path.name for path in (recipes / "out" / "runs").glob("[a-z]*"))
    assert [name.partition("-2L")[0] for name in runs if "-2L-" in name] == ["deepnorm", "own-halved", "pre-ln"]
    (page,) = (recipes / "out" / "reports").glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert "Pre-LN × √½" in text and "probe-own-spikes-step" in text and "class Spikes(Probe)" in text
    rows = stabkit("export", "--store", recipes / "out", "--to", "csv").stdout.splitlines()
    assert sum(",own-spikes,state," in row for row in rows) == 6 * 3


def test_the_surface_of_the_docs_is_drawn_and_its_middle_is_the_models_loss(capsys):
    names: dict = {}
    exec(BLOCKS[4], names)  # our own page, not input
    loss = float(((names["model"](names["x"]) - names["y"]) ** 2).mean().detach())
    assert names["surface"].loss[5, 5] == pytest.approx(loss, rel=1e-6) and capsys.readouterr().out


def test_the_figure_of_the_docs_keeps_the_contract():
    """As printed: its frame, and its card for no run, one run and a diverged one; what explains ✕ only where one is."""
    names = {}
    exec(BLOCKS[3], names)  # our own page, not input
    picture = names["PICTURE"]
    sound, lost = plausible(spec("post-ln", 18)), plausible(spec("deepnorm", 6), until=3)
    for runs in ([], [sound], [sound, lost]):
        frame = picture.select(runs)
        assert tuple(frame.columns) == picture.columns and len(frame) == len(runs)
        made = card(picture, frame, runs)
        assert made.needs == ("" if runs else "There are no runs.") and made.svg.count("data-method") == len(runs)
        assert ("✕" in made.read) == (lost in runs)
