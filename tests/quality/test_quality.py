"""From the command to the shelf: what is translated, with which words, and when nothing is."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from safetensors.numpy import load, save

from stabkit import methods
from stabkit.cli import entry
from stabkit.cli.commands import export as door
from stabkit.errors import CorpusError, FailedRuns
from stabkit.model.transformer import Transformer
from stabkit.quality import decode
from stabkit.quality.job import score
from stabkit.results.translation import Search, TranslationSpec
from stabkit.running import work
from stabkit.spec import ModelConfig, TaskConfig
from stabkit.storage import export
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store
from stabkit.storage.translations import TRANSLATION
from stabkit.tasks import corpus, objective, synthetic
from stabkit.tasks.base import BOS, EOS, PAD, HeldOut
from stabkit.tasks.synthetic import Synthetic
from stabkit.tasks.text import LONGEST_SENTENCE, ParallelText
from stabkit.training import train
from tests.conftest import files_of, tiny
from tests.figures.fake_runs import ended, translated
from tests.figures.fake_runs import spec as run_spec
from tests.tasks.conftest import sentences, write
from tests.tasks.test_language import Translator

pytestmark = pytest.mark.usefixtures("undrawn")

TASK = Synthetic(vocab=200, max_tokens=128)
SWEEP = ["sweep", "--depths", "1", "--steps", "3", "--hidden", "8", "--ffn", "12", "--models", "deepnorm,pre-ln"]
SWEEP += ["--max-tokens", "64", "--warmup", "4000", "--executor", "inline"]
Say = Callable[..., tuple[object, str, str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """`stabkit …` in this process: (exit code, standard output, standard error)."""

    def said(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["stabkit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            entry.main()
        return ended.value.code or 0, *capsys.readouterr()

    return said


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test set of 24 sentences: a model that has learnt nothing goes on to the limit of each."""
    monkeypatch.setattr(synthetic, "TEST_SENTENCES", 24)


@pytest.mark.slow
def test_a_sweep_translates_once_and_tells_bleu_everywhere(tmp_path: Path, say: Say, few: None) -> None:
    wanted = [*SWEEP, "--vocab", 200, "--bleu", "--out", tmp_path]
    code, _, told = say(*wanted, "--beam", 2)
    assert code == 0 and "translations: 0 cached, 2 to make" in told
    code, shown, told = say(*wanted, "--beam", 2)
    assert code == 0 and "translations: 2 cached, 0 to make" in told and "nothing to train" in told
    assert "BLEU" in shown and "sacreBLEU nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:" in shown
    code, document, told = say(*wanted, "--beam", 1, "--length-penalty", 0, "--json")
    assert code == 0 and "translations: 0 cached, 2 to make" in told and "nothing to train" in told
    runs = json.loads(document)["runs"]
    assert [run["model"] for run in runs] == ["deepnorm", "pre-ln"]
    for run in runs:
        searches = [(one["beam"], one["length_penalty"]) for one in run["translations"]]
        assert sorted(searches) == [(1, 0.0), (2, 1.0)]
        for one in run["translations"]:
            assert one["sentences"] == 24 and one["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:none|")
            assert 0 <= one["bleu"] <= 100 and one["length_ratio"] > 0
        assert run["validation_nll"] and 0 <= run["validation_accuracy"][-1] <= 1 and len(run["train_nll"]) == 4
    page = Path(json.loads(document)["report"]).read_text(encoding="utf-8")
    assert '<th scope="col">BLEU</th>' in page


@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_the_score_is_sacrebleus_with_its_signature(tokenize: str) -> None:
    said, wanted = ["the cat sat on the mat.", "a dog"], ["the cat sat on a mat.", "a dog sleeps"]
    found = score(said, wanted, tokenize)
    assert found.bleu == sacrebleu.corpus_bleu(said, [wanted], tokenize=tokenize, force=True).score
    assert 0 < found.bleu < 100
    version = sacrebleu.__version__
    assert found.signature == f"nrefs:1|case:mixed|eff:no|tok:{tokenize}|smooth:exp|version:{version}"
    assert found.length_ratio == pytest.approx(9 / 10 if tokenize == "13a" else 8 / 9)


