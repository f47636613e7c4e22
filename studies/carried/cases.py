"""The cases: a method or a factory under an optimiser, its depths, and the double of the last, which is held out.

Methods are decoder-only, in llama's block, of 64-128-2, 256 tokens, on parallel text; factories have batches of their
own. No case has been looked at before its law was fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

METHOD_DEPTHS, FACTORY_DEPTHS = (6, 12, 24), (4, 8, 16)
SHAPE = {"arch": "decoder-only", "block": "llama", "max_tokens": 256}
STEPS, SEEDS = 300, (0, 1, 2)
RATES = "2.5e-4..0.25"


@dataclass(frozen=True, kw_only=True, slots=True)
class CarriedCase:
    """One of them."""

    key: str
    """`pre-ln muon`."""
    depths: tuple[int, ...]
    """That the law is fitted on."""
    options: dict[str, Any]
    """Of `stabkit transfer`."""

    @property
    def held_out(self) -> int:
        return 2 * self.depths[-1]

    @property
    def whole(self) -> dict[str, Any]:
        """The options with the depth that is held out, which is searched as the others are."""
        return {**self.options, "depths": (*self.depths, self.held_out), "steps": STEPS, "seeds": SEEDS, "lr": RATES}


def method(name: str, optimizer: str) -> CarriedCase:
    """A built-in method."""
    options = {"models": name, "optimizer": optimizer, **SHAPE}
    return CarriedCase(key=f"{name} {optimizer}", depths=METHOD_DEPTHS, options=options)


def factory(name: str) -> CarriedCase:
    """A factory of `factories.py`."""
    return CarriedCase(key=name, depths=FACTORY_DEPTHS, options={"factory": f"studies.carried.factories:{name}"})


CASES = (
    *(method(name, "adamw") for name in ("pre-ln", "deepnorm", "depth-mup", "completep")),
    *(method(name, "muon") for name in ("pre-ln", "deepnorm")),
    *map(factory, ("plain_adamw", "gpt2_adamw", "plain_sgd", "plain_muon")),
    *(method(name, "adamw") for name in ("keel", "layernorm-scaling", "gpt2-init", "peri-ln")),
    *(method(name, "muon") for name in ("keel", "layernorm-scaling")),
)
"""In the order in which they are trained."""
