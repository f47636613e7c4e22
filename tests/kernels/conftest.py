"""Tests of the fused path need the library: compiled where there is a compiler (`dev.py` has done it)."""

import pytest

from stabkit.kernels import build
from stabkit.kernels.native import native
from tests.conftest import need


@pytest.fixture(scope="session")
def library():
    """The functions of `stack.cpp`; skipped where nothing could compile it, and failed where that was required."""
    found = native()
    need("kernels", not isinstance(found, str), f"{found}; {build.build() or 'python stabkit/kernels/build.py'}")
    return found
