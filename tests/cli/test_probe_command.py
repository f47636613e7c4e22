"""`stabkit probe` as a command: its words, its page, its JSON, its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import stabkit

pytestmark = pytest.mark.usefixtures("undrawn")
ROOT = Path(__file__).parents[2]
MODELS = "tests.own.probe_models"


def probe(name, out, *more, depths="2,4,8", seeds="0", steps="2"):
    given = ("--depths", depths) if depths else ()
    return stabkit(
        *("probe", f"{MODELS}:{name}", *given, "--seeds", seeds, "--steps", steps, "--out", out, *more), cwd=ROOT
    )


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_sentence_the_table_and_the_page(tmp_path):
    done = probe("flat", tmp_path, seeds="0..2")
    assert done.returncode == 0, done.stderr
    said = "No forecast for flat at 8 layers: a forecast needs 16 updates, a short training 150 or more"
    told = " ".join(done.stdout.split())
    assert told.index("━") < told.index(said) < told.index("report:") < told.index("next:")
    for link in ("Stream", "Update", "Gradient", "Tokens", "Loss", "Finite"):
        assert link in done.stdout
    (page,) = (tmp_path / "reports").glob("probe-*.html")
    text = page.read_text()
    assert "stack.1.self" in text and all(
        f'id="figure-own_{link}"' in text for link in ("stream", "update", "gradient")
    )
    (every,) = re.findall(r"<details><summary>Every run.*?</details>", text, re.S)
    assert len(re.findall(r"<tr><th.*?</tr>", every)) == 1 + 9 and "method" not in every
    again = probe("flat", tmp_path, seeds="0..2")
    assert "9 of 9 cached" in again.stdout


@pytest.mark.slow
def test_a_link_that_fails_exits_with_7_unless_it_is_told_not_to(tmp_path):
    done = probe("growing", tmp_path, "--json", "--no-cures")
    body = json.loads(done.stdout)
    assert done.returncode == 7 and body["verdict"] == "likely stuck" and body["links"]["stream"]["verdict"] == "fail"
    assert (
        done.stderr.splitlines()[-1]
        == "error: it does not train as it stands (stream): exit code 7, or 0 with --no-fail"
    )
    assert probe("growing", tmp_path, "--no-fail", "--no-cures").returncode == 0


@pytest.mark.slow
def test_what_cannot_be_told_is_0_and_with_strict_8(tmp_path):
    assert probe("flat", tmp_path, depths="2,4").returncode == 0
    done = probe("flat", tmp_path, "--strict", depths="2,4")
    assert done.returncode == 8 and "out of range: --strict needs a model" in done.stderr
    one = probe("one_batch", tmp_path, "--strict", depths="4", steps="16")
    assert one.returncode == 8 and "every update used the same batch" in " ".join(one.stdout.split())
    assert "next: return (model, loss) from the factory" in one.stdout


@pytest.mark.slow
def test_changes_are_tried_where_it_is_not_likely_to_train_and_the_smallest_that_mends_it_is_named(tmp_path):
    given = ("--lr", "0.003", "--cure-time", "600")
    body = json.loads(probe("post_ln", tmp_path, "--json", *given, depths="6", steps="16").stdout)
    assert body["verdict"] in ("likely stuck", "open") and body["forecast"]["probability"] < 0.9
    tried = {cure["change"]: cure for cure in body["cures"]}
    assert {"rate/3", "rate/10", "warmup", "clip"} <= set(tried) and "lr = 3e-4" in tried["rate/10"]["code"]
    best = next(cure for cure in body["cures"] if cure["word"] == "likely trains")
    assert best["code"] in body["answer"] and len(tried) == len(body["cures"])
    again = probe("post_ln", tmp_path, "--json", "--no-cures", "--lr", "0.003", depths="6", steps="16")
    assert json.loads(again.stdout)["cures"] == []


@pytest.mark.slow
def test_what_is_left_open_is_decided_by_a_short_training_whose_command_is_named(tmp_path):
    given = ("--no-cures", "--lr", "5e-3")
    done = probe("bare_post_ln", tmp_path, *given, depths="2,6", steps="16")
    assert "Whether bare_post_ln at 6 layers trains is open" in " ".join(done.stdout.split())
    following = done.stdout.rstrip().splitlines()[-1].removeprefix("next: ").partition("  #")[0]
    assert following.split()[3:] == "--depths 6 --lr 5e-3 --steps 900 --seeds 0".split()
    body = json.loads(probe("bare_post_ln", tmp_path, "--json", *given, depths="1,6", steps="150").stdout)
    (rate,) = body["rates"]
    assert rate["trained"]["word"] == body["verdict"] and f"{rate['trained']['seeds'][0]['loss']:.3g}" in body["answer"]


@pytest.mark.slow
def test_a_depth_without_a_result_exits_with_3_and_keeps_the_others(tmp_path):
    done = probe("deep_raises", tmp_path, "--json", depths="2,4,8,16")
    body = json.loads(done.stdout)
    assert done.returncode == 3 and body["depths"] == [2, 4, 8]
    assert body["failed"][0]["depth"] == 16 and "no room for so many (probe_models.py:" in body["failed"][0]["reason"]
    assert len(done.stderr.splitlines()[-1]) and ".logs" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_several_rates_say_at_which_one_a_link_breaks(tmp_path):
    given = ("--json", "--no-cures", "--lr", "1e-4,1e30")
    body = json.loads(probe("flat", tmp_path, *given, depths="2,4,8").stdout)
    assert [rate["lr"] for rate in body["rates"]] == [1e-4, 1e30]
    assert body["rates"][0]["links"]["finite"]["verdict"] == "pass" and body["links"]["finite"]["verdict"] == "fail"
    assert "At 1e-4 out of range" in body["answer"]


def test_the_document_has_what_was_promised(tmp_path):
    body = json.loads(probe("single", tmp_path, "--json", depths="").stdout)
    promised = {"schema", "factory", "depths", "seeds", "steps", "links", "verdict", "forecast", "cures"}
    assert promised <= set(body) and body["schema"] == "stabkit/2"
    assert body["depths"] == [] and body["links"]["stream"]["exponent"] is None


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("pre_ln", ("--depths", "0"), "--depths"),
        ("pre_ln", ("--seeds", "x"), "--seeds"),
        ("pre_ln", ("--lr", "-1"), "--lr"),
        ("pre_ln", ("--steps", "0"), "--steps"),
        ("absent", (), "has no 'absent'"),
        ("raises", (), "gave no result at any depth: ValueError: no such layer (probe_models.py:"),
        ("deaf", (), "the factory must build as many layers as it is asked for"),
    ],
)
def test_bad_input_is_one_line_and_2(tmp_path, name, more, said):
    done = probe(name, tmp_path, "--quiet", *more)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_an_optimizer_without_a_rate_has_a_page(tmp_path):
    done = probe("no_rate", tmp_path, "--quiet")
    assert done.returncode == 0 and "WithoutRate, rate –" in done.stdout, done.stderr


def test_a_finished_cell_is_one_line_with_its_name_once_and_its_numbers(tmp_path):
    """The shallowest first, which answers soonest."""
    lines = probe("flat", tmp_path).stderr.strip().splitlines()
    assert [line.split()[:3] for line in lines] == [
        [f"[{i}/3]", f"flat-{n}L-s0", "probed"] for i, n in enumerate((2, 8, 4), 1)
    ]
    for line in lines:
        assert re.search(r"probed  update \S+, stream \S+, tokens \S+, loss \S+$", line)


@pytest.mark.slow
def test_in_workers_a_factory_that_forks_answers_once(workers, tmp_path):
    done = probe("forks", tmp_path, "--json", "--workers", "1", depths="2,4")
    assert json.loads(done.stdout)["depths"] == [2, 4] and "Traceback" not in done.stderr


@pytest.mark.slow
def test_in_workers_a_factory_that_hangs_is_given_up(workers, tmp_path):
    done = probe("hangs", tmp_path, "--run-timeout", "4", "--quiet", depths="2")
    assert done.returncode == 2 and "timeout: no result within 4 s" in done.stderr


@pytest.mark.slow
def test_in_workers_the_numbers_are_those_of_one_process(tmp_path, request):
    here = json.loads(probe("pre_ln", tmp_path / "here", "--json", depths="2,4").stdout)
    request.getfixturevalue("workers")
    away = json.loads(probe("pre_ln", tmp_path / "away", "--json", "--workers", "2", depths="2,4").stdout)
    assert [cell["digest"] for cell in away["cells"]] == [cell["digest"] for cell in here["cells"]]
