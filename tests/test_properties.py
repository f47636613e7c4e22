"""What must hold for every input: the properties P1 to P11 that are not beside their subject already.

P1, P7 option parsers and ranges     here and tests/cli/test_ranges.py
P2 run ids · P3 records · P9 the outcome rule · P10 any subset of runs · P11 the pool     here
P4 the store as a state machine      tests/storage/test_store_faults.py
P5 names                             tests/figures/drawing/test_style.py, tests/report/test_html.py
P6 the corpus loader                 tests/tasks/test_corpus.py
P8 probes change no bit              tests/probes/test_probes.py
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.claims import CLAIMS, OF_STEPS, OF_SURFACES, findings
from stabkit.errors import StoreError, UsageError
from stabkit.options import ranges
from stabkit.results import records
from stabkit.results.outcome import judge
from stabkit.results.records import Table
from stabkit.running.executors import ExecutorOptions, Lost, processes
from stabkit.spec import from_json
from tests.conftest import examples, tiny
from tests.figures.fake_runs import plausible, run, spec
from tests.figures.fake_runs import table as made
from tests.report.pages import render

MANY = examples(1000)
PARSERS = {
    "depths": lambda text: ranges.depths("--depths", text),
    "wholes": lambda text: ranges.wholes("--seeds", text, 0, 2**31 - 1),
    "reals": lambda text: ranges.reals("--lr", text, 0.0, 1e6, above=True),
}
TEXT = st.one_of(st.text(max_size=24), st.text(alphabet="0123456789.,x:e-+_ ²٣infa", max_size=16))


@MANY
@given(st.sampled_from(sorted(PARSERS)), TEXT)
def test_p1_any_text_is_values_or_a_usage_error(name: str, text: str) -> None:
    try:
        values = PARSERS[name](text)
    except UsageError as error:
        assert "--" in str(error) and "\n" not in str(error)
    else:
        assert values and len(set(values)) == len(values)


@MANY
@given(st.integers(0, 10**6), st.floats(1e-8, 1.0), st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_p2_a_run_id_knows_values_and_neither_the_order_of_keys_nor_how_a_number_is_written(
    seed: int, lr: float, warmup: int, chance: random.Random
) -> None:
    one = tiny(seed=seed, lr=lr, warmup=warmup)
    value = one.to_json()
    keys = list(value)
    chance.shuffle(keys)
    shuffled = json.loads(json.dumps({key: value[key] for key in keys}))
    assert from_json(shuffled).run_id == one.run_id
    assert replace(one, alpha_scale=float(1)).run_id == one.run_id
    for other in (replace(one, seed=seed + 1), tiny(seed=seed, lr=lr, warmup=warmup + 1), replace(one, method="admin")):
        assert other.run_id != one.run_id


WHOLE = records.to_bytes(
    {"x": Table(np.arange(3), ("a", "b"), np.array([[1.0, math.nan], [-0.0, 5e-324], [1e308, 2.0]]))}
)


@MANY
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_p3_records_with_any_byte_changed_are_refused_or_the_same(place: int, change: int) -> None:
    """Bytes that carry no data (time stamps, attributes) may change; the store's checksum catches those too."""
    damaged = WHOLE[:place] + bytes([WHOLE[place] ^ change]) + WHOLE[place + 1 :]
    try:
        back = records.from_bytes(damaged)
    except StoreError:
        return
    for name, table in back.items():
        np.testing.assert_array_equal(table.values, records.from_bytes(WHOLE)[name].values)


@MANY
@given(st.integers(0, len(WHOLE) - 1))
def test_p3_truncated_records_are_refused(length: int) -> None:
    with pytest.raises(StoreError):
        records.from_bytes(WHOLE[:length])


VALUE = st.one_of(st.floats(allow_nan=True, allow_infinity=True, width=64), st.floats(1.0, 20.0))


