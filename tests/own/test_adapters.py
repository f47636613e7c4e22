"""`stabkit.hf.Watch` and `stabkit.lightning.Watch` in the real trainers, end to end. `pytest -m libraries`."""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from stabkit.own.watch.journal import StabilityWarning
from stabkit.storage.watched import WatchShelf
from tests.conftest import need
from tests.own import library_models
from tests.own import probe_models as models
from tests.own.test_optimizers import muon_and_adamw
from tests.own.test_watch import loss_of, tokens

pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        row = torch.randint(0, 100, (16,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": row, "labels": row}


def hf(out, lr, callbacks):
    from transformers import Trainer, TrainingArguments

    torch.manual_seed(0)
    model = library_models.gpt2(3)
    arguments = TrainingArguments(
        output_dir=str(out), max_steps=12, per_device_train_batch_size=4, gradient_accumulation_steps=2,
        learning_rate=lr, lr_scheduler_type="constant", seed=3, logging_steps=1, report_to=[], save_strategy="no",
        use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=Rows(), callbacks=callbacks).train()
    return [p.detach().clone() for p in model.parameters()]


def lightning(out, lr, callbacks, accumulated=2):
    from lightning.pytorch import LightningModule, Trainer, seed_everything

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = models.noisy(2)[0]

        def training_step(self, batch, i):
            return loss_of(self.net, tokens(i))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=lr)

    seed_everything(0, verbose=False)
    module = Module()
    data = torch.utils.data.DataLoader(torch.zeros(48, 1), batch_size=2)
    trainer = Trainer(
        max_steps=12, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=callbacks, accumulate_grad_batches=accumulated, default_root_dir=str(out),
    )  # fmt: skip
    trainer.fit(module, data)
    return [p.detach().clone() for p in module.parameters()]


def lightning_by_hand(out, callbacks):
    """Muon and AdamW, stepped by the module itself."""
    from lightning.pytorch import LightningModule, Trainer, seed_everything

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.automatic_optimization = models.Stack(2), False

        def training_step(self, batch, i):
            both = self.optimizers()
            loss = loss_of(self.net, tokens(i))
            for optimizer in both:
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in both:
                optimizer.step()
            return loss

        def configure_optimizers(self):
            return muon_and_adamw(self.net)

    seed_everything(0, verbose=False)
    module = Module()
    data = torch.utils.data.DataLoader(torch.zeros(12, 1), batch_size=2)
    Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=callbacks, default_root_dir=str(out),
    ).fit(module, data)  # fmt: skip
    return [p.detach().clone() for p in module.parameters()]


def adapter(name, **options):
    if name == "hf":
        need("libraries", find_spec("transformers") and find_spec("accelerate"), "transformers and accelerate")
        from stabkit.hf import Watch

        return hf, Watch(**options)
    need("libraries", find_spec("lightning") is not None, "lightning")
    from stabkit.lightning import Watch

    return lightning, Watch(model="net", **options)


@pytest.mark.parametrize("name", ["hf", "lightning"])
def test_a_trainer_trains_as_without_and_leaves_a_watch(name, tmp_path):
    train, callback = adapter(name, out=tmp_path / "out")
    found = train(tmp_path, 1e-3, [callback])
    alone = train(tmp_path, 1e-3, [])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, alone, strict=True))
    (held,) = (WatchShelf(tmp_path / "out").load(own) for own in WatchShelf(tmp_path / "out").ids())
    assert held.ended == "closed" and held.cell.facts.steps == 12 and held.alarms == ()
    assert held.cell.records["gradient"].steps.tolist() == list(range(12))
    assert (held.cell.gradients("stack") > 0).all() and len(held.cell.records["loss"].steps) >= 11


@pytest.mark.parametrize("name", ["hf", "lightning"])
def test_a_rate_a_hundred_times_too_high_is_warned_of_at_once(name, tmp_path):
    train, callback = adapter(name, out=tmp_path / "out")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        train(tmp_path, 0.1, [callback])
    assert any(issubclass(one.category, StabilityWarning) for one in seen)
    assert [(one.link, one.step) for one in callback.watch.warnings][:2] == [("rate", 0), ("step", 1)]


@pytest.mark.parametrize("accumulated", [1, 2])
def test_lightnings_closures_give_the_gradients_and_losses_of_their_own_update(accumulated, tmp_path):
    need("libraries", find_spec("lightning") is not None, "lightning")
    from lightning.pytorch import Callback

    from stabkit.lightning import Watch

    class Truth(Callback):
        norms, losses, batch = [], [], []

        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            self.norms.append(float(torch.stack([p.grad.double().norm() for p in pl_module.parameters()]).norm()))

        def on_before_backward(self, trainer, pl_module, loss):
            self.batch.append(float(loss.detach()) * accumulated)

    truth, callback = Truth(), Watch(out=tmp_path / "out", model="net")
    truth.norms, truth.batch = [], []
    lightning(tmp_path, 1e-3, [truth, callback], accumulated)
    (held,) = (WatchShelf(tmp_path / "out").load(own) for own in WatchShelf(tmp_path / "out").ids())
    gradient = held.cell.records["gradient"]
    assert ((gradient.values**2).sum(axis=1) ** 0.5).tolist() == pytest.approx(truth.norms, rel=1e-6)
    assert held.cell.records["loss"].at("train").tolist() == pytest.approx(truth.batch[accumulated - 1 :: accumulated])


def test_lightning_with_two_optimizers_trains_as_without_and_is_watched(tmp_path):
    need("libraries", find_spec("lightning") is not None, "lightning")
    from stabkit.lightning import Watch

    callback = Watch(out=tmp_path / "out", model="net")
    found = lightning_by_hand(tmp_path, [callback])
    alone = lightning_by_hand(tmp_path, [])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, alone, strict=True))
    (held,) = (WatchShelf(tmp_path / "out").load(own) for own in WatchShelf(tmp_path / "out").ids())
    assert held.ended == "closed" and held.cell.facts.steps == 6 and held.cell.facts.optimizer == "Muon + AdamW"
    assert held.cell.records["loss"].steps.tolist() == list(range(6)) and held.alarms == ()


def test_a_trainer_that_trains_again_leaves_two_watches(tmp_path):
    train, callback = adapter("hf", out=tmp_path / "out")
    train(tmp_path, 1e-3, [callback])
    train(tmp_path, 1e-3, [callback])
    assert len(WatchShelf(tmp_path / "out").ids()) == 2 and callback.watch.ended == "closed"


def test_a_module_that_is_never_called_itself_says_what_to_do(tmp_path):
    need("libraries", find_spec("lightning") is not None, "lightning")
    from stabkit.lightning import Watch

    callback = Watch(out=tmp_path / "out")
    lightning(tmp_path, 1e-3, [callback])
    assert "give the watch a probe batch" in callback.watch.ended
    assert isinstance(callback.watch.model, nn.Module)
