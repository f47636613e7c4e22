"""Models of real libraries: what is found in them, and that they can be probed. `pytest -m libraries`."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from stabkit.own.probe.built_model import make
from stabkit.own.probe.loop import record
from tests.conftest import need
from tests.own import library_models as models
from tests.own.library_models import LIBRARY
from tests.own.zoo_facts import FACTS

pytestmark = pytest.mark.libraries
DEPTH = 4


@pytest.fixture(autouse=True)
def there(request):
    """Skipped with the library's name where it is missing; where CI requires the libraries, that is a failure."""
    lacking = models.missing(request.node.callspec.params["name"])
    need("libraries", not lacking, f"{lacking} (python3 dev.py libraries)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", LIBRARY)
def test_the_sub_layers_of_a_librarys_model_are_found_and_probed(name):
    made = make(getattr(models, name), name, DEPTH, 0, 1e-3)
    found = record(made, 2)
    assert found.stream.how == "sums x + f(x)" and not found.broke
    kinds = Counter(place.kind for place in found.stream.sublayers)
    layers = DEPTH * len(FACTS[name].stacks)
    assert {kind: count / layers for kind, count in kinds.items() if kind != "cross"} == {
        kind: count for kind, count in FACTS[name].kinds.items() if kind != "cross"
    }
    assert found.stream.stacks == (("encoder", "decoder") if name == "t5" else ("stack",))
    assert (found.records["update"].at("state")[1:] > 0).all()