@MANY
@given(st.lists(VALUE, min_size=1, max_size=80), st.integers(0, 50), st.floats(0.1, 20.0))
def test_p9_the_outcome_rule_is_total_and_a_loss_that_is_not_finite_stays_diverged(
    losses: list[float], warmup: int, unigram: float
) -> None:
    def word(values: list[float]) -> str:
        steps = list(range(len(values)))
        flat = [0.5] * len(values)
        tables = {
            "loss": made(steps, {"train": values, "probe": values}),
            "validation": made([steps[-1]], {name: [values[-1]] for name in ("validation", "nll", "accuracy")}),
            "update": made(steps, {"state": flat}),
            "ln_input": made(steps, {"decoder.1.ffn": flat, "decoder.1.ffn@omega": flat}),
            "branch_ratio": made(steps, {"decoder.1.ffn": flat}),
            "grad_norm": made(steps, {"decoder.1": flat, "decoder.2": flat}),
        }
        with np.errstate(all="ignore"):
            return judge(tables, unigram=unigram, warmup=warmup).word

    assert word(losses) in ("trains", "stuck", "diverged", "early")
    if not all(map(math.isfinite, losses)):
        assert word(losses) == "diverged" == word([*losses, 1.0])


POOL = [
    *(plausible(spec(m, n, seed=s)) for m in ("post-ln", "admin") for n in (2, 18) for s in (0, 1)),
    plausible(spec("post-ln", 6), until=0),
    plausible(spec("deepnorm", 6, warmup=0, steps=120), outcome="trains"),
    plausible(spec("deepnorm", 3, 0)),
    run(spec("admin", 7), {}),
]


@pytest.mark.slow
@examples(8)
@given(st.lists(st.sampled_from(POOL), max_size=8), st.integers(0, 2))
def test_p10_any_subset_of_runs_makes_a_page(runs: list[object], failed: int) -> None:
    page = render(runs, command="x", failed=[(spec("post-ln", 9, seed=i), "killed") for i in range(failed)])  # type: ignore[arg-type]
    told = page.partition("<script")[0].lower().replace("finance", "").replace("hit nan", "")  # a paper's own words
    assert page.endswith("</html>") and "nan" not in told
    assert len(findings(runs)) == len(CLAIMS) + len(OF_STEPS) + len(OF_SURFACES)  # type: ignore[arg-type]


STUB = """
import json, os, socket, time
channel = socket.socket(fileno=int(sys.argv[1]))
def send(kind, body=None): channel.sendall(json.dumps({"kind": kind, "body": body}).encode() + b"\\n")
send("ready")
for line in channel.makefile("rb"):
    how = json.loads(line)["how"]
    if how == "ok": send("done", "early")
    elif how == "raise": send("failed", "ValueError: x")
    elif how == "kill": os.kill(os.getpid(), 9)
    elif how == "exit": os._exit(0)
    elif how == "hang": time.sleep(60)
    elif how == "huge": channel.sendall(b"x" * 3_000_000)
    elif how == "garbage": channel.sendall(b"[1, 2\\n")
    elif how == "events":
        for i in range(200): send("event", {"id": "x", "step": i})
        send("done", "early")
"""


@examples(30)
@given(
    st.lists(st.sampled_from(["ok", "raise", "kill", "exit", "hang", "huge", "garbage", "events"]), max_size=8),
    st.integers(1, 3),
)
def test_p11_whatever_workers_do_every_job_is_answered_once_and_it_ends(script: list[str], workers: int) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr(processes, "PROGRAM", f"exec({STUB!r})")
    patch.setattr(processes, "TOGETHER", False)
    try:
        jobs = [{"number": i, "how": how} for i, how in enumerate(script)]
        place = ExecutorOptions(workers=workers, run_timeout=0.7)
        answers = [(job["number"], answer) for job, answer in processes.map(jobs, lambda event: None, place)]
    finally:
        patch.undo()
    assert sorted(number for number, _ in answers) == list(range(len(script)))
    for number, answer in answers:
        fine = script[number] in ("ok", "events")
        assert (answer == "early") if fine else isinstance(answer, Lost), (script[number], answer)


def test_the_properties_of_the_other_files_are_there() -> None:
    here = Path(__file__).parent
    for name in (
        *("options/test_ranges", "storage/test_store_faults", "figures/drawing/test_style", "tasks/test_corpus"),
        "probes/test_probes",
    ):
        assert (here / f"{name}.py").is_file()
