"""The numbers of the issues, read from `--json` documents: check.py NAME FILE [BOUNDS…]."""

import csv
import json
import math
import os
import re
import subprocess
import sys

WORDS = ("holds", "fails", "mixed", "undecided", "out of reach", "untested")


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def runs(path):
    def refuse(name):
        raise ValueError(f"{name} is not strict JSON")

    with open(path) if path != "-" else sys.stdin as file:
        return json.load(file, parse_constant=refuse)["runs"]


def at(found, model, depth, step):
    return [r["update"][r["step"].index(step)] for r in found if r["model"] == model and r["encoder_layers"] == depth]


def exponent(found, model, step):
    points = [(math.log(n), math.log(geometric(at(found, model, n, step)))) for n in (6, 18, 50)]
    mx, my = (sum(p[i] for p in points) / 3 for i in (0, 1))
    return sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)


def lowest(found, model, depth):
    return [min(r["grad_first_last_ratio"]) for r in found if r["model"] == model and r["encoder_layers"] == depth]


def watched(path):
    healthy, failing = open(path).read().splitlines()
    assert re.match(r"healthy, rate 0.001: no warning. Loss doubled: None. Weights as without: True$", healthy), healthy
    found = re.match(
        r"rate-too-high, rate 0.1: update (\d+): .* Loss doubled: (\d+). Weights as without: True$", failing
    )
    assert found and int(found[1]) < int(found[2]), failing


def sixteen(path):
    found = runs(path)
    assert len(found) == 16, len(found)
    for r in found:
        assert {
            "run_id",
            "spec",
            "model",
            "encoder_layers",
            "decoder_layers",
            "seed",
            "alpha_scale",
            "beta_scale",
            "warmup",
            "outcome",
            "steps",
        } <= set(r)
        assert len(r["step"]) == len(r["update"]) == len(r["loss"]) == len(r["grad_first_last_ratio"]) == 17, r[
            "run_id"
        ]
        assert r["step"][0] == 0 and r["update"][0] == 0.0


def signs(path, slope, ratio):
    found = runs(path)
    got = (
        exponent(found, "post-ln", 16),
        geometric(at(found, "post-ln", 50, 16)) / geometric(at(found, "deepnorm", 50, 16)),
    )
    print(got)
    assert got[0] >= float(slope) and got[1] >= float(ratio)


def numbers(path):
    found = runs(path)
    ratio = {n: geometric(at(found, "post-ln", n, 16)) / geometric(at(found, "deepnorm", n, 16)) for n in (50, 100)}
    slopes = exponent(found, "post-ln", 16), exponent(found, "deepnorm", 16)
    vanished = {n: lowest(found, "post-ln", n) for n in (50, 100)}
    others = [v for m in ("post-ln-init", "admin", "deepnorm") for n in (6, 18, 50, 100) for v in lowest(found, m, n)]
    print(ratio, slopes, vanished, min(others))
    assert ratio[50] >= 15 and ratio[100] >= 10
    assert slopes[0] >= 0.8 and slopes[1] <= 0.65
    assert max(vanished[50]) < 1e-5 and max(vanished[100]) < 1e-8 and min(others) > 0.05


def stuck(path):
    found = {r["model"]: r for r in runs(path)}
    got = {m: (r["outcome"], round(r["validation_loss"], 3), round(r["unigram_loss"], 3)) for m, r in found.items()}
    print(got)
    post = found.pop("post-ln")
    assert post["outcome"] == "stuck" and abs(post["validation_loss"] - post["unigram_loss"]) < 0.05
    for r in found.values():
        assert r["outcome"] == "trains" and r["unigram_loss"] - r["validation_loss"] > 0.3


def claims(path, least):
    with open(path) as file:
        found = json.load(file)["claims"]
    assert len(found) >= int(least)
    for one in found:
        assert one["sentence"] and one["source"] and one["test"] and one["verdict"] in WORDS
        assert one.get("command", "").startswith("stabkit ") == (one["verdict"] in ("untested", "undecided"))


def hold(path, *keys):
    with open(path) as file:
        found = {one["id"]: one for one in json.load(file)["claims"]}
    for one in found.values():
        print(one["verdict"], one["id"], one["measured"])
    assert [key for key in keys if found[key]["verdict"] != "holds"] == []


def nine(path):
    specs = [r["spec"] for r in runs(path)]
    five = (0.25, 0.5, 1.0, 2.0, 4.0)
    found = {(s["alpha_scale"], s["beta_scale"]) for s in specs}
    assert len(specs) == 9 and found == {(a, 1.0) for a in five} | {(1.0, b) for b in five}
    for s in specs:
        assert s["method"] == "deepnorm" and (s["model"]["encoder_layers"], s["model"]["decoder_layers"]) == (18, 18)
        assert (s["train"]["lr"], s["train"]["warmup"], s["train"]["steps"]) == (2e-3, 0, 250)


