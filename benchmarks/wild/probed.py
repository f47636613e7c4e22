"""Does it matter? Implementations as they are installed, and with their slips put right, as factories of the depth.

    STABKIT_WILD=DIR stabkit probe benchmarks.wild.probed:torchscale --depths 6,12,24,48 --no-fail
    STABKIT_WILD=DIR stabkit probe benchmarks.wild.probed:torchscale_by_recipe --depths 6,12,24,48 --no-fail

Each is a language model on one batch of 8 × 32 random tokens; the head is ours.
"""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.wild import factories
from benchmarks.wild.factories import TOKENS, WIDTH
from stabkit import methods
from stabkit.own.audit import recognised
from stabkit.own.audit.case import Case


class Language(nn.Module):
    """A stack of somebody's, and a head."""

    def __init__(self, core: nn.Module, argument: str = "", key: str = "") -> None:
        super().__init__()
        self.core, self.argument, self.key = core, argument, key
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states = self.core(**{self.argument: tokens}) if self.argument else self.core(tokens)
        return self.head(states[self.key] if self.key else states)


def _with_loss(core: nn.Module, argument: str = "", key: str = ""):
    tokens = torch.randint(2, TOKENS, (8, 32), generator=torch.Generator().manual_seed(11))

    def loss(model: nn.Module) -> torch.Tensor:
        return nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    return Language(core, argument, key), loss


def _by_recipe(core: nn.Module, depth: int, inputs: object) -> nn.Module:
    """Every matrix drawn as DeepNet says: Xavier times the gain, biases 0."""
    method = methods.build("deepnorm", {})
    with torch.no_grad():
        for reading in Case(method, recognised(core, (depth, 0), inputs)[2]).readings:
            deviation = method.gain(reading.site, reading.part.role) * (2 / sum(reading.shape)) ** 0.5
            reading.part.weight.copy_(deviation * torch.randn(reading.shape))
            if reading.part.bias is not None:
                reading.part.bias.zero_()
    return core


def torchscale(depth):
    """torchscale 0.3.0, `EncoderConfig(deepnorm=True)`."""
    core, _ = factories.torchscale_deepnorm_encoder(depth)
    core.output_projection = None
    return _with_loss(core, "src_tokens", "encoder_out")


def torchscale_by_recipe(depth):
    """The same, drawn as the paper says."""
    core, inputs = factories.torchscale_deepnorm_encoder(depth)
    core = _by_recipe(core, depth, inputs)
    core.output_projection = None
    return _with_loss(core, "src_tokens", "encoder_out")


def labml(depth):
    """labml-nn 0.5.1: α on the branch."""
    return _with_loss(factories.labml_deepnorm(depth))


def torchscale_gml(depth):
    """torchscale-gml 0.2.3, `DecoderConfig(deepnorm=True)`: Pre-LN with α on the shortcut."""
    core, _ = factories.torchscale_gml_deepnorm_decoder(depth)
    core.output_projection = nn.Identity()
    return _with_loss(_First(core), "prev_output_tokens")


class _First(nn.Module):
    def __init__(self, core: nn.Module) -> None:
        super().__init__()
        self.core = core

    def forward(self, prev_output_tokens: torch.Tensor) -> torch.Tensor:
        return self.core(prev_output_tokens)[0]
