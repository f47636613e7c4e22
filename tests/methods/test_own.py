"""Files of one's own: what may be in them, and one line for everything else."""

import pytest

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods import own
from stabkit.spec import ModelConfig, Own, RunSpec, from_json

METHOD = """
from stabkit.methods.base import Method

def mine(where: __import_literal__ = "in"):
    return Method(key="Mine 1", label="Mine", source="here", norm_in=lambda s: "norm" if where == "in" else "")
""".replace("__import_literal__", "Literal['in', 'out']").replace("\nfrom", "\nfrom typing import Literal\nfrom", 1)


def spec_of(text, name="mine", **options):
    one = Own(file="my.py", name=name, digest=own.digest(text), label="Mine")
    return RunSpec(method="own-mine-1", options=options, model=ModelConfig(encoder_layers=1, decoder_layers=1), own=one)


def test_the_bytes_of_a_file_are_in_the_runs_id():
    one, other = spec_of(METHOD), spec_of(METHOD + "\n")
    assert one.run_id != other.run_id and one.run_id.startswith("own-mine-1-1L-1L-s0-")
    assert from_json(one.stored()) == one and from_json(one.to_json()) == one


def test_a_run_without_files_has_the_id_that_it_had():
    """Fields of the spec that were added for files and blocks change no id."""
    spec = RunSpec(method="deepnorm", model=ModelConfig(encoder_layers=18, decoder_layers=18))
    assert spec.run_id == "deepnorm-18L-18L-s0-" + spec.run_id[-12:]
    assert set(spec.stored()) == {"method", "model"} and set(spec.stored()["model"]) == {
        "encoder_layers",
        "decoder_layers",
    }


def test_only_a_text_that_was_given_is_run():
    spec = spec_of(METHOD)
    assert methods.method_of(spec, {own.digest(METHOD): METHOD}).label == "Mine"
    with pytest.raises(UsageError, match=r"my\.py:mine is a user's file that was not given.*never run"):
        methods.method_of(spec, {})
    with pytest.raises(UsageError, match="not the text whose sha256"):
        methods.method_of(spec, {own.digest(METHOD): METHOD + "\n"})
    assert methods.of(spec) is None


def test_options_are_those_of_the_function():
    given = {own.digest(METHOD): METHOD}
    site = methods.sites_of(spec_of(METHOD))[0]
    assert methods.method_of(spec_of(METHOD), given).norm_in(site) == "norm"
    assert methods.method_of(spec_of(METHOD, where="out"), given).norm_in(site) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import pandas", "line 1: import pandas is not allowed"),
        ("import torch.nn\nfrom scipy import stats", "line 2: import scipy is not allowed"),
        ("from . import other", r"import \. is not allowed"),
        ("from .other import thing", r"import \.other is not allowed"),
        ("import importlib\nimportlib.import_module('os')", "import importlib is not allowed"),
        ("def f():\n    import runpy", "line 2: import runpy is not allowed"),
        ("__import__('pandas')", "__import__ is not allowed"),
        ("exec('1')", "exec is not allowed"),
        ("def f(", "line 1 is not Python"),
        ("\0", "is not Python"),
    ],
)
def test_a_file_that_reaches_beyond_its_bytes_is_refused_with_its_line(tmp_path, text, said):
    (tmp_path / "my.py").write_text(text)
    with pytest.raises(UsageError, match=said):
        own.read(tmp_path / "my.py")


@pytest.mark.parametrize(
    "text", ["import json, math", "import torch.nn.functional as F", "from stabkit.methods.base import *"]
)
def test_the_standard_library_torch_numpy_and_stabkit_may_be_imported(tmp_path, text):
    (tmp_path / "my.py").write_text(text)
    assert own.read(tmp_path / "my.py") == text


def test_what_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / "latin.py").write_bytes(b"# \xe9")
    (tmp_path / "long.py").write_bytes(b"#" * 2_000_000)
    for name, said in (
        ("none.py", "No such file"),
        ("latin.py", "UTF-8"),
        ("long.py", "at most"),
        ("", "directory"),
    ):
        with pytest.raises(UsageError, match=said):
            own.read(tmp_path / name)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def mine(): return 3", "returns int, not a Method"),
        ("mine = 3", "mine is int, not a function"),
        ("def yours(): pass", r"has no function 'mine'.* it has yours"),
        ("raise ValueError('no')", "line 1: ValueError: no"),
        ("def mine():\n    return 1 / 0", "line 2: ZeroDivisionError"),
        ("def mine(depth): return depth", "TypeError"),
    ],
)
def test_whatever_a_function_does_is_one_line(body, said):
    with pytest.raises(UsageError, match=said) as caught:
        own.method_from(own.row(body, "my.py", "mine"), "my.py:mine", {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "label", "said"),
    [
        ("deepnorm", "X", "the key 'deepnorm' is a built-in method's"),
        ("x", "deepNorm", "the label 'deepNorm' is a built-in method's"),
        ("→", "X", "no letter or digit"),
    ],
)
def test_nothing_may_pass_for_a_built_in_method(key, label, said):
    from stabkit.methods.base import Method

    taken = {"deepnorm": "DeepNorm"}
    with pytest.raises(UsageError, match=said):
        own.key_of(Method(key=key, label=label, source="here"), "my.py:f", taken)
    assert own.key_of(Method(key="Peri LN_2!", label="P", source="s"), "my.py:f", taken) == "own-peri-ln-2"


@pytest.mark.parametrize(
    ("item", "parsed"),
    [
        ("./my.py:f", ("my.py", "f", [])),
        ("dir/my.py:f:a=b:c=d", ("dir/my.py", "f", ["a=b", "c=d"])),
        ("deepnorm", None),
        ("admin:omega=closed", None),
        ("my.py", None),
    ],
)
def test_a_word_that_names_a_file_is_told_from_one_that_does_not(item, parsed):
    found = own.parts(item)
    assert (found and (str(found[0]), *found[1:])) == parsed


def test_a_file_that_is_called_like_a_part_of_the_standard_library_is_not_it(tmp_path, monkeypatch):
    (tmp_path / "sched.py").write_text("x = 1")
    (tmp_path / "my.py").write_text("import sched")
    monkeypatch.syspath_prepend(tmp_path)
    own._of_python.cache_clear()
    try:
        with pytest.raises(UsageError, match="import sched is not allowed"):
            own.read(tmp_path / "my.py")
    finally:
        own._of_python.cache_clear()


def test_a_file_is_compiled_as_a_file_of_its_own():
    """Nothing of this package's own compilation, as its postponed annotations, is in it."""
    assert own.executed("def f(x: int): pass", "my.py")["f"].__annotations__ == {"x": int}


def test_a_mark_of_byte_order_is_no_slip(tmp_path):
    (tmp_path / "my.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert own.executed(own.read(tmp_path / "my.py"), "my.py")["x"] == 1
