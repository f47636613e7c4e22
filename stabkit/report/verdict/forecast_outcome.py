"""What sixteen updates had said of the runs that are decided by now, and what became of them: a sentence, computed."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.results.forecast.measured import UPDATES
from stabkit.results.run import Run
from stabkit.words import axis_words, listed

FORECASTS = ("likely trains", "likely stuck", "open")


def forecast_outcome(runs: Sequence[Run]) -> str:
    """`likely trains: 18 runs, of which 18 train; likely stuck: …`; nothing where no run is decided.

    Of methods of the fit it is no test of the forecast, which has seen such runs: `studies/forecast` is one.
    """
    decided = [run for run in runs if run.outcome.word in ("trains", "stuck", "diverged") and run.forecast]
    if not decided:
        return ""
    beyond = [run.forecast for run in decided if run.forecast and run.forecast.word == "out of range"]
    given = [run for run in decided if run.forecast and run.forecast.word in FORECASTS]
    seen, new = ([run for run in given if run.forecast and run.forecast.unseen is side] for side in (False, True))
    sentences = []
    if seen:
        worth = "Runs like these are in the training set, so this is no test of the forecast."
        sentences.append(f"After {UPDATES} updates: {_counted(seen)}. {worth}")
    if new:
        sentences.append(
            f"After {UPDATES} updates, of methods that the fit has no run of: {_counted(new)}. This is a test of the "
            "forecast."
        )
    if beyond:
        axes = listed(*axis_words([axis for one in beyond for axis in one.axes]))
        sentences.append(f"{len(beyond)} of {len(decided)} decided runs had no forecast: outside its range ({axes}).")
    return " ".join(sentences)


def _counted(runs: Sequence[Run]) -> str:
    """`likely trains: 18 runs, of which 18 train; likely stuck: …`."""
    parts = []
    for word in FORECASTS:
        judged = [run for run in runs if run.forecast and run.forecast.word == word]
        train = sum(run.outcome.word == "trains" for run in judged)
        if judged:
            count = f"{len(judged)} run{'s' * (len(judged) > 1)}"
            parts.append(f"{word}: {count}, of which {train or 'none'} train{'s' * (train < 2)}")
    return "; ".join(parts)
