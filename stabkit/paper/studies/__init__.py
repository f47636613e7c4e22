"""Items whose runs are too many to keep: each becomes a row of a file that is committed, and a page is made of rows.

    study.py      what has no row is trained, in parts; a ladder of rates is tried by halving
    kept.py       a row as a run
    forecast.py   what sixteen updates say of the outcome; forecast_page.py its page
    today.py      the methods that people use today, in both blocks; today_words.py and today_page.py its page

A row is a `results.forecast.rows.Row`.
"""
