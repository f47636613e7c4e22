"""`stabkit.watch(model, optimizer)`: two lines in a training loop, and the chain is recorded and warned of.

Everything happens at the optimiser's step hooks: gradients before every update (after accumulation, all-reduce and
unscaling), activations and the weights' step after those that `recording.py` names, in an eager eval forward of our
own. No hook stands in a training forward, save for the first call where no probe batch is given. After the first update
nothing is raised: a watch that fails says so once, stops, and training goes on.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stabkit.errors import StabkitError, Stuck, UsageError
from stabkit.own.chain.updates import UnknownOptimizers, Updates, name, several
from stabkit.own.chain.updates import refuse as refuse_optimizers
from stabkit.own.sublayers.run import Call
from stabkit.own.watch import distributed
from stabkit.own.watch.chain import OtherSublayers
from stabkit.own.watch.inputs import FirstCall, Losses, WatchedBatch, absolute, check, frozen, refuse, unwrapped
from stabkit.own.watch.journal import Journal, StabilityWarning, say
from stabkit.own.watch.recording import Recording, meets
from stabkit.results import stop as stopping
from stabkit.results.own.alarm import Alarm
from stabkit.storage.folder import first_line
from stabkit.storage.watched import WatchShelf, identity
from stabkit.wording import log as words

EARLY = (16, 64, 256)
"""Updates after which a part is written although none is due: what is killed soon leaves its beginning."""
LARGEST_COPY = 1_000_000_000
"""Bytes of weights above which θ_0 is kept only if asked."""


class _Ended(Exception):
    """The watch was ended on the way; nothing more is to be done."""


class Watch:
    """Records the chain of a model in training and warns, once a link, through `warnings`.

    Its options are those of `stabkit.api.watch`, but for `page(store, id, command)`: called by `close()`, it writes the
    page and returns its path. Raises UsageError for what cannot be watched.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None = None,
        *,
        probe: Any = None,
        every: str | int = "log",
        out: str | Path = "out",
        name: str = "",
        blocks: str = "",
        warn: bool = True,
        start: bool | None = None,
        writer: Any = None,
        anyway: bool = False,
        page: Callable[[Path, str, str], Path] | None = None,
        stop: float | None = None,
    ) -> None:
        self.model, self.optimizers = unwrapped(model), several(optimizer)
        refuse(self.model, self.optimizers, every, writer, probe)
        check(out, name, blocks)
        self.every, self.blocks, self.page, self.anyway = every, blocks, page, anyway
        self._name = name or type(self.model).__name__
        self.id = identity(self._name)
        self.steps = 0
        """Updates since the watch began."""
        self.ended = ""
        """`closed`, `stopped: why`, or why it never began; "" while it watches."""
        self.notes: list[str] = []
        size = sum(p.numel() * p.element_size() for p in self.model.parameters())
        self.start = size <= LARGEST_COPY if start is None else start
        if not self.start:
            self.notes.append("‖θ_t − θ_0‖ is not recorded: it needs a copy of the weights; start=True keeps one")
        self._sharded, first = distributed.is_sharded(self.model), distributed.is_first(self.model)
        self._shelf = WatchShelf(absolute(out)) if first else None
        self._journal = Journal(self._shelf, self.id, warn, writer)
        self._journal.keep = self._flush
        self._earlier: list[Journal] = []
        """Of the model as it was before it had other sub-layers."""
        self._recording: Recording | None = None
        self._losses = Losses()
        self._stop_at = None if stop is None else stopping.StopLosses(stopping.check("stop", stop))
        self._pid, self._failed, self._told, self._late = os.getpid(), "", False, False
        self._odd = False
        self._first: FirstCall | None = None
        self._updates: Updates | None = None
        self._strangers: UnknownOptimizers | None = None
        if not first and not self._sharded:
            self.ended = "the first process records"
            return
        if any(watch.model is self.model for watch in _open):
            self.ended = "another watch is on this model"
            say("another watch is on this model, so this one records nothing; close() the other one first")
            return
        if any(own.state for own in self.optimizers):
            self.notes.append("the optimizer had already taken steps: θ_0 and update 0 are the model at this point")
        if idle := frozen(self.model, self.optimizers):
            self.notes.append(idle)
        if probe is None:
            self._first = FirstCall(model)
            self.notes.append("read on the model's first batch")
        else:
            self._begin_on(probe)
        if self.ended:
            return
        if self.optimizers:
            self._hook()
            mine = weakref.ref(self)
            self._strangers = UnknownOptimizers(self.model, lambda: getattr(mine(), "_updates", None), say)
            weakref.finalize(self, self._strangers.remove)  # its hooks are of the whole process
        _open.add(self)

    # — what the user calls —

    @property
    def warnings(self) -> list[Alarm]:
        """Every warning so far."""
        return [alarm for journal in (*self._earlier, self._journal) for alarm in journal.warnings]

    def loss(self, value: Any, update: int | None = None) -> None:
        """Records the training loss of an update (default: the one that comes next): a number or a tensor of one. What
        is none is left out, and told of once. Raises Stuck where the watch has `stop` and the training is dead."""
        step = self.steps if update is None else update

        def give() -> None:
            try:
                self._losses.give(step, value)
            except UsageError as error:
                if not self._odd:
                    self._odd = True
                    say(f"{error}; it is left out, the watch goes on")

        self._guarded(give)
        if self.ended == "closed" and not self._late:
            self._late = True
            say("this watch is closed: it records no more losses and updates")
        if self._stop_at is not None and not self.ended and not self._odd:
            guess = self._journal.alarms.guess
            last = float(value.detach() if isinstance(value, torch.Tensor) else value)
            if (found := self._stop_at.stop(step + 1, last, guess.uniform if guess is not None else None)) is not None:
                self._end(f"stopped: stop={found.alpha:g}")
                raise Stuck(f"{words.stop(found)}. {words.bound(found)}")

    def optimizer(self, new: torch.optim.Optimizer | Sequence[torch.optim.Optimizer]) -> None:
        """From the next update on these step, in place of those that did. Raises UsageError for what is none."""
        following = several(new)
        if not following or not self.optimizers:
            raise UsageError("watch.optimizer() takes one or several optimizers that replace those given before")
        refuse_optimizers(following, "watch.optimizer")
        if self.ended:
            return
        self.notes.append(f"from update {self.steps} on {name(following)} replaces {name(self.optimizers)}")
        self.optimizers = following
        self._hook()
        if self._recording is not None:
            self._recording.steps_by(self.steps, following)

    def step(self) -> None:
        """After an update, where there is no optimiser whose hooks tell."""
        if self.optimizers:
            raise UsageError("watch: the optimizer reports its own steps; step() is for a watch without an optimizer")
        self._guarded(self._before)
        self._guarded(self._after)

    def close(self) -> None:
        """Write what is not yet written, and let go of hooks and copies. A second time nothing happens."""
        self._guarded(self._last)
        if not self.ended:
            self._end("closed")
        if not self._told and os.getpid() == self._pid:
            self._told = True
            if self._recording is not None:  # its last records could not be written when it ended
                self._last_try()
            for journal in (*self._earlier, self._journal):
                try:
                    journal.tell(self.page, self.ended)
                except StabilityWarning:
                    raise
                except Exception as error:  # after the training, before what the user does with it
                    say(f"{type(error).__name__}: {first_line(error)}; the records are in {journal.name}")

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None and not self.ended:
            if not self._sharded:  # elsewhere the other processes may have met no error
                self._guarded(self._last)
            self._end(self.ended or f"stopped: the training raised {error[0].__name__}")
        self.close()

    # — what the hooks do —

    def _hook(self) -> None:
        if self._updates is not None:
            self._updates.remove()
        self._updates = Updates(
            self.optimizers,
            lambda optimizer: self._guarded(lambda: self._before(optimizer)),
            lambda: self._guarded(self._after),
            say,
        )

    def _begin_on(self, probe: Any) -> None:
        """Before the training, on a batch of the user's; raises UsageError for one that the model cannot be read on."""
        batch = WatchedBatch.of(Call.of(probe), self.model)
        batch.check(self.model)
        try:
            self._begin(batch)
        except _Ended:
            return
        except (StabkitError, StabilityWarning):
            raise
        except Exception as error:  # the model's own, on a batch that it cannot take
            why = f"{type(error).__name__}: {first_line(error)}"
            raise UsageError(f"probe: the model cannot be read on this batch ({why})") from error

    def _begin(self, batch: WatchedBatch) -> None:
        if self._sharded:
            self._guarded(lambda: self._make(batch))
            self._agree()
        else:
            self._make(batch)
        assert self._recording is not None
        self._recording.begin()

    def _make(self, batch: WatchedBatch) -> None:
        kept = self._journal, self._losses, self.optimizers
        asked: dict[str, Any] = {"every": self.every, "blocks": self.blocks, "start": self.start, "anyway": self.anyway}
        self._recording = Recording(self.model, batch, *kept, **asked)

    def _begin_anew(self) -> None:
        """The model has other sub-layers: what was recorded ends here, and its own record begins."""
        assert self._recording is not None
        batch, before = self._recording.chain.batch, self._journal
        name = identity(self._name)
        self._flush(f"stopped: from update {self.steps} on the model has other sub-layers: recorded on as {name}")
        self._earlier.append(before)
        self.id = name
        self._journal = Journal(self._shelf, name, before.warn, before.writer)
        self._journal.keep = self._flush
        self.notes.append(f"recorded from update {self.steps} of a training on: before, it had other sub-layers")
        self._make(batch)
        self._recording.begin(self.steps)

    def _before(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        if self._failed:
            return
        if self._recording is None:
            if self._first is None or self._first.batch is None:
                raise UsageError("the model was never called before its first update; give the watch a probe batch")
            self._begin(self._first.batch)
        assert self._recording is not None
        self._recording.before(self.steps, optimizer)

    def _after(self) -> None:
        self.steps += 1
        if self._sharded and meets(self.every, self.steps):
            self._agree()
        if self._recording is not None and not self._failed:
            try:
                self._recording.after(self.steps)
            except OtherSublayers:
                self._begin_anew()
            if self._journal.due or self.steps in EARLY:
                self._flush()

    def _last(self) -> None:
        if self._sharded:
            self._agree()
        if self._recording is not None:
            try:
                self._recording.end(self.steps)
            except OtherSublayers:
                self._begin_anew()

    def _agree(self) -> None:
        """End together with the other processes where the watch of any has failed."""
        try:
            failed = distributed.failed_anywhere(bool(self._failed), self.model)
        except Exception as error:  # of torch's, or of another process's: the watch ends, training goes on
            failed, self._failed = True, self._failed or f"{type(error).__name__}: {first_line(error)}"
        if failed:
            self._stop(self._failed or "the watch of another process failed")
            raise _Ended

    def left_open(self) -> None:
        """At the interpreter's end: write what is there, as that of a watch that nobody closed."""
        self._guarded(self._leave)

    def _leave(self) -> None:
        if self._recording is not None and not self._sharded:
            self._recording.settle()
            self._flush()

    def _flush(self, ended: str = "") -> None:
        if self._recording is not None:
            uneven = self._updates.note if self._updates is not None else ""
            notes = [*self.notes, *([uneven] if uneven else [])]
            self._journal.flush(self._recording.facts(self.id, self.steps, notes), ended or self.ended)

    # — how it ends —

    def _guarded(self, act: Callable[[], None]) -> None:
        """Do it, unless this is the end or a fork; nothing of ours is raised in a training that has begun, save for
        warnings that the user has made errors of."""
        if self.ended:
            return
        if os.getpid() != self._pid:
            self._let_go()
            self.ended = "in a fork of the watched process"
            say("this process is a fork of the watched one: it records nothing, training goes on")
            return
        try:
            act()
        except _Ended:
            return
        except StabilityWarning as error:
            self._end(f"stopped: {error}")
            raise
        except Exception as error:  # whatever it is, training goes on
            why = str(error) if isinstance(error, StabkitError) else f"{type(error).__name__}: {first_line(error)}"
            if self._sharded:
                self._failed = self._failed or why
            else:
                self._stop(why)

    def _stop(self, why: str) -> None:
        self._end(f"stopped: {why}")
        if self._failed or distributed.is_first(self.model):
            say(f"the watch ends at update {self.steps}, training goes on: {why}")

    def _end(self, how: str) -> None:
        self._let_go()
        self.ended = how
        with suppress(RecursionError):  # `close` tries again, with more of the stack left
            self._last_try()

    def _last_try(self) -> None:
        try:
            self._flush()
        except (StabilityWarning, RecursionError):
            raise
        except Exception as error:  # at the end as on the way
            say(f"the watch could not write its last records, training goes on: {type(error).__name__}: {error}")
        self._recording = None

    def _let_go(self) -> None:
        _open.discard(self)
        for hooks in (self._updates, self._strangers):
            if hooks is not None:
                hooks.remove()
        if self._first is not None:
            self._first.forget()


_open: weakref.WeakSet[Watch] = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """What a watch that nobody closed holds is written at the interpreter's end."""
    for watch in list(_open):
        watch.left_open()