@pytest.mark.slow
def test_a_translation_that_was_damaged_is_put_aside_and_made_again(tmp_path: Path, say: Say, few: None) -> None:
    wanted = [*SWEEP, "--vocab", 200, "--bleu", "--beam", 1, "--out", tmp_path]
    assert say(*wanted)[0] == 0
    (name, *_), shelf = Shelf(TRANSLATION, tmp_path).ids(), Shelf(TRANSLATION, tmp_path)
    before = shelf.load(name)
    (shelf.root / name / "translation.json").write_text("{}")
    code, _, told = say(*wanted)
    assert code == 0 and told.count("corrupt translation") == 1 and "1 cached, 1 to make" in told
    assert replace(shelf.load(name), environment={}) == replace(before, environment={})
    assert list((shelf.root / ".quarantine").glob(f"{name}.*"))


def test_without_the_option_nothing_is_translated(tmp_path: Path, say: Say) -> None:
    code, shown, told = say(*SWEEP, "--vocab", 200, "--out", tmp_path, "--json")
    assert code == 0 and "translations" not in told and not (tmp_path / "translations").exists()
    assert all(run["translations"] == [] for run in json.loads(shown)["runs"])


def test_a_corpus_without_a_test_set_is_refused_before_anything_is_trained(tmp_path: Path, say: Say) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    write(data)
    text = ["--vocab", 100, "--data", data, "--source", "de", "--target", "en", "--out", out]
    code, shown, told = say(*SWEEP, *text, "--bleu")
    assert code == CorpusError.exit_code and shown == "" and told.count("\n") == 1 and not out.exists()
    assert "BLEU is measured on a test set: needed test.de with test.en" in told and "'train.de'" in told
    (data / "test_2016.de").write_text("ein hund\n")
    code, _, told = say(*SWEEP, *text, "--bleu")
    assert code == CorpusError.exit_code and "needed test.de with test.en" in told and not out.exists()


