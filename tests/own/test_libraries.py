"""Models of real libraries: what is found in them, and that they can be probed. `pytest -m libraries`."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from stabkit.own.probe.built_model import make
from stabkit.own.probe.loop import record
from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import dissect
from tests.conftest import need
from tests.own import library_models as models

pytestmark = pytest.mark.libraries
DEPTH = 4
FOUND = {
    "gpt2": {"self": 1, "ffn": 1},
    "bert": {"self": 1, "ffn": 1},
    "llama": {"self": 1, "ffn": 1},
    "gemma2": {"self": 1, "ffn": 1},
    "olmo2": {"self": 1, "ffn": 1},
    "granite": {"self": 1, "ffn": 1},
    "gpt_neox": {"self+ffn": 1},
    "mixtral": {"self": 1, "ffn": 1},
    "albert": {"self": 1, "ffn": 1},
    "t5": {"self": 2, "cross": 1, "ffn": 2},
    "timm_vit": {"self": 1, "ffn": 1},
    "torch_encoder": {"self": 1, "ffn": 1},
    "x_sandwich": {"self": 1, "ffn": 1},
    "nano_gpt": {"self": 1, "ffn": 1},
}
"""Sub-layers a layer."""
PLACES = {
    "gpt2": (True, False, False),
    "bert": (False, False, True),
    "llama": (True, False, False),
    "gemma2": (True, True, False),
    "olmo2": (False, True, False),
    "timm_vit": (True, False, False),
    "torch_encoder": (False, False, True),
    "x_sandwich": (True, True, False),
    "nano_gpt": (True, False, False),
}
"""Where norms stand: before the branch, after it, after the sum."""


@pytest.fixture(autouse=True)
def there(request):
    """Skipped with the library's name where it is missing; where CI requires the libraries, that is a failure."""
    lacking = models.missing(request.node.callspec.params["name"])
    need("libraries", not lacking, f"{lacking} (python3 dev.py libraries)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", FOUND)
def test_the_sub_layers_of_a_librarys_model_are_found_and_probed(name):
    made = make(getattr(models, name), name, DEPTH, 0, 1e-3)
    found = record(made, 2)
    assert found.stream.how == "sums x + f(x)" and not found.broke
    kinds = Counter(place.kind for place in found.stream.sublayers)
    assert kinds == {kind: DEPTH * count for kind, count in FOUND[name].items()}
    assert found.stream.stacks == (("encoder", "decoder") if name == "t5" else ("stack",))
    assert (found.records["update"].at("state")[1:] > 0).all()


@pytest.mark.parametrize("name", PLACES)
def test_norms_are_found_where_they_stand(name):
    made = make(getattr(models, name), name, DEPTH, 0, 1e-3)
    (stack,) = dissect(run.watched(made.model, made.call)).stacks
    assert {(own.norm_in, own.norm_branch, own.norm_out) for own in stack.sublayers} == {PLACES[name]}


@pytest.mark.parametrize(("name", "gamma"), [("granite", 0.22), ("timm_vit", 1e-5)])
def test_the_scale_of_a_branch_is_read(name, gamma):
    made = make(getattr(models, name), name, DEPTH, 0, 1e-3)
    (stack,) = dissect(run.watched(made.model, made.call)).stacks
    assert [own.gamma for own in stack.sublayers] == pytest.approx([gamma] * (2 * DEPTH))
