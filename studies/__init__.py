"""Studies beside the package, not in its wheel: what only its maintainers rerun, some of it hours of training.

    study.py      a study: what has no row is trained, in parts; rungs.py: a ladder of rates, tried one after another
    rows.py       a run as a row of a committed CSV file
    numbers.py    a number with its interval; markdown.py: the tables of pages in docs/
    forecast/     the corpus of the forecast, what is joined to it, its fit, its hold-outs and scores:
                  evidence/forecast.csv, later.csv and 2026.csv → the package's coefficients.json, reports/forecast.html
    recent/       the methods of 2026 under AdamW and Muon: docs/evidence/2026.csv → docs/evidence/2026.md
    findings/     the list of sentences that people will quote: docs/evidence/findings.toml → docs/evidence/results.md
    own/          models that stabkit did not write, probed and trained: evidence/own_corpus.csv → evidence/verdict.md

`python3 dev.py evidence forecast` and `… recent` make those pages from the committed rows;
`python -m studies --help`, `python -m studies.own --help`. What made findings.md, near.csv and transfer.md's table is
at commit `686db662`, the claims of recent methods' papers at `d3c19747a09c`.
"""
