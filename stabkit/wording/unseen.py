"""What sixteen updates and a ramp cannot see, by name, and what would: on every page of a probe, and in
docs/verdict.md."""

from __future__ import annotations

from typing import NamedTuple

from stabkit.results.own.alarm import JUMP, LATE, LOGIT, LOGIT_RECALL, LOOKED_AT


class Unseen(NamedTuple):
    """One thing that goes wrong later."""

    what: str
    alarm: str
    """The links of `stabkit.watch` that would see it; "" for none."""
    when: str
    """From which update on, and how often."""


UNSEEN = (
    Unseen(
        "attention-logit growth",
        "logits",
        "beyond {:,.0f} and growing: it warned of {} of {} trainings without QK-norm at too high a rate, and of {} of "
        "{} that ended well, by update {:,}".format(LOGIT, *LOGIT_RECALL),
    ),
    Unseen("output-logit drift", "", "log Z is recorded at every reading; no alarm warns of it"),
    Unseen(
        "late spikes",
        "jump, loss, finite, level",
        f"a step {JUMP:.0f} times the usual one at any update, three times the first loss, or logits that say nothing "
        f"of the input after {LATE} updates",
    ),
    Unseen(
        "data: a bad shard, an order that changes, labels that do not fit",
        "outlook, level",
        f"only what the loss shows of it, after {', '.join(map(str, LOOKED_AT))} updates",
    ),
)
WHY = "Sixteen updates and a ramp see what breaks at the start. What grows over thousands of updates they cannot see"
