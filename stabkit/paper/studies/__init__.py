"""Items whose runs are too many to keep: each becomes a row of a file that is committed, and a page is made of rows.

study.py      what has no row is trained, in parts; a ladder of rates is tried by halving
forecast.py   what sixteen updates say of the outcome; its page
today.py      the methods that people use today, in both blocks; its page
"""
