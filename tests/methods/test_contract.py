"""The contract of a method: every built-in one keeps it, and what breaks is named sentence by sentence. With `--method
./my.py:function` that method is tried in place of the built-in ones."""

from dataclasses import replace

import pytest
import torch

from stabkit.kernels.native import native
from stabkit.methods import own
from stabkit.methods.papers import post_ln
from stabkit.model.branch import FeedForward
from stabkit.options import model
from stabkit.options import own as options
from stabkit.spec import Chosen, Own
from tests.conftest import need
from tests.methods import contract, kinds


def pytest_generate_tests(metafunc):
    """Methods that fill every slot in every way, or the one of `--method`."""
    if "name" in metafunc.fixturenames:
        own_one = metafunc.config.getoption("--method")
        built_in = [pytest.param(key, marks=pytest.mark.slow) for key in kinds.KEYS]
        metafunc.parametrize("name", [own_one] if own_one else built_in)


def test_a_method_keeps_the_contract(name):
    files = options.Files()
    ((chosen, method),) = model.named(name, files)
    checks = list(contract.checks(chosen, method, files.texts))
    faults = [f"{check.what}: {check.broke}" for check in checks if check.broke]
    assert not faults, "\n".join(faults)
    assert len(checks) >= (17 if name in kinds.KEYS and name != "t-fixup" else 7)


def broken(made, key="post-ln", **changes):
    return {one.what: one.broke for one in contract.checks(Chosen(key=key, **changes), made, {}) if one.broke}


def test_what_a_slot_may_not_say_ends_it_at_once():
    made = replace(post_ln.method(), norm_in=lambda site: True)
    assert broken(made) == {
        "what its slots say": "6L-6L: norm_in of encoder.1.self is True, not one of '', 'norm', 'layer', 'rms', 'dyt', "
        "'dyt 1', 'derf', 'shift', 'scale shift', 'heads', 'rms across heads', and 953 more"
    }


@pytest.mark.slow
def test_a_model_that_computes_something_else_breaks_it(monkeypatch):
    """The check can fail: one feed-forward of another formula, and the two paths disagree."""
    need("kernels", not isinstance(native(), str), "one path alone")
    monkeypatch.setattr(FeedForward, "hidden", lambda self, u: torch.nn.functional.gelu(self.up(u)))
    found = broken(post_ln.method())
    assert {what for what in found if "both of its paths" in what} == {
        f"{depth}, classic: both of its paths agree" for depth in ("2L-3L", "2L encoder", "3L decoder")
    }


@pytest.mark.slow
def test_a_count_that_is_wrong_breaks_it(monkeypatch):
    monkeypatch.setattr(contract, "parameters", lambda *args: 17)
    assert all("its slots say 17" in said for said in broken(post_ln.method()).values())


@pytest.mark.slow
def test_a_method_that_explodes_breaks_it():
    text = """
from stabkit.methods.base import Method
def mine(): return Method(key="m", label="M", source="here", norm_out=lambda s: "", gain=lambda s, r: 1e6)
"""
    one = Own(file="my.py", name="mine", digest=own.digest(text), label="M")
    made = own.method_from(own.row(text, "my.py", "mine"), "my.py:mine", {})
    checks = contract.checks(Chosen(key="own-m", own=one), made, {one.digest: text})
    assert any("not finite" in check.broke for check in checks)


WIRING = """
import torch
from stabkit.methods.base import Method
from stabkit.methods.wirings import Wired

def two(sites, norm):
    from stabkit.model.wirings.base import ChainWiring
    class Two(ChainWiring):
        adds = True
        def begin(self, x): {begin}
        def read(self, states, at): {read}
        def join(self, states, y, branch, at): {join}
        def end(self, states): return states[0] + states[1]
    return Two()

def mine():
    wiring = Wired(formula="x ← x + f⟨x + s⟩", replaces=True, parameters=lambda stack: 0, streams=("", "s"),
        module=two, {more})
    return Method(key="m", label="M", source="here", norm_in=lambda s: "norm", norm_out=lambda s: "",
                  final=lambda s: "norm", wiring=wiring)
"""
RIGHT = {
    "begin": "return (x, x)",
    "read": "return states[0] + states[1], states",
    "join": "return (states[0] + branch, states[1] + 0.5 * branch)",
    "more": 'end=""',
}


def first_fault(**steps):
    text = WIRING.format(**{**RIGHT, **steps})
    one = Own(file="my.py", name="mine", digest=own.digest(text), label="M")
    made = own.method_from(own.row(text, "my.py", "mine"), "my.py:mine", {})
    checks = contract.checks(Chosen(key="own-m", own=one), made, {one.digest: text})
    return next((check.broke for check in checks if check.broke), "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"begin": "self.s = x; return (x, x)"}, "it keeps s on the module after a pass: put it into the states"),
        ({"begin": "return x"}, "begin gives Tensor, where streams names 2"),
        ({"read": "return states[0] + states[1]"}, "read gives Tensor, not (what the sub-layer reads, the states)"),
        ({"join": "return (states[0] + branch,)"}, "join gives a tuple of 1, not a tuple that begins with 2"),
        ({"more": 'end="LN(a)"'}, "its wiring's end, what the output passes last, is 'LN(a)', not one of"),
    ],
)
def test_a_wiring_of_ones_own_that_slips_is_named(wrong, said):
    assert said in first_fault(**wrong)


@pytest.mark.slow
def test_one_that_does_not_keeps_the_contract():
    assert first_fault() == ""
