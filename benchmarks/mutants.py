"""What the suite can see: sixty small faults over all rooms, and which of them the tests that run the line notice.

    python benchmarks/mutants.py draw [OTHER]    choose the faults, by a fixed seed, and write them to mutants.json:
                                                 those of before that still have a place, then others; with OTHER, a
                                                 checkout of another version, only what it has too, to compare both
    python benchmarks/mutants.py fates before    put in one after the other, run its tests, keep what became of each
    python benchmarks/mutants.py again before 7 TEST…    put in number 7 once more, and run these tests, as one newly
                                                 written, or files of them where finding its own takes too long

A fault is named by its function, its statement and its expression, not by a file or a line: it is found again after
the code has moved. Its tests are those in which the expression is evaluated, in the test itself, in a process that it
started or in a fixture that it asks for; one run of the whole suite over an instrumented copy finds them. They run
quickest first and end at the first failure. Fates: `killed`, `survived`, `capped` (no failure within CAP seconds),
`unreached` (no test evaluates it). The share killed leaves nothing out.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).with_suffix(".json")
SEED, CAP, WORKERS = 17, 90.0, 2
SHARED = ROOT.parent / "shared"
DATA = {"STABKIT_MULTI30K": str(SHARED / "data" / "multi30k"), "STABKIT_PAPERS": str(SHARED / "papers")}
AREAS: dict[str, tuple[int, tuple[str, ...], str | None]] = {
    "own": (10, ("stabkit/own/**/*.py",), None),
    "own results": (7, ("stabkit/results/own/*.py",), None),
    "results": (4, ("stabkit/results/*.py", "stabkit/results/forecast/*.py"), None),
    "running": (6, ("stabkit/running/**/*.py",), None),
    "kernels": (3, ("stabkit/kernels/*.py",), None),
    "pages": (4, ("stabkit/report/**/*.py", "stabkit/pages/**/*.py"), None),
    "claims": (4, ("stabkit/claims/**/*.py",), None),
    "select": (4, ("stabkit/figures/**/*.py", "stabkit/pictures/**/*.py"), "select"),
    "storage": (4, ("stabkit/storage/*.py",), None),
    "methods": (3, ("stabkit/methods/**/*.py",), None),
    "model": (4, ("stabkit/model/**/*.py",), None),
    "training": (4, ("stabkit/training/**/*.py",), None),
    "probes": (3, ("stabkit/probes/**/*.py",), None),
}
"""How many of each area: its files, and the one function that counts."""

COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


def mutated(node: ast.expr) -> ast.expr | None:
    """The expression with one small fault in it, or None where none of ours fits."""
    match node:
        case ast.Compare(ops=[op]):
            return ast.Compare(node.left, [COMPARE[type(op)]()], node.comparators)
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            return ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.BoolOp(op, values):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            return operand
        case ast.Constant(bool(value)):
            return ast.Constant(not value)
        case ast.Constant(int(value)):
            return ast.Constant(value + 1)
        case ast.Constant(float(value)):
            return ast.Constant(value * 2 or 1.0)
        case ast.IfExp(test, body, orelse):
            return ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Call(ast.Name(name), _, _) if name in SWAPPED:
            return ast.Call(ast.Name(SWAPPED[name]), node.args, node.keywords)
    return None


def places(file: Path) -> Iterator[tuple[dict[str, Any], ast.expr]]:
    """Every expression inside a function that a fault fits, with the name that survives a move (its count apart)."""

    def walk(node: ast.AST, function: str, statement: str) -> Iterator[tuple[dict[str, Any], ast.expr]]:
        if isinstance(node, (ast.JoinedStr, ast.arguments)):
            return  # inside an f-string Python 3.11 knows no places; defaults are evaluated where no test looks
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
            for child in node.body:
                yield from walk(child, function if not isinstance(node, ast.ClassDef) else f"{function}", "")
            return
        if isinstance(node, ast.stmt):
            heads = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            statement = " ".join([type(node).__name__, *map(ast.unparse, heads)])
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from walk(node.value, function, statement)
            return
        if isinstance(node, ast.expr) and statement and (fault := mutated(node)) is not None:
            name = {"function": function, "statement": statement, "expression": ast.unparse(node)}
            yield {**name, "fault": ast.unparse(ast.fix_missing_locations(fault))}, node
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function, statement)

    for top in ast.parse(file.read_text()).body:
        if isinstance(top, (ast.FunctionDef, ast.ClassDef)):
            yield from walk(top, "", "")


def everything(tree: Path) -> dict[str, list[tuple[Path, ast.expr]]]:
    """{name as JSON: where it stands} over the whole package."""
    found: dict[str, list[tuple[Path, ast.expr]]] = {}
    for file in sorted((tree / "stabkit").rglob("*.py")):
        for name, node in places(file):
            found.setdefault(json.dumps(name, sort_keys=True), []).append((file, node))
    return found


def draw(trees: list[Path]) -> list[dict[str, Any]]:
    """Sixty faults with names of their own in each tree, so many of each area, none twice in one statement."""
    places_of = [{name for name, where in everything(tree).items() if len(where) == 1} for tree in trees]
    unique = set.intersection(*places_of)
    drawn = json.loads(KEPT.read_text())["faults"] if KEPT.exists() else []
    chosen: list[dict[str, Any]] = []
    for area, (count, patterns, only) in AREAS.items():
        files = sorted({file for pattern in patterns for file in ROOT.glob(pattern)})
        names = [json.dumps(name, sort_keys=True) for file in files for name, _ in places(file)]
        fitting = [json.loads(name) for name in names if name in unique]
        fitting = [name for name in fitting if only is None or only in name["function"].split(".")]
        random.Random(f"{SEED} {area}").shuffle(fitting)
        before = [{k: v for k, v in fault.items() if k != "area"} for fault in drawn if fault["area"] == area]
        still = [name for name in before if json.dumps(name, sort_keys=True) in unique]
        told: dict[tuple[str, str], dict[str, Any]] = {}
        for name in [*still, *fitting]:
            told.setdefault((name["function"], name["statement"]), {"area": area, **name})
        if len(told) < count:
            sys.exit(f"{area}: {len(told)} of {count} places; its files have moved")
        chosen += list(told.values())[:count]
    return chosen


def located(tree: Path, faults: list[dict[str, Any]]) -> list[tuple[Path, ast.expr]]:
    """Where each fault's expression stands now; ends the program where one has no place or several."""
    found = everything(tree)
    where = []
    for fault in faults:
        name = json.dumps({k: v for k, v in fault.items() if k != "area"}, sort_keys=True)
        if len(found.get(name, ())) != 1:
            sys.exit(f"{len(found.get(name, ()))} places for {fault['function']}: {fault['expression']}; draw anew")
        where.append(found[name][0])
    return where


