"""Optimisers, one file each and a row in OPTIMIZERS."""

from __future__ import annotations

from collections.abc import Mapping

from stabkit.spec import Optimizer as Name
from stabkit.training.optimizers import adam, adamw, lion, muon, radam, sgd
from stabkit.training.optimizers.base import Row

OPTIMIZERS: Mapping[Name, Row] = {
    "adam": adam.ADAM,
    "adamw": adamw.ADAMW,
    "lion": lion.LION,
    "muon": muon.MUON,
    "muon-original": muon.ORIGINAL,
    "sgd": sgd.SGD_ROW,
    "radam": radam.RADAM,
    "radam-torch": radam.TORCH,
}
