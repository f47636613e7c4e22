"""Pages written from the program, so that they cannot differ from it.

Sphinx has commands, claims, probes and a page for each method written when it builds the site; they are not committed.
The gallery and the table of methods are committed: `python docs/_ext/generated.py` writes them, and a test compares.
"""

from __future__ import annotations

import html
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def commands() -> Iterator[str]:
    """Every command with its options in their panels and two examples."""
    from typer.main import get_command

    from stabkit.cli.app import app
    from stabkit.cli.help import EXAMPLES, lay_out
    from stabkit.options.option import PANELS

    yield "# Commands\n\nWhat `stabkit COMMAND --help` says. Options are also read from the environment "
    yield "(`STABKIT_SWEEP_SEEDS=0..2`), those of commands that train from `--config FILE.toml`; `--print-config` "
    yield "writes one.\n"
    root: Any = get_command(app)
    runs = root.commands["runs"]
    every = [(name, one) for name, one in root.commands.items() if name != "runs"]
    every += [(f"runs {name}", one) for name, one in runs.commands.items()]
    for name, command in every:
        lay_out(command, name.split()[-1])
        yield f"\n## {name}\n\n{_plain(inspect.cleandoc(command.help or ''))}\n"
        yield "\n```console\n" + "\n".join(f"$ {text}" for text in EXAMPLES[name.split()[-1]]) + "\n```\n"
        panels: dict[str, list[Any]] = {panel: [] for panel in ("Arguments", "Options", *PANELS)}
        for one in command.params:
            if one.name != "help":
                kind = "Arguments" if one.param_type_name == "argument" else one.rich_help_panel or "Options"
                panels[kind].append(one)
        for panel, options in panels.items():
            if options:
                yield f"\n**{panel}**\n\n| | | default |\n|---|---|---|\n"
                for one in options:
                    yield f"| {_named(one)} | {_plain(one.help or '')} | {_default(one)} |\n"


