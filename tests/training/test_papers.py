"""What the papers say and earlier measurements found, on real text at real depths: a minute each, so marked slow.

Batches of 128 tokens: a quarter of the sweep's, enough for every sign.
"""

import math

import pytest

from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.tasks.text import ParallelText, find
from stabkit.training import train

pytestmark = pytest.mark.slow
TOKENS = 128


@pytest.fixture(scope="module")
def run(multi30k):
    task = ParallelText(corpus=find(multi30k, "de", "en"), vocab=2000, max_tokens=TOKENS)

    def run(method, layers, **config):
        model = ModelConfig(encoder_layers=layers, decoder_layers=layers)
        return train.run(RunSpec(method=method, model=model, train=TrainConfig(max_tokens=TOKENS, **config)), task)

    return run


def test_without_warm_up_at_18_layers_post_ln_is_stuck_at_the_unigram_loss_where_deepnorm_trains(run):
    decided = {"post-ln": True, "deepnorm": False}  # what is stuck need not go on
    post, deep = (run(m, 18, steps=250, warmup=0, stop_when_decided=stop).outcome for m, stop in decided.items())
    assert post.word == "stuck" and post.validation_loss > 0.98 * post.unigram_loss
    assert deep.word == "trains" and deep.unigram_loss - deep.validation_loss > 0.3
    assert post.chain.gradient_ratio_lowest < 1e-4 and deep.chain.gradient_ratio_lowest > 1e-2


def test_early_updates_grow_faster_with_depth_under_post_ln_than_under_deepnorm(run):
    chains = {(m, n): run(m, n, steps=16).outcome.chain for m in ("post-ln", "deepnorm") for n in (6, 50)}

    def exponent(method):
        return math.log(chains[method, 50].update_reference / chains[method, 6].update_reference) / math.log(50 / 6)

    assert exponent("post-ln") > 0.7 and exponent("deepnorm") < 0.65
    assert chains["post-ln", 50].update_reference > 10 * chains["deepnorm", 50].update_reference
    assert chains["post-ln", 50].gradient_ratio_lowest < 1e-5 and chains["deepnorm", 50].gradient_ratio_lowest > 0.05
