"""`stabkit probe` as a command: its words, its page, its JSON, its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import process, stabkit

pytestmark = pytest.mark.usefixtures("undrawn")
ROOT = Path(__file__).parents[2]
MODELS = "tests.own.probe_models"


def probe(name, out, *more, depths="2,4,8", seeds="0", steps="2"):
    given = ("--depths", depths) if depths else ()
    return stabkit(
        *("probe", f"{MODELS}:{name}", *given, "--seeds", seeds, "--steps", steps, "--out", out, *more), cwd=ROOT
    )


@pytest.mark.parametrize("word", ["probe", "audit"])
def test_a_module_that_is_nowhere_is_told_at_once_before_torch_is_imported(word):
    done = process(word, "nowhere.py:gpt", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.returncode == 2 and not done.stdout and " torch\n" not in done.stderr
    assert "error: FACTORY: no file 'nowhere.py'; looked on" in done.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_sentence_the_table_and_the_page(tmp_path):
    done = probe("flat", tmp_path, seeds="0..2")
    assert done.returncode == 0, done.stderr
    said = "flat is undecided at 2 to 8 layers, without warm-up (8 layers: no forecast: a forecast needs 16 updates)"
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
    done = probe("growing", tmp_path, "--json", "--quick")
    body = json.loads(done.stdout)
    assert done.returncode == 7 and body["verdict"] == "fails" and body["links"]["stream"]["verdict"] == "fail"
    assert (
        done.stderr.splitlines()[-1]
        == "error: it is undecided at 2 to 4 layers, fails at 8 (stream): exit code 7, or 0 with --no-fail"
    )
    assert probe("growing", tmp_path, "--no-fail", "--quick").returncode == 0


@pytest.mark.slow
def test_what_cannot_be_told_is_0_and_with_strict_8(tmp_path):
    assert probe("flat", tmp_path, depths="2,4").returncode == 0
    done = probe("flat", tmp_path, "--strict", depths="2,4")
    assert done.returncode == 8 and "it is undecided at 2 to 4 layers: --strict needs a model" in done.stderr
    one = probe("one_batch", tmp_path, "--strict", "--quick", depths="4", steps="16")
    assert one.returncode == 8 and "every update used the same batch" in " ".join(one.stdout.split())
    assert "next: return (model, loss) from the factory" in one.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_changes_are_tried_where_it_fails_and_one_that_was_seen_to_mend_it_is_named(tmp_path):
    asked = {"depths": "4", "steps": "16"}
    given = ("--json", "--lr", "0.03")
    done = probe("post_ln", tmp_path, *given, "--time", "600", **asked)
    body = json.loads(done.stdout)
    assert body["verdict"] in ("fails", "probably fails") and done.returncode == 7 * (body["verdict"] == "fails")
    best = min((own for own in body["cures"] if own["basis"] == "seen"), key=lambda own: own["loss"])
    assert best["word"] == "trains" and best["code"] in body["answer"] and best["loss"] < 3 and best["updates"] == 150
    assert Path(body["report"]).read_text().count('id="figure-own_losses"') == 1
    again = json.loads(probe("post_ln", tmp_path, *given, "--time", "600", **asked).stdout)
    assert {**again, "seconds": 0} == {**body, "seconds": 0}, "stored"
    assert json.loads(probe("post_ln", tmp_path, *given, "--quick", **asked).stdout)["cures"] == []


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_number_that_is_lost_before_any_update_is_a_verdict_with_a_page(tmp_path):
    done = probe("lost_at_once", tmp_path, depths="2,4", steps="16")
    said = " ".join(done.stdout.split())
    assert done.returncode == 7 and "4 layers: seen, diverges before any update" in said, done.stderr
    assert "step 0, parameter head.weight (6400 of 6400 numbers)" in said and "overflows" not in said
    assert "Loss: a number was lost before any update" in next((tmp_path / "reports").iterdir()).read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("workers")
def test_what_a_forecast_leaves_undecided_is_trained_on_until_it_is_decided(tmp_path):
    done = probe("alone", tmp_path, "--json", "--lr", "3e-3", depths="2", steps="16")
    assert re.search(r"alone-2L-lr0.003-s0  .* training on\n(.*\n)*.*alone-2L-lr0.003-s0  probed", done.stderr)
    body = json.loads(done.stdout)
    (one,) = body["depths"]
    assert (one["word"], one["basis"]) == ("trains", "seen") and 16 < one["updates"] < 300
    assert f"(seen, after {one['updates']} updates)" in body["answer"] and body["verdict"] == "trains"


@pytest.mark.slow
def test_a_depth_without_a_result_exits_with_3_and_keeps_the_others(tmp_path):
    done = probe("deep_raises", tmp_path, "--json", depths="2,4,8,16")
    body = json.loads(done.stdout)
    assert done.returncode == 3 and [own["depth"] for own in body["depths"]] == [2, 4, 8]
    assert body["failed"][0]["depth"] == 16 and "no room for so many (probe_models.py:" in body["failed"][0]["reason"]
    assert len(done.stderr.splitlines()[-1]) and ".logs" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_several_rates_say_at_which_one_a_link_breaks(tmp_path):
    given = ("--json", "--quick", "--lr", "1e-4,1e30")
    body = json.loads(probe("flat", tmp_path, *given, depths="2,4,8").stdout)
    assert [rate["lr"] for rate in body["rates"]] == [1e-4, 1e30]
    assert body["rates"][0]["links"]["finite"]["verdict"] == "pass" and body["links"]["finite"]["verdict"] == "fail"
    assert "At 1e-4 is undecided." in body["answer"] and "diverges" in body["answer"]


def test_the_first_figure_of_the_page_is_written_to_a_file_and_another_kind_is_refused(tmp_path):
    done = probe("flat", tmp_path, "--png", tmp_path / "one.svg", "--no-fail")
    assert done.returncode == 0 and (tmp_path / "one.svg").read_bytes().startswith(b"<?xml"), done.stderr
    refused = probe("flat", tmp_path, "--png", tmp_path / "one.gif")
    assert refused.returncode == 2 and "--png writes a .png, .svg or .pdf file" in refused.stderr


def test_the_document_has_what_was_promised(tmp_path):
    body = json.loads(probe("single", tmp_path, "--json", depths="").stdout)
    promised = {"schema", "factory", "depths", "seeds", "steps", "links", "verdict", "forecast", "cures", "seconds"}
    assert promised <= set(body) and body["schema"] == "stabkit/2"
    assert body["links"]["stream"]["exponent"] is None
    (one,) = body["depths"]
    assert one == {
        "depth": None, "word": "undecided", "basis": "forecast", "probability": None, "updates": 2, "diverges": False,
        "seed": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("pre_ln", ("--depths", "0"), "--depths"),
        ("pre_ln", ("--seeds", "x"), "--seeds"),
        ("pre_ln", ("--lr", "-1"), "--lr"),
        ("pre_ln", ("--steps", "0"), "--steps"),
        ("pre_ln", ("--time", "-1"), "--time"),
        ("pre_ln", ("--no-cures",), "no option --no-cures"),
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
    first, *lines = probe("flat", tmp_path).stderr.strip().splitlines()
    assert re.fullmatch(r"3 depths, one seed each to begin with: about \d+ s", first)
    assert [line.split()[:3] for line in lines] == [
        [f"[{i}/3]", f"flat-{n}L-s0", "probed"] for i, n in enumerate((2, 8, 4), 1)
    ]
    for line in lines:
        assert re.search(r"probed  update \S+, stream \S+, tokens \S+, loss \S+$", line)


@pytest.mark.slow
def test_in_workers_a_factory_that_forks_answers_once(workers, tmp_path):
    done = probe("forks", tmp_path, "--json", "--workers", "1", depths="2,4")
    assert [own["depth"] for own in json.loads(done.stdout)["depths"]] == [2, 4] and "Traceback" not in done.stderr


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
