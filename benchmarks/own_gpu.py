"""A user's own model on a GPU: what a probe and a watch say there beside the CPU, and what they cost.

python benchmarks/own_gpu.py [probe] [bits] [cost] [resume]

probe   GPT-2 of transformers, 128 wide, at 6, 12 and 24 layers, its weights drawn on the CPU: links on both devices
bits    forty updates with and without a watch, in float32 and in bfloat16: are the weights equal to the bit?
cost    GPT-2 of 124 M parameters, 8 × 512 tokens an update, bfloat16, with and without torch.compile: what a watch
        adds to updates that are not read and what a reading costs, in turns; how often the host waits in the former
resume  a run with dropout that is interrupted and goes on, beside one that is not: equal records and weights?
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import stabkit
from stabkit.own.chain.gradients import gradient_squares
from stabkit.own.watch.recording import reads

UPDATES, TURN, TURNS = 40, 10, 6
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def gpt2(depth: int, width: int, words: int, length: int, device: str) -> Any:
    """Without dropout, its weights drawn on the CPU."""
    drops = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    heads = max(1, width // 64)
    config = GPT2Config(n_layer=depth, n_embd=width, n_head=heads, vocab_size=words, n_positions=length, **drops)
    return GPT2LMHeadModel(config).to(device)


def on_cpu(depth: int) -> Any:
    """A factory."""
    return gpt2(depth, 128, 500, 64, "cpu")


def on_gpu(depth: int) -> Any:
    """The same model there."""
    return gpt2(depth, 128, 500, 64, DEVICE)


def probe() -> None:
    """Links at the deepest, and the probability, on both."""
    found = {}
    for name in ("on_cpu", "on_gpu"):
        begin = time.perf_counter()
        result = stabkit.probe(f"benchmarks.own_gpu:{name}", depths=(6, 12, 24), lr=1e-3, seeds=(0,), out=folder(name))
        found[name] = result.judged
        print(f"probe {name}: {result.verdict} ({time.perf_counter() - begin:.0f} s)", flush=True)
    ours, theirs = (found[name].worst for name in found)
    for link, own in ours.links.items():
        pairs = zip(own.evidence, theirs.links[link].evidence, strict=True)
        apart = max((abs(b.value - a.value) / max(abs(a.value), 1e-12) for a, b in pairs), default=0.0)
        print(f"  {link}: {own.verdict}, {theirs.links[link].verdict} on the GPU; numbers apart by at most {apart:.1%}")


def gpt2_124m(depth: int) -> Any:
    """GPT-2 of 768 wide, 124 million parameters at 12 layers: a factory of benchmarks/gpu.sh."""
    return gpt2(depth, 768, 50_257, 512, DEVICE)


class Training:
    """One model and its optimiser."""

    def __init__(self, size: tuple[int, int], kind: Any, compiled: bool, rows: int, length: int) -> None:
        torch.manual_seed(0)
        self.kind, self.model = kind, gpt2(*size, 8192, length, DEVICE)
        self.called = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        drawn = torch.Generator().manual_seed(1)
        self.words = torch.randint(0, 8192, (16, rows, length), generator=drawn).to(DEVICE)
        self.step = 0

    def update(self) -> None:
        """One."""
        words = self.words[self.step % 16]
        with torch.autocast(DEVICE, self.kind, enabled=self.kind is not None):
            loss = self.called(input_ids=words, labels=words).loss
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1

    def turn(self, updates: int) -> float:
        """Seconds an update, the device's work included."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(updates):
            self.update()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / updates


def bits() -> None:
    """Weights after forty updates."""
    for kind in (None, torch.bfloat16):
        weights = []
        for watched in (False, True):
            one = Training((6, 256), kind, False, 8, 128)
            if watched:
                with stabkit.watch(one.model, one.optimizer, out=folder("bits")):
                    one.turn(UPDATES)
            else:
                one.turn(UPDATES)
            weights.append([p.detach().clone() for p in one.model.parameters()])
        same = all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
        print(f"bits {kind or torch.float32}: weights with and without a watch are {'equal' if same else 'NOT equal'}")


def cost() -> None:
    """In turns, alone and watched."""
    readings = {n: sum(reads("log", step) for step in range(n + 1)) for n in (1000, 10_000)}
    for compiled in (False, True):
        alone, never, always = (Training((12, 768), torch.bfloat16, compiled, 8, 512) for _ in range(3))
        begin = time.perf_counter()
        watches = [
            stabkit.watch(one.model, one.optimizer, out=folder("cost"), every=every, probe={"input_ids": one.words[0]})
            for one, every in ((never, 10**9), (always, 1))
        ]
        begun = (time.perf_counter() - begin) / 2
        for one in (alone, never, always):
            one.turn(20)
        spent = [[one.turn(TURN) for one in (alone, never, always)] for _ in range(TURNS)]
        between = statistics.median(b / a - 1 for a, b, _ in spent)
        reading = statistics.median((c - b) / a for a, b, c in spent)
        update = statistics.median(a for a, _, _ in spent)
        torch.cuda.set_sync_debug_mode("warn")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            never.update()
        torch.cuda.set_sync_debug_mode("default")
        for watch in watches:
            watch.close()
        norms = _norms(never.model)
        whole = [between + (count * reading * update + begun) / (n * update) for n, count in readings.items()]
        waits = sum("synchroniz" in str(one.message).lower() for one in heard)
        print(
            f"cost {'compiled' if compiled else 'eager'}: {1000 * update:.1f} ms an update; not read {between:+.1%}; "
            f"a reading {reading:.2f} updates; beginning {begun:.1f} s; over 1,000 updates {whole[0]:.1%}, over 10,000 "
            f"{whole[1]:.1%}; the host waits {waits} times in an update that is not read; gradient norms apart from "
            f"float64's by at most {norms:.0e}; {watches[1].ended}",
            flush=True,
        )


def _norms(model: torch.nn.Module) -> float:
    """How far gradients' norms as a watch takes them are from those of float64 copies, at most, relatively."""
    parameters = [p for p in model.parameters() if p.grad is not None]
    ours = gradient_squares(parameters, None).sqrt()
    exact = torch.stack([p.grad.double().norm() for p in parameters])  # type: ignore[union-attr]
    return float(((ours - exact).abs() / exact.clamp_min(1e-300)).max())


def resume() -> None:
    """Of a run that was interrupted and of one that was not."""
    words = (
        "sweep --models deepnorm --depths 6 --steps 120 --warmup 0 --dropout 0.1 "
        "--together 1 --checkpoint-every 10 --quiet"
    )
    found = []
    for cut in (False, True):
        store = folder("resume")
        command = [sys.executable, "-m", "stabkit", *words.split(), "--device", DEVICE, "--out", store]
        if cut:
            going = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while going.poll() is None and not any(Path(store).rglob("checkpoint.npz")):
                time.sleep(0.2)
            going.send_signal(signal.SIGINT)
            going.wait(120)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (run,) = Path(store).glob("runs/deepnorm*")
        found.append([(run / name).read_bytes() for name in ("records.npz", "weights.safetensors")])
        begun = json.loads((run / "environment.json").read_text())["first_step"]
    same = "equal" if found[0] == found[1] else "NOT equal"
    print(f"resume: interrupted after update {begun} and continued: records and weights are {same}")


def folder(name: str) -> str:
    """A new one."""
    return tempfile.mkdtemp(prefix=f"{name}-")


if __name__ == "__main__":
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for part in sys.argv[1:] or ("probe", "bits", "cost", "resume"):
        {"probe": probe, "bits": bits, "cost": cost, "resume": resume}[part]()
