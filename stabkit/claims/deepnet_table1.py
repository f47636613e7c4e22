"""DeepNet Table 1, row by row: at which depth does a method train?

The paper gives BLEU on WMT-17 En-De, or "diverged", of one run a cell; "the same" hyper-parameters says its §5, 5e-4
without norms and 1.5e-3 with them Table 5 of its first version. A row holds where every run at its depths ends as the
paper's did: BLEU is `trains` here, "diverged" is `stuck` or `diverged`; a rate that is neither 0 nor 1 fails either
way. One judged run that ends otherwise refutes its cell; a cell that undecided runs leave open is not tested. A tiny
model after some hundred updates is not the paper's: what holds is the pattern or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import cells
from stabkit.figures.shared.words import several
from stabkit.storage.store import Run

DEPTHS = (6, 18, 50, 100)
ROWS: dict[str, tuple[str, str]] = {
    "Post-LN": ("post-ln", "+---"),
    "DS-Init": ("ds-init", "+---"),
    "ADMIN": ("admin", "++--"),
    "ReZero": ("rezero", "+---"),
    "R-Fixup": ("r-fixup", "+++-"),
    "T-Fixup": ("t-fixup", "+++-"),
    "Pre-LN": ("pre-ln", "++++"),
    "DLCL": ("dlcl", "++-+"),
    "NormFormer": ("normformer", "+++-"),
    "DeepNorm": ("deepnorm", "++++"),
}
"""{label: (key, + where the paper gives BLEU and − where it says diverged, at DEPTHS)}; ReZero in half precision."""
COMMAND = "stabkit sweep --models all --depths 6,18,50,100 --steps 250 --warmup 0"


def _row(label: str, pattern: str) -> Callable[[Sequence[Run]], list[Evidence]]:
    expected = dict(zip(DEPTHS, pattern, strict=True))

    def find(runs: Sequence[Run]) -> list[Evidence]:
        found = []
        for cell in cells(runs):
            models = {(run.spec.model.encoder_layers, run.spec.model.decoder_layers) for run in cell.of(label)}
            if not models & {(depth, depth) for depth in DEPTHS}:
                continue
            words = cell.outcomes(label)
            trains = expected[cell.layers] == "+"
            count = Counter(words)
            against = sum(n for word, n in count.items() if word != "early" and (word == "trains") != trains)
            if count["early"] and not against:
                continue
            told = ", ".join(f"{n} of {len(words)} {word}" if len(words) > 1 else word for word, n in count.items())
            text = f"{told}; paper: {'BLEU' if trains else 'diverged'}"
            found.append(Evidence(where=cell.where, value=float(cell.layers), text=text, holds=not against))
        return found

    return find


def _sentence(label: str, pattern: str) -> str:
    good = [f"{depth}L" for depth, sign in zip(DEPTHS, pattern, strict=True) if sign == "+"]
    bad = [f"{depth}L" for depth, sign in zip(DEPTHS, pattern, strict=True) if sign == "-"]
    rest = f" and diverges at {several(bad, len(DEPTHS))}" if bad else ""
    half = " (there in half precision)" if label == "ReZero" else ""
    return f"At every depth judged here: {label} trains at {several(good, len(DEPTHS))}{rest}{half}."


CLAIMS: tuple[Claim, ...] = tuple(
    Claim(
        key=f"table1-{key}",
        sentence=_sentence(label, pattern),
        source="DeepNet Table 1",
        test="every judged run at these depths: trains where the paper gives BLEU, stuck or diverged where it diverged",
        find=_row(label, pattern),
        needs=f"{label} at 6, 18, 50 or 100 layers a side, long enough to be judged",
        command=COMMAND,
        methods=(key,),
    )
    for label, (key, pattern) in ROWS.items()
)
