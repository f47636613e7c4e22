"""One plan for every kind of work: what is stored is not done again, what is lost is tried again; no reason is read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stabkit.errors import StoreError
from stabkit.running import grid, plan
from stabkit.running.executors.base import ATTEMPTS, Answer, Lost, LostKind, Tell
from stabkit.running.grid import Grid
from stabkit.running.plan import CommandAttempts, Done, Plan, Work, complete
from stabkit.running.request import MANY_RUNS, TooManyRuns, price
from stabkit.running.runs import StoredAttempts
from stabkit.spec import Chosen
from stabkit.storage import locks
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Busy, Locked
from stabkit.storage.shelf import FolderKind, Shelf
from stabkit.storage.store import Store
from tests.conftest import tiny

WORD = FolderKind(
    folder="words", noun="a word", files={"word.json": 100}, version=1, parse=lambda path, files, _: word_of(files)
)


def word_of(files: Mapping[str, bytes]) -> str:
    text: str = json.loads(files["word.json"])
    return text.upper()


def made(out: Path, parts: int = 1, **more: Any) -> Work[str, str]:
    """Words as work: stored as they are, read in capitals, in one or several jobs."""
    shelf = Shelf(WORD, out)

    def result(word: str, answer: str) -> str:
        shelf.commit(word, {"word.json": json.dumps(word).encode()})
        return shelf.load(word)

    return Work(
        kind="run",
        again="written again",
        shelf=shelf,
        name=lambda word: word,
        jobs=lambda word: [{"id": f"{word}/{i}", "word": word} for i in range(parts)],
        result=result,
        **more,
    )


class Executor:
    """Answers by a law, and remembers what it was given."""

    def __init__(self, law: Callable[[str, int], str | Lost]) -> None:
        self.law, self.seen = law, list[str]()

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        for job in jobs:
            self.seen.append(job["id"])
            yield job, self.law(job["id"], self.seen.count(job["id"]))


def carried_out(planned: Plan[str, str], executor: Executor) -> Done[str, str]:
    return complete(planned, executor, lambda event: None)


def test_what_is_stored_is_not_done_again_and_a_damaged_one_is(tmp_path: Path) -> None:
    executor = Executor(lambda name, attempt: "done")
    first = carried_out(plan.plan(["a", "b", "c"], made(tmp_path)), executor)
    assert first.results == ["A", "B", "C"] and first.reused == 0 and executor.seen == ["a/0", "b/0", "c/0"]
    (tmp_path / "words" / "b" / "word.json").write_text('"x"')
    planned = plan.plan(["c", "b", "d"], made(tmp_path))
    assert planned.ready == {"c": "C"} and planned.missing == ["b", "d"]
    (warning,) = planned.corrupt
    assert warning.startswith("corrupt run: ") and warning.endswith(", written again")
    assert carried_out(planned, Executor(lambda name, attempt: "done")).results == ["C", "B", "D"]
    assert list((tmp_path / "words" / ".quarantine").iterdir())


def test_without_repair_nothing_is_moved(tmp_path: Path) -> None:
    carried_out(plan.plan(["a"], made(tmp_path)), Executor(lambda name, attempt: "done"))
    (tmp_path / "words" / "a" / "word.json").write_text('"x"')
    planned = plan.plan(["a"], made(tmp_path), repair=False)
    assert planned.missing == ["a"] and "moved" not in planned.corrupt[0] and (tmp_path / "words" / "a").is_dir()


def test_what_takes_longest_is_done_first_and_results_keep_the_order_asked_for(tmp_path: Path) -> None:
    executor = Executor(lambda name, attempt: "done")
    work = made(tmp_path, seconds=lambda word: float(len(word)))
    done = carried_out(plan.plan(["a", "ccc", "bb", "ddd"], work), executor)
    assert executor.seen == ["ccc/0", "ddd/0", "bb/0", "a/0"] and done.results == ["A", "CCC", "BB", "DDD"]


def test_one_lost_part_loses_its_spec_alone_and_all_parts_done_before_make_it_whole(tmp_path: Path) -> None:
    executor = Executor(lambda name, attempt: Lost("died", "killed") if name == "a/1" else "done")
    ends: list[tuple[str, str | Lost]] = []
    planned = plan.plan(["a", "b"], made(tmp_path, parts=3))
    done = complete(planned, executor, lambda event: None, ended=lambda word, end: ends.append((word, end)))
    ((word, lost),) = done.lost
    assert (word, lost.kind, lost.reason, lost.attempt) == ("a", "died", "killed", ATTEMPTS) and done.results == ["B"]
    assert executor.seen.count("a/1") == ATTEMPTS and ends == [("b", "B"), ("a", lost)]
    nothing_left = replace(made(tmp_path), jobs=lambda word: [])
    assert carried_out(plan.plan(["a"], nothing_left), Executor(lambda name, attempt: "never")).results == ["A"]


@pytest.mark.parametrize("reason", ["timeout: no result within 2 s", "rephrased (attempt 7)", ""])
@pytest.mark.parametrize(("kind", "tries"), [("timeout", 1), ("died", ATTEMPTS), ("error", ATTEMPTS)])
def test_the_kind_decides_whether_it_is_tried_again_and_no_reason_does(
    kind: LostKind, tries: int, reason: str, tmp_path: Path
) -> None:
    executor = Executor(lambda name, attempt: Lost(kind, reason))
    work = made(tmp_path, attempts=CommandAttempts("timeout"))
    ((_, lost),) = carried_out(plan.plan(["a"], work), executor).lost
    assert len(executor.seen) == tries and lost.reason == reason and lost.kind == kind


def test_what_another_attempt_would_meet_again_is_raised_at_once(tmp_path: Path) -> None:
    executor = Executor(lambda name, attempt: Lost("error", "full", StoreError("full")))
    with pytest.raises(StoreError, match="full"):
        carried_out(plan.plan(["a"], made(tmp_path)), executor)
    assert executor.seen == ["a/0"]


def test_attempts_of_runs_are_counted_over_commands_and_given_up(tmp_path: Path) -> None:
    store = Store(tmp_path)
    once = replace(made(tmp_path, attempts=StoredAttempts(store, afresh=False)), jobs=lambda word: [{"id": word}])
    executor = Executor(lambda name, attempt: Lost("died", f"killed {attempt}"))
    ((_, lost),) = carried_out(plan.plan(["a"], once), executor).lost
    assert lost.text == "killed 3 (attempt 3 of 3)" and store.attempts("a") == ["killed 1", "killed 2", "killed 3"]
    planned = plan.plan(["a", "b"], once)
    ((word, lost),) = planned.given_up
    assert (word, lost.kind, planned.missing) == ("a", "given up", ["b"])
    assert lost.text == "killed 3 (attempt 3; --retry-failed tries again)"
    again = replace(once, attempts=StoredAttempts(store, afresh=True))
    assert plan.plan(["a"], again).missing == ["a"]


def test_a_shelf_lists_sizes_and_removes_its_folders(tmp_path: Path) -> None:
    shelf = Shelf(WORD, tmp_path)
    assert shelf.ids() == [] and shelf.load_if_sound("a") is None
    shelf.commit("a", {"word.json": b'"one"'})
    shelf.commit("b", {"word.json": b'"two"'})
    assert shelf.ids() == ["a", "b"] and shelf.ids("b") == ["b"] and shelf.load_if_sound("a") == "ONE"
    assert shelf.size("a") == sum(path.stat().st_size for path in (tmp_path / "words" / "a").iterdir())
    shelf.commit("a", {"word.json": b'"three"'})
    assert shelf.load("a") == "ONE", "a sound one stays"
    (tmp_path / "words" / "a" / "word.json").write_bytes(b'"four"')
    shelf.commit("a", {"word.json": b'"five"'})
    assert shelf.load("a") == "FIVE", "a damaged one is kept aside, and does not stand in the way"
    shelf.remove("a")
    assert shelf.ids() == ["b"] and len(list((tmp_path / "words" / ".quarantine").iterdir())) == 1


def test_a_million_runs_are_counted_and_priced_before_one_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    base = tiny("deepnorm")
    huge = Grid(base=base, methods=(Chosen(key="deepnorm"),), depths=((2, 2), (6, 6)), seeds=tuple(range(500_000)))
    begin = time.monotonic()
    with pytest.raises(TooManyRuns, match="1000000 runs, about .* on 2 workers") as refusal:
        grid.specs([huge], {}, 2, many=False)
    assert time.monotonic() - begin < 2 and refusal.value.budget == grid.budget([huge], 2)
    few = replace(huge, seeds=(0, 1))
    specs = grid.specs([few, few], {}, 2, many=False)
    assert len(specs) == 4 < MANY_RUNS and grid.budget([few, few], 2).runs == 8
    assert price([(1, spec) for spec in specs], 2).seconds == pytest.approx(grid.budget([few], 2).seconds)


# — what other commands are at


def busy(out: Path, name: str = "a") -> Busy:
    """As an executor answers for a lock that is held."""
    with pytest.raises(Locked) as found, locks.hold(out / "words", name):
        pass
    return found.value.busy


def test_what_others_are_at_comes_last_and_is_taken_from_the_store(tmp_path: Path) -> None:
    work, seen, notes = made(tmp_path), list[str](), list[str]()
    with locks.hold(tmp_path / "words", "a"):
        at = busy(tmp_path)

    def execute(jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        for job in jobs:
            seen.append(job["word"])
            if job["word"] == "a":  # another made it, and is done by the time that we look again
                Shelf(WORD, tmp_path).commit("a", {"word.json": b'"a"'})
                yield job, at
            else:
                yield job, "done"

    done = complete(plan.plan(["a", "b"], work), execute, lambda event: notes.append(event.get("note", "")))
    assert done.results == ["A", "B"] and seen == ["a", "b"] and any("other commands" in note for note in notes)


def test_what_others_left_undone_is_done_here_over_their_lock(tmp_path: Path) -> None:
    path = tmp_path / "words" / ".locks" / "a.0"
    path.parent.mkdir(parents=True)
    gone = {"machine": locks.machine(), "pid": 2**22 + 1, "started": "1", "token": "t", "beat": "0"}
    path.write_text(json.dumps(gone))
    at, given, notes = Busy(str(tmp_path / "words"), "a", "0 t", "here", 2**22 + 1), list[str](), list[str]()

    def execute(jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        for job in jobs:
            given.append(job.get("over", ""))
            answers: list[str | Lost | Busy] = [at, Lost("died", "killed"), "done"]
            yield job, answers[len(given) - 1]

    done = complete(plan.plan(["a"], made(tmp_path)), execute, lambda event: notes.append(event.get("note", "")))
    assert done.results == ["A"] and given == ["", "0 t", ""], "what was found of one holder says nothing of the next"
    assert any("ended before it finished: taken over here" in note for note in notes)


def test_what_others_have_given_up_is_given_up_here(tmp_path: Path) -> None:
    store = Store(tmp_path)
    work = replace(made(tmp_path, attempts=StoredAttempts(store, afresh=False)), jobs=lambda word: [{"id": word}])
    with locks.hold(tmp_path / "words", "a"):
        at = busy(tmp_path)

    def execute(jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        for job in jobs:
            for _ in range(ATTEMPTS):
                store.note_attempt("a", "killed")
            yield job, at

    ((_, lost),) = complete(plan.plan(["a"], work), execute, lambda event: None).lost
    assert lost.kind == "given up" and lost.reason == "killed"


def test_waiting_for_others_ends_when_there_is_no_patience_left(tmp_path: Path) -> None:
    with locks.hold(tmp_path / "words", "a"):
        at = busy(tmp_path)
        answers = plan.settled([{"id": "a"}], lambda jobs, tell: ((j, at) for j in jobs), print, CommandAttempts())
        begin = time.monotonic()
        patient = plan.settled(
            [{"id": "a"}], lambda jobs, tell: ((j, at) for j in jobs), print, CommandAttempts(), patience=0.2
        )
        assert list(patient) == [] and time.monotonic() - begin < 5
        answers.close()


def test_a_corrupt_folder_that_another_makes_anew_stays_where_it_is(tmp_path: Path) -> None:
    shelf = Shelf(WORD, tmp_path)
    shelf.commit("a", {"word.json": b'"a"'})
    (shelf.root / "a" / "word.json").write_bytes(b'"b"')
    with shelf.hold("a"):
        planned = plan.plan(["a"], made(tmp_path))
        assert "another command is using it" in planned.corrupt[0] and "a" in shelf
    assert "moved to" in plan.plan(["a"], made(tmp_path)).corrupt[0] and "a" not in shelf


def test_a_job_that_is_not_worth_another_attempt_was_tried_as_often_as_all(tmp_path: Path) -> None:
    kinds: list[LostKind] = ["died", "timeout"]

    def execute(jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        yield from ((job, Lost(kinds.pop(0), "no result")) for job in jobs)

    ((_, lost),) = plan.settled([{"id": "a"}], execute, print, CommandAttempts("timeout"))
    assert lost.kind == "timeout" and lost.attempt == ATTEMPTS and not kinds