def put(file: Path, edits: list[tuple[ast.expr, str]]) -> None:
    """Replace expressions of a file by texts, the later and the inner ones first."""
    lines = [line.encode() for line in file.read_text().splitlines(keepends=True)]
    starts = [sum(map(len, lines[:row])) for row in range(len(lines) + 1)]
    source = b"".join(lines)
    spans = sorted(
        (starts[n.lineno - 1] + n.col_offset, starts[n.end_lineno - 1] + n.end_col_offset, t) for n, t in edits
    )
    for begin, end, text in reversed(spans):
        source = source[:begin] + f"({text})".encode() + source[end:]
    file.write_bytes(source)


HIT = '''"""Written by benchmarks/mutants.py: says in which test an expression was evaluated."""
import json, os
seen = set()
def hit(fault, value):
    test, fixture = os.environ.get("PYTEST_CURRENT_TEST", ""), os.environ.get("MUTANTS_FIXTURE", "")
    if (fault, test, fixture) not in seen:
        seen.add((fault, test, fixture))
        with open(os.environ["MUTANTS_HITS"], "a") as file:
            file.write(json.dumps([fault, test.rpartition(" (")[0], fixture]) + chr(10))
    return value
'''


def copy(to: Path) -> Path:
    """The files of the checkout, without its environments and its history; its kernels are compiled as `dev.py` does:
    runs with and without them have other digests."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    subprocess.run([sys.executable, to / "stabkit" / "kernels" / "build.py"], capture_output=True)
    return to


def pytest(tree: Path, *arguments: str, log: Path, cap: float | None = None, **variables: str) -> int | None:
    """pytest's exit code over a copy of the checkout, None where the cap ended it; nothing of it is left running."""
    settings = {**DATA, **os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [sys.executable, "-m", "pytest", "-p", "benchmarks.mutants", "-p", "no:cacheprovider", "-q", *arguments]
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=tree, env=settings, stdout=out, stderr=out, start_new_session=True)
        try:
            return process.wait(cap)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()