def _named(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"`{one.metavar or one.name.upper()}`"
    names = ", ".join(f"`{text}`" for text in one.opts)
    return names if one.is_flag else f"{names} {one.metavar}"


def _default(one: Any) -> str:
    value = one.default
    return "" if value in (None, "", False) or one.param_type_name == "argument" else f"`{value}`"


def _plain(text: str) -> str:
    """Text for a table's cell: no bar, no tag."""
    return html.escape(text, quote=False).replace("|", "\\|")


def claims() -> Iterator[str]:
    """Every claim, its weight, the number that tests it, its threshold and the reason."""
    from stabkit.claims import CLAIMS

    yield "# Claims and thresholds\n\n"
    yield "A claim is a sentence of a paper, the number that tests it "
    yield "setting by setting, and a threshold with its reason. A setting is decided where all its seeds lie on one "
    yield "side of the threshold; a single seed decides where its distance from the threshold exceeds the spread of "
    yield "seeds. The claim's verdict counts its settings: "
    yield "**holds**, **fails**, **mixed**, **undecided** (these runs cannot tell), **out of reach** (no number of "
    yield "seeds would do: their scale, length or setting is another), **untested**. The verdicts are on the "
    yield "[pages of the papers](../reports/paper/index.html). [Findings](evidence/findings.md) has the main ones with "
    yield "more seeds, rates and tasks, and decides fewer: there an interval over seeds must lie on one side of the "
    yield "threshold.\n"
    for weight, title in (
        ("central", "Central: a paper's argument rests on it"),
        ("side", "Side"),
        ("background", "Background: what a paper reports about others"),
    ):
        yield f"\n## {title}\n"
        for one in CLAIMS:
            if one.weight == weight:
                bound = one.threshold
                yield f"\n**{_plain(one.sentence)}** ({_plain(one.source)})  \n{_plain(one.test)}; "
                yield f"{bound.words} {one.tell(bound.value)}: {_plain(bound.reason)}. `{one.command}`\n"


def probes() -> Iterator[str]:
    """What each probe's docstring says."""
    from stabkit.probes import PROBES

    yield "# Probes and their formulas\n\n"
    yield "A probe watches a pass and returns one number a site and step; it changes no bit "
    yield "of training. Step t means after t updates; every series has step 0.\n"
    for one in PROBES:
        text = inspect.cleandoc(sys.modules[one.__module__].__doc__ or "")
        yield f"\n## {one.name}\n\n{_plain(text)}\n"


def gallery() -> Iterator[str]:
    """The committed pages: the question of each, its answer, where it lies."""
    yield "# Pages\n\nEach page is one file that can be saved and sent. It names the version that made it and its "
    yield "command; `python3 dev.py evidence all` regenerates all.\n"
    yield "Their text is [Multi30k](https://github.com/multi30k/dataset); `--data` takes any other.\n\n"
    yield "| question | answer |\n|---|---|\n"
    for path in [*sorted((ROOT / "reports").glob("*.html")), *sorted((ROOT / "reports").glob("*/index.html"))]:
        text = path.read_text(encoding="utf-8")
        (title,) = re.findall(r"<h1>(.*?)</h1>", text, re.S)
        (said,) = re.findall(r'<p class="headline">(.*?)</p>', text, re.S)
        answer = re.sub(r"<[^>]+>", "", said).strip().replace("|", "\\|")
        yield f"| {title.strip()} | [{answer}](../{path.relative_to(ROOT).as_posix()}) |\n"


COMMITTED = ("gallery", "methods")


def pages() -> dict[str, str]:
    """{name: text} of every page that is written from the program."""
    texts = {page.__name__: "".join(page()) for page in (commands, claims, probes, gallery)}
    return {**texts, **method_pages()}


def method_pages() -> dict[str, str]:
    """`methods` has a line for each method, `methods/KEY` all of one."""
    from stabkit import methods
    from stabkit.cli.commands.methods import _out
    from stabkit.methods import formula
    from stabkit.methods.groups import group_of

    chosen, depths = [methods.build(key, {}) for key in methods.SETS["all"]], ((18, 18), (100, 100))
    lines = [
        "# Methods",
        "",
        "The residual of every sub-layer of every method:",
        "",
        "    y = N_out( ω·x + γ·N_branch( G( κ·N_in(x) ) ) )",
        "",
        "Gains multiply the base initialisation, which all methods of a comparison share unless `--recipe paper` is "
        "asked for. `stabkit methods KEY` prints the constants of a method, its options and its claims.",
        "",
        "| key | method | group | residual | source |",
        "|---|---|---|---|---|",
        *(
            f"| `{method.key}` | {method.label} | {group_of(method)} | `{_cell(formula.text(method))}` | "
            f"{_cell(method.source)} |"
            for method in chosen
        ),
        "",
        "## Not here yet",
        "",
        *(f"- {line}" for line in _out()),
        "",
        "```{toctree}",
        ":hidden:",
        ":glob:",
        "",
        "methods/*",
        "```",
    ]
    return {
        "methods": "\n".join(lines) + "\n",
        **{f"methods/{method.key}": _method_page(method, depths) + "\n" for method in chosen},
    }


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _method_page(method: Any, depths: tuple[tuple[int, int], ...]) -> str:
    from stabkit.cli.commands.methods import NAMES, _constants, _ends, _recipe, _shown
    from stabkit.methods import constants, formula
    from stabkit.methods.groups import group_of
    from stabkit.report import methods_document
    from stabkit.spec import depth_text

    lines = [f"# {method.label}", "", f"`{method.key}`, {group_of(method)}. `{formula.text(method)}`", ""]
    lines += [f"- Source: {method.source}"]
    lines += [f"- {line[0].upper()}{line[1:]}" for line in _constants(method)]
    for name, values in methods_document.options(method).items():
        lines.append(f"- Option `{name}`: {', '.join(f'`{value}`' for value in values)} (the first is the default)")
    lines += [f"- Its own recipe: {words}" for words in _recipe(method)]
    lines += [f"- `audit` {methods_document.audited(method)}"]
    gains = tuple(NAMES.values())
    head = ("depth", "stack", "sub-layer", "ω (α)", "γ", *gains, "norms, shifts, head scales", "parameters")
    lines += ["", "## Constants", "", "Parameters are those added to Post-LN of the same depth (64-128-2).", ""]
    lines += [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for n, m in depths:
        if reason := method.undefined(n, m):
            lines.append(f"| {depth_text(n, m)} | not defined: {reason} |" + " |" * (len(head) - 2))
            continue
        for i, row in enumerate(constants.of_depth(method, n, m)):
            spans = (_ends(row["gains"][role]) if role in row["gains"] else "" for role in NAMES)
            first = (depth_text(n, m), f"{constants.added(method, n, m):+,}") if i == 0 else ("", "")
            cells = (row["stack"], row["kind"], _shown(row["omega"]), _shown(row["gamma"]), *spans, row["norms"])
            lines.append(f"| {first[0]} | {' | '.join(cells)} | {first[1]} |")
    if claimed := methods_document.claims(method):
        lines += ["", "## Claims that its runs test", ""]
        lines += [f"- `{claim['id']}`: {claim['sentence']} ({claim['source']})" for claim in claimed]
    return "\n".join(lines)


def write(folder: Path, names: tuple[str, ...] = ()) -> None:
    """Those of the pages that are named, or all."""
    for name, text in pages().items():
        page = folder / f"{name}.md"
        if name in (names or (name,)) and not (page.exists() and page.read_text(encoding="utf-8") == text):
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8")


def link(app: Any, name: str, source: list[str]) -> None:
    """The keys in the table of methods lead to their pages, which a forge does not have."""
    if name == "methods":
        source[0] = re.sub(r"^\| `([\w-]+)` \|", r"| [`\1`](methods/\1.md) |", source[0], flags=re.M)


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", lambda app, config: write(Path(app.srcdir)))
    app.connect("source-read", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    write(ROOT / "docs", COMMITTED)
