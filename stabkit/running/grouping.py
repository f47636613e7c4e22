"""Runs of one shape as one job, where a device takes several at once as quickly as one (`--together`): grouped before
an executor sees them, and given back one by one. Executors know nothing of it. Never imports torch.

Alike is what differs in numbers alone: seed, rate and warm-up, factors on α and β, and the method where its slots put
the same parts at the same places. Dropout draws from one stream a run, and a probe of one's own may hook what only a
pass of its own has: such runs are trained alone, and so are those that an earlier command began.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from stabkit import methods, spec
from stabkit.methods.base import PLACES, Scale
from stabkit.methods.blocks import biased, inner
from stabkit.methods.own import Texts
from stabkit.running.executors.base import Answer, Tell
from stabkit.running.plan import Map
from stabkit.spec import RunSpec
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Busy


def grouped(execute: Map, most: int, workers: int) -> Map:
    """An executor that is given up to `most` runs that are alike as one job, fewer where workers would idle. Those of a
    job that was lost are given one by one when they come again."""
    alone = set[str]()

    def map(jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        with closing(execute(_groups(jobs, min(most, -(-len(jobs) // workers)), alone), tell)) as answers:
            for job, answer in answers:
                if job["kind"] != "runs":
                    yield job, answer
                    continue
                if not isinstance(answer, str):
                    alone.update(each["id"] for each in job["jobs"])
                    yield from ((each, answer) for each in job["jobs"])
                    continue
                for run_id, said in json.loads(answer).items():  # a word, or who else is at it
                    each = next(each for each in job["jobs"] if each["id"] == run_id)
                    yield each, Busy(**said) if isinstance(said, dict) else said

    return map


def _groups(jobs: Sequence[Job], most: int, alone: set[str]) -> list[Job]:
    """Jobs in their order, those that are alike with the first of them."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        key = shape(spec.from_json(job["spec"]), job.get("texts", {})) if job["kind"] == "run" else ""
        known = key and job["id"] not in alone and not (Path(job["out"]) / "runs" / ".partial" / job["id"]).exists()
        groups.setdefault(key if known else f"alone {job['id']}", []).append(job)
    made = []
    for group in groups.values():
        for begin in range(0, len(group), most):
            some = group[begin : begin + most]
            made.append(some[0] if len(some) == 1 else _group(some))
    return made


def _group(some: Sequence[Job]) -> Job:
    group = some[0].copy()
    for alone in ("spec", "checkpoint_every", "kernels", "over"):
        group.pop(alone, None)  # type: ignore[misc]  # its own names
    return {**group, "kind": "runs", "id": f"{some[0]['id']}+{len(some) - 1}", "jobs": list(some)}


def shape(run_spec: RunSpec, texts: Texts) -> str:
    """What runs that may train at once have in common; "" of one that trains alone."""
    if run_spec.train.dropout or run_spec.probes:
        return ""
    numbers = replace(run_spec.train, lr=1.0, warmup=0, hold=0)
    bare = replace(
        run_spec,
        method="",
        options={},
        own=None,
        seed=0,
        alpha_scale=1.0,
        beta_scale=1.0,
        train=numbers,
        recipe="shared",
    )
    return json.dumps([bare.to_json(), _structure(run_spec, texts)], sort_keys=True)


def _structure(run_spec: RunSpec, texts: Texts) -> list[Any]:
    """What a method puts where, its numbers left out."""
    method, config = methods.method_of(run_spec, texts), run_spec.model
    sites = [
        [
            *(slot(site) for slot in (method.norm_in, method.norm_branch, method.norm_out, method.kappa)),
            *(inner(method, site, place, config) for place in PLACES),
            *(_kind(slot(site)) for slot in (method.omega, method.gamma)),
            biased(method, site, config),
            method.gate(site),
        ]
        for site in methods.sites_of(run_spec)
    ]
    stacks = dict.fromkeys(site.stack for site in methods.sites_of(run_spec))
    wiring = method.wiring if isinstance(method.wiring, str) else repr(method.wiring)  # of a file: with no other
    return [sites, wiring, method.value_residual, [[method.embedding(stack), method.final(stack)] for stack in stacks]]


def _kind(scale: Scale) -> list[object]:
    return [scale.vector, scale.trainable, scale.shared]
