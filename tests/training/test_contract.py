"""The contract of a method: every built-in one keeps it, and what breaks is told sentence by sentence."""

from dataclasses import replace

import pytest
import torch

from stabkit import methods
from stabkit.kernels.native import native
from stabkit.methods import own
from stabkit.methods.papers import post_ln
from stabkit.model.branch import FeedForward
from stabkit.spec import Chosen, Own
from stabkit.training import contract
from tests.commands import stabkit
from tests.conftest import need
from tests.methods import kinds


def broken(made, key="post-ln", **changes):
    return {one.what: one.broke for one in contract.method(Chosen(key=key, **changes), made, {}) if one.broke}


@pytest.mark.slow
@pytest.mark.parametrize("key", kinds.KEYS)
def test_methods_that_fill_every_slot_in_every_way_keep_the_contract(key):
    told = list(contract.method(Chosen(key=key), methods.build(key, {}), {}))
    assert not [one for one in told if one.broke] and len(told) >= (7 if key == "t-fixup" else 17)


def test_what_a_slot_may_not_say_ends_it_at_once():
    made = replace(post_ln.method(), norm_in=lambda site: True)
    assert broken(made) == {
        "what its slots say": "6L-6L: norm_in of encoder.1.self is True, not one of '', 'norm', 'layer', 'rms', 'dyt', "
        "'dyt 1', 'derf', 'shift', 'scale shift', 'heads', 'rms across heads', and 953 more"
    }


@pytest.mark.slow
def test_a_model_that_computes_something_else_is_told(monkeypatch):
    """The check can fail: one feed-forward of another formula, and the two paths disagree."""
    need("kernels", not isinstance(native(), str), "one path alone")
    monkeypatch.setattr(FeedForward, "hidden", lambda self, u: torch.nn.functional.gelu(self.up(u)))
    found = broken(post_ln.method())
    assert {what for what in found if "both of its paths" in what} == {
        f"{depth}, classic: both of its paths agree" for depth in ("2L-3L", "2L encoder", "3L decoder")
    }


@pytest.mark.slow
def test_a_count_that_is_wrong_is_told(monkeypatch):
    monkeypatch.setattr(contract, "parameters", lambda *args: 17)
    assert all("its slots say 17" in said for said in broken(post_ln.method()).values())


@pytest.mark.slow
def test_a_method_that_explodes_is_told():
    text = """
from stabkit.methods.base import Method
def mine(): return Method(key="m", label="M", source="here", norm_out=lambda s: "", gain=lambda s, r: 1e6)
"""
    one = Own(file="my.py", name="mine", digest=own.digest(text), label="M")
    made = own.method_from(own.row(text, "my.py", "mine"), "my.py:mine", {})
    told = list(contract.method(Chosen(key="own-m", own=one), made, {one.digest: text}))
    assert any("not finite" in check.broke for check in told)


@pytest.mark.slow
def test_the_command_says_what_broke_and_exits_with_6(tmp_path):
    slots = 'key="m", label="M", source="here", norm_out=lambda s: "", gain=lambda s, r: 1e6'
    (tmp_path / "my.py").write_text(f"from stabkit.methods.base import Method\ndef mine(): return Method({slots})")
    done = stabkit("methods", "check", "./my.py:mine", cwd=tmp_path)
    assert done.returncode == 6 and "breaks  6L-6L, classic: two updates, finite at every tap: " in done.stdout
    assert "M breaks " in done.stderr and " checks of the contract" in done.stderr


@pytest.mark.slow
def test_the_command_in_json(tmp_path):
    import json

    done = stabkit("methods", "check", "post-ln", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["key"] == "post-ln" and all(one["broke"] == "" for one in found["checks"])


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


def told(**given):
    text = WIRING.format(**{**RIGHT, **given})
    one = Own(file="my.py", name="mine", digest=own.digest(text), label="M")
    made = own.method_from(own.row(text, "my.py", "mine"), "my.py:mine", {})
    checks = contract.method(Chosen(key="own-m", own=one), made, {one.digest: text})
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
def test_a_wiring_of_ones_own_that_slips_is_told_where(wrong, said):
    assert said in told(**wrong)


@pytest.mark.slow
def test_one_that_does_not_keeps_the_contract():
    assert told() == ""
