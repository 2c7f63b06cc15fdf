"""Vowpal Wabbit's contextual bandits as an agent."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from banditlab.agents.peers.adapter import PeerAgent, PickledBySettings, internal_seed
from banditlab.distributions import library
from banditlab.errors import UsageError
from banditlab.players.agent import Floats
from banditlab.players.saved import require, within
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, one_of, positive, probability

EXPLORATIONS = ("epsilon", "bag", "cover", "squarecb", "regcb", "regcbopt")
COST_TYPES = ("mtr", "dr", "dm", "ips")
COSTS = {"0/1": (0.0, 1.0), "-1/0": (-1.0, 0.0)}
"""Cost of the right class and of a wrong one."""
ONLY_MTR = ("squarecb", "regcb", "regcbopt")
EXACT = ("epsilon", "squarecb", "regcb", "regcbopt")
"""Explorations whose model file contains the whole state, with cost_type "mtr" (tested with vowpalwabbit 9.11.9)."""


LABELS, PLACES = (17, 25), 29
"""Byte offsets in a model file: the range of the smallest and largest cost, and the end of the number of index bits."""


class VW(PickledBySettings, PeerAgent):
    r"""Vowpal Wabbit's contextual bandit learner, `--cb_explore K`, with linear models.

    Problem: bandit multiclass. The cost of the played class is 0 (right) or 1 (wrong), as in `--cbify`. With
    `costs` "-1/0" it is -1 (right) or 0 (wrong), so the initial prediction, 0, is the cost of a wrong class. Bietti et
    al. recommend this encoding.

    Update rule: Vowpal Wabbit's own. Its learner (adaptive, normalised, importance-invariant gradient steps in single
    precision) regresses the cost on the features of each class. `exploration` turns the predicted costs into
    probabilities. The adapter draws the action from these probabilities and returns action, cost and probability to the
    library. The defaults are those of `--cbify K` and of `--cb_explore K`.

    Features: Vowpal Wabbit writes the class into the low bits of a feature's index and overwrites what is there.
    Features with the indices 0, 1, 2, ... would therefore share their weights in groups of S, the smallest power of two
    above K. Here feature j has the index :math:`j S`. A constant feature with the index :math:`d S` replaces Vowpal
    Wabbit's own, which is on by default.
    The weight table is so large that no two indices collide.

    Guarantee: none; `bound` returns None.

    Cost: :math:`O(K d)` per round, and parsing; 50 to 80 µs per round at :math:`d = 65`, :math:`K = 10`. Memory: the
    table, with 16 bytes per weight.

    Saving: Vowpal Wabbit's model file stores the state. With `cost_type` "mtr" and an exploration other than "bag" and
    "cover", a restored run continues exactly. With other settings it would not, and `save` and pickling raise an error.

    Parameters
    ----------
    exploration
        "epsilon" (epsilon-greedy, the library's default), "bag" (bootstrap), "cover" (online cover), "squarecb",
        "regcb" (confidence elimination) or "regcbopt" (its optimistic form).
    gamma
        Exploration rate in [0, 1] for "epsilon" and "cover" (`--epsilon`); other explorations do not use it.
    policies
        Number of policies that "bag" and "cover" train, at least 1. The library has no default for it.
    sharpness
        For "squarecb", the factor of inverse gap weighting is :math:`\text{sharpness}\, t^{\text{growth}}` in round t;
        above 0 (`--gamma_scale`).
    growth
        For "squarecb": the exponent of t (`--gamma_exponent`), 0 or above.
    mellowness
        For "regcb" and "regcbopt": the confidence radius (`--mellowness`), above 0.
    cost_type
        Estimator of the costs from the played class: "mtr", "dr", "dm" or "ips" (`--cb_type`). "squarecb", "regcb" and
        "regcbopt" support "mtr" only.
    learning_rate
        Learning rate, above 0 (`--learning_rate`).
    costs
        "0/1" or "-1/0": the costs of a right and a wrong action.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    A. Bietti, A. Agarwal, J. Langford. A contextual bandit bake-off. JMLR 22, 2021. https://vowpalwabbit.org
    """

    id = "vw"
    requires = ("vowpalwabbit",)
    summary = "Vowpal Wabbit: --cb_explore K, epsilon-greedy by default"
    reference = "Vowpal Wabbit; Bietti, Agarwal and Langford, JMLR 2021"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        exploration: Literal["epsilon", "bag", "cover", "squarecb", "regcb", "regcbopt"] = "epsilon",
        gamma: float = 0.05,
        policies: int = 5,
        sharpness: float = 10.0,
        growth: float = 0.5,
        mellowness: float = 0.1,
        cost_type: Literal["mtr", "dr", "dm", "ips"] = "mtr",
        learning_rate: float = 0.5,
        costs: Literal["0/1", "-1/0"] = "0/1",
    ) -> None:
        super().__init__(problem, rng)
        self.exploration = one_of("exploration", exploration, EXPLORATIONS)
        self.gamma = probability("gamma", gamma)
        self.policies = at_least("policies", policies, 1)
        self.sharpness = positive("sharpness", sharpness)
        self.growth = nonnegative("growth", growth)
        self.mellowness = positive("mellowness", mellowness)
        self.cost_type = one_of("cost_type", cost_type, COST_TYPES)
        if exploration in ONLY_MTR and cost_type != "mtr":
            raise UsageError(f"cost_type must be 'mtr' with exploration = {exploration!r}, got {cost_type!r}")
        self.learning_rate = positive("learning_rate", learning_rate)
        self.costs = one_of("costs", costs, tuple(COSTS))
        self._seed = internal_seed(self.rng)  # used by "bag" only
        self._vw: Any = None  # the learner; a restored state is loaded at first use, which takes 10 ms
        self._model: bytes | None = None  # its model file, or None after an update
        self._workspace()

    def arguments(self) -> list[str]:
        """Return Vowpal Wabbit's command line."""
        K, policies = self.problem.n_classes, self.exploration in ("bag", "cover")
        by_exploration = {
            "epsilon": ["--epsilon", repr(self.gamma)],
            "bag": ["--bag", str(self.policies)],
            "cover": ["--cover", str(self.policies), "--epsilon", repr(self.gamma)],
            "squarecb": ["--squarecb", "--gamma_scale", repr(self.sharpness), "--gamma_exponent", repr(self.growth)],
            "regcb": ["--regcb", "--mellowness", repr(self.mellowness)],
            "regcbopt": ["--regcbopt", "--mellowness", repr(self.mellowness)],
        }
        low, high = COSTS[self.costs]
        if self.costs != "0/1" and self.exploration in ("regcb", "regcbopt"):  # their range is 0 to 1 by default
            by_exploration[self.exploration] += ["--cb_min_cost", repr(low), "--cb_max_cost", repr(high)]
        # "cover" adds one cost model to the policies, "dr" another; their number is rounded up to a power of 2
        copies = 4 * (self.policies + 1) if policies else 2
        slots = (self.problem.n_features + 1) * self._spacing() * copies
        bits = max(10, (slots - 1).bit_length())
        learner = ["--cb_type", self.cost_type, "--learning_rate", repr(self.learning_rate)]
        fixed = ["--cb_explore", str(K), "--noconstant", "--bit_precision", str(bits), "--quiet"]
        return [*fixed, *by_exploration[self.exploration], *learner]

    def _spacing(self) -> int:
        """Return S, the distance between the indices of two features; the low bits are the class."""
        return 1 << self.problem.n_classes.bit_length()

    def _workspace(self) -> Any:
        """Return the learner; build it first if there is none yet, from the restored model file if there is one."""
        if self._vw is None:
            vw = library("vowpalwabbit.pyvw", self.id)
            self._example = vw.Example
            seed = ["--random_seed", str(self._seed)]
            if self._model is None:
                self._vw = vw.Workspace(arg_list=self.arguments() + seed)
            else:
                with _temporary_file() as file:
                    file.write_bytes(self._model)
                    self._vw = vw.Workspace(arg_list=[*self.arguments(), *seed, "--initial_regressor", str(file)])
        return self._vw

    def _parsed(self, vw: Any, x: Floats, label: str = "") -> Any:
        example, S = self._example(vw), self._spacing()
        here = np.flatnonzero(x)
        features = list(zip((S * here).tolist(), x[here].tolist(), strict=True))
        example.push_features(" ", [*features, (S * len(x), 1.0)])
        if label:
            example.set_label_string(label)
        example.setup_example()
        return example

    def _distribution(self, x: Floats) -> Floats:
        vw = self._workspace()
        self._model = None  # predicting counts rounds too
        example = self._parsed(vw, x)
        p = np.array(vw.predict(example))
        vw.finish_example(example)
        p /= p.sum()  # single precision sums to 1 within 1e-7
        return p

    def _update(self, x: Floats, action: int, probability: float, correct: bool) -> None:
        vw = self._workspace()
        self._model = None
        cost = COSTS[self.costs][0 if correct else 1]
        example = self._parsed(vw, x, f"{action + 1}:{cost}:{probability!r}")
        vw.learn(example)
        vw.finish_example(example)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generator, the seed and the bytes of Vowpal Wabbit's model file.

        Raises
        ------
        UsageError
            The model file does not contain the whole state at these settings.
        """
        if self.exploration not in EXACT or self.cost_type != "mtr":
            raise UsageError(
                f"vw: Vowpal Wabbit's model file does not contain the whole state of exploration = {self.exploration!r} with "
                f"cost_type = {self.cost_type!r}; only exploration = {' or '.join(map(repr, EXACT))} "
                "with cost_type = 'mtr' can be saved"
            )
        if self._model is None:
            with _temporary_file() as file:
                self._workspace().save(file)
                self._model = file.read_bytes()
        return {"rng": self.rng, "seed": self._seed, "model": np.frombuffer(self._model, np.uint8)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an agent with the same settings."""
        require({"rng": self.rng, "seed": self._seed}, {name: state[name] for name in ("rng", "seed")}, "state")
        within(state["seed"], "state.seed", 0, 2**32 - 1)
        model = state["model"]
        if not (isinstance(model, np.ndarray) and model.dtype == np.uint8 and model.ndim == 1):
            raise UsageError("state.model must be the bytes of a model file")
        self.rng, self._seed, self._vw = copy.deepcopy(state["rng"]), state["seed"], None
        self._model = None
        with _temporary_file() as file:
            self._workspace().save(file)
            own = file.read_bytes()
        self._vw = None
        self._model = _known(own, model.tobytes())


def _known(own: bytes, model: bytes) -> bytes:
    """Return `model` if its header equals that of `own`, a new learner's model file; otherwise raise a UsageError.

    Vowpal Wabbit reads options (which may name other files) and indices of weights from the file without a check. After
    the header the file has a checksum, counts, and for each weight its index (four bytes) and three numbers.
    """
    if len(own) < PLACES or not own.startswith(b"\x07\x00\x00\x00"):
        raise UsageError("this version of Vowpal Wabbit writes model files that banditlab cannot check")
    end = own.index(b"\0", own.index(b" --")) + 1
    labels = slice(*LABELS)  # the smallest and the largest cost so far
    heads = [head[: labels.start] + head[labels.stop : end + 4] for head in (own, model)]
    weights = np.frombuffer(model[len(own) :][: (len(model) - len(own)) // 16 * 16], dtype="<u4").reshape(-1, 4)
    places = weights[:, 0]
    largest = 1 << int.from_bytes(own[labels.stop : PLACES], "little")
    if heads[0] != heads[1] or (len(model) - len(own)) % 16 or (len(places) and places.max() >= largest):
        raise UsageError("state.model is not a model file of vw at these settings")
    return model


@contextmanager
def _temporary_file() -> Iterator[Path]:
    """Yield a path in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="banditlab-vw-") as folder:
        yield Path(folder) / "model"
