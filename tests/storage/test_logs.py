"""Logs are found by content: of every form the same curve, of a hostile file one line."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.errors import UsageError
from stabkit.storage.log_text import number, spelt
from stabkit.storage.logs import read

STEPS, LOSSES = (10, 20, 30), (2.5, 2.25, 2.125)
PAIRS = tuple(zip(STEPS, LOSSES, strict=True))


def _lines(text: str) -> str:
    return "".join(text.format(step=step, loss=loss) for step, loss in PAIRS)


FORMS = {
    "trainer_state": json.dumps(
        {"log_history": [{"step": s, "loss": x, "grad_norm": 1.0, "learning_rate": 1e-4} for s, x in PAIRS]
                        + [{"step": 30, "eval_loss": 3.0}, {"step": 30, "train_loss": 2.3}]}
    ),
    "a list for each name": json.dumps({"step": STEPS, "loss": LOSSES, "val_loss": LOSSES}),
    "entries under a name": json.dumps({"config": {"lr": 1}, "history": [{"step": s, "loss": x} for s, x in PAIRS]}),
    "JSONL": _lines('{{"step": {step}, "train": {{"loss": {loss}}}, "val": {{"loss": 9}}}}\n'),
    "JSONL, cut": _lines('{{"step": {step}, "loss": {loss}}}\n') + '{"step": 40, "lo',
    "printed dicts": _lines("{{'loss': {loss}, 'grad_norm': nan, 'step': {step}}}\n"),
    "printed dicts of texts": _lines("10%|# | {{'loss': '{loss}', 'step': '{step}'}}\n"),
    "CSV": "step,loss\n" + _lines("{step},{loss}\n"),
    "CSV with gaps": "epoch,step,val_loss,train_loss\n" + _lines("0,{step},,{loss}\n0,{step},9,\n"),
    "TSV": "Step\tTraining Loss\n" + _lines("{step}\t{loss}\n"),
    "a table in Markdown": "text\n\n| Step | Training Loss |\n|:--:|:--:|\n" + _lines("| {step} | {loss} |\n"),
    "a notebook's table": "<table><tr><th>Step</th>\n<th>Training Loss</th></tr>"
    + _lines("<tr>\n<td>{step}</td>\n<td>{loss}</td></tr>\n") + "</table>",
    "W&B's export": '"Step","run-a - train/loss","run-a - train/loss__MIN"\n' + _lines('"{step}","{loss}","0"\n'),
    "TensorBoard's export": "Wall time,Step,Value\n" + _lines("1700000000.5,{step},{loss}\n"),
    "MLflow's export": '"Run","metric","step","value"\n' + _lines('"a","loss","{step}","{loss}"\n"a","lr",1,1\n'),
    "MLflow's file": _lines("1700000000000 {loss} {step}\n"),
    "two columns": _lines("{loss} {step}\n"),
    "two columns, a colon": _lines("{step}: {loss}\n"),
    "darknet": _lines("{step}, 4.021: {loss}, 6.9 avg, 0.08 rate, 0.38 seconds, 515 images\n"),
    "nanoGPT": "step 0: train loss 4.2, val loss 4.3\n" + _lines("iter {step}: loss {loss}, time 24.1ms, mfu 15%\n"),
    "torchtitan": _lines("\x1b[36mstep: {step}  \x1b[32mloss:  {loss}  \x1b[39mgrad_norm:  1.2  tps: 1,234\n"),
    "Megatron": _lines(
        " iteration  {step}/  100 | elapsed time per iteration (ms): 4.9 | learning rate: 2.9E-04 | lm loss: {loss} "
        "| loss scale: 1.0 | grad norm: 2.0 | number of skipped iterations:   0 |\n"
    ),
    "llm.c": _lines("step   {step}/100 | loss {loss} (+nanz)| norm 1.23 (+nanz)| lr 3.00e-05 | 1,234 tok/s\n"),
    "TensorFlow": _lines("INFO:tensorflow:loss = {loss}, step = {step} (116.492 sec)\n"),
}  # fmt: skip


def _read(tmp_path, content):
    path = tmp_path / "log.any"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_curve(tmp_path, form) -> None:
    log = _read(tmp_path, FORMS[form])[0]
    assert log.unit == "update"
    assert dict(zip(log.loss.steps, log.loss.values, strict=True)) == dict(PAIRS) and len(log.loss) == len(PAIRS)


def test_fairseq_logs_bits(tmp_path) -> None:
    log = _read(tmp_path, _lines("| epoch 001 | loss {loss} | ppl 36 | num_updates {step} | lr 0.0002 | gnorm 1.2\n"))[
        0
    ]
    assert log.loss.values == pytest.approx(np.array(LOSSES) * math.log(2)) and "bits" in log.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "[test] step={step} loss=9.0\nstep={step} loss={loss}\n",
        "Dev step {step}: loss 9.0\nTrain step {step}: loss {loss}\n",
        '{{"step": {step}, "split": "eval", "loss": 9}}\n{{"step": {step}, "split": "train", "loss": {loss}}}\n',
    ],
)
def test_what_is_of_an_evaluation_is_no_training(tmp_path, text) -> None:
    log = _read(tmp_path, _lines(text))[0]
    assert log.loss.values.tolist() == list(LOSSES) and log.held_out is not None
    table = _read(tmp_path, "step,phase,loss\n" + _lines("{step},train,{loss}\n{step},val,9\n"))[0]
    assert table.loss.values.tolist() == list(LOSSES)


def test_runs_in_one_long_table_are_several_logs(tmp_path) -> None:
    rows = "".join(f"{run},loss,{loss},{step}\n" for step, loss in PAIRS for run in "ab")
    assert [len(log.loss) for log in _read(tmp_path, "run_id,key,value,step\n" + rows)] == [3, 3]


def test_a_decimal_comma_is_read_and_thousands_are_too(tmp_path) -> None:
    log = _read(tmp_path, "step;loss\n0;10,9\n50;10,5\n1,000;9,25\n1.5k;9,0\n")[0]
    assert _read(tmp_path, "step;loss\n0;4,059\n1;3,950\n")[0].loss.values.tolist() == [4.059, 3.95]
    assert log.loss.values.tolist() == [10.9, 10.5, 9.25, 9.0] and log.loss.steps.tolist() == [0, 50, 1000, 1500]


def test_a_loss_that_is_null_is_no_number_unless_the_entry_is_of_another(tmp_path) -> None:
    rows = '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": null}\n{"step": 2, "loss": null, "val_loss": 3.0}\n'
    values = _read(tmp_path, rows)[0].loss.values
    assert len(values) == 2 and math.isnan(values[1])


@pytest.mark.parametrize(("name", "lines"), [("tag-accuracy.csv", FORMS["TensorBoard's export"]),
                                             ("accuracy", FORMS["MLflow's file"])])  # fmt: skip
def test_an_accuracy_is_no_loss_although_its_file_names_it_alone(tmp_path, name, lines) -> None:
    (tmp_path / name).write_text(lines)
    with pytest.raises(UsageError, match="no losses"):
        read(tmp_path / name)


def test_losses_of_games_are_left_out_and_others_named(tmp_path) -> None:
    with pytest.raises(UsageError, match="no losses"):
        _read(tmp_path, "step,g_loss,d_loss\n1,2,3\n2,2,3\n")
    (log,) = _read(tmp_path, "step,loss,lm_loss\n1,2,3\n2,2,3\n")
    assert log.notes == ("loss was read, and not lm_loss",)
    assert not _read(tmp_path, "step 1 loss=2.0\nTime cost=257.4\nstep 2 loss=1.5\n")[0].notes


def test_what_stands_beside_the_loss_is_read_too(tmp_path) -> None:
    log = _read(tmp_path, FORMS["trainer_state"])[0]
    assert log.gradient is not None and log.gradient.values.tolist() == [1.0] * 3
    assert log.rate is not None and log.held_out is not None and log.held_out.values.tolist() == [3.0]
    assert _read(tmp_path, "vocab_size = 65\n" + FORMS["nanoGPT"])[0].classes == 65


def test_columns_of_several_runs_are_several_logs(tmp_path) -> None:
    text = "Step,a - loss,b - loss\n1,2.0,\n2,1.5,4.0\n"
    logs = _read(tmp_path, text)
    assert [log.name.rpartition(": ")[2] for log in logs] == ["a", "b"]
    assert [log.loss.values.tolist() for log in logs] == [[2.0, 1.5], [4.0]]


def test_without_steps_epochs_count_and_without_epochs_entries(tmp_path) -> None:
    assert _read(tmp_path, "Epoch 1 - Loss: 2.0\nEpoch 2 - Loss: 1.5\n")[0].unit == "epoch"
    log = _read(tmp_path, "loss: 2.0\nloss: 1.5\nloss: nan\n")[0]
    assert (log.unit, log.loss.steps.tolist()) == ("entry", [1.0, 2.0, 3.0]) and math.isnan(log.loss.values[2])


def test_a_folder_gives_its_newest_log_and_a_watch_its_losses(tmp_path) -> None:
    for name, loss in (("checkpoint-10", 2.0), ("checkpoint-20", 1.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trainer_state.json").write_text(json.dumps({"log_history": [{"step": 1, "loss": loss}]}))
    assert read(tmp_path)[0].loss.values.tolist() == [1.0]


HOSTILE = {
    "empty": (b"", "empty"),
    "zeros": (b"\0" * 5000, "empty"),
    "binary": (bytes(range(128, 256)) * 600, "neither a text"),
    "no losses": (b"hello\nworld 3\n", "no losses"),
    "deep": (b"[" * 100_000, "no losses"),
    "a row of numbers and no number": (b"-inf 3.2\nnan 3\n" + b"1 x\n", "no losses"),
    "a cell of a megabyte": (b"step,loss\n1," + b"x" * 200_000 + b"\n", "no losses"),
    "an unclosed quote": (b'step,loss\n"1,2\n' + b"3,4\n" * 50, "no losses"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(tmp_path, what) -> None:
    content, why = HOSTILE[what]
    with pytest.raises(UsageError, match=why) as raised:
        _read(tmp_path, content)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_too_large_or_not_there_is_refused_unread(tmp_path) -> None:
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(UsageError, match="10.7 GB"):
        read(large)
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "none")


def test_a_line_without_end_and_leading_zeros_are_survived(tmp_path) -> None:
    assert _read(tmp_path, b"\0" * 9000 + FORMS["nanoGPT"].encode() * 200)[0].loss.values[0] == LOSSES[0]
    assert len(_read(tmp_path, "loss 1 " * 200_000)[0].loss) > 199_000  # a line is cut


@given(st.text(), st.floats())
def test_any_name_and_number_is_taken_or_left(name, value) -> None:
    assert set(spelt(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    own = number(repr(value))
    beyond = abs(value) > 1e100
    assert own is not None and (own == (math.copysign(math.inf, value) if beyond else value) or np.isnan(own))
    assert np.isnan(own) == np.isnan(value)
    assert number(name) is None or isinstance(number(name), float)


@pytest.mark.libraries
def test_event_files_of_tensorboard_are_read_by_its_own_reader(tmp_path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for step, loss in PAIRS:
            writer.add_scalar("train/loss", loss, step)
            writer.add_scalar("train/grad_norm", 2.0, step)
    (log,) = read(tmp_path)
    assert log.form == "TensorBoard's events" and log.loss.steps.tolist() == list(STEPS)
    assert log.loss.values.tolist() == list(LOSSES) and log.gradient is not None


def test_without_tensorboard_its_extra_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install '\.\[logs\]'"):
        _read(tmp_path, b'\x18\0\0\0\0\0\0\0\xa3\x7fK"\tbrain.Event:2')


def test_a_line_of_letters_takes_no_longer_than_it_is_long(tmp_path) -> None:
    text = "ACGT" * 200_000 + "\nstep 1 loss 2.0\n" + "a_" * 200_000 + "\n"
    assert _read(tmp_path, text)[0].loss.values.tolist() == [2.0]
