"""Every number and every sentence of a report, recomputed from results.parquet by code of its own.

The sweep has an adaptive environment, a player with two decodings, and vacuous bounds.
"""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from banditlab import Sweep, read_spec, write_report
from banditlab.analysis import load
from banditlab.analysis.arena import arenas
from banditlab.analysis.curves import grids

pytestmark = pytest.mark.slow
"""A sweep is played and its whole report is written."""

SPEC = """
name = "check"
rounds = 300
repetitions = 5
norm_bounds = [1, 8]
[[environment]]
id = "banditlab/Adversary-v0"
[[environment]]
id = "banditlab/Logistic-v0"
n_classes = 3
[[agent]]
id = "exploration"
forecaster = "folklore"
grid = { gamma = ["theory", 0.1], norm_bound = [1, 8], decoding = ["half-log", "sample"] }
[[agent]]
id = "fastcb"
grid = { norm_bound = [1, 8] }
[[agent]]
id = "gaptron"
grid = { norm_bound = [1, 8] }
[[agent]]
id = "uniform"
"""
SYMBOLS = {"gamma": "γ", "norm_bound": "B"}
ADAPTIVE, SHARED = 0, 1


class Page(HTMLParser):
    """The cards of a report's first screen: rows of cells with their attributes, and sentences; captions; all the text."""

    def __init__(self) -> None:
        super().__init__()
        self.cards: list[dict[str, Any]] = []
        self.captions: list[str] = []
        self.players: list[list[str]] = []
        self.table = ""
        self.here: list[str] | None = None
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        if tag == "div" and of.get("class") == "answer":
            self.cards.append({"who": [], "theory": [], "sentences": {}})
        elif tag == "table":
            self.table = of.get("class", "")
        elif tag == "tr" and self.table in ("who", "theory"):
            self.cards[-1][self.table].append({"of": of, "cells": []})
        elif tag == "tr" and self.table == "players":
            self.players.append([])
        elif tag == "td" and self.table in ("who", "theory"):
            self.here = [""]
            self.cards[-1][self.table][-1]["cells"].append((of, self.here))
        elif tag == "td" and self.table == "players":
            self.players[-1].append("")
        elif tag == "li" and "data-finding" in of:
            self.here = [""]
            self.cards[-1]["sentences"][of["data-finding"]] = self.here
        elif tag == "img":
            self.captions.append(of["alt"])

    def handle_endtag(self, tag: str) -> None:
        self.here = None if tag in ("td", "li") else self.here
        self.table = "" if tag == "table" else self.table

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.here is not None:
            self.here[0] += data
        if self.table == "players" and self.players and self.players[-1]:
            self.players[-1][-1] += data


