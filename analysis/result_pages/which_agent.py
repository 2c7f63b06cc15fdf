"""docs/which-agent.md: the figures behind its advice, from the studies of real data, SynSep and the theorems."""

from pathlib import Path

import pandas as pd

from result_pages.real_data import OURS, SCALE, by_set, sets_where

PROVED = ["exploration", "gaptron", "rdue", "obama-lite"]
SMALL_GAMMA = 2.0**-10


def parts(results: Path) -> dict[str, str]:
    """Return the figures in the page's sentences, by marker."""
    return {**on_real_data(results), **on_synsep(results), **in_theory(results)}


def span(values: "pd.Series[float]", digits: int) -> str:
    """Return "0.5 to 12.0", or one figure where both are the same."""
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def on_real_data(results: Path) -> dict[str, str]:
    """Return what the eight sets say of the recommended agent, and of the theorems' settings."""
    defaults, tuned = (by_set(pd.read_csv(results / f"real-data-{name}.csv")) for name in ("defaults", "tuned"))
    peers = pd.read_csv(results / "real-data-best-peer.csv").set_index("data")
    peers = peers.reset_index()
    ahead, behind = peers[peers["high"] < 0], peers[peers["low"] > 0]
    first = defaults.drop(index=SCALE).idxmin()
    gains = defaults.loc[OURS] - tuned.loc[OURS]
    score = pd.read_csv(results / "real-data-win-tie-loss.csv", index_col=0).loc["epsilon-greedy-direct", "vw"]
    wins, ties, losses = str(score).split("/")
    return {
        "fewest": str((first == OURS).sum()),
        "ahead-by": span(-ahead["difference"], 1) if len(ahead) else "-",
        "ahead-on": sets_where(peers, peers["high"] < 0),
        "behind-by": span(behind["difference"], 1) if len(behind) else "-",
        "behind-on": sets_where(peers, peers["low"] > 0),
        "tuning-gains": span(gains, 1),
        "at-theory": span(defaults.loc[PROVED].stack(), 0) + " %",
        "direct-to-vw": f"{wins} / {ties} / {losses} wins, ties and losses",
    }


def on_synsep(results: Path) -> dict[str, str]:
    """Return the shares of mistakes of a million rounds, and of `fastcb` in a tenth of them."""
    curves, best, second = (pd.read_csv(results / f"synsep{name}.csv") for name in ("", "-best", "-second-order"))
    direct = curves[(curves["agent"] == "epsilon-greedy-direct") & (curves["gamma"] <= SMALL_GAMMA)]
    direct = direct.set_index("environment")["error %"]
    noisy = best[best["environment"] == "SynNonSep"].set_index("agent")["error %"]
    fastcb = second.set_index(["environment", "agent"])["error %"]["SynNonSep", "fastcb"]
    return {
        "direct": span(direct["SynSep"], 2) + " %",
        "direct-noisy": span(direct["SynNonSep"], 2) + " %",
        "rdue-noisy": f"{noisy['rdue']:.1f} %",
        "fastcb-noisy": f"{fastcb:.1f} %",
    }


def in_theory(results: Path) -> dict[str, str]:
    """Return from which T the bounds say something at K = 10, B = 10, and by what factor promises are kept."""
    thresholds = pd.read_csv(results / "theory-thresholds.csv").query("K == 10 and B == 10").set_index("agent")
    since = thresholds["bound below T from"]
    mistakes = pd.read_csv(results / "theory-mistakes.csv").query("T == 100000").dropna(subset="bound")
    agents = ["obama-lite", "gaptron-wide", "exploration", "gaptron", "rdue"]
    decoded = pd.read_csv(results / "decoding-thresholds.csv").query("K == 10 and B == 10").set_index("agent")
    speaks = decoded["bound below T from"]
    names = {"exploration-half-log": "exploration half-log", "obama-half-log": "obama-lite half-log",
             "rdue-half-log": "rdue half-log", "descent": "decoded-descent-wide sparsemax"}  # fmt: skip
    pairs = pd.read_csv(results / "decoding-paired.csv").query("T == 100000 and decoded == 'exploration half-log'")
    return {
        **{f"since-{name}": f"{float(f'{speaks[agent]:.1e}'):,.0f}" for name, agent in names.items()},
        "fewer-half-log": f"{pairs['fewer'].min():.0f} to {pairs['fewer'].max():.0f} %",
        **{f"since-{agent}": f"{float(f'{since[agent]:.1e}'):,.0f}" for agent in agents},
        "factor": span(mistakes["promise / mistakes"], 1),
    }
