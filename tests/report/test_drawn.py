"""A part of a page's pictures come from a copy of the process: the same pictures, and all of them whatever it does."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, time
from stabkit.figures.catalogue import FIGURES
from stabkit.report import drawn
from tests.figures.fake_runs import sweep
runs = sweep((6, 18))
asked = [(figure, figure.select(runs), figure.NAME) for figure in FIGURES[6:12]]
os.sched_getaffinity = lambda pid: {0, 1}
assert drawn.copyable(), (sys.modules.get("torch"))
copies, fork = [], os.fork
os.fork = lambda: copies.append(fork()) or copies[-1]
one, copied = drawn.picture, []
def picture(figure, frame, name):
    if copies and copies[-1] == 0:  # in the copy
        FATE
    else:
        time.sleep(0.2)  # the copy comes to its turns, however busy the machine
        copied.append(name)
    return one(figure, frame, name)
drawn.picture = picture
found = drawn.pictures(asked)
assert len(copies) == 1, copies
serial = [one(*each) for each in asked]
assert [list(each) for each in found] == [list(each) for each in serial]
print(len(copied))
"""


@pytest.mark.parametrize(
    ("fate", "drawn_here"),
    [("pass", "1 2 3 4 5"), ("os._exit(0)", "6"), ("os.kill(os.getpid(), 9)", "6")],
)
def test_the_pictures_are_those_that_one_process_draws_whatever_becomes_of_its_copy(fate: str, drawn_here: str) -> None:
    program = PROGRAM.replace("FATE", fate)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in drawn_here.split()


def test_a_process_with_torch_is_not_copied() -> None:
    from stabkit.report import drawn

    assert "torch" in sys.modules and not drawn.copyable()
