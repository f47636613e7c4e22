"""Studies beside the package, not in its wheel: what only its maintainers rerun, some of it hours of training.

    study.py      a study: what has no row is trained, in parts; ladder.py: a ladder of rates, tried by halving
    rows.py       a run as a row of a committed CSV file; row_run.py: a row as a run again
    markdown.py   the tables of pages in docs/
    forecast/     the corpus of the forecast, its fit, its hold-outs and scores: docs/forecast.csv → the package's
                  coefficients.json and reports/forecast.html
    today/        the table of recent methods: docs/today.csv → reports/today.html and docs/today.md
    recent/       the methods of 2026 under AdamW and Muon: docs/recent.csv → reports/recent.html and docs/recent.md
    own/          models that stabkit did not write, probed and trained: docs/own_corpus.csv → docs/verdict.md

`python3 dev.py evidence forecast`, `… today` and `… recent` make those pages from the committed rows;
`python -m studies --help`, `python -m studies.own --help`.
"""