@pytest.mark.parametrize("content", [b"a dog\n", b"a dog\n\xff\n", b"\n\n"])
def test_a_test_set_that_cannot_be_paired_is_refused_before_anything_is_trained(
    content: bytes, tmp_path: Path, say: Say
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    write(data)
    (data / "test.de").write_text("ein hund\nein mann\n")
    (data / "test.en").write_bytes(content)
    text = ["--vocab", 100, "--data", data, "--source", "de", "--target", "en", "--out", out]
    code, shown, told = say(*SWEEP, *text, "--bleu")
    assert code == CorpusError.exit_code and shown == "" and "test.en" in told and not out.exists()
    assert say(*SWEEP, *text, "--dry-run")[0] == 0  # nobody else needs it


@pytest.mark.slow
def test_parallel_text_is_translated_and_a_changed_test_set_is_another_translation(tmp_path: Path, say: Say) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    write(data)
    for language, lines in zip(("de", "en"), sentences(12, 5), strict=True):
        (data / f"test.{language}").write_text(lines, encoding="utf-8")
    wanted = [*SWEEP, "--vocab", 100, "--data", data, "--source", "de", "--target", "en", "--out", out]
    code, shown, _ = say(*wanted, "--bleu", "--json")
    assert code == 0
    for run in json.loads(shown)["runs"]:
        (one,) = run["translations"]
        assert "|tok:13a|" in one["signature"] and one["sentences"] == 12 and one["beam"] == 4
    (data / "test.en").write_text(sentences(12, 6)[1], encoding="utf-8")
    code, _, told = say(*wanted, "--bleu")
    assert code == 0 and "nothing to train" in told and "translations: 0 cached, 2 to make" in told


@pytest.mark.parametrize("arch", ["decoder-only", "encoder-only"])
def test_a_language_model_is_refused_with_the_reason(arch: str, tmp_path: Path, say: Say) -> None:
    code, shown, told = say(*SWEEP, "--arch", arch, "--bleu", "--out", tmp_path / "none")
    assert code == 2 and shown == "" and told.count("\n") == 1 and not (tmp_path / "none").exists()
    assert "--bleu needs an encoder and a decoder" in told and "cannot translate" in told


@pytest.mark.parametrize(("option", "value"), [("--beam", "0"), ("--beam", "65"), ("--length-penalty", "-1")])
def test_a_search_out_of_bounds_is_refused(option: str, value: str, tmp_path: Path, say: Say) -> None:
    code, _, told = say(*SWEEP, "--bleu", option, value, "--out", tmp_path / "none")
    assert code == 2 and option in told and value in told and not (tmp_path / "none").exists()


def job(out: Path, spec: TranslationSpec) -> work.Job:
    return {
        "kind": "translate",
        "id": spec.translation_id,
        "out": str(out),
        "spec": spec.to_json(),
        "corpus": None,
        "device": "cpu",
    }


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_diverged_weights_say_nothing_and_score_nothing(value: float, tmp_path: Path, few: None) -> None:
    run = tiny(layers=1)
    files = files_of(run)
    weights = load(files["weights.safetensors"])
    weights["embedding"] = np.full_like(weights["embedding"], value)
    Store(tmp_path).commit(run, {**files, "weights.safetensors": save(weights)})
    spec = TranslationSpec(
        run=run.run_id,
        digest=Store(tmp_path).load(run.run_id).digest,
        search=Search(),
        sentences=TASK.held_out().digest,
    )
    assert work.do(job(tmp_path, spec), lambda event: None) == (spec.translation_id, "done")
    found = Shelf(TRANSLATION, tmp_path).load(spec.translation_id)
    assert found.hypotheses == ("",) * 24 and found.references == TASK.held_out().references
    assert (found.score.bleu, found.score.length_ratio) == (0.0, 0.0)


def test_a_job_translates_with_the_runs_own_weights_and_keeps_the_order_of_the_sentences(
    tmp_path: Path, few: None
) -> None:
    run, noise = tiny("admin", layers=1), np.random.default_rng(0)
    files = files_of(run)
    weights = {
        n: (w + 0.3 * noise.standard_normal(w.shape)).astype(w.dtype)
        for n, w in load(files["weights.safetensors"]).items()
    }
    Store(tmp_path).commit(run, {**files, "weights.safetensors": save(weights)})
    held_out = TASK.held_out()
    spec = TranslationSpec(
        run=run.run_id, digest=Store(tmp_path).load(run.run_id).digest, search=Search(beam=2), sentences=held_out.digest
    )
    events: list[dict[str, Any]] = []
    work.do(job(tmp_path, spec), events.append)
    found = Shelf(TRANSLATION, tmp_path).load(spec.translation_id)
    own = Transformer(run.model, methods.build("admin", {}), 200, seed=77)
    own.load(weights)
    lines = [TASK.text(one.tokens) for s in held_out.sources for one in decode.translate(own, s, spec.search)]
    assert [found.hypotheses[line] for line in held_out.lines] == lines and len(set(lines)) > 12
    assert [event["step"] for event in events][-1] == 24


@pytest.mark.slow
def test_translated_text_stands_in_the_order_of_its_file(directory: Path, tmp_path: Path) -> None:
    """Sentences of many lengths are translated by length; line i of the file is line i of the translation."""
    de, en = sentences(12, 7)
    words = de.split()
    lines = [" ".join(words[: 1 + 5 * (7 * i % 12)]) for i in range(12)]
    (directory / "test.de").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (directory / "test.en").write_text(en, encoding="utf-8")
    files = corpus.find(directory, "de", "en")
    text = ParallelText(corpus=files, vocab=100, max_tokens=64)
    task = TaskConfig(name="de-en", vocab=100, source="de", target="en", digest=corpus.digest(files))
    run = replace(tiny("admin", layers=1, steps=0), task=task)
    noise = np.random.default_rng(0)
    start = {n: np.asarray(w) for n, w in train.run(run, text).weights.items()}
    weights = {n: (w + 0.3 * noise.standard_normal(w.shape)).astype(w.dtype) for n, w in start.items()}
    made = work.files(run, train.run(run, text), {})
    Store(tmp_path).commit(run, {**made, "weights.safetensors": save(weights)})
    wanted = TranslationSpec(
        run=run.run_id,
        digest=Store(tmp_path).load(run.run_id).digest,
        search=Search(beam=1),
        sentences=corpus.test_digest(files),
    )
    work.do({**job(tmp_path, wanted), "corpus": {"directory": str(directory)}}, lambda event: None)
    found = Shelf(TRANSLATION, tmp_path).load(wanted.translation_id)
    own = Transformer(run.model, methods.build("admin", {}), 100, seed=77)
    own.load(weights)
    one_by_one = [
        text.text(decode.translate(own, np.array([[*text.encode(line), EOS]]), wanted.search)[0].tokens)
        for line in lines
    ]
    assert list(found.hypotheses) == one_by_one and len(set(one_by_one)) > 4
    assert found.references == tuple(en.splitlines())


def test_sentences_that_changed_meanwhile_are_not_translated(tmp_path: Path, few: None) -> None:
    run = tiny(layers=1)
    Store(tmp_path).commit(run, files_of(run))
    with pytest.raises(CorpusError, match="changed during the sweep"):
        work.do(
            job(
                tmp_path,
                TranslationSpec(
                    run=run.run_id, digest=Store(tmp_path).load(run.run_id).digest, search=Search(), sentences="0" * 64
                ),
            ),
            lambda event: None,
        )
    assert Shelf(TRANSLATION, tmp_path).ids() == []


@pytest.mark.parametrize("method", methods.KEYS)
def test_weights_that_were_kept_make_the_model_that_kept_them(method: str) -> None:
    config = ModelConfig(encoder_layers=2, decoder_layers=2, hidden=8, ffn=12, heads=2)
    first, second = (Transformer(config, methods.build(method, {}), 30, seed) for seed in (0, 1))
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in first.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=noise)
        for residual in first.residuals.values():
            if isinstance(residual.omega, float):
                residual.set_omega(residual.omega * 1.25)
        second.load(first.arrays())
        source, target = torch.tensor([[5, 6, EOS], [7, EOS, PAD]]), torch.tensor([[BOS, 8], [BOS, 9]])
        torch.testing.assert_close(first(source, target)[1], second(source, target)[1], rtol=0, atol=0)


