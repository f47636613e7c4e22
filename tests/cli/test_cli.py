"""The command line from outside: printed lines, exit codes, and what is on the disk afterwards."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stabkit.claims.base import ORDER, WEIGHTS
from stabkit.figures.catalogue import FIGURES
from tests.commands import TINY, UNDRAWN, children, ended, stabkit, strict, wait_for
from tests.conftest import some

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def out(swept, tmp_path_factory):
    """A store with the four methods at 2L-2L, these tests' own."""
    out = tmp_path_factory.mktemp("out")
    shutil.copytree(swept / "store", out, dirs_exist_ok=True)
    shutil.copy(swept / "first.json", out)
    return out


def test_json_is_one_strict_document_with_every_run_and_series(out):
    document = strict((out / "first.json").read_text())
    assert document["schema"] == "stabkit/2" and Path(document["report"]).is_file()
    assert [run["model"] for run in document["runs"]] == ["post-ln", "post-ln-init", "admin", "deepnorm"]
    for run in document["runs"]:
        assert run["spec"]["model"]["encoder_layers"] == run["encoder_layers"] == run["decoder_layers"] == 2
        assert (run["seed"], run["alpha_scale"], run["beta_scale"], run["warmup"]) == (0, 1.0, 1.0, 4000)
        assert run["outcome"] == "not judged" and run["steps"] == 2
        for series in ("update", "loss", "grad_first_last_ratio"):
            assert len(run[series]) == len(run["step"]) == 3
        assert run["step"] == [0, 1, 2] and run["update"][0] == 0.0


def test_the_same_command_again_trains_nothing_and_says_so(out):
    again = stabkit("sweep", *TINY, "--out", out)
    assert "reused 4, new 0; nothing to train" in again.stderr
    assert "Post-LN-init" in again.stdout and "report:" in again.stdout


def test_a_wider_grid_trains_only_what_is_missing(out):
    wider = stabkit("sweep", *TINY, "--models", "deepnorm", "--seeds", "0,1", "--out", out)
    assert "reused 1, new 1, 3 other runs in the directory are not part of this grid" in wider.stderr
    assert "[1/1] DeepNorm 2L-2L seed 1  measured" in wider.stderr


def test_a_damaged_run_is_put_aside_and_trained_again(out):
    run = next((out / "runs").glob("post-ln-2L-2L-s0-*"))
    (run / "records.npz").write_bytes(b"junk")
    again = stabkit("sweep", *TINY, "--out", out)
    assert again.returncode == 0 and again.stderr.count("corrupt") == 1 and "reused 3, new 1" in again.stderr
    assert list((out / "runs" / ".quarantine").glob("*/post-ln-2L-2L-s0-*"))


def test_runs_are_listed_shown_and_removed(out):
    stabkit("sweep", *TINY, "--models", "deepnorm", "--seeds", "7", "--out", out)
    listed = stabkit("runs", "ls", "--out", out)
    assert "deepnorm-2L-2L-s7-" in listed.stdout
    assert strict(stabkit("runs", "ls", "--out", out, "--json").stdout)["runs"]
    assert "gradient_ratio_lowest" in stabkit("runs", "show", "deepnorm-2L-2L-s7", "--out", out).stdout
    assert strict(stabkit("runs", "show", "deepnorm-2L-2L-s7", "--out", out, "--json").stdout)["seed"] == 7
    assert stabkit("runs", "rm", "deepnorm-2L-2L-s7", "--out", out).returncode == 0
    gone = stabkit("runs", "show", "deepnorm-2L-2L-s7", "--out", out)
    assert gone.returncode == 2 and "no run" in gone.stderr
    many = stabkit("runs", "rm", "post-ln", "--out", out)
    assert many.returncode == 2 and "write more of the name" in many.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_report_is_made_of_the_runs_named(out, tmp_path):
    page = tmp_path / "r.html"
    done = stabkit("report", "deepnorm", "post-ln-2L", "--store", out, "--out", page)
    assert done.returncode == 0, done.stderr
    assert "deepnorm-2L-2L-s0-" in page.read_text() and "admin-2L-2L-s0-" not in page.read_text()


