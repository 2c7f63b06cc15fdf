"""docs/which-agent.md: what was measured of each agent that the page names, from the csv files of the results."""

from pathlib import Path

import numpy as np
import pandas as pd

from result_pages import _several_right, changes, late_lost_wrong, rivals

PROVED = ["exploration", "gaptron", "rdue", "obama-lite"]
SMALL_GAMMA = 2.0**-10
MOVED = "all moved by one at half time"


def parts(results: Path) -> dict[str, str]:
    """Return the figures in the page's table, by marker."""
    late = late_lost_wrong.parts(results)
    feedback = {name: late[name] for name in ("first", "silence")}
    return {
        **on_tables(results),
        **on_real_data(results),
        **on_streams(results),
        **when_labels_move(results),
        **feedback,
    }


def span(values: "pd.Series[float]", digits: int) -> str:
    """Return "0.5 to 12.0", or one figure where both are the same."""
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def on_tables(results: Path) -> dict[str, str]:
    """Return what `stackcb` makes beside `fastcb`, how long a round of either takes, and where several actions are right."""
    tables = rivals.shuffled(rivals.read(results / "rivals.csv"))
    ratios = pd.Series([rows[rivals.OWN].mean / rows[rivals.REFERENCE].mean for rows in tables.values()])
    speed = pd.read_csv(results / "speed.csv").query("stream == 'logistic' and K == 10 and d == 64").set_index("player")
    micro = {name: speed.loc[f"{name} second_order=full", "nanoseconds"] / 1000 for name in ("stackcb", "fastcb")}
    several = [line for line in _several_right.read(results / _several_right.FILE) if line.player == "stackcb"]
    ahead = sum(line.beside_beta_ts == "ahead" for line in several)
    return {
        "tables": f"{np.exp(np.log(ratios).mean()):.2f}",
        "n-tables": str(len(tables)),
        "microseconds": f"{micro['stackcb']:.0f}",
        "fastcb-microseconds": f"{micro['fastcb']:.0f}",
        "several": f"{ahead} of {len(several)}",
    }


def on_real_data(results: Path) -> dict[str, str]:
    """Return what the eight sets say of exploration that can be explained, and of the theorems' settings."""
    defaults = pd.read_csv(results / "real-data-defaults.csv").pivot(index="agent", columns="data", values="mistakes %")
    score = pd.read_csv(results / "real-data-win-tie-loss.csv", index_col=0).loc["epsilon-greedy-direct", "vw"]
    wins, ties, losses = str(score).split("/")
    return {
        "at-theory": span(defaults.loc[PROVED].stack(), 0) + " %",
        "direct-to-vw": f"{wins} / {ties} / {losses}",
    }


def on_streams(results: Path) -> dict[str, str]:
    """Return mistakes on synthetic streams, and on SynSep and SynNonSep after a million rounds."""
    made = pd.read_csv(results / "made-streams.csv")
    means = made["mistakes"].str.split().map(lambda shares: pd.Series(shares, dtype=float).mean())
    by_stream = made.assign(mean=means).pivot(index="stream", columns="player", values="mean")
    curves = pd.read_csv(results / "synsep.csv")
    direct = curves[(curves["agent"] == "epsilon-greedy-direct") & (curves["gamma"] <= SMALL_GAMMA)]
    direct = direct.set_index("environment")["error %"]
    second = pd.read_csv(results / "second-order.csv").query("stream == 'embedding' and K == 20 and d == 1024")
    forms = second.set_index(["agent", "second_order"])["mistakes"].astype(float)
    return {
        **{f"{stream}-{agent}": f"{by_stream.loc[stream, agent]:.1f}" for stream in ("words", "genes")
           for agent in ("stackcb", "fastcb", "linucb")},
        "direct": span(direct["SynSep"], 2) + " %",
        "direct-noisy": span(direct["SynNonSep"], 2) + " %",
        "embedding-stackcb": f"{forms['stackcb', 'diagonal']:.1f}",
        "embedding-fastcb": f"{forms['fastcb', 'sketch 32']:.1f}",
    }  # fmt: skip


def when_labels_move(results: Path) -> dict[str, str]:
    """Return the mean mistakes of the second half, after all labels moved."""
    lines = [line for line in changes.read(results / "changes.csv") if line.labels == MOVED]
    return {
        f"moved-{player}": f"{np.mean([np.mean(line.mistakes) for line in lines if line.player == player]):.1f}"
        for player in ("stackcb", "fastcb")
    }
