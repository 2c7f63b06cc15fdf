"""The players whose speed is measured, a line each."""

from __future__ import annotations

from typing import Any, NamedTuple


class Player(NamedTuple):
    """A line of the table.

    `job`: which methods of other libraries do the same, "first" order or "second" order per class. `classes` 2: a binary
    learner.
    """

    id: str
    kind: str
    settings: dict[str, Any]
    job: str = ""
    classes: int | None = None

    @property
    def label(self) -> str:
        """The id with the settings that were given."""
        return " ".join([self.id, *(f"{name}={value}" for name, value in self.settings.items())])


WHOLE = {"second_order": "full"}
"""Whole matrices, also where "auto" would choose a sketch."""
AGENTS = [
    Player("uniform", "agents", {}),
    Player("beta-ts", "agents", {}),
    Player("banditron", "agents", {"gamma": 0.1}, "first"),
    Player("epsilon-greedy", "agents", {}, "first"),
    Player("epsilon-greedy-direct", "agents", {}, "first"),
    Player("gaptron", "agents", {"gamma": 0.1, "step": "adaptive"}, "first"),
    Player("pnewtron", "agents", {"gamma": 0.1}, "first"),
    Player("soba-diag", "agents", {"gamma": 0.1}, "first"),
    Player("rdue", "agents", {"gamma": 0.1, "step": "adaptive"}, "first"),
    Player("decoded-descent", "agents", {"gamma": 0.1, "step": "adaptive"}, "first"),
    Player("ovr-perceptron", "agents", {"choice": "largest"}, "first"),
    Player("perceptron", "agents", {}),
    Player("randomized-decoding", "agents", {}),
    Player("linucb", "agents", WHOLE, "second"),
    Player("lints", "agents", WHOLE, "second"),
    Player("confidit", "agents", {}, "second"),
    Player("fastcb", "agents", WHOLE, "second"),
    Player("squarecb", "agents", WHOLE, "second"),
    Player("linucb", "agents", {"second_order": "sketch"}),
    Player("lints", "agents", {"second_order": "sketch"}),
    Player("fastcb", "agents", {"second_order": "sketch"}),
    Player("stackcb", "agents", WHOLE),
    Player("newtron", "agents", {"gamma": 0.1, "ball": False}, "second"),
    Player("newtron", "agents", {"gamma": 0.1}),
    Player("soba", "agents", {"gamma": 0.1}),
    Player("obama-lite", "agents", {"gamma": 0.1}),
    Player("exploration", "agents", {"gamma": 0.1}),
    Player("sampled", "agents", {}),
    Player("label-efficient", "agents", {}),
    Player("apple-tasting", "agents", {}, classes=2),
]

FORECASTERS = [
    Player("ogd", "forecasters", {}),
    Player("aioli", "forecasters", {}, classes=2),
    Player("folklore", "forecasters", {"norm_bound": 5.0}),
    Player("gaf", "forecasters", {"norm_bound": 5.0, "regularization": 0.1}),
    Player("gaf-fresh", "forecasters", {"norm_bound": 5.0, "regularization": 0.1}),
    Player("ons", "forecasters", {"projection": "none"}),
    Player("ons", "forecasters", {}),
    Player("ftrl", "forecasters", {}),
    Player("aggregating", "forecasters", {}),
    Player("b-grid", "forecasters", {}),
    Player("kernel-aioli", "forecasters", {}, classes=2),
    Player("fourier-aioli", "forecasters", {}, classes=2),
    Player("folklore-direct", "forecasters", {}),
    Player("aioli-direct", "forecasters", {}, classes=2),
    Player("kernel-folklore", "forecasters", {"landmarks": 50}),
    Player("fourier-folklore", "forecasters", {}),
    Player("kernel-gaf", "forecasters", {"landmarks": 50}),
]

PEERS = [
    Player("vw", "driver", {"cbify": "--epsilon 0.1"}, "first"),
    Player("vw", "driver", {"cbify": "--squarecb"}, "first"),
    Player("vw", "agents", {}, "first"),
    Player("vw", "agents", {"exploration": "squarecb"}, "first"),
    Player("river-logistic", "agents", {}, "first"),
    Player("contextualbandits-sgd", "agents", {}, "first"),
    Player("river-linucb", "agents", {}, "second"),
    Player("contextualbandits-linucb", "agents", {}, "second"),
    Player("contextualbandits-lints", "agents", {}, "second"),
    Player("mabwiser-linucb", "agents", {}, "second"),
    Player("mabwiser-lints", "agents", {}, "second"),
    Player("coba-linucb", "agents", {}, "second"),
    Player("coba-lints", "agents", {}, "second"),
]
"""Other libraries: by their own driver (a whole stream in one call), or called once per round."""

OURS = AGENTS + FORECASTERS
ROWS_FIRST = ("newtron",)
"""Players that do not read contexts ahead, but store large matrices as rows, by kernels of their own."""
TWO_FORMS = ("folklore", "gaf", "sampled", "label-efficient", "apple-tasting", "exploration")
"""Players with a second set of kernels for large problems, `form = "dual"`."""
LEFT_OUT = {
    "boosted-exploration": "its rounds are a booster's; measured in docs/results/boosting-speed.md",
}
"""Registered agents and forecasters that no line above measures, each with the reason."""
