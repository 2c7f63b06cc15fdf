"""Who may be handed labels: the package's own loops, and others as far as their rounds come out the same without labels."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import PlayerError
from banditlab.players.actor import RoundActor
from banditlab.players.agent import Trace, checked
from banditlab.players.forecaster import Forecaster
from banditlab.players.label_agent import LabelAgent
from banditlab.players.player import Player

TEMPLATE, STEPS, REPLAYED, UNVERIFIED = "template", "steps", "replayed", "unverified"
"""How a run's rounds are vouched for: by the package's loop over blocks, step by step, by a replay of some, or not at all."""
ALWAYS = 256
"""Of the first rounds every block is replayed,"""
LATER = 4
"""and about so many of those that follow."""
TOLERANCE = 1e-9


def is_from_package(player: Player) -> bool:
    """Return whether the player's class, and that of the player it wraps, is one of the package's modules'."""
    return (
        _is_ours(type(player))
        and not {"play_block", "forecast_block"} & set(vars(player))
        and _inner_is_from_package(player)
    )


def _is_ours(cls: type) -> bool:
    """Return whether a class is what one of the package's modules calls so: a class may say any module's name of itself."""
    found = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None)
    return found is cls and cls.__module__.partition(".")[0] == "banditlab"


def _inner_is_from_package(player: Player) -> bool:
    return player.wraps is None or is_from_package(player.inner)


_MEET_LABELS = (
    "play_block",
    "forecast_block",
    "_play",
    "_play_round",
    "_loop",
    "_report",
    "_outcome",
    "__getattribute__",
)
"""What a player's blocks go through where labels are at hand."""


def is_label_blind(player: Player) -> bool:
    """Return whether the loop that meets a block's labels is the package's own, and shows them to no kernel too early.

    A plug-in's verbs and kernels are bound into the package's loops, which hand over the bit (or, to a label agent, the
    label after the action). A plug-in that plays blocks by itself holds the labels before it acts, and so do the kernels
    of a plug-in's forecaster, which predict and learn in one call.
    """
    if is_from_package(player):
        return True
    foreign = [base for base in type(player).__mro__ if base.__module__ != "builtins" and not _is_ours(base)]
    own = any(name in vars(place) for name in _MEET_LABELS for place in (player, *foreign))
    return isinstance(player, RoundActor) and player.wraps is None and not own


class Replay:
    """Plays some of a plug-in's blocks again, by a copy of the player, step by step: without the labels to come.

    Parameters
    ----------
    player
        A player that is handed blocks of labels and not label blind.
    seed
        The environment's, so that a run is sampled in the same way every time.
    rounds
        Rounds of the run.
    """

    def __init__(self, player: Any, seed: int, rounds: int) -> None:
        self.player = player
        self.rng = np.random.default_rng([seed % 2**64, 0x5EED])
        self.share = min(1.0, LATER * 1024 / rounds)
        self.done = 0
        self.verified = REPLAYED

    def twin(self, n: int) -> Any:
        """Return a copy of the player as it stands before a block of n rounds that is to be replayed, else None."""
        wanted = self.done < ALWAYS or self.rng.random() < self.share
        self.done += n
        if not wanted or self.verified == UNVERIFIED:
            return None
        try:
            return copy.deepcopy(self.player)
        except Exception:  # a plug-in may hold anything: what cannot be copied is shown as unverified
            self.verified = UNVERIFIED
            return None

    def compare(self, twin: Any, X: Any, y: NDArray[np.int64], trace: Trace) -> None:
        """Play a block again by the copy and compare.

        Raises
        ------
        PlayerError
            The block and the steps differ in an action, in whether it was explored, or in the label's probability.
        """
        first = self.done - len(y)
        try:
            for t, label in enumerate(y.tolist()):
                x = _context(X, t)
                action, p_true, explored = _step(twin, x, label)
                same = action == trace.action[t] and abs(p_true - trace.p_true[t]) <= TOLERANCE
                if not (same and (explored is None or explored == trace.explored[t])):
                    raise PlayerError(
                        f"{twin.id or type(twin).__name__}: its block and its steps differ in round {first + t + 1}: class "
                        f"{trace.action[t]} with {trace.p_true[t]:.6g} for the label in the block, class {action} with "
                        f"{p_true:.6g} step by step; what is played must not depend on the labels of the block"
                    )
        except NotImplementedError:  # it has no steps
            self.verified = UNVERIFIED


def _context(X: Any, t: int) -> NDArray[np.float64]:
    x: NDArray[np.float64] = X[t].copy() if isinstance(X, np.ndarray) else X[t : t + 1].toarray()[0]
    x.flags.writeable = False
    return x


def _step(player: Any, x: NDArray[np.float64], label: int) -> tuple[int, float, bool | None]:
    """Play a round; return the action, the label's probability, and whether it was explored (None: there is no coin)."""
    if isinstance(player, Forecaster):
        logits = np.array(player.predict(x), dtype=np.float64)
        player.update(x, label)
        p = np.exp(logits - logits.max())
        return int(np.argmax(logits)), float(p[label] / p.sum()), None
    decision = checked(player.act(x), player.problem.n_classes, player)
    p_true = float(decision.probabilities[label])
    player.learn(x, decision, label if isinstance(player, LabelAgent) else decision.action == label)
    return decision.action, p_true, bool(decision.explored)
