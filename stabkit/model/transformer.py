"""The Transformer: embeddings, N encoder and M decoder layers of residuals, output projection (tied by default).

M = 0 is an encoder alone (its states are the output), N = 0 a decoder alone. Embeddings are N(0, 1/d) times √d, with
their positions; source, target and output share one table, as the papers' joint vocabularies do. Before and after a
stack stands what the method says (a norm after it in Pre-LN), and a sub-layer reads what its stack's wiring gives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from stabkit.kernels.fused import Fused, FusedPass
from stabkit.kernels.head import scored
from stabkit.kernels.lease import Spare
from stabkit.kernels.reference import linear
from stabkit.methods.base import Method, Site, Stack, sites
from stabkit.methods.parts import Part
from stabkit.methods.wirings import wired
from stabkit.model import draw
from stabkit.model.branch import Carried, Linear
from stabkit.model.part import part
from stabkit.model.positions import POSITIONS
from stabkit.model.residual import Residual
from stabkit.model.tap import Tap
from stabkit.model.wirings import wiring_of
from stabkit.model.wirings.base import ChainWiring, States
from stabkit.spec import Kernels, ModelConfig
from stabkit.tasks.base import PAD, Batch


class Transformer(nn.Module):
    """F(source, target_in): (B, S), (B, T) → decoder states (T, B, D) and logits (T, B, V).

    On the device that is torch's default while it is made. Weights are rounded to float32 whatever the `dtype`.
    """

    def __init__(
        self,
        config: ModelConfig,
        method: Method,
        vocab: int,
        seed: int,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float32,
        kernels: Kernels = "fused",
    ) -> None:
        super().__init__()
        self.only_python = "asked for" if kernels == "python" else ""
        """Why no pass is made by the fused kernel; "" where every one is that can be."""
        self.ran: dict[str, None] = {}
        """What passes were made by so far."""
        self.config, self.method, self.dropout = config, method, dropout
        self.sites = sites(config.encoder_layers, config.decoder_layers, config.hidden, config.base_init)
        self.stacks: tuple[Stack, ...] = tuple(dict.fromkeys(site.stack for site in self.sites))
        self.embedding = nn.Parameter(torch.empty(vocab, config.hidden))
        self.head = self.embedding if config.tied else nn.Parameter(torch.empty(vocab, config.hidden))
        self.positions = POSITIONS[config.positions](config, self.device)
        shared: dict[str, nn.Parameter] = {}
        self.residuals: dict[Site, Residual] = {
            site: Residual(config, method, site, dropout, shared, self.positions) for site in self.sites
        }
        self.stacked = {
            stack: _layers([(site, r) for site, r in self.residuals.items() if site.stack == stack])
            for stack in self.stacks
        }
        self.begin = self._beside(method.embedding)
        self.layers = nn.ModuleDict({site.name.replace(".", "_"): r for site, r in self.residuals.items()})
        self.final = self._beside(method.final)
        self.history = nn.ModuleDict(  # the name by which weights are stored
            {
                s: wiring_of(method.wiring, [site for site in self.sites if site.stack == s], config.norm, seed)
                for s in self.stacks
            }
        )
        self._numbered = {
            tap: {getattr(r, tap): i for i, r in enumerate(self.residuals.values())}
            for tap in ("branch", "sum", "shortcut")
        }
        wiring = wired(method.wiring)
        streams = wiring.streams
        self._reads = {site.name: Tap() for site in self.sites} if wiring.replaces else {}
        if self._reads:  # what its residual adds up goes nowhere
            self._numbered["sum"] = {tap: i for i, tap in enumerate(self._reads.values())}
        places = [name for s in self.sites for name in ([f"{s.stack}.0"] if s.index == 1 else []) + [s.name]]
        self._taps = {place: [Tap() for _ in streams] for place in places}
        self._states = {
            f"{place}:{stream}" if stream else place: tap
            for place, taps in self._taps.items()
            for stream, tap in zip(streams, taps, strict=True)
        }
        self.taps = nn.ModuleList([*self._states.values(), *self._reads.values()])
        self._in_order = {stack: [each for layer in layers for each in layer] for stack, layers in self.stacked.items()}
        self._fused = {stack: self._call(stack) for stack in self.stacks}
        self._spare = Spare()
        self._hooks = {stack: self._hooks_of(stack) for stack in self.stacks}
        modules = list(self.modules())
        self._unhooked: dict[Stack, int] = {}
        """How many hooks torch had made when a stack was last found without one."""
        self._modal = [self, *(m for m in modules if isinstance(m, Residual | Tap))]
        for each in modules:  # found at once: torch's fallback takes a tenth of a small forward pass
            each.__dict__.update({**each._modules, **each._parameters})
        self.fill(seed)
        for each in modules:
            for tensor in (*each._parameters.values(), *each._buffers.values()):
                if tensor is not None and tensor.dtype != dtype:  # `to` would exchange those that are held twice
                    tensor.data = tensor.data.to(dtype)

    def _call(self, stack: Stack) -> Fused:
        """A stack as the fused kernel takes it."""
        shown = self.history[stack].whole
        return Fused(
            [
                residual.fused(stack == "decoder" and site.kind == "self", self._taps[site.name] if shown else ())
                for site, residual in self._in_order[stack]
            ],
            self.config.hidden,
            self.config.heads,
        )

    def _hooks_of(self, stack: Stack) -> list[Mapping[int, object]]:
        """Where torch keeps the hooks of whatever a stack is made of."""
        return [
            hooks
            for site, residual in self._in_order[stack]
            for m in (*residual.modules(), *self._taps[site.name])
            for hooks in (m._forward_hooks, m._forward_pre_hooks, m._backward_hooks, m._backward_pre_hooks)
        ]

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    def hooked(self) -> bool:
        """Whether anything is attached that a fused pass would not serve."""
        if any(any(hooks) for hooks in self._hooks.values()):
            return True
        return any(any(watchers) for stack in self._fused.values() for watchers in stack.unasked.values())

    def path_taken(self) -> str:
        """`fused AVX512`, `python (asked for)`; where a few passes took the other path, or a hook asked for it, that
        too: `fused AVX512, python (a probe that asks for the graph)`."""
        return ", ".join(self.ran) or "before any pass"

    def parts(self) -> dict[str, nn.Module | nn.Parameter]:
        """Every parameter by the part it belongs to, in the order of the forward pass."""
        named = {site.name: residual for site, residual in self.residuals.items()}
        head = {} if self.config.tied else {"head": self.head}
        begin: dict[str, nn.Module | nn.Parameter] = {"embedding": self.embedding, "begin": self.begin}
        return {**begin, **named, "final": self.final, "history": self.history, **head}

    def _beside(self, slot: Callable[[Stack], Part]) -> nn.ModuleDict:
        """What stands before or after each stack, where anything does."""
        config = self.config
        modules = {stack: part(slot(stack), config.norm, config.hidden, config.heads) for stack in self.stacks}
        return nn.ModuleDict({stack: module for stack, module in modules.items() if module is not None})

    def train(self, mode: bool = True) -> Transformer:
        """Training or eval mode, as ever, of what reads it; torch's walk takes as long as the update does."""
        for module in self._modal:
            module.__dict__["training"] = mode
        return self

    def numbered(self, tap: Literal["branch", "sum", "shortcut"]) -> dict[Tap, int]:
        """{tap module: place of its site in `sites`}, in that order. Where a wiring replaces the residual, and its sum
        goes nowhere, `sum` is what the branch reads, which enters its norm."""
        return self._numbered[tap]

    def states(self, after: Literal["sub-layer", "layer"]) -> dict[str, Tap]:
        """{place: the tap that its state passes}: `encoder.0` is what enters a stack, then follows every sub-layer
        (`encoder.1.self`), or every layer (`encoder.1`); of several streams each, `encoder.1:sum`."""
        if after == "sub-layer":
            return dict(self._states)
        taps: dict[str, Tap] = {}
        for name, tap in self._states.items():
            place, colon, stream = name.partition(":")
            taps[".".join(place.split(".")[:2]) + colon + stream] = tap  # the last sub-layer of a layer stays
        return taps

    def reads(self) -> dict[str, Tap]:
        """{site: the tap that what its branch reads passes}, where a wiring replaces the residual."""
        return dict(self._reads)

    def arrays(self) -> dict[str, np.ndarray]:
        """All weights by name, and `omega`: the scale of every site's shortcut, in the order of `sites`."""
        weights = {name: p.detach().cpu().numpy() for name, p in self.named_parameters()}
        return {**weights, "omega": np.array([r.mean_omega() for r in self.residuals.values()])}

    @torch.no_grad()
    def load(self, weights: Mapping[str, np.ndarray]) -> None:
        """Take the weights that `arrays` gave; raises KeyError or RuntimeError for those of another model."""
        for name, parameter in self.named_parameters():
            parameter.copy_(torch.tensor(weights[name]))
        for residual, omega in zip(self.residuals.values(), weights["omega"].tolist(), strict=True):
            if isinstance(residual.omega, float):
                residual.set_omega(omega)

    @torch.no_grad()
    def fill(self, seed: int) -> None:
        """Draw θ₀: every weight from its own stream; biases 0, norms 1 and 0 as constructed."""
        self.embedding.copy_(draw.embedding(seed, *self.embedding.shape))
        if not self.config.tied:  # with the embedding's gain, so that the logits begin as large
            self.head.copy_(draw.embedding(seed, len(self.head), self.config.hidden, "head"))
        for table in {self.embedding, self.head}:
            table.mul_(self.method.gain(self.sites[0], "embedding"))
        for site, residual in self.residuals.items():
            for child in residual.g.children():
                if isinstance(child, Linear):
                    child.fill(self.config, self.method, site, seed)
        for stack, history in self.history.items():
            history.fill(seed, stack)  # type: ignore[operator]  # a ModuleDict holds Modules

    def forward(
        self, source_BS: torch.Tensor, target_BT: torch.Tensor, padded: bool | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Teacher forcing: states before the softmax (T, B, D) and logits (T, B, V); of an encoder alone (S, …).

        `padded`: whether the source has padding, from whoever knows; a GPU that is asked keeps the host waiting."""
        states = self.states_of(source_BS, target_BT, padded)
        return states, linear(states, self.head, None)

    def score(
        self, source_BS: torch.Tensor, target_BT: torch.Tensor, right_TB: torch.Tensor, smoothing: float, padded: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """States and logits as above, the cross-entropy of `right_TB` with label smoothing as a mean over those that
        are no padding, and the same without smoothing, where it comes with it (None: not yet made)."""
        states = self.states_of(source_BS, target_BT, padded)
        right = right_TB.reshape(-1)
        if self._why_not(self.stacks[-1], states):
            logits = linear(states, self.head, None)
            loss = functional.cross_entropy(logits.flatten(0, 1), right, ignore_index=PAD, label_smoothing=smoothing)
            return states, logits, loss, None
        out = scored(states.flatten(0, 1), self.head, right, PAD, smoothing, self._spare)
        return states, out.logits.view(*right_TB.shape, -1), out.loss, out.right

    def states_of(self, source_BS: torch.Tensor, target_BT: torch.Tensor, padded: bool | None = None) -> torch.Tensor:
        """The states before the softmax alone."""
        states, mask = self.encode(source_BS, padded)
        if self.config.decoder_layers:
            states = self._stack("decoder", target_BT, states, mask)
        if states is None:
            raise ValueError("a Transformer without a layer")
        return states

    @torch.no_grad()
    def read(self, batch: Batch) -> None:
        """One forward pass over a batch in training mode, for what hooks see of it."""
        self.train()
        self(*tensors(batch, self.device)[:2])

    def encode(
        self, source_BS: torch.Tensor, padded: bool | None = None
    ) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The encoder's states (S, B, D), None without an encoder, and the mask (B, S) of source positions: −∞ where
        there is padding, None where there is none."""
        if not self.config.encoder_layers:
            return None, None
        pad_BS = source_BS == PAD
        mask = None
        if bool(pad_BS.any()) if padded is None else padded:
            mask = self.embedding.new_zeros(pad_BS.shape).masked_fill_(pad_BS, -math.inf)
        return self._stack("encoder", source_BS, None, mask), mask

    def _stack(
        self, stack: Stack, tokens_BT: torch.Tensor, memory: torch.Tensor | None, mask_BS: torch.Tensor | None
    ) -> torch.Tensor:
        """One stack from token ids to states. `mask_BS` is for keys of the source: encoder self- and
        cross-attention."""
        wiring: ChainWiring = self.history[stack]  # type: ignore[assignment]  # a ModuleDict holds Modules
        x = self._embed(stack, tokens_BT)
        kernel = None if self._why_not(stack, x) else self._pass(stack, x, mask_BS)
        wiring.fused = kernel is not None
        states = wiring.begin(x)
        self._tap_states(f"{stack}.0", states)
        sublayers = self._in_order[stack]
        step = 1 if kernel is None or not wiring.whole else len(sublayers)
        masks = {} if kernel else self._masks(stack, tokens_BT, mask_BS)
        carried: Carried = {}
        for begin in range(0, len(sublayers), step):
            last = begin + step - 1
            site, residual = sublayers[last]
            (read, states), branch = wiring.read(states, begin), None
            read = self._reads[site.name](read) if self._reads else read
            if kernel:
                y, branch = kernel(begin, last + 1, read, memory, wiring.adds)
            else:
                y, branch = residual(read, memory, masks.get(site.kind), carried)
            states = wiring.join(states, y, branch, last)
            self._tap_states(site.name, states)
        x = wiring.end(states)
        return self.final[stack](x) if stack in self.final else x

    def _why_not(self, stack: Stack, x: torch.Tensor) -> str:
        """Why this pass takes the Python path; "" where the fused kernel makes it."""
        reason = self.only_python or self._fused[stack].why_not(x, self.training)
        reason = reason or ("hooks" if self._watched(stack) else "")
        self.ran[f"python ({reason})" if reason else f"fused {self._fused[stack].processor}"] = None
        return reason

    def _watched(self, stack: Stack) -> bool:
        """Whether any of torch's hooks is on a module of the stack: looked up again where torch has counted one more,
        since there are thousands of places."""
        if self._unhooked.get(stack) == RemovableHandle.next_id:
            return False
        watched = any(self._hooks[stack])
        if not watched:
            self._unhooked[stack] = RemovableHandle.next_id
        return watched

    def _pass(self, stack: Stack, x: torch.Tensor, mask_BS: torch.Tensor | None) -> FusedPass:
        turning = self.positions.table if self.positions.turning else None
        return self._fused[stack].ready(mask_BS, turning, self.dropout, self.training)  # type: ignore[arg-type]  # a buffer

    def _masks(self, stack: Stack, tokens_BT: torch.Tensor, mask_BS: torch.Tensor | None) -> dict[str, torch.Tensor]:
        """What is added to the scores of attentions of a kind, (G, S, T)."""
        masks = {}
        if mask_BS is not None:
            masks["self" if stack == "encoder" else "cross"] = self._of_heads(mask_BS, tokens_BT.shape[1])
        if stack == "decoder":
            masks["self"] = self._causal(tokens_BT)
        return masks

    def _tap_states(self, place: str, states: States) -> None:
        """Every stream's state past its tap."""
        for tap, state in zip(self._taps[place], states, strict=False):  # what is no stream has none
            tap(state)

    def _embed(self, stack: Stack, tokens_BT: torch.Tensor) -> torch.Tensor:
        x_TBD = functional.embedding(tokens_BT.t(), self.embedding, padding_idx=PAD) * math.sqrt(self.config.hidden)
        x_TBD = self.positions.added(x_TBD)
        x_TBD = self.begin[stack](x_TBD) if stack in self.begin else x_TBD
        return functional.dropout(x_TBD, self.dropout, self.training) if self.dropout else x_TBD

    def _of_heads(self, mask_BS: torch.Tensor, queries: int) -> torch.Tensor:
        """(G, S, T), keys by queries of every head."""
        return mask_BS.repeat_interleave(self.config.heads, dim=0)[:, :, None].expand(-1, -1, queries).contiguous()

    def _causal(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """(G, T, T) keys by queries: −∞ on keys after the query. Padding stands on the right, so no query sees it."""
        b, t = tokens_BT.shape
        later = self.embedding.new_full((t, t), -math.inf).tril(-1)
        return later.expand(b * self.config.heads, t, t).contiguous()


def _layers(residuals: list[tuple[Site, Residual]]) -> list[list[tuple[Site, Residual]]]:
    """The residuals of a stack, layer by layer."""
    return [[one for one in residuals if one[0].layer == layer] for layer in range(1, residuals[-1][0].layer + 1)]


def tensors(batch: Batch, device: torch.device | str = "cpu") -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A batch's source, target_in and target_out as tensors on a device."""
    source, inputs, outputs = (
        torch.from_numpy(a).to(device) for a in (batch.source, batch.target_in, batch.target_out)
    )
    return source, inputs, outputs
