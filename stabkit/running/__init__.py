"""Request → jobs that the store lacks → executor → store.

request.py             what a command asked for, and what it would cost · cost.py: a run's seconds and memory
carry_out.py           a request carried out: train, translate, draw surfaces
plan_runs.py           which runs are missing · plan_translations.py · plan_surfaces.py: likewise
retry.py               a job that was lost is tried again
texts.py               a run's task, from the store where it is parallel text
work.py                all that a worker runs · executors/: where it runs
"""