def fig9(path):
    hold(path, "alpha-small", "beta-large", "alpha-large", "beta-small", "update-follows")
    with open(path) as file:
        found = {one["id"]: one for one in json.load(file)["claims"]}
    assert all(found[key]["verdict"] != "untested" for key in ("without-deepnorm", "without-init"))
    rows = {(tuple(r["spec"]["options"].items()), r["warmup"], r["seed"]) for r in runs(path)}
    for options in ((), (("alpha", "one"),), (("beta", "one"),)):
        assert {(options, warmup, seed) for warmup in (0, 150) for seed in (0, 1)} <= rows


def half(path):
    with open(path) as file:
        found = {one["id"]: one["verdict"] for one in json.load(file)["claims"]}
    assert (found["alpha-large"], found["alpha-small"]) == ("holds", "fails"), found


def rulers(path):
    with open(path) as file:
        found = {one["id"]: one for one in json.load(file)["claims"]}
    places = [place for key in ("surface-smoother", "surface-one-ruler") for place in found[key]["places"]]
    print({place["where"]: place["value"] for place in places})
    (own,) = [place["value"] for place in found["surface-smoother"]["places"]]
    both = [place["value"] for place in found["surface-one-ruler"]["places"]]
    assert own > max(both) and len(both) == 2


def tribunal(path):
    with open(path) as file:
        document = json.load(file)
    assert document["schema"] == "stabkit/2"
    for claim in document["claims"]:
        assert claim["verdict"] in WORDS and claim["weight"] in ("central", "side", "background", "ours"), claim["id"]
        assert ("command" in claim) == (claim["verdict"] in ("untested", "undecided")), claim["id"]
        assert (claim["places"] == []) == (claim["verdict"] == "untested"), claim["id"]
        words = {place["verdict"] for place in claim["places"]}
        assert words <= set(WORDS) - {"mixed", "untested"}, claim["id"]
        both = {"holds", "fails"} & words
        if both:  # a half-tested sentence does not hold
            allowed = {"mixed"} if len(both) == 2 else {*both, *(["undecided"] if both == {"holds"} else [])}
            assert claim["verdict"] in allowed, claim["id"]
        for place in claim["places"]:
            threshold = place["threshold"]
            assert threshold["sense"] in (">=", "<=") and threshold["reason"], claim["id"]
            assert (place["low"] is None) == (len(place["seeds"]) == 1) and place["condition"] and place["steps"]
            if place["verdict"] in ("holds", "fails"):
                value, limit = float(place["value"]), threshold["value"]
                met = value >= limit if threshold["sense"] == ">=" else value <= limit
                assert met == (place["verdict"] == "holds"), (claim["id"], place)
    decided = [claim["id"] for claim in document["claims"] if claim["verdict"] in ("holds", "mixed", "fails")]
    print(decided)
    assert decided


def shared(path):
    found = runs(path)
    assert len({r["model"] for r in found}) == 12, {r["model"] for r in found}
    for part in ("base_init",):
        assert len({r["spec"]["model"][part] for r in found}) == 1
    for part in ("lr", "warmup", "optimizer"):
        assert len({r["spec"]["train"][part] for r in found}) == 1
    assert all(r["outcome"] in ("early", "trains") for r in found)


def slope(path):
    with open(path) as file:
        rows = json.load(file)["slopes"]
    for depth in {r["depth"] for r in rows}:
        here = {r["label"]: r for r in rows if r["depth"] == depth}
        ratio = here["Post-LN"]["slope"] / here["DeepNorm"]["slope"]
        print(depth, f"{ratio:.1f}", "ranks", {label: r["rank"] for label, r in here.items()})
        assert len(here) == 12 and ratio >= 10
        assert sorted(r["rank"] for r in here.values()) == list(range(1, 13))


def count(n):
    assert len(runs("-")) == int(n)


def quality(*paths):
    for path in paths:
        for r in runs(path):
            assert r["perplexity"] > 1 and 0 < r["token_accuracy"] < 1 and r["seconds_a_step"] > 0
            print(path, r["perplexity"], r["token_accuracy"], r["translations"])
            for one in r["translations"]:
                assert one["bleu"] >= 0 and one["sentences"] >= 500
                assert "tok:" in one["signature"] and "version:" in one["signature"]
    assert {one["beam"] for r in runs(paths[1]) for one in r["translations"]} == {1, 4}
    assert "tok:13a" in runs(paths[2])[0]["translations"][0]["signature"]