def rows(held_out: HeldOut) -> list[tuple[str, str]]:
    """(source, reference), sentence by sentence, sources as text of numbers without marks."""
    lines = [row for source in held_out.sources for row in source.tolist()]
    bare = [" ".join(str(word) for word in row if word not in (PAD, EOS)) for row in lines]
    return [(source, held_out.references[line]) for source, line in zip(bare, held_out.lines, strict=True)]


def test_the_synthetic_test_set_is_the_same_for_every_size_of_batch() -> None:
    first = TASK.held_out()
    for max_tokens in (64, 4096):
        other = Synthetic(vocab=200, max_tokens=max_tokens).held_out()
        assert (other.digest, other.references, other.tokenize) == (first.digest, first.references, "none")
        assert all(np.array_equal(a, b) for a, b in zip(first.sources, other.sources, strict=True))
    assert first.digest == synthetic.test_digest(200) != Synthetic(vocab=201).held_out().digest
    assert len(first.references) == synthetic.TEST_SENTENCES == 512 == sum(map(len, first.sources))


def test_a_synthetic_source_is_padded_to_its_batch_alone_and_ends() -> None:
    for source in TASK.held_out().sources:
        assert source.dtype == np.int64 and source.shape[0] * source.shape[1] <= synthetic.TEST_TOKENS
        assert (np.count_nonzero(source == EOS, axis=1) == 1).all() and (source[:, -1] != PAD).any()
        length = np.count_nonzero(source, axis=1)
        assert (source[np.arange(len(source)), length - 1] == EOS).all() and (source != BOS).all()


def test_no_sentence_of_the_synthetic_test_set_is_one_that_a_run_is_judged_on() -> None:
    task = Synthetic(vocab=2000, max_tokens=4096)
    known = set()
    for batch in (task.probe(), *task.validation()):
        known |= {" ".join(str(word) for word in row if word not in (PAD, EOS)) for row in batch.source.tolist()}
    held_out = [source for source, _ in rows(task.held_out())]
    assert len(known) > 150 and not known & set(held_out)
    assert len(set(held_out)) > 500


def test_a_synthetic_reference_is_what_a_word_by_word_translator_says() -> None:
    translate = Translator(TASK)
    for source, reference in rows(TASK.held_out()):
        assert TASK.text(translate([*map(int, source.split()), EOS])) == reference


def test_a_language_models_test_set_is_the_tasks() -> None:
    own = objective.of(TASK, 0, 2)
    assert own.held_out().digest == TASK.held_out().digest and own.text([5, EOS, PAD]) == TASK.text([5]) == "5"


