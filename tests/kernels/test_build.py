"""How the library is made, found and refused."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabkit.kernels import build, native
from stabkit.kernels.native import CallStruct, HeadStruct, SublayerStruct

SOURCE = Path(build.__file__).with_name("stack.cpp").read_text(encoding="utf-8")


@given(
    st.booleans(), st.booleans(), st.tuples(*[st.integers(1, 70)] * 2), st.integers(1, 700), st.sampled_from([0.0, 1.0])
)
def test_a_product_of_any_shape_is_numpys(library, ta, tb, mn, k, beta):
    m, n = mn
    generator = np.random.default_rng(0)
    a, b, c = (
        generator.standard_normal(shape).astype(np.float32)
        for shape in ((k, m) if ta else (m, k), (n, k) if tb else (k, n), mn)
    )
    expected = beta * c.astype(float) + (a.T if ta else a).astype(float) @ (b.T if tb else b).astype(float)
    library.product(ta, tb, m, n, k, a.ctypes.data, b.ctypes.data, beta, c.ctypes.data)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * k)


def test_the_structures_are_those_of_the_file():
    """Field by field, in their order; `stabkit_layout` holds their sizes when a library is loaded."""
    for struct in (SublayerStruct, CallStruct, HeadStruct):
        (body,) = re.findall(rf"struct {struct.__name__.removesuffix('Struct')} {{(.*?)\n}};", SOURCE, re.S)
        lines = [re.sub(r"//.*", "", line) for line in body.splitlines()]
        declared = re.findall(
            r"(\w+)(?:\[\w+\])?(?=[,;])",
            re.sub(r"\b(const|void|I|double|Sublayer)\b\s*(\*?\s*const)?\s*\*?", "", "\n".join(lines)),
        )
        assert declared == [name for name, _ in struct._fields_], struct.__name__
    numbers = {name: int(value) for name, value in re.findall(r"const I (PAD|GIVEN) = (\d+);", SOURCE)}
    assert numbers == {"PAD": native.SCORES, "GIVEN": native.ADDRESSES}
    for kind, names in (("Kind", native.KINDS), ("Code", native.CODES), ("Place", native.PLACES)):
        (body,) = re.findall(rf"enum {kind} : I {{(.*?)}};", SOURCE)
        written = [name.strip().lower().replace("_", " ") for name in body.split(",")]
        ours = ["none" if not name else name for name in names]
        assert [name.replace("rms across", "rms across heads") for name in written if name != "places"] == ours


def copied(tmp_path: Path) -> Path:
    for name in ("build.py", "stack.cpp"):
        (tmp_path / name).write_text(Path(build.__file__).with_name(name).read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path / "build.py"


def ran(script: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", str(script)], capture_output=True, text=True, env={"PATH": "", **environment}
    )


def test_without_a_compiler_one_line_says_so(tmp_path):
    done = ran(copied(tmp_path))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines() == [
        "the fused kernels were not built: there is no C++ compiler; stabkit runs without them, slower"
    ]
    assert list(tmp_path.glob("stack-*")) == []


def test_a_compiler_that_fails_is_one_line_too(tmp_path):
    compiler = tmp_path / "cxx"
    compiler.write_text("#!/bin/sh\necho 'stack.cpp:1: no such thing' >&2\nexit 1\n")
    compiler.chmod(0o755)
    done = ran(copied(tmp_path), CXX=str(compiler))
    assert done.returncode == 1
    assert re.fullmatch(
        r"the fused kernels were not built: \S+ could not compile stack.cpp: stack.cpp:1: no such thing; .*\n",
        done.stderr,
    )
    assert not list(tmp_path.glob("stack-*")) and not list(tmp_path.glob(".build-*"))


def test_a_library_that_is_there_is_not_made_again_and_an_older_one_goes(tmp_path):
    compiler = tmp_path / "cxx"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho made > "$2"\n')
    compiler.chmod(0o755)
    script = copied(tmp_path)
    (tmp_path / "stack-AVX2-000000000000.so").write_text("of another file")
    assert ran(script, CXX=str(compiler)).returncode == 0
    made = sorted(tmp_path.glob("stack-*.*"))
    assert len(made) == len(build.targets()) and all("000000000000" not in file.name for file in made)
    compiler.unlink()
    assert ran(script).returncode == 0
    (tmp_path / "stack.cpp").write_text("// another file")
    assert ran(script).returncode == 1


def test_a_library_that_is_none_is_refused_in_words(monkeypatch, tmp_path):
    (broken := tmp_path / "stack.so").write_text("no library")
    monkeypatch.setattr(native.build, "libraries", lambda: dict.fromkeys(build.targets(), broken))
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: next(iter(build.targets())))
    assert str(native.native.__wrapped__()).startswith("not loadable")
    broken.unlink()
    assert native.native.__wrapped__() == "not compiled"
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "DEFAULT")
    if "AVX2" in build.targets():
        assert native.native.__wrapped__() == "the processor has no AVX2 (DEFAULT)"


def test_another_versions_structures_are_not_called(monkeypatch, library):
    class Longer(ctypes.Structure):
        _fields_ = [*HeadStruct._fields_, ("more", ctypes.c_int64)]

    monkeypatch.setattr(native, "HeadStruct", Longer)
    assert native.native.__wrapped__() == "of another version"