def test_json_holds_every_claim_with_its_verdict_and_what_would_test_it(out):
    claims = strict((out / "first.json").read_text())["claims"]
    assert len(claims) >= 12
    for claim in claims:
        assert claim["verdict"] in ORDER and claim["weight"] in WEIGHTS and claim["sentence"] and claim["source"]
        assert ("command" in claim) == (claim["verdict"] in ("untested", "undecided"))
        assert (claim["places"] == []) == (claim["verdict"] == "untested")
        for place in claim["places"]:
            assert {"where", "condition", "steps", "seeds", "value", "low", "high", "threshold"} <= set(place)
            assert (place["low"] is None) == (place["high"] is None) == (len(place["seeds"]) == 1)
            assert set(place["threshold"]) == {"sense", "value", "reason"}
            assert place["verdict"] in {*ORDER} - {"mixed", "untested"}


@pytest.mark.slow
def test_the_terminal_ends_with_answer_claims_page_and_next_within_80_columns(out, tmp_path):
    assert "central claims" not in stabkit("sweep", *TINY, "--out", out).stdout, "one seed decides nothing"
    done = stabkit("sweep", *TINY, "--seeds", "0,1", "--out", tmp_path)
    assert "central claims" in done.stdout and not re.search(r"\d+ of \d+ claims", done.stdout)
    *lines, page, following = done.stdout.rstrip().split("\n")
    assert max(map(len, lines)) <= 80 and page.startswith("report:") and following.startswith("next:")


@pytest.mark.slow
@pytest.mark.parametrize("count", [None, 5])
def test_every_figure_is_written_as_files(count, out, tmp_path, monkeypatch):
    monkeypatch.setattr("stabkit.figures.catalogue.FIGURES", FIGURES[:count])
    one = ["deepnorm-2L-2L-s0", "--store", out]
    done = stabkit("report", *one, "--figures", tmp_path / "f", "--out", tmp_path / "r.html", "--all-figures")
    assert done.returncode == 0, done.stderr
    kinds = {path.suffix for path in (tmp_path / "f").iterdir()}
    names = {path.stem for path in (tmp_path / "f").iterdir()}
    assert kinds == {".svg", ".png", ".pdf", ".csv"} and "chain_order" in names
    assert len(list((tmp_path / "f").iterdir())) == 4 * len(names)
    assert (tmp_path / "r.html").read_text(encoding="utf-8").count('id="figure-') >= (count or 17) - 1


@pytest.mark.slow
def test_a_run_whose_records_cannot_be_read_is_left_out_of_the_page(out, tmp_path):
    import hashlib
    import shutil

    from stabkit.storage.folder import manifest_of

    store = tmp_path / "s"
    shutil.copytree(out / "runs", store / "runs", ignore=shutil.ignore_patterns(".*"))
    broken = next((store / "runs").glob("admin-*"))
    (broken / "records.npz").write_bytes(b"not an archive")
    files = ("spec.json", "outcome.json", "records.npz", "weights.safetensors", "environment.json")
    sums = {name: hashlib.sha256((broken / name).read_bytes()).hexdigest() for name in files}
    version = json.loads((broken / "manifest.json").read_text())["algo_version"]
    (broken / "manifest.json").write_text(json.dumps(manifest_of(sums, version)))
    done = stabkit("report", "--store", store, "--out", tmp_path / "r.html")
    assert done.returncode == 0 and "left out" in done.stderr and "Traceback" not in done.stderr
    assert "ADMIN" not in (tmp_path / "r.html").read_text().partition('<details class="fold"')[0]


@pytest.mark.slow
def test_methods_are_listed_with_formula_source_and_constants():
    listed = stabkit("methods").stdout
    assert "deepnorm" in listed and "DeepNet §3.3" in listed and "option omega: profile, closed, constant" in listed
    assert "4.1618" in stabkit("methods", "DeepNorm", "--depths", "100x100").stdout
    (method,) = strict(stabkit("methods", "deepnorm", "--depths", "60x12", "--json").stdout)["methods"]
    assert method["depths"][0]["constants"][0]["omega"]["init"] == pytest.approx([2.6331] * 60, abs=5e-5)


def test_dry_run_shows_the_cost_and_makes_nothing(tmp_path):
    done = stabkit("sweep", "--dry-run", "--out", tmp_path / "none")
    assert done.returncode == 0 and "16 runs, 16 to train" in done.stdout and "GB of memory" in done.stdout
    assert not (tmp_path / "none").exists()
    large = stabkit("sweep", "--dry-run", "--seeds", "0..9999", "--out", tmp_path / "none").stdout
    assert "160000 runs" in large and "of disk" in large
    drawn = stabkit("landscape", "--dry-run", "--out", tmp_path / "none").stdout
    assert "their surfaces, unless they are drawn already" in drawn and "surfaces" not in done.stdout
    plan = strict(stabkit("sweep", "--dry-run", "--json", "--out", tmp_path / "none").stdout)
    assert len(plan["runs"]) == 16 and plan["plan"]["seconds"] > 0


