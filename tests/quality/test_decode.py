"""Translation word by word against the plain forward pass, and the search against a slow one without any cleverness."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from stabkit import methods
from stabkit.model.transformer import Transformer
from stabkit.quality.decode import Hypothesis, limit, translate
from stabkit.results.translation import Search
from stabkit.spec import ModelConfig
from stabkit.tasks.base import BOS, EOS, PAD, Tokens
from tests.commands import typed

WORDS = 12
"""The vocabulary, marks included: small, so that sentences end of themselves."""
WIDE = [
    pytest.param(key, options, id=typed(key, options))
    for key in methods.KEYS
    for options in [{}, *({name: other} for name, values in methods.options(key).items() for other in values[1:])]
]
"""Every method, and every option of it that is not the default."""


def model(
    method: str = "deepnorm",
    options: dict[str, str] | None = None,
    *,
    stacks: tuple[int, int] = (2, 2),
    seed: int = 0,
    vocab: int = WORDS,
) -> Transformer:
    """A small model in float64 some way off θ₀, so that no branch that begins at zero hides what it does."""
    config = ModelConfig(encoder_layers=stacks[0], decoder_layers=stacks[1], hidden=8, ffn=12, heads=2)
    made = Transformer(config, methods.build(method, options or {}), vocab, seed).double()
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=noise, dtype=torch.float64)
    made.eval()
    return made


def sources(seed: int, lengths: tuple[int, ...] = (5, 1, 3, 7, 2), vocab: int = WORDS) -> Tokens:
    """Sentences of these lengths, end marks included, padded to the longest."""
    rng = np.random.default_rng(seed)
    rows = np.full((len(lengths), max(lengths)), PAD, dtype=np.int64)
    for row, length in zip(rows, lengths, strict=True):
        row[: length - 1] = rng.integers(EOS + 1, vocab, length - 1)
        row[length - 1] = EOS
    return rows


def bare(row: list[int]) -> list[int]:
    """A source without its padding."""
    return row[: row.index(EOS) + 1]


def log_p(of: Transformer, source: list[int], written: tuple[int, ...]) -> list[float]:
    """log p of every word after those written: a whole forward pass, nothing remembered, sums by `math`."""
    with torch.no_grad():
        logits = of(torch.tensor([source]), torch.tensor([[BOS, *written]]))[1][-1, 0].tolist()
    top = max(logits)
    total = top + math.log(math.fsum(math.exp(value - top) for value in logits))
    return [value - total for value in logits]


def slowly(of: Transformer, source: list[int], beam: int, penalty: float) -> Hypothesis:
    """`decode.py`'s rules for one sentence, in lists."""
    longest = min(2 * len(source) + 10, 1024)
    beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, longest + 1):
        offered = []
        for score, written in beams:
            for word, chance in enumerate(log_p(of, source, written)):
                if word not in (PAD, BOS) and (word == EOS or length < longest):
                    offered.append((score + chance, written, word))
        offered.sort(key=lambda one: -one[0])
        for score, written, word in offered[:beam]:
            if word == EOS and len(finished) < beam:
                finished.append((score / length**penalty, written))
        if len(finished) == beam:
            break
        beams = [(score, (*written, word)) for score, written, word in offered[: 2 * beam] if word != EOS][:beam]
    score, tokens = max(finished, key=lambda one: one[0])
    return Hypothesis(tokens, score)


def same(one: Hypothesis, other: Hypothesis) -> None:
    assert one.tokens == other.tokens and one.score == pytest.approx(other.score, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("method", "options"), WIDE)
def test_word_by_word_every_method_says_what_its_forward_pass_says(method: str, options: dict[str, str]) -> None:
    own = model(method, options)
    source = torch.from_numpy(sources(1))
    target = torch.from_numpy(np.random.default_rng(2).integers(EOS, WORDS, (len(source), 6)))
    target[:, 0] = BOS
    pasts = own.pasts()
    with torch.no_grad():
        memory, mask = own.encode(source)
        for position in range(target.shape[1]):
            step = own.step(target[:, position], position, memory, mask, pasts)
            whole = own(source, target[:, : position + 1])[1][-1]
            torch.testing.assert_close(step, whole, rtol=1e-9, atol=1e-9)
    assert mask is not None and len(pasts) == 4


