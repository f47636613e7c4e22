"""What a cached cell follows from besides its name: files that were opened, what the model was called with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from stabkit.own import factory
from stabkit.own.probe import followed
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from tests.own import probe_models
from tests.own.probing import told

OF_FILE = """
import json, os, tempfile
import torch
from tests.own import probe_models

def of_data(depth):
    model, _ = probe_models.pre_ln(depth)
    def loss(model, step):
        tokens = torch.load(os.environ["DATA"])[step]
        return torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    return model, loss

def of_configuration(depth):
    model, loss = probe_models.pre_ln(depth)
    def late(model, step):
        with open(os.environ["DATA"]) as file:
            return loss(model, step) if step < 2 else loss(model, step) * json.load(file)["late"]
    return model, late

def of_scratch(depth):
    model, loss = probe_models.pre_ln(depth)
    kept = tempfile.NamedTemporaryFile(suffix=".pt")
    torch.save(model.state_dict(), kept.name)
    model.kept = [kept]
    def logged(model, step):
        with open(os.environ["DATA"], "a+") as log:
            log.write(f"{step}\\n")
        model.load_state_dict(torch.load(kept.name)) if step == 0 else None
        return loss(model, step)
    return model, logged

HELD = [None]

def of_memory(depth):
    model, _ = probe_models.pre_ln(depth)
    def loss(model, step):
        tokens = (torch.arange(24).view(4, 6) + step + (HELD[0] if step > 2 else 0)) % 11
        return torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    return model, loss
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Probes a factory of `OF_FILE` twice, something done between: whether the second was cached."""
    (tmp_path / "own").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    name = f"of_file_{os.path.basename(tmp_path)}"
    (tmp_path / "own" / f"{name}.py").write_text(OF_FILE)

    def probe(which):
        followed.forget()  # a worker is another process: what this one has written is not its own
        return told("", tmp_path, 2, factory=f"{name}:{which}", steps=4)["reused"]  # the store is where they work

    probe.module = name
    return probe


def data(path: Path, late: int) -> None:
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randint(11, (4, 6), generator=generator) for _ in range(6)]
    torch.save(batches[:2] + [(batch + late) % 11 for batch in batches[2:]], path)


def test_batches_of_a_file_that_changed_are_probed_again(own, tmp_path, monkeypatch):
    monkeypatch.setenv("DATA", str(tmp_path / "d.pt"))
    data(tmp_path / "d.pt", 0)
    assert not own("of_data") and own("of_data")
    data(tmp_path / "d.pt", 1)
    assert not own("of_data") and own("of_data")


def test_a_configuration_that_moves_no_weight_and_no_first_loss_is_followed(own, tmp_path, monkeypatch):
    monkeypatch.setenv("DATA", str(tmp_path / "c.json"))
    for late in (1.0, 0.0):
        (tmp_path / "c.json").write_text(json.dumps({"late": late}))
        assert not own("of_configuration") and own("of_configuration")


def test_a_log_and_what_a_factory_keeps_in_passing_hinder_no_reuse(own, tmp_path, monkeypatch):
    monkeypatch.setenv("DATA", str(tmp_path / "log"))
    assert not own("of_scratch") and own("of_scratch")


def test_later_batches_that_come_from_memory_are_followed(own):
    import importlib

    for late in (0, 1):
        importlib.import_module(own.module).HELD[0] = late
        assert not own("of_memory") and own("of_memory")


def test_what_is_opened_is_noted_with_what_it_holds(tmp_path):
    followed.listen()
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.write_text("a")
    (tmp_path / "store" / "probes").mkdir(parents=True)
    followed.forget()
    for path in (there, gone, tmp_path / "store" / "probes" / "page"):
        try:
            open(path).close()
        except FileNotFoundError:
            pass
    open(tmp_path / "written", "w").close()
    found = followed.files(tmp_path / "store")
    assert {Path(path).name: bool(held) for path, held in found.items() if str(tmp_path) in path} == {
        "there": True,
        "gone": False,
    }
    there.write_text("longer")
    assert followed.files(tmp_path / "store") is None, "it has changed since it was read"
    followed.forget()


def test_a_folder_of_which_nothing_is_known_is_never_reused():
    for stored in ({}, {"files": None, "steps": 1, "calls": ""}, {"files": {}, "steps": "x", "calls": ""}):
        assert not followed.same(stored, None)


def test_a_factory_that_gives_other_weights_at_a_second_call_is_said_to(tmp_path):
    facts = {}
    for name in ("pre_ln", "counting"):
        folder = told(name, tmp_path, 2)["folder"]
        facts[name] = Shelf(PROBE, tmp_path).load(folder).facts
    assert any("other weights when it is called again" in note for note in facts["counting"].notes)
    assert not any("called again" in note for note in facts["pre_ln"].notes)
    assert probe_models.CALLS


def test_what_a_factory_imports_in_its_body_is_imported_before_it_is_called_and_what_fails_is_left_to_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first_part", "second_part", "not_wanted"):
        (tmp_path / f"{name}.py").write_text("HELD = 1\n")
    (tmp_path / "their_factories.py").write_text(
        'def sound(depth):\n    """Theirs."""\n    from first_part import HELD\n    if depth:\n'
        "        import not_wanted\n    raise RuntimeError(HELD)\n\n"
        "def broken(depth):\n    import second_part\n    import no_such_part\n    return depth\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("sound", "broken"):
        factory.imports(factory.function("FACTORY", f"their_factories:{name}"))
    assert {"first_part", "second_part"} <= set(sys.modules) and "not_wanted" not in sys.modules
