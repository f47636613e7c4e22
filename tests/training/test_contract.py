"""The contract of a method: every built-in one keeps it, and what breaks is told sentence by sentence."""

from dataclasses import replace

import pytest
import torch

from stabkit import methods
from stabkit.methods import own
from stabkit.methods.papers import post_ln
from stabkit.model.branch import FeedForward
from stabkit.spec import Chosen, Own
from stabkit.training import contract
from tests.commands import stabkit


def broken(made, key="post-ln", **changes):
    return {one.what: one.broke for one in contract.method(Chosen(key=key, **changes), made, {}) if one.broke}


@pytest.mark.slow
@pytest.mark.parametrize("key", methods.KEYS)
def test_every_built_in_method_keeps_the_contract(key):
    told = list(contract.method(Chosen(key=key), methods.build(key, {}), {}))
    assert not [one for one in told if one.broke] and len(told) >= (7 if key == "t-fixup" else 17)


def test_what_a_slot_may_not_say_ends_it_at_once():
    made = replace(post_ln.method(), norm_in=lambda site: True)
    assert broken(made) == {
        "what its slots say": "6L-6L: norm_in of encoder.1.self is True, not one of '', 'norm', 'layer', 'rms', 'dyt', "
        "'dyt 1', 'derf', 'shift', 'scale shift', 'heads', 'rms across heads', and 953 more"
    }


def test_a_model_that_computes_something_else_is_told(monkeypatch):
    """The check can fail: one feed-forward of another formula, and the second implementation disagrees."""
    monkeypatch.setattr(FeedForward, "hidden", lambda self, u: torch.nn.functional.gelu(self.up(u)))
    found = broken(post_ln.method())
    assert {what for what in found if "second implementation" in what} == {
        f"{depth}, classic: a second implementation agrees" for depth in ("2L-3L", "2L encoder", "3L decoder")
    }


def test_a_count_that_is_wrong_is_told(monkeypatch):
    monkeypatch.setattr(contract, "parameters", lambda *args: 17)
    assert all("its slots say 17" in said for said in broken(post_ln.method()).values())


def test_a_method_that_explodes_is_told():
    text = """
from stabkit.methods.base import Method
def mine(): return Method(key="m", label="M", source="here", norm_out=lambda s: "", gain=lambda s, r: 1e6)
"""
    one = Own(file="my.py", name="mine", digest=own.digest(text), label="M")
    made = own.made(own.row(text, "my.py", "mine"), "my.py:mine", {})
    told = list(contract.method(Chosen(key="own-m", own=one), made, {one.digest: text}))
    assert any("not finite" in check.broke for check in told)


def test_the_command_says_what_broke_and_exits_with_6(tmp_path):
    slots = 'key="m", label="M", source="here", norm_out=lambda s: "", gain=lambda s, r: 1e6'
    (tmp_path / "my.py").write_text(f"from stabkit.methods.base import Method\ndef mine(): return Method({slots})")
    done = stabkit("methods", "check", "./my.py:mine", cwd=tmp_path)
    assert done.returncode == 6 and "breaks  6L-6L, classic: two updates, finite at every tap: " in done.stdout
    assert "M breaks " in done.stderr and " checks of the contract" in done.stderr


def test_the_command_in_json(tmp_path):
    import json

    done = stabkit("methods", "check", "post-ln", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["key"] == "post-ln" and all(one["broke"] == "" for one in found["checks"])


def test_the_second_implementation_shares_no_code_with_the_first():
    import ast
    import inspect

    from stabkit.model import numpy_reference, numpy_wirings

    trees = [ast.parse(inspect.getsource(module)) for module in (numpy_reference, numpy_wirings)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    roots = {node.module for node in nodes if isinstance(node, ast.ImportFrom)} - {"stabkit.model.numpy_wirings"}
    roots |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert not any(root and root.startswith(("torch", "stabkit.model")) for root in roots)
    assert "stabkit.methods.count" not in roots and "stabkit.methods.blocks" not in roots
