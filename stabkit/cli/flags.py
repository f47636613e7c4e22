"""The options of the commands that train, one value each: what it is called and what it says. `options.py` has the
tables of which command takes which, and the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stabkit.cli.front import complete


def _config(ctx: typer.Context, path: str | None) -> str | None:
    """Defaults from a TOML file: a key is an option's name; flags and the environment win over it."""
    if path is not None:
        from stabkit.cli import config

        options = {
            word[2:]: one.name for one in ctx.command.params for word in one.opts if one.name and word[:2] == "--"
        }
        ctx.default_map = {**(ctx.default_map or {}), **config.read(Path(path), options)}
    return path


Models = Annotated[
    str,
    typer.Option(
        help="Names, or papers (the twelve), today, all; with options: admin:omega=closed; own: ./my.py:function.",
        autocompletion=complete.methods,
    ),
]
Probes = Annotated[str, typer.Option(help="Further probes of yours: ./mine.py:TokenSpread.")]
Arch = Annotated[str, typer.Option(help="encoder-decoder, encoder-only or decoder-only.")]
OptimizerOption = Annotated[str, typer.Option("--optimizer", help="adam, sgd, radam (as its paper) or radam-torch.")]
RecipeOption = Annotated[
    str, typer.Option("--recipe", help="shared, or paper: each method's own base, optimiser, rate.")
]
Dtype = Annotated[str, typer.Option(help="float32 or float64.")]
Depths = Annotated[str, typer.Option(help="Layers: 6,18 is 6L-6L and 18L-18L; 60x12 is 60L-12L.")]
Seeds = Annotated[str, typer.Option(help="Seeds: 0,1 or 0..4.")]
Steps = Annotated[str, typer.Option(help="Updates of each run.")]
Warmup = Annotated[str, typer.Option(help="Then inverse-sqrt decay; 0: a constant rate. An axis.")]
Rate = Annotated[str, typer.Option("--lr", help="Peak learning rate. A list is an axis.")]
MaxTokens = Annotated[str, typer.Option(help="Of a batch: sentences × the longer side. An axis.")]
Dropout = Annotated[str, typer.Option(help="Dropout on embeddings and branches.")]
Clip = Annotated[str, typer.Option(help="Clip the gradient's global norm; 0 is off.")]
Smoothing = Annotated[str, typer.Option(help="Label smoothing.")]
StopWhenDecided = Annotated[
    bool, typer.Option("--stop-when-decided", help="End a run that has diverged or is stuck for good.")
]
VerdictAt = Annotated[str, typer.Option(help="End runs that are judged by then; 0: never.")]
Bleu = Annotated[bool, typer.Option("--bleu", help="Translate the test set with every trained model: sacreBLEU.")]
Beam = Annotated[str, typer.Option(help="Beams of --bleu's search; 1 is greedy.")]
LengthPenalty = Annotated[str, typer.Option(help="--bleu ranks by log p / length^this.")]
Vocab = Annotated[str, typer.Option(help="Size of the joint vocabulary (subwords, for text).")]
Hidden = Annotated[str, typer.Option(help="Width d. A list is an axis.")]
Ffn = Annotated[str, typer.Option(help="Inner width of the feed-forward; 2x is twice the width.")]
Heads = Annotated[str, typer.Option(help="Attention heads.")]
BaseInitOption = Annotated[str, typer.Option(help="xavier_normal, fairseq_uniform or torch_uniform.")]
BlockOption = Annotated[str, typer.Option("--block", help="classic, or llama: RMSNorm, SwiGLU, rotary, no biases.")]
NormOption = Annotated[
    str, typer.Option("--norm", help="layer, rms or dyt where a method has a norm; else the block's.")
]
FfnKindOption = Annotated[
    str, typer.Option("--ffn-kind", help="relu or swiglu (two thirds of --ffn); else the block's.")
]
PositionsOption = Annotated[str, typer.Option("--positions", help="sinusoidal or rotary; else the block's.")]
QkNorm = Annotated[bool, typer.Option("--qk-norm", help="Norm each head's queries and keys.")]
NoBiases = Annotated[bool, typer.Option("--no-biases", help="Linear maps without biases, as in llama.")]
Untied = Annotated[bool, typer.Option("--untied", help="Give the softmax a weight of its own, not the embedding.")]
RecordEvery = Annotated[str, typer.Option(help="After step 100, record every so many steps.")]
Snapshots = Annotated[str, typer.Option(help="Weights kept along the path, evenly; 0 keeps the last only.")]
Data = Annotated[str, typer.Option(help="Parallel text: train.de, train.en, valid.*; plain or .gz.")]
Source = Annotated[str, typer.Option(help="Source language: the ending of its files.")]
Target = Annotated[str, typer.Option(help="Target language: the ending of its files.")]
Workers = Annotated[str, typer.Option(help="Processes; auto is one a core, on a GPU one.")]
CheckpointEvery = Annotated[str, typer.Option(help="Between checkpoints of a long run; auto: 30 s; 0: none.")]
Executor = Annotated[str, typer.Option(help="processes (here), dask (your cluster) or inline.")]
Scheduler = Annotated[str, typer.Option(help="Address of the Dask scheduler: tcp://host:8786.")]
RunTimeout = Annotated[str, typer.Option(help="Seconds after which a run is given up as hung; 0: never.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Try runs again that failed three times.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
Out = Annotated[str, typer.Option(envvar="STABKIT_HOME", help="Where runs/ and reports/ are; default: here.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the grid and what it costs; train nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Run a grid that seems too large for this machine.")]
ConfigFile = Annotated[
    str | None, typer.Option("--config", callback=_config, is_eager=True, help="TOML file of options; flags win.")
]
PrintConfig = Annotated[bool, typer.Option("--print-config", help="Print the options as TOML and stop.")]

SlopeRate = Annotated[
    str, typer.Option("--rate", help="η of the step; default 1e-5 in float64, 1e-4,1e-5 in float32, which must agree.")
]
AlphaScale = Annotated[str, typer.Option(help="Factors on every α: 0.25..4 doubles, 0.25..4:9 in log, 0.5,1,1.5.")]
BetaScale = Annotated[str, typer.Option(help="Factors on every β, likewise. Neither option: both, one at a time.")]
WholeGrid = Annotated[bool, typer.Option("--grid", help="Every α with every β.")]
Drop = Annotated[str, typer.Option(help="Rows of DeepNet Table 11: deepnorm (α = 1), init (β = 1), or both.")]
DropWarmup = Annotated[str, typer.Option(help="Warm-ups of --drop's rows and the method beside them; default 0,150.")]
Model = Annotated[str, typer.Option(help="A method with α and β.", autocompletion=complete.method)]

Method = Annotated[str, typer.Option("--model", help="The method whose loss is drawn.", autocompletion=complete.method)]
Against = Annotated[str, typer.Option(help="The method beside it; '' for none.")]
At = Annotated[str, typer.Option(help="Around the weights at init, at end, or after so many updates (a snapshot's).")]
Range = Annotated[str, typer.Option(help="How far the axes reach, in lengths of the directions.")]
Points = Annotated[str, typer.Option(help="Points along each axis of a surface; odd, so that one is the middle.")]
CutPoints = Annotated[str, typer.Option(help="Points of a one-dimensional cut; odd.")]
DirectionSeeds = Annotated[str, typer.Option(help="Seeds of directions: the first draws the surfaces, all the cuts.")]
NormaliseOption = Annotated[str, typer.Option("--normalise", help="filter (Li et al.), layer, model or none.")]
OneDimensional = Annotated[bool, typer.Option("--one-dimensional", help="Move biases and norms too.")]
EngineOption = Annotated[str, typer.Option("--engine", help="Who walks the surfaces: stabkit or loss-landscapes.")]
Factory = Annotated[
    str, typer.Option(help="Your own model instead: package.module:function that returns (model, loss).")
]
Weights = Annotated[str, typer.Option(help="Weights of --factory's model, a .safetensors file.")]
Between = Annotated[str, typer.Option(help="Instead: the line between two stored runs, or the triangle of three.")]
PathOption = Annotated[str, typer.Option("--path", help="Plane of the path: pca, hao (Hao et al. 2019) or none.")]
Items = Annotated[
    list[str],
    typer.Argument(help="ls, items such as fig9 table1 admin-table3, or all.", autocompletion=complete.items),
]
BudgetOption = Annotated[
    str, typer.Option("--budget", help="Time that the whole may take: 45m, 2h; the cheapest items first.")
]
ItemDepths = Annotated[str, typer.Option("--depths", help="Instead of the items' own: a smaller version of all.")]
ItemSteps = Annotated[str, typer.Option("--steps", help="Instead of the items' own.")]
ItemSeeds = Annotated[str, typer.Option("--seeds", help="Instead of the items' own.")]
Whole = Annotated[bool, typer.Option("--whole", help="All items in one file, in place of an index and a page each.")]
FactoryName = Annotated[str, typer.Argument(metavar="FACTORY", help="package.module:function, called with a depth.")]
ProbeDepths = Annotated[str, typer.Option("--depths", help="Depths, as 6,12,24,48; leave out where it takes none.")]
ProbeSteps = Annotated[str, typer.Option("--steps", help="Updates at each depth and seed.")]
ProbeRate = Annotated[str, typer.Option("--lr", help="Rates; default 1e-3, or those of the factory's optimizer.")]
BlocksOption = Annotated[
    str, typer.Option("--blocks", help="Names of the model's blocks, where no sums are found: 'h.*'.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 7 where it cannot be told, too.")]
NoFail = Annotated[bool, typer.Option("--no-fail", help="Never exit with 7.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Probe again what is on the shelf.")]
