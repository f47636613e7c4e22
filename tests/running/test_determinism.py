"""The promise: same machine, same torch, same instruction set → every record bit-identical, however it was made."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from stabkit import methods
from stabkit.results.chain import gradient_ratio
from stabkit.running.executors import EXECUTORS, ExecutorOptions
from stabkit.spec import ALGO_VERSION, from_json
from stabkit.storage.store import Store
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.commands import killed, process, stabkit, strict
from tests.conftest import tiny
from tests.running.conftest import Cluster
from tests.running.executors.test_executors import jobs, nothing

COMMAND = [*"sweep --models deepnorm,admin --depths 2 --steps 24 --dropout 0.1 --hidden 16 --ffn 24".split()]
COMMAND += [*"--max-tokens 128 --warmup 4000 --vocab 200 --seeds 0,1 --quiet".split()]


def digests(out: Path) -> dict[str, str]:
    return {run_id: Store(out).load(run_id).digest for run_id in Store(out).ids()}


def executed(out: Path, name: str, order: int = 1, **place: object) -> dict[str, str]:
    """The command's own grid, handed to an executor."""
    grid = [from_json(run["spec"]) for run in strict(stabkit(*COMMAND, "--dry-run", "--json").stdout)["runs"]]
    store = Store(out)
    store.writable()
    asked = [{**job, "checkpoint_every": 7} for job in jobs(out, grid[::order])]
    list(EXECUTORS[name](asked, nothing, ExecutorOptions(**place)))  # type: ignore[arg-type]
    return digests(out)


def commanded(out: Path, *options: str) -> dict[str, str]:
    done = stabkit(*COMMAND, *options, "--out", out)
    assert done.returncode == 0, done.stderr
    return digests(out)


@pytest.mark.slow
def test_eight_arrangements_of_one_grid_give_eight_equal_sets_of_digests(tmp_path: Path, cluster: Cluster) -> None:
    sets: dict[str, dict[str, str]] = {}
    sets["3 workers, order reversed"] = executed(tmp_path / "reversed", "processes", order=-1, workers=3)
    sets["in this process"] = executed(tmp_path / "inline", "inline")
    sets["no checkpoints"] = commanded(tmp_path / "none", "--checkpoint-every", "0")

    out = tmp_path / "killed"
    one = [*COMMAND, "--checkpoint-every", "4", "--workers", "1"]
    assert killed(one, out, 7)
    sets["1 worker, killed and resumed"] = commanded(out, "--checkpoint-every", "4")

    commanded(tmp_path / "parts", "--models", "admin")
    sets["in two commands"] = commanded(tmp_path / "parts")
    place = {"PYTHONHASHSEED": "77", "OMP_NUM_THREADS": "4", "STABKIT_SWEEP_EXECUTOR": "inline"}
    another = process(*COMMAND, "--out", tmp_path / "hash", env=place)
    assert another.returncode == 0, another.stderr
    sets["another hash seed"] = digests(tmp_path / "hash")

    sets["2 workers"] = commanded(tmp_path / "two", "--executor", "processes", "--workers", "2")
    sets["Dask"] = executed(tmp_path / "dask", "dask", scheduler=cluster.address)

    first = next(iter(sets.values()))
    assert len(sets) == 8 and len(first) == 4
    assert {name for name, found in sets.items() if found != first} == set()


REFERENCE = Path(__file__).with_name("reference.json")


def measured() -> dict[str, dict[str, list[float]]]:
    """A few numbers of a tiny run of every method: what must not move unless ALGO_VERSION does.

    Hyper-connections and CompleteP in float64: some of their weights have a first gradient of rounding alone, which
    Adam makes a whole step of, so that in float32 two correct paths are 5e-5 apart after one update (each as far from
    float64), and processors with and without AVX2 3e-3 after five.
    """
    found = {}
    for method in methods.KEYS:
        dtype = "float64" if method in ("hyper-connections", "completep") else "float32"
        spec = tiny(method, layers=3, steps=6, warmup=3, dtype=dtype)
        result = train.run(spec, Synthetic(vocab=200, max_tokens=128))
        grads = result.records["grad_norm"]
        found[method] = {
            "loss": result.records["loss"].at("train").tolist(),
            "update": result.records["update"].at("state").tolist(),
            "grad_first_last_ratio": gradient_ratio(grads).tolist(),
            "ln_input": result.records["ln_input"].values[-1].tolist(),
        }
    return found


@pytest.mark.slow
def test_a_tiny_run_is_the_committed_one() -> None:
    """A difference is a new algorithm: raise ALGO_VERSION, then `python -m tests.running.test_determinism`."""
    held = json.loads(REFERENCE.read_text(encoding="utf-8"))
    assert held["algo_version"] == ALGO_VERSION, "ALGO_VERSION was raised: write reference.json anew"
    now = measured()
    for method in methods.KEYS:
        for name, values in held["runs"][method].items():
            np.testing.assert_allclose(
                now[method][name], values, rtol=1e-4, atol=1e-7, err_msg=f"{method} {name}: raise ALGO_VERSION"
            )


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this CPU cannot")
def test_a_run_counts_denormal_numbers_as_zero_and_leaves_the_process_as_it_was() -> None:
    """Where gradients vanish they cost a CPU a hundred times a normal one; bits depend on it, whoever calls."""

    def denormal() -> bool:
        return float(torch.tensor(1e-40) * 1.0) != 0

    task, seen = Synthetic(vocab=200, max_tokens=128), []
    assert denormal()
    train.run(tiny("deepnorm"), task, tell=lambda step, loss: seen.append(denormal()))
    assert len(seen) == 4 and not any(seen) and denormal()
    with train.without_denormals():
        train.run(tiny("deepnorm"), task, tell=lambda step, loss: seen.append(denormal()))
        assert not denormal(), "a caller who had chosen so keeps it"
    with contextlib.suppress(ZeroDivisionError), train.without_denormals():
        raise ZeroDivisionError
    assert not any(seen) and denormal()


if __name__ == "__main__":
    REFERENCE.write_text(
        json.dumps({"algo_version": ALGO_VERSION, "runs": measured()}, indent=1) + "\n", encoding="utf-8"
    )