def reach(faults: list[dict[str, Any]], work: Path) -> list[list[str]]:
    """For each fault the tests that evaluate its expression, quickest first."""
    tree = copy(work / "instrumented")
    (tree / "mutants_hit.py").write_text(HIT)
    edits: dict[Path, list[tuple[ast.expr, str]]] = {}
    for number, (file, node) in enumerate(located(tree, faults)):
        text = f"__import__('mutants_hit').hit({number}, ({ast.unparse(node)}))"
        edits.setdefault(file, []).append((node, text))
    for file, own in edits.items():
        put(file, own)
    hits, told = work / "hits", work / "told"
    hits.touch()
    pytest(
        tree, "-m", "not long", "-n", str(WORKERS), "--dist", "worksteal", log=work / "reach.log",
        MUTANTS_HITS=str(hits), MUTANTS_TOLD=str(told),
    )  # fmt: skip
    seconds: Counter[str] = Counter()
    asks: dict[str, set[str]] = {}
    for line in told.read_text().splitlines():
        test, took, fixtures = json.loads(line)
        seconds[test] += took
        asks[test] = {*asks.get(test, ()), *fixtures}
    tests: list[set[str]] = [set() for _ in faults]
    for line in set(hits.read_text().splitlines()):
        fault, test, fixture = json.loads(line)
        sharing = {other for other, names in asks.items() if fixture in names} if fixture else set()
        tests[fault] |= ({test} & set(asks)) | sharing
    return [sorted(own, key=lambda test: (seconds[test], test)) for own in tests]


def fate(fault: dict[str, Any], tests: list[str], tree: Path, work: Path, number: int) -> dict[str, Any]:
    """What becomes of one fault; the copy of the checkout is as it was afterwards."""
    if not tests:
        return {**fault, "fate": "unreached", "tests": 0, "seconds": 0.0, "by": ""}
    [(file, node)] = located(tree, [fault])
    sound, chosen, log = file.read_bytes(), work / f"{number}.tests", work / f"{number}.log"
    chosen.write_text("\n".join(tests))
    begin = time.perf_counter()
    try:
        put(file, [(node, fault["fault"])])
        files = sorted({test.partition("::")[0] for test in tests})
        code = pytest(tree, "-x", "-m", "not long", *files, log=log, cap=CAP, MUTANTS_TESTS=str(chosen))
    finally:
        file.write_bytes(sound)
    failed = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("FAILED", "ERROR"))]
    name = "capped" if code is None else "survived" if code == 0 else "killed"
    by = failed[0].split(" - ")[0] if failed else ""
    return {**fault, "fate": name, "tests": len(tests), "seconds": round(time.perf_counter() - begin, 1), "by": by}


