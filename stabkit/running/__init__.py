"""Request → jobs that the store lacks → executor → store.

request.py             what a command asked for, and what it would cost · cost.py: a run's seconds and memory
grid.py                products of axes, from which a command makes the specs of a request
execute.py             a request executed: train, draw surfaces
plan.py                what is stored, what is missing, what was lost: of any kind of work; the only place that retries
runs.py                runs as work · surfaces.py · probes.py (of a user's model): likewise
texts.py               a run's task, from the store where it is parallel text
work.py                all that a worker runs · executors/: where it runs
"""
