"""DeepNet Table 1, row by row and cell by cell: at which depth does a method train?

The paper gives BLEU on WMT-17 En-De, or "diverged", of one run a cell; "the same" hyper-parameters says its §5, 5e-4
without norms and 1.5e-3 with them Table 5 of its first version. BLEU is `trains` here, "diverged" is `stuck` or
`diverged`. A row says four things, one a depth: it holds when each was tested. ReZero's divergence the paper lays to
half precision; single precision cannot show it. The paper warms up: what fails without decides nothing. A tiny model
after some hundred updates is not the paper's: what holds is the pattern or nothing.
"""

from __future__ import annotations

from stabkit.claims.base import UNWARMED, Claim, Spot, Weight, share_claim
from stabkit.claims.evidence import ClaimCell, Find, cold, fails, fates, over_cells, trains
from stabkit.methods import label
from stabkit.words import several

DEPTHS = (6, 18, 50, 100)
ROWS: dict[str, str] = {
    "post-ln": "+---",
    "ds-init": "+---",
    "admin": "++--",
    "rezero": "+---",
    "r-fixup": "+++-",
    "t-fixup": "+++-",
    "pre-ln": "++++",
    "dlcl": "++-+",
    "normformer": "+++-",
    "deepnorm": "++++",
}
"""{method: + where the paper gives BLEU and − where it says diverged, at DEPTHS}."""
HALF = "the paper attributes ReZero's divergence to half precision (§5); these runs use single or double precision"
COMMAND = "stabkit sweep --models papers --depths 6,18,50,100 --steps 250 --warmup 0"


def _row(method: str, pattern: str) -> Find:
    good = {depth: sign == "+" for depth, sign in zip(DEPTHS, pattern, strict=True)}
    return over_cells(
        lambda cell: cell.share(trains if good[cell.layers] else fails, method),
        method,
        where=lambda cell: cell.encoder_layers == cell.decoder_layers and cell.layers in good,
        beside=lambda cell: f"{fates(cell, method)}; paper: {'BLEU' if good[cell.layers] else 'diverged'}",
        beyond=lambda cell: _undecidable(cell, method, good[cell.layers]),
        part=lambda cell: _depth(cell.layers),
    )


def _undecidable(cell: ClaimCell, method: str, good: bool) -> str:
    """Why a cell of these runs says nothing of the paper's."""
    return HALF if method == "rezero" and not good else cold(cell, method)


def _depth(layers: int) -> Spot:
    """`18L`: a column of the table."""
    return Spot(f"{layers}L", f"{layers}L")


def _sentence(method: str, pattern: str) -> str:
    good = [f"{depth}L" for depth, sign in zip(DEPTHS, pattern, strict=True) if sign == "+"]
    bad = [f"{depth}L" for depth, sign in zip(DEPTHS, pattern, strict=True) if sign == "-"]
    rest = f" and diverges at {several(bad, len(DEPTHS))}" if bad else ""
    half = " (there in half precision)" if method == "rezero" else ""
    return f"{label(method, {})} trains at {several(good, len(DEPTHS))}{rest}{half}."


def _weight(method: str) -> Weight:
    """The paper's argument rests on its own row and on Post-LN's; the others it reports beside them."""
    return "central" if method in ("post-ln", "deepnorm") else "side"


CLAIMS: tuple[Claim, ...] = tuple(
    share_claim(
        key=f"table1-{method}",
        sentence=_sentence(method, pattern),
        source="DeepNet §5, Table 1",
        weight=_weight(method),
        test="every depth of the row: share of the seeds that train where the paper gives BLEU, and are stuck or "
        "diverge where it says diverged (a failure without warm-up, which is harder, decides nothing)",
        find=_row(method, pattern),
        needs=f"{label(method, {})} at 6, 18, 50 or 100 layers a side, long enough to be judged",
        command=COMMAND,
        methods=(method,),
        parts=tuple(map(_depth, DEPTHS)),
        spread={UNWARMED: {"6x6": 0, "18x18": 0}} if method in ("post-ln", "admin", "deepnorm") else {},
    )
    for method, pattern in ROWS.items()
)