def again(label: str, number: int, tests: list[str]) -> None:
    """Run one with these tests and keep its fate in the place of the one before."""
    kept = json.loads(KEPT.read_text())
    with tempfile.TemporaryDirectory() as folder:
        found = fate(kept["faults"][number], tests, copy(Path(folder) / "tree"), Path(folder), number)
    print(found)
    rows = kept["fates"][label]["rows"]
    rows[number] = {key: found[key] for key in rows[number]}
    keep(kept, label, rows)


def keep(kept: dict[str, Any], label: str, rows: list[dict[str, Any]]) -> None:
    """Write what became of all, and the share killed."""
    ends = Counter(row["fate"] for row in rows)
    share = round(ends["killed"] / len(rows), 3)
    kept.setdefault("fates", {})[label] = {"share_killed": share, "ends": ends, "rows": rows}
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(dict(ends))


def fates(label: str) -> None:
    """Run all and keep them under this name."""
    kept = json.loads(KEPT.read_text())
    faults = kept["faults"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        tests = reach(faults, work)
        trees: Queue[Path] = Queue()
        for number in range(WORKERS):
            trees.put(copy(work / f"tree{number}"))

        def one(number: int) -> dict[str, Any]:
            tree = trees.get()
            try:
                found = fate(faults[number], tests[number], tree, work, number)
            finally:
                trees.put(tree)
            print(f"{number:3} {found['fate']:9} {found['seconds']:6.1f} s  {found['function']}", flush=True)
            return found

        with ThreadPoolExecutor(WORKERS) as pool:
            rows = list(pool.map(one, range(len(faults))))
    keep(kept, label, [{key: row[key] for key in ("fate", "tests", "seconds", "by")} for row in rows])


def pytest_collection_modifyitems(items: list[Any], config: Any) -> None:
    """As a plugin: of the tests collected those of MUTANTS_TESTS, or of its files, in its order."""
    if chosen := os.environ.get("MUTANTS_TESTS"):
        order = {name: place for place, name in enumerate(Path(chosen).read_text().splitlines())}
        at = [order.get(item.nodeid, order.get(item.nodeid.partition("::")[0], -1)) for item in items]
        items[:] = [item for place, _, item in sorted(zip(at, range(len(items)), items, strict=True)) if place >= 0]


def pytest_runtest_logreport(report: Any) -> None:
    """As a plugin: the seconds of each test and the fixtures that it asks for."""
    if told := os.environ.get("MUTANTS_TOLD"):
        if "PYTEST_XDIST_WORKER" in os.environ:
            with open(told, "a") as file:
                fixtures = dict(report.user_properties).get("fixtures", [])
                file.write(json.dumps([report.nodeid, report.duration, fixtures]) + "\n")


def pytest_runtest_setup(item: Any) -> None:
    """As a plugin: note the fixtures that a test asks for, itself or through others."""
    if "MUTANTS_TOLD" in os.environ:
        item.user_properties.append(("fixtures", list(item.fixturenames)))


def pytest_fixture_setup(fixturedef: Any) -> None:
    """As a plugin: what runs from here to its end runs for this fixture, and so for every test that asks for it."""
    os.environ["MUTANTS_FIXTURE"] = "" if fixturedef.scope == "function" else fixturedef.argname


def pytest_fixture_post_finalizer(fixturedef: Any) -> None:
    """As a plugin: tearing down is the test's own again."""
    os.environ["MUTANTS_FIXTURE"] = ""


def pytest_runtest_call(item: Any) -> None:
    """As a plugin: the test itself."""
    os.environ["MUTANTS_FIXTURE"] = ""


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["draw", *others]:
            drawn = draw([ROOT, *map(Path, others)])
            KEPT.write_text(json.dumps({"seed": SEED, "faults": drawn}, indent=1, ensure_ascii=False) + "\n")
            print(dict(Counter(fault["area"] for fault in drawn)))
        case ["fates", label]:
            fates(label)
        case ["again", label, number, *tests]:
            again(label, int(number), tests)
        case _:
            sys.exit(__doc__)