def paper(path):
    with open(path) as file:
        page = file.read()
    for sentence in ("18L-18L Post-LN does not train; Post-LN-init does.",):
        at = page.index(sentence)
        before = page[:at].rindex('<b class="verdict ')
        assert page[before:].startswith('<b class="verdict holds"'), sentence
        print("holds:", sentence)
    for key in ("fig1", "fig2", "fig3", "fig4", "admin-fig2a", "admin-table1"):
        assert f'href="{key}.html"' in page, key
        with open(os.path.join(os.path.dirname(path), f"{key}.html")) as file:
            assert f'id="{key}"' in file.read(), key


def mutants(path):
    with open(path) as file:
        kept = json.load(file)
    before, after = (kept["fates"][label]["ends"] for label in ("before", "after"))
    print("before", before, "after", after)
    assert len(kept["faults"]) == 60 and after["killed"] >= before["killed"] and sum(after.values()) == 60


def decided(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    late = [row for row in rows if row["part"].startswith("LATE")]
    print(len(rows), "runs,", len(late), "late,", sum(bool(row["collapsed"]) for row in rows), "collapsed")
    assert len(rows) >= 60 and len(late) >= 15 and sum(row["collapsed"] != "" for row in late) >= 5
    assert all(row["stopped"] == "" or row["decided"] == row["outcome"] for row in rows)
    assert sum(row["stopped"] != "" for row in rows) >= 10


def blind(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    near = sum(row["near_limit"] == "yes" for row in rows)
    agree = {who: sum(row[who] == row["rule"] for row in rows) for who in ("one", "two")}
    print(len(rows), "runs,", near, "near a limiting rate; the rule agrees with the readings on", agree)
    assert len(rows) >= 60 and near >= 20 and min(agree.values()) >= 0.95 * len(rows)
    unseen = [row for row in rows if row["list"] == "after"]
    assert len(unseen) >= 20 and all(row["blind"] == row["one"] == row["two"] for row in unseen)


def page(store, most):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    python = os.path.join(root, ".venv", "bin", "python")
    said = subprocess.run([python, "benchmarks/page.py", store], cwd=root, capture_output=True, text=True, check=True)
    print(said.stdout)
    found = re.findall(r"^(claims|page) +([0-9.]+) s", said.stdout, re.M)
    seconds = {name: float(value) for name, value in found}
    assert seconds["claims"] + seconds["page"] < float(most)


def study(path):
    """What was asked of the forecast and what it is; one that is not met is named, and the page says so."""
    with open(path) as file:
        found = json.load(file)
    print(found["answer"])
    for one in found["asked"]:
        print("met" if one["met"] else "NOT MET", one["what"], one["is"], one["asked"])
    assert found["missing"] == 0 and found["counted"]["runs"] >= 640
    assert len(found["asked"]) >= 8


def answers(path):
    """The default sweep: 32 runs, an answer, a word in every one of 16 cells."""
    with open(path) as file:
        found = json.load(file)
    print(found["answer"])
    words = {"likely trains", "likely stuck", "open", "out of range", "trains", "stuck", "diverged"}
    assert found["answer"] and len(found["cells"]) == 16 and {cell["word"] for cell in found["cells"]} <= words
    by = {run["run_id"]: run for run in found["runs"]}
    assert len(by) == 32
    for run in by.values():
        told = run["forecast"]
        assert set(told) == {"word", "p_trains", "features", "axes", "corpus"}, told
        if run["warmup"]:
            assert told["word"] == "out of range" and told["p_trains"] is None and "warm-up" in told["axes"]
        else:
            assert told["word"] in words and len(told["corpus"]) == 64
    for cell in found["cells"]:
        assert cell["run_ids"] and all(by[i]["warmup"] == 0 for i in cell["run_ids"])
        assert {"model", "encoder_layers", "decoder_layers", "word", "p_trains"} <= set(cell)


def probe(path):
    """The document of `stabkit probe`: every link is there, and the verdict is the forecast's unless one fails."""
    with open(path) as file:
        found = json.load(file)
    print(found["answer"])
    assert found["schema"] == "stabkit/2" and found["depths"] == [6, 12, 24, 48] and found["seeds"] == [0, 1, 2]
    assert set(found["links"]) == {"gradient", "scores", "update", "stream", "tokens", "loss", "finite"}
    keys = {"verdict", "level", "exponent", "interval", "fit", "saturated", "limit", "step", "evidence", "healthy"}
    assert all(keys <= set(link) for link in found["links"].values())
    fails = any(link["verdict"] == "fail" for link in found["links"].values())
    assert found["verdict"] == ("likely stuck" if fails else found["forecast"]["word"])
    assert {"word", "probability", "depth", "n", "right"} <= set(found["forecast"]) and found["forecast"]["depth"] == 48


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