def test_beams_that_are_kept_in_another_order_go_on_with_their_own_words() -> None:
    own, rows = model(), torch.tensor([2, 0, 0, 1])
    source = torch.from_numpy(sources(3, (4, 2, 5)))
    target = torch.from_numpy(np.random.default_rng(4).integers(EOS, WORDS, (3, 4)))
    pasts = own.pasts()
    with torch.no_grad():
        memory, mask = own.encode(source)
        assert memory is not None and mask is not None
        for position in range(3):
            own.step(target[:, position], position, memory, mask, pasts)
        for past in pasts.values():
            past.keep(rows)
        mask = mask.view(3, -1, *mask.shape[1:])[rows].flatten(0, 1)
        step = own.step(target[rows, 3], 3, memory[:, rows], mask, pasts)
        torch.testing.assert_close(step, own(source[rows], target[rows])[1][-1], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_the_batched_search_finds_what_a_slow_one_finds(beam: int, penalty: float) -> None:
    for seed, method in enumerate(("deepnorm", "admin", "dlcl", "r-fixup", "deepnorm")):
        own, source = model(method, seed=seed), sources(seed)
        found = translate(own, source, Search(beam=beam, length_penalty=penalty))
        for hypothesis, row in zip(found, source.tolist(), strict=True):
            same(hypothesis, slowly(own, bare(row), beam, penalty))


def test_the_searches_differ_where_they_should() -> None:
    """The comparison above would hold of a search that ignores its beams; these models do not let it."""
    found = {
        (beam, penalty): [
            one.tokens
            for seed in range(4)
            for one in translate(model(seed=seed), sources(seed), Search(beam=beam, length_penalty=penalty))
        ]
        for beam, penalty in ((1, 1.0), (4, 0.0), (4, 1.0))
    }
    assert found[1, 1.0] != found[4, 1.0] != found[4, 0.0]
    lengths = {key: [len(tokens) for tokens in some] for key, some in found.items()}
    assert sum(lengths[4, 0.0]) < sum(lengths[4, 1.0])
    assert 0 < min(map(max, lengths.values())) and len(set(lengths[4, 1.0])) > 3


def test_where_there_are_fewer_words_than_beams_only_real_ones_are_ranked() -> None:
    for vocab, beam in ((4, 4), (5, 4), (6, 4), (5, 16)):
        own, source = model(vocab=vocab), sources(5, (3, 2), vocab)
        for hypothesis, row in zip(translate(own, source, Search(beam=beam)), source.tolist(), strict=True):
            same(hypothesis, slowly(own, bare(row), beam, 1.0))


def test_one_beam_takes_the_likeliest_word_every_time() -> None:
    for seed in range(4):
        own, source = model(seed=seed), sources(seed)
        for hypothesis, row in zip(translate(own, source, Search(beam=1)), source.tolist(), strict=True):
            written: list[int] = []
            while len(written) + 1 < limit(len(bare(row))):
                with torch.no_grad():
                    logits = own(torch.tensor([bare(row)]), torch.tensor([[BOS, *written]]))[1][-1, 0]
                logits[[PAD, BOS]] = -math.inf
                if (word := int(logits.argmax())) == EOS:
                    break
                written.append(word)
            assert list(hypothesis.tokens) == written


@pytest.mark.parametrize("beam", [1, 3])
def test_no_sentence_depends_on_its_neighbours_nor_on_its_padding(beam: int) -> None:
    own, source, search = model(), sources(6), Search(beam=beam)
    together = translate(own, source, search)
    order = [3, 0, 4, 1, 2]
    for hypothesis, other in zip([together[i] for i in order], translate(own, source[order], search), strict=True):
        same(hypothesis, other)
    wider = np.pad(source, ((0, 0), (0, 9)), constant_values=PAD)
    for i, hypothesis in enumerate(together):
        same(hypothesis, translate(own, np.array([bare(source[i].tolist())]), search)[0])
        same(hypothesis, translate(own, wider[i : i + 1], search)[0])
        same(hypothesis, translate(own, wider, search)[i])


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_a_model_that_never_ends_is_cut_and_writes_neither_padding_nor_a_beginning(
    beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, source = model(), sources(7)
    wishes = torch.linspace(0, 1, WORDS, dtype=torch.float64)
    wishes[[PAD, BOS]], wishes[EOS] = 50.0, -50.0

    def step(tokens: torch.Tensor, *_: object) -> torch.Tensor:
        return wishes.expand(len(tokens), -1).clone()

    monkeypatch.setattr(own, "step", step)
    for hypothesis, row in zip(translate(own, source, Search(beam=beam)), source.tolist(), strict=True):
        assert len(hypothesis.tokens) == limit(len(bare(row))) - 1 == 2 * len(bare(row)) + 9
        assert not {PAD, BOS, EOS} & set(hypothesis.tokens)
        assert hypothesis.tokens[0] >= WORDS - beam  # the words it wants most, after those it may not have


def test_the_limit_stays_within_the_models_positions() -> None:
    assert [limit(length) for length in (1, 20, 507, 5000)] == [12, 50, 1024, 1024]


@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_of_numbers_that_are_none_says_nothing(beam: int) -> None:
    own = model()
    with torch.no_grad():
        own.embedding[EOS + 1] = math.nan
    assert [one.tokens for one in translate(own, sources(8), Search(beam=beam))] == [()] * 5


def test_a_model_without_an_encoder_has_nothing_to_translate() -> None:
    with pytest.raises(ValueError, match="without an encoder"):
        translate(model(stacks=(0, 2)), sources(9), Search())