def test_references_of_text_are_the_test_file_and_every_row_knows_its_line(directory: Path) -> None:
    de, en = sentences(90, 7)
    long = " ".join(["hund"] * 3000)
    (directory / "test.de").write_text(de + "\n" + long + "\nhund\nhund\n", encoding="utf-8")
    (directory / "test.en").write_text(en + "of nothing\nA LONG  one \n 1 \u00a0dog.\n\n", encoding="utf-8")
    task = ParallelText(corpus=corpus.find(directory, "de", "en"), vocab=100, max_tokens=64)
    found = task.held_out()
    assert list(found.references) == [*en.splitlines(), "of nothing", "A LONG  one ", " 1 \u00a0dog.", ""]
    assert sorted(found.lines) == list(range(94)) and found.tokenize == "13a"
    told = dict(zip(found.lines, (task.decode(row) for s in found.sources for row in s.tolist()), strict=True))
    assert [told[line] for line in range(90)] == de.splitlines() and (told[90], told[92]) == ("", "hund")
    cut = found.sources[0][0]
    assert cut.tolist().index(EOS) == LONGEST_SENTENCE - 1 and found.lines[0] == 91
    assert found.digest == corpus.test_digest(task.corpus)
    for source in found.sources:
        assert source.size <= 4096 and (np.count_nonzero(source == EOS, axis=1) == 1).all()
    smaller = ParallelText(corpus=task.corpus, vocab=100, max_tokens=32).held_out()
    assert (smaller.references, smaller.lines) == (found.references, found.lines)


def test_any_sentence_survives_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ended(run_spec("deepnorm", 2))
    one = translated(made, 0.5)
    odd = ('say "a, b"', "one\rline", "", "  two  ", *one.references[4:])
    for module in (door, export):
        monkeypatch.setattr(module, "of_run", lambda run: (replace(one, references=odd),))
    door.put([made], "csv", tmp_path / "all.csv", "translations")
    with open(tmp_path / "all.csv", newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert tuple(row["reference"] for row in read) == odd
    assert tuple(row["hypothesis"] for row in read) == one.hypotheses
    door.put([made], "jsonl", tmp_path / "all.jsonl", "translations")
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert tuple(json.loads(line)["reference"] for line in lines) == odd


@pytest.mark.slow
def test_translations_are_exported_line_by_line(tmp_path: Path, say: Say, few: None) -> None:
    assert say(*SWEEP, "--vocab", 200, "--bleu", "--beam", 2, "--models", "deepnorm", "--out", tmp_path)[0] == 0
    code, written, _ = say("export", "--what", "translations", "--store", tmp_path)
    read = list(csv.DictReader(io.StringIO(written)))
    held_out = Synthetic(vocab=200).held_out()
    assert code == 0 and [row["line"] for row in read] == [str(i) for i in range(1, 25)]
    assert tuple(row["reference"] for row in read) == held_out.references
    assert {(row["beam"], row["length_penalty"]) for row in read} == {("2", "1.0")}
    _, lines, _ = say("export", "--what", "translations", "--to", "jsonl", "--store", tmp_path)
    assert [json.loads(line)["hypothesis"] for line in lines.splitlines()] == [row["hypothesis"] for row in read]
    code, _, told = say("export", "--what", "words", "--store", tmp_path)
    assert code == 2 and "'words' is not one of records, translations" in told
    other = tmp_path / "untranslated"
    assert say(*SWEEP, "--vocab", 200, "--models", "deepnorm", "--out", other)[0] == 0
    code, _, told = say("export", "--what", "translations", "--store", other)
    assert code == 2 and "sweep --bleu" in told


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A corpus to change."""
    return write(tmp_path)


def test_a_text_without_a_test_set_says_what_is_needed(directory: Path) -> None:
    task = ParallelText(corpus=corpus.find(directory, "de", "en"), vocab=100, max_tokens=64)
    with pytest.raises(CorpusError, match=r"needed test\.de with test\.en"):
        task.held_out()


def test_a_translation_that_cannot_be_made_is_told_and_the_page_is_written_all_the_same(
    tmp_path: Path, say: Say, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no words")

    monkeypatch.setattr(decode, "translate", broken)
    code, _, told = say(*SWEEP, "--vocab", 200, "--bleu", "--out", tmp_path, "--quiet")
    assert code == FailedRuns.exit_code and "2 of 2 runs were not translated" in told and "no words" in told
    (page,) = (path.read_text() for path in (tmp_path / "reports").iterdir())
    assert "failed</" not in page
    assert len(Store(tmp_path).ids()) == 2 and Shelf(TRANSLATION, tmp_path).ids() == []