def test_the_estimated_parameters_are_the_real_ones(out):
    import torch

    from stabkit import methods
    from stabkit.spec import from_json
    from stabkit.tasks.synthetic import Synthetic
    from stabkit.training import train

    spec = from_json(strict((out / "first.json").read_text())["runs"][3]["spec"])
    model = train.build(spec, Synthetic(vocab=200, max_tokens=128), torch.device("cpu"))
    assert methods.parameters(spec) == sum(p.numel() for p in model.parameters())


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text('steps = 7\ndepths = [3, 4]\nlr = 1e-3\nseeds = "5"\n')
    printed = stabkit(
        "sweep",
        "--config",
        file,
        "--steps",
        "9",
        "--print-config",
        env={"STABKIT_SWEEP_SEEDS": "6", "STABKIT_SWEEP_STEPS": "8"},
    ).stdout
    assert (
        'steps = "9"' in printed
        and 'seeds = "6"' in printed
        and 'depths = "3,4"' in printed
        and 'lr = "0.001"' in printed
    )
    again = tmp_path / "again.toml"
    again.write_text(printed)
    assert stabkit("sweep", "--config", again, "--print-config").stdout == printed


BAD = [
    (["--depths", "6,,18"], "--depths", "empty item"),
    (["--depths", "0"], "--depths", "0"),
    (["--depths", "six"], "--depths", "six"),
    (["--seeds", "1_000"], "--seeds", "1_000"),
    (["--seeds", "٣"], "--seeds", "٣"),
    (["--steps", "-5"], "--steps", "-5"),
    (["--steps", "99999999999999999999999"], "--steps", "9999"),
    (["--lr", "nan"], "--lr", "nan"),
    (["--lr", "0"], "--lr", "0"),
    (["--lr", "-1e-3"], "--lr", "not above 0"),
    (["--warmup", "-1"], "--warmup", "below 0"),
    (["--ffn", "2x,4x"], "--ffn", "one number"),
    (["--dropout", "1"], "--dropout", "1"),
    (["--models", "deepnrom"], "deepnrom", "did you mean 'deepnorm'"),
    (["--models", "admin:omega=x"], "omega", "profile, closed, constant"),
    (["--models", ""], "--models", "empty item"),
    (["--base-init", "xavier"], "--base-init", "did you mean 'xavier_normal'"),
    (["--heads", "3"], "--heads", "64"),
    (["--device", "gpu"], "--device", "cuda"),
    (["--device", "cuda"], "--device", "CUDA devices"),
    (["--workers", "0"], "--workers", "0"),
    (["--vocab", "10"], "vocab", "10"),
    (["--source", "de"], "--source", "--data"),
    (["--data", "nowhere", "--source", "de", "--target", "en"], "nowhere", "director"),
    (["--data", ".", "--source", "de"], "--target", "--data"),
    (["--dephts", "6"], "--dephts", "--depths"),
    (["--config", "nowhere.toml"], "--config", "nowhere.toml"),
    (["--seeds", "0..9999"], "160000 runs", "GB of memory"),
    (["--steps"], "--steps", "argument"),
]


@pytest.mark.parametrize(("args", "option", "said"), BAD, ids=[" ".join(a) for a, _, _ in BAD])
def test_bad_input_is_one_line_and_code_2_and_leaves_nothing(args, option, said, tmp_path):
    done = stabkit("sweep", "--out", "none", *args, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert option in done.stderr and said in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["steps = [[1]]", "nonsense", 'stepz = "3"', "steps = 1979-05-27", "\x00"])
def test_a_bad_configuration_file_is_named(text, tmp_path):
    (tmp_path / "c.toml").write_text(text)
    done = stabkit("sweep", "--config", "c.toml", cwd=tmp_path)
    assert done.returncode == 2 and "c.toml" in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


def test_a_file_where_the_output_directory_should_be_is_refused(tmp_path):
    (tmp_path / "f").write_text("")
    done = stabkit("sweep", "--out", tmp_path / "f")
    assert done.returncode == 2 and "is a file" in done.stderr


