"""The probes: one diagnostic a file, one row in PROBES (order = order of reading)."""

from stabkit.probes.attention_logit import AttentionLogit
from stabkit.probes.base import Pass, Probe
from stabkit.probes.branch_ratio import BranchRatio
from stabkit.probes.cosine import Cosine
from stabkit.probes.grad_norm import GradNorm
from stabkit.probes.ln_input import LnInput
from stabkit.probes.loss import Loss
from stabkit.probes.parameter_update import ParameterUpdate
from stabkit.probes.perturbation import Perturbation
from stabkit.probes.stream import Stream
from stabkit.probes.token_cosine import TokenCosine
from stabkit.probes.update import Update
from stabkit.probes.weight_grad import WeightGrad

PROBES: tuple[type[Probe], ...] = (
    Loss,
    Update,
    TokenCosine,
    LnInput,
    BranchRatio,
    GradNorm,
    WeightGrad,
    ParameterUpdate,
    Perturbation,
    Stream,
    Cosine,
    AttentionLogit,
)

__all__ = ["PROBES", "Pass", "Probe"]