class Numbers:
    """What one environment's card must say."""

    def __init__(self, runs: pd.DataFrame, comparators: pd.DataFrame) -> None:
        self.T, self.runs = int(runs["round"].max()), runs
        last = runs[runs["round"] == self.T].copy()
        last["share"] = last["first_sight_expected_mistakes"] / last["first_sight_rounds"]
        last["constant"] = last["first_sight_constant_mistakes"] / last["first_sight_rounds"]
        self.written = [c for c in last.columns if c.startswith("setting.")]
        last["key"] = list(
            last[self.written].astype(object).where(last[self.written].notna(), None).itertuples(index=False)
        )
        self.last, self.repetitions = last, sorted(last["repetition"].unique())
        losses = comparators[comparators["round"] == self.T]
        self.losses = losses.set_index(["stream_id", "norm_bound"])
        self.paired = bool((last.groupby("repetition")["stream_id"].nunique() == 1).all())
        self.choose()
        self.rank()

    def named(self, label: str, key: Any) -> str:
        """Return label and settings, as legends write them."""
        mine = self.last[self.last["label"] == label]
        tokens = {}
        for column, value in zip(self.written, key, strict=True):
            name = column.removeprefix("setting.")
            if value is not None and mine[column].nunique() > 1:
                tokens[name] = f"{SYMBOLS.get(name, name)}={value}"
        order = sorted(tokens, key=lambda name: (name not in SYMBOLS, name))
        return " ".join([label, *(tokens[name] for name in order)])

    def choose(self) -> None:
        """Choose each half's setting on the other half."""
        half = set(self.repetitions[: len(self.repetitions) // 2])
        self.reported, self.names, self.among = {}, {}, {}
        for label, mine in self.last.groupby("label", sort=False):
            table = mine.pivot_table(index="key", columns="repetition", values="share", sort=False, observed=True)
            self.names[label] = self.named(label, table.mean(axis=1).idxmin())
            self.among[label] = len(table)
            for r in self.repetitions:
                best = table[[q for q in self.repetitions if (q in half) != (r in half)]].mean(axis=1).idxmin()
                [row] = mine[(mine["key"] == best) & (mine["repetition"] == r)].to_dict("records")
                self.reported[label, r] = row

    def of(self, label: str, column: str = "share") -> np.ndarray:
        return np.array([float(self.reported[label, r][column]) for r in self.repetitions])

    def gap(self, label: str, other: str) -> tuple[float, float, float]:
        """Return mean(label - other) with the interval that covers all pairs at once."""
        n, players = len(self.repetitions), len(self.names)
        level = 0.95 ** (2 / (players * (players - 1)))
        if self.paired:
            d = self.of(label) - self.of(other)
            variance, freedom = d.var(ddof=1) / n, n - 1.0
        else:
            parts = np.array([self.of(each).var(ddof=1) / n for each in (label, other)])
            variance, freedom = parts.sum(), parts.sum() ** 2 / (parts**2 / (n - 1)).sum()
        mean = float(self.of(label).mean() - self.of(other).mean())
        half = t.ppf(0.5 + level / 2, freedom) * math.sqrt(variance)
        return mean, mean - half, mean + half

    def rank(self) -> None:
        """Rank: a row is tied with the first of the group before it where the interval contains 0."""
        self.order = sorted(self.names, key=lambda label: self.of(label).mean())
        self.heads, self.places = [self.order[0]], [1]
        for seat, label in enumerate(self.order[1:], start=2):
            _, low, _ = self.gap(label, self.heads[-1])
            self.heads.append(self.heads[-1] if low <= 0 else label)
            self.places.append(self.places[-1] if low <= 0 else seat)

    def texts(self) -> list[str]:
        return [f"{p}{'=' if self.places.count(p) > 1 else ''}" for p in self.places]

    def model(self, label: str, ball: float, column: str) -> float:
        """Return the mean over a player's own streams."""
        return float(
            np.mean([self.losses.loc[(self.reported[label, r]["stream_id"], ball), column] for r in self.repetitions])
        )

    @property
    def ball(self) -> float:
        """The B of the least mean loss."""
        means = {b: np.mean([self.model(label, b, "loss_nats") for label in self.order]) for b in (1.0, 8.0)}
        return min(means, key=lambda b: float(means[b]))

    def bounds(self) -> pd.DataFrame:
        """Return measured mistakes and guarantee of each setting with a theorem, at its own B; NaN where it does not hold."""
        rows = []
        stated = self.last["bound"].notna() | self.last["no_bound"].ne("")
        for (label, key), mine in self.last[stated].groupby(["label", "key"], sort=False):
            [unit], ball = set(mine["bound_unit"]), float(mine["param.norm_bound"].iloc[0])
            part, column = {"bits": (1.0, "loss_bits"), "0.5 bits": (0.5, "loss_bits"), "nats": (1.0, "loss_nats")}[
                unit
            ]
            loss = part * np.mean([self.losses.loc[(s, ball), column] for s in mine["stream_id"]])
            rows.append({"label": label, "name": self.named(label, key), "measured": mine["expected_mistakes"].mean(),
                         "guarantee": loss + mine["bound"].mean()})  # fmt: skip
        return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str, Page, list[Numbers]]:
    place = tmp_path_factory.mktemp("numbers")
    (place / "check.toml").write_text(SPEC, encoding="utf-8")
    out = place / "out"
    Sweep(read_spec(place / "check.toml")).run(out)
    text = write_report(out).read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    runs = pd.read_parquet(out / "results.parquet")
    comparators = pd.concat([pd.read_parquet(file) for file in sorted((out / "comparators").glob("**/*.parquet"))])
    environments = ("banditlab/Adversary-v0", "banditlab/Logistic-v0(n_classes=3)")
    numbers = [Numbers(runs[runs["environment"] == name], comparators) for name in environments]
    return out, text, page, numbers


def near(shown: str, value: float) -> bool:
    """Return whether a printed number is a value rounded to its decimals."""
    digits = len(shown.partition(".")[2])
    return abs(float(shown.replace(",", "").replace("−", "-")) - value) <= 0.5 * 10**-digits + 1e-9


def numbers_in(text: str) -> list[str]:
    return re.findall(r"−?\d[\d,]*(?:\.\d+)?", text)


def test_the_sweep_is_what_it_should_be(made: Any) -> None:
    *_, (adaptive, shared) = made
    assert (adaptive.paired, shared.paired) == (False, True)
    losses = [adaptive.model(label, 8.0, "loss_nats") for label in adaptive.order]
    assert max(losses) > 1.02 * min(losses)
    assert (shared.bounds()["guarantee"] >= shared.T).any()
    assert adaptive.bounds()["guarantee"].isna().all()  # exploration and gaptron learn from weighted losses
    assert adaptive.last["certificate"].isna().all()
    for each in (adaptive, shared):
        assert any("decoding=" in name for name in each.names.values())
        assert any("=" in text for text in each.texts())


@pytest.mark.parametrize("card", [ADAPTIVE, SHARED])
def test_who_wins(made: Any, card: int) -> None:
    _, _, page, every = made
    own, [head, *rows] = every[card], page.cards[card]["who"]
    assert head["cells"] == []
    players = [row for row in rows if "data-player" in row["of"]]
    assert [row["cells"][0][1][0] for row in players] == own.texts()
    assert [row["cells"][1][1][0].strip() for row in players] == [own.names[label] for label in own.order]
    n = len(own.repetitions)
    for row, label in zip(players, own.order, strict=True):
        (rate, shown), (ends, spread), (behind, difference) = row["cells"][2:]
        x = own.of(label)
        k, trials = x.sum() * own.T, n * own.T
        p = (k + 1) / (trials + 2)
        spreads = x.std(ddof=1) if np.ptp(x) > 1e-9 else math.sqrt(p * (1 - p) / own.T)  # uniform has no variance
        half = t.ppf(0.975, n - 1) * spreads / math.sqrt(n)
        assert float(rate["data-v"]) == pytest.approx(x.mean())
        assert near(shown[0].removesuffix(" %"), 100 * x.mean())
        assert (float(ends["data-low"]), float(ends["data-high"])) == pytest.approx((x.mean() - half, x.mean() + half))
        assert all(map(near, numbers_in(spread[0]), [100 * (x.mean() - half), 100 * (x.mean() + half)]))
        if label != own.order[0]:
            gap = own.gap(label, own.order[0])
            assert tuple(float(behind[f"data-{key}"]) for key in ("v", "low", "high")) == pytest.approx(gap)
            assert all(map(near, numbers_in(difference[0]), [100 * each for each in gap]))


@pytest.mark.parametrize("card", [ADAPTIVE, SHARED])
def test_what_stands_there_for_scale(made: Any, card: int) -> None:
    _, _, page, every = made
    own = every[card]
    scale = {row["of"]["data-scale"]: row["cells"] for row in page.cards[card]["who"] if "data-scale" in row["of"]}
    streams = pd.DataFrame(own.reported.values()).drop_duplicates("stream_id")
    assert float(scale["constant"][2][0]["data-v"]) == pytest.approx(streams["constant"].astype(float).mean())
    models = [own.model(label, own.ball, "mistakes") / own.T for label in own.order]
    assert float(scale["model"][2][0]["data-v"]) == pytest.approx(np.mean(models))
    assert f"B={own.ball:g}" in scale["model"][1][1][0]
    if card == ADAPTIVE:
        assert all(map(near, numbers_in(scale["model"][3][1][0]), [100 * min(models), 100 * max(models)]))
    else:
        assert max(models) == pytest.approx(min(models))


@pytest.mark.parametrize("card", [ADAPTIVE, SHARED])
def test_what_theory_promises(made: Any, card: int) -> None:
    _, _, page, every = made
    own, [_, *rows] = every[card], page.cards[card]["theory"]
    least = own.bounds().sort_values("guarantee", kind="stable").drop_duplicates("label")
    assert [row["of"]["data-player"] for row in rows] == list(least["label"])
    assert len(rows) == 2
    for row, want in zip(rows, least.to_dict("records"), strict=True):
        (_, name), (measured, rate), (guarantee, most), (_, verdict) = row["cells"]
        assert near(rate[0].removesuffix(" %"), 100 * float(measured["data-v"]) / own.T)
        if card == ADAPTIVE:  # no setting of a player has the least guarantee
            assert name[0].strip() in set(own.bounds()["name"])
            assert (guarantee["data-v"], most[0], verdict[0]) == ("", "–", "no theorem covers this stream")
            continue
        assert name[0].strip() == want["name"]
        assert float(measured["data-v"]) == pytest.approx(want["measured"])
        assert float(guarantee["data-v"]) == pytest.approx(want["guarantee"])
        assert near(most[0].removesuffix(" %"), 100 * want["guarantee"] / own.T)
        holds = "exceeded" if want["measured"] > want["guarantee"] else "holds"
        assert verdict[0] == ("vacuous" if holds == "holds" and want["guarantee"] >= own.T else holds)


def sentences(own: Numbers) -> dict[str, tuple[list[str], list[float]]]:
    """Return each sentence whose condition holds, with the names and the numbers in it, in their order."""
    first, *others = own.order
    gaps = {label: own.gap(label, first) for label in others}
    beaten, names = sum(low > 0 for _, low, _ in gaps.values()), own.names
    rates = {label: own.of(label).mean() for label in own.order}
    found: dict[str, tuple[list[str], list[float]]] = {}
    lead = [100 * each for each in gaps[others[0]]]
    lead = [lead[0], 95.0, *lead[1:]]
    if beaten == len(others):
        found["wins"] = [names[first], names[others[0]]], [100 * rates[first], *lead]
    elif beaten:
        found["ahead"] = [names[first], names[others[0]]], [100 * rates[first], beaten, len(others), *lead]
    else:
        found["level"] = [names[first]], [100 * rates[first]]
    tied = [(own.gap(a, head), a, head) for a, head in zip(own.order, own.heads, strict=True) if a != head]
    if tied:
        (mean, low, high), a, head = max(tied)
        found["shared"] = [names[a], names[head]], [100 * mean, 95.0, 100 * low, 100 * high]
    below = sum(rates[label] < own.of(label, "constant").mean() for label in own.order)
    streams = pd.DataFrame(own.reported.values()).drop_duplicates("stream_id")
    found["constant"] = [], [100 * streams["constant"].astype(float).mean(), below, len(own.order)]
    models = {label: own.model(label, own.ball, "mistakes") / own.T for label in own.order}
    shares = [100 * min(models.values()), 100 * max(models.values())][: 1 if own.paired else 2]
    found["model"] = [], [own.ball, *shares, own.T, sum(rates[x] < models[x] for x in own.order), len(own.order)]
    bounds = own.bounds()
    if not own.paired:
        found["uncovered"], bounds = ([], [len(bounds)]), bounds[:0]
    exceeded = bounds["measured"] > bounds["guarantee"]
    vacuous = (bounds["guarantee"] >= own.T) & ~exceeded
    if len(bounds):
        found["theory"] = [], [len(bounds), int(vacuous.sum()), int(exceeded.sum())]
    if max(own.among.values()) > 1:
        found["chosen"] = [], []
    if not own.paired:
        found["streams"] = [], []
    return found


@pytest.mark.parametrize("card", [ADAPTIVE, SHARED])
def test_every_sentence_and_its_condition(made: Any, card: int) -> None:
    _, _, page, every = made
    shown = {name: " ".join(text[0].split()) for name, text in page.cards[card]["sentences"].items()}
    want = sentences(every[card])
    assert set(shown) == set(want)
    assert len(shown) <= 12
    for name, (names, numbers) in want.items():
        rest = shown[name]
        for each in names:
            assert each in rest, name
            rest = rest.replace(each, "", 1)
        printed = numbers_in(rest)
        assert len(printed) == len(numbers), (name, rest, numbers)
        assert all(map(near, printed, numbers)), (name, rest, numbers)


def test_mistakes_relative_to_a_loss_are_shown_only_where_it_is_the_same_for_every_player(made: Any) -> None:
    """The old page said "the same loss for every player" of streams that depended on the player, and two numbers of it."""
    _, text, page, every = made
    captions = [html.unescape(each) for each in re.findall(r"<figcaption>(.*?)</figcaption>", text, re.S)]
    relative = [each for each in captions if "minus the loss" in each]
    own = every[SHARED]
    assert relative
    for line in relative:  # of the other environment, where losses differ by player, there is no such figure
        assert "the same for every agent" in line
        ball = float(re.search(r"norm at most (\d+)", line)[1])  # type: ignore[index]
        [shown] = re.findall(r"([\d,.]+) nats at the end", line)
        assert near(shown, own.model(own.order[0], ball, "loss_nats"))
    assert page.captions == captions


def test_a_cell_of_a_heat_map_is_one_setting(made: Any) -> None:
    """The old cells were the best of the other settings on the very repetitions that were shown."""
    out, _, page, every = made
    for arena, own in zip(arenas(load(out)), every, strict=True):
        drawn = grids(arena)
        decodings = {"decoding=half-log", "decoding=sample"}
        assert {grid.other for grid in drawn if grid.label == "exploration(folklore)"} == decodings
        for grid in drawn:
            assert (grid.gammas, grid.norm_bounds) == (["theory", "0.1"], ["1", "8"])
            for (i, gamma), (j, ball) in itertools.product(enumerate(grid.gammas), enumerate(grid.norm_bounds)):
                name = f"{grid.label} γ={gamma} B={ball} {grid.other}"
                mine = own.last[[own.named(a, k) == name for a, k in zip(own.last["label"], own.last["key"])]]
                assert len(mine) == len(own.repetitions)
                assert grid.mistakes[i, j] == pytest.approx(mine["share"].mean())
    assert any("title of a panel gives the other settings" in each for each in page.captions)


def test_what_was_varied_is_what_was_written(made: Any) -> None:
    """The old page listed values of γ that followed from B where only B was varied."""
    _, text, page, _ = made
    rows = {row[0]: [cell.strip() for cell in row[1:]] for row in page.players if row}
    assert rows["exploration(folklore)"][1:] == ["8", "decoding: half-log, sample; γ: theory, 0.1; B: 1, 8"]
    assert rows["gaptron"][1:] == rows["fastcb"][1:] == ["2", "B: 1, 8"]
    assert rows["uniform"][1:] == ["1", "–"]
    assert "gaptron over γ" not in text


@pytest.mark.slow
def test_the_explorer_compares_a_setting_with_the_models_of_its_own_streams(made: Any) -> None:
    _, text, _, every = made
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    for own, section in zip(every, data["sections"], strict=True):
        for setting in section["settings"]:
            name = f"{setting['p']} {setting['text']}".strip()
            mine = own.last[[own.named(a, k) == name for a, k in zip(own.last["label"], own.last["key"])]]
            balls = [mine["param.norm_bound"].iloc[0]] if setting["p"] != "uniform" else [1.0, 8.0]
            means = {b: np.mean([own.losses.loc[(s, b), "loss_nats"] for s in mine["stream_id"]]) for b in balls}
            loss = min(means.values())
            assert near(numbers_in(setting["model"])[0], float(loss))
            assert near(numbers_in(setting["relative"])[0], mine["expected_mistakes"].mean() - float(loss))


def test_a_shared_rank_has_its_reason(made: Any) -> None:
    """The old page showed "5=" beside mistake rates of 77.8 and 90.0 and nothing that explained it."""
    out, _, _, every = made
    table = pd.read_csv(out / "tables" / "ranking.csv", dtype={"rank": str})
    for own, (_, rows) in zip(every, table.groupby("environment", sort=False), strict=True):
        for row, label, head in zip(rows.to_dict("records"), own.order, own.heads, strict=True):
            assert math.isnan(row["behind_rank"]) == (label == head)
            if label != head:
                assert row["rank"].endswith("=")
                want = own.gap(label, head)
                assert (row["behind_rank"], row["behind_rank_low"], row["behind_rank_high"]) == pytest.approx(want)
                assert row["behind_rank_low"] <= 0 <= row["behind_rank_high"]


def test_a_player_that_learnt_is_not_said_to_have_learnt_nothing(new_folder: Any) -> None:
    """It is behind the most frequent class and significantly ahead of uniform."""
    folder = new_folder(repetitions=5)
    for r in range(5):
        for label, wrong in (("learner", 30.0 + r), ("uniform", 60.0 + 0.3 * r * r)):
            run = folder.add_run(label, r, wrong)
            for row in folder.rows[run]:
                row["constant_mistakes"] = row["first_sight_constant_mistakes"] = row["round"] // 4
    text = write_report(folder.write()).read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert "nothing was learnt" not in page.text
    said = {name: found[0] for name, found in page.cards[0]["sentences"].items()}
    assert set(said) == {"wins", "constant"}
    assert said["constant"].endswith("has a mistake rate of 25.0 %. Agents with a lower rate: 0 of 2.")