def test_a_report_of_nothing_that_can_be_read_is_refused_and_names_the_file(out, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(out / "runs", store / "runs")
    for file in (store / "runs").glob("*/spec.json"):
        file.unlink()
    done = stabkit("report", "--store", store, "--out", tmp_path / "page.html")
    assert done.returncode == 2 and "runs verify" in done.stderr and "spec.json: No such file" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_an_unknown_command_names_the_nearest():
    done = stabkit("sweeep")
    assert done.returncode == 2 and "sweep" in done.stderr and done.stderr.count("\n") == 1


def test_a_corpus_of_unequal_sides_names_both_files(tmp_path):
    for name, text in {"train.de": "a\nb\n", "train.en": "a\n", "valid.de": "a\n", "valid.en": "a\n"}.items():
        (tmp_path / name).write_text(text)
    done = stabkit("sweep", "--data", tmp_path, "--source", "de", "--target", "en", "--out", tmp_path / "none")
    assert (
        done.returncode == 2
        and "train.de" in done.stderr
        and "train.en" in done.stderr
        and not (tmp_path / "none").exists()
    )


@pytest.mark.slow
def test_two_commands_on_one_store_train_each_run_once(tmp_path):
    """Both are given the same grid: what one is at the other waits for."""
    command = [sys.executable, "-c", UNDRAWN, "sweep", *TINY, "--models", "papers", "--workers", "1"]
    both = [
        subprocess.Popen([*command, "--out", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    places = [Path(run / "environment.json") for run in (tmp_path / "runs").iterdir() if run.name[0] != "."]
    assert len(places) > 5 and not list((tmp_path / "runs" / ".locks").iterdir())
    assert not list((tmp_path / "runs" / ".partial").iterdir())
    assert all("Traceback" not in err for _, err in said)


@pytest.mark.slow
@pytest.mark.parametrize("number", some([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_ends_the_sweep_and_names_the_command_that_continues(number, tmp_path):
    words = "--warmup 4000 --workers 1 --record-every 1000 --steps 1000000 --yes"  # it looks like a slip: days of work
    command = [sys.executable, "-m", "stabkit", "sweep", *TINY[:2], *words.split(), "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sweep:
        begun = sweep.stderr.readline()
        wait_for(lambda: children(sweep.pid))
        workers = children(sweep.pid)
        sweep.send_signal(number)
        said = sweep.stderr.read()
        code = sweep.wait(timeout=60)
    assert "reused 0, new 4" in begun and code == 128 + number
    wait_for(lambda: all(map(ended, workers)))
    assert said.count("\n") == 2 and "continue with: " in said and "Traceback" not in said


@pytest.mark.parametrize(
    "command", [[], ["sweep"], ["report"], ["runs"], ["runs", "ls"], ["runs", "show"], ["runs", "rm"], ["methods"]]
)
def test_every_command_has_help(command):
    done = stabkit(*command, "--help")
    assert done.returncode == 0 and "Usage" in done.stdout


def test_hostile_names_reach_the_terminal_as_text(tmp_path):
    folder = tmp_path / "[red]x\x1b]0;pwned\x07"
    folder.mkdir()
    done = stabkit("sweep", "--data", folder, "--source", "de", "--target", "en", "--out", tmp_path / "none")
    assert done.returncode == 2 and "\x1b]0" not in done.stderr and "[red]" in done.stderr


@pytest.mark.slow
def test_parallel_text_is_swept_and_a_changed_corpus_is_other_runs(tmp_path):
    words = "ein hund läuft über die wiese im park und schläft am tag".split()
    for stem, count in (("train", 400), ("valid", 40)):
        for language in ("de", "en"):
            lines = [" ".join(words[(i * k + 3) % len(words)] for k in range(1, 3 + i % 7)) for i in range(count)]
            (tmp_path / f"{stem}.{language}").write_text("\n".join(lines) + "\n")
    corpus = ["--data", tmp_path, "--source", "de", "--target", "en"]
    args = ["sweep", *TINY, "--vocab", "60", "--models", "deepnorm", *corpus, "--out", tmp_path / "o"]
    first = stabkit(*args, "--json", "--quiet")
    assert first.returncode == 0, first.stderr
    run = strict(first.stdout)["runs"][0]
    assert run["spec"]["task"]["name"] == "de-en" and run["unigram_loss"] > 0
    with open(tmp_path / "train.de", "a") as de, open(tmp_path / "train.en", "a") as en:
        de.write("ein hund\n")
        en.write("ein hund\n")
    assert "reused 0, new 1, 1 other runs in the directory" in stabkit(*args).stderr
    refused = stabkit(*args, "--vocab", "60000")
    assert refused.returncode == 2 and "Traceback" not in refused.stderr and "vocab" in refused.stderr
