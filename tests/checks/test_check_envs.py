"""Every check of an environment fails on a subject broken in just that way, with just that message."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

from banditlab.checks import CheckResult, check_env, run_checks
from banditlab.envs import AdaptiveEnv, StreamEnv
from banditlab.problem import Problem


class Good(StreamEnv):
    """Three planted directions: keeps every promise."""

    id = "test/Good-v0"
    summary = "keeps every promise"
    reference = "made here"

    def __init__(self, *, spread: float = 0.2, horizon: int = 100) -> None:
        self.spread = spread
        super().__init__(Problem(3, 3, 1.0, horizon))

    def _draw(self, streams: Any, size: int) -> Any:
        while True:
            y = streams.labels.integers(3, size=size)
            X = np.eye(3)[y] + self.spread * streams.contexts.standard_normal((size, 3))
            yield X / np.linalg.norm(X, axis=1, keepdims=True), y


class Adaptive(AdaptiveEnv):
    """The label is the class after the last action."""

    id = "test/Adaptive-v0"
    summary = "keeps every promise"
    reference = "made here"

    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(Problem(2, 3, 1.0, horizon))

    def _begin(self, streams: Any) -> None:
        self._last, self._contexts = 0, streams.contexts

    def _next(self) -> Any:
        x = self._contexts.standard_normal(2)
        return x / np.linalg.norm(x), (self._last + 1) % 3

    def _played(self, context: Any, action: int, label: int) -> None:
        self._last = action


def outcome(subject: Any, name: str) -> CheckResult:
    [check] = [check for check in check_env(subject) if check.name == name]
    return check.result()


def test_a_good_environment_passes() -> None:
    assert [(r.name, r.reason) for r in run_checks(Good) if r.status != "passed"] == []


def test_an_adaptive_environment_passes() -> None:
    results = run_checks(Adaptive)
    assert [(r.name, r.reason) for r in results if r.status == "failed"] == []
    assert {r.name: r.reason for r in results if r.status == "excluded"} == {
        "actions_do_not_matter": "adaptive: the label may depend on earlier actions",
        "steps_are_blocks": "adaptive: it has no blocks",
        "block_sizes": "adaptive: it has no blocks",
        "prefixes": "adaptive: it has no blocks",
    }


class NoSummary(Good):
    summary = ""


class OddId(Good):
    id = "good"


class BadVersion(Good):
    version: ClassVar[Any] = "1"


class Undecided(Good):
    oblivious: ClassVar[Any] = None


class Positional(Good):
    def __init__(self, spread: float = 0.2, *, horizon: int = 100) -> None:
        super().__init__(spread=spread, horizon=horizon)


class Unannotated(Good):
    def __init__(self, *, spread=0.2, horizon: int = 100) -> None:  # type: ignore[no-untyped-def]
        super().__init__(spread=spread, horizon=horizon)


class Forgotten(Good):
    def __init__(self, *, width: float = 0.2, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)


class ArraySetting(Good):
    def __init__(self, *, spread: float = 0.2, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)
        self.spread = np.zeros(1)  # type: ignore[assignment]


class NoHorizon(Good):
    def __init__(self, *, spread: float = 0.2) -> None:
        super().__init__(spread=spread, horizon=64)


def without_horizon(*, horizon: int) -> NoHorizon:
    return NoHorizon()


class Unbounded(Good):
    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)


class NoSeed(Good):
    def reset(self, *, options: Any = None) -> Any:  # type: ignore[override]
        return super().reset(seed=1, options=options)


class BareProblem(Good):
    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)
        self.problem = (3, 3)  # type: ignore[assignment]


class Single(Good):
    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)


class MoreActions(Good):
    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)
        self.action_space = gymnasium.spaces.Discrete(4)  # type: ignore[assignment]


class OwnHorizon(Good):
    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(horizon=1000)


class TooLong(Good):
    def _draw(self, streams: Any, size: int) -> Any:
        for X, y in super()._draw(streams, size):
            yield 1.5 * X, y


class NotFinite(Good):
    def _draw(self, streams: Any, size: int) -> Any:
        for X, y in super()._draw(streams, size):
            X[2, 0] = np.nan
            yield X, y


class Outside(Good):
    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float64)


class OddReward(Good):
    def step(self, action: int) -> Any:
        x, reward, *rest = super().step(action)
        return x, 1.0 - reward, *rest


class Endless(Good):
    def step(self, action: int) -> Any:
        x, reward, _, _, info = super().step(action)
        return x, reward, False, False, info


class NamedLabel(Good):
    def step(self, action: int) -> Any:
        *rest, _ = super().step(action)
        return *rest, {"true_label": 0}


class RenamedLabel(Good):
    def step(self, action: int) -> Any:
        *rest, _ = super().step(action)
        return *rest, {"z": np.array(self.label())}


class LabelAhead(Good):
    def reset(self, **keys: Any) -> Any:
        x, _ = super().reset(**keys)
        return x, {"hint": self._pending[1] if self._pending else None}

    def step(self, action: int) -> Any:
        *rest, _ = super().step(action)
        return *rest, {"hint": self._pending[1] if self._pending else None}


class LabelEarly(Good):
    def label(self) -> int:
        return 0 if self._round == 0 else super().label()


class LabelsEarly(Good):
    def labels(self) -> Any:
        return self._labels


class LabelsAfterOne(Good):
    def labels(self) -> Any:
        self.label()
        return self._labels


class OtherLabels(Good):
    def labels(self) -> Any:
        return super().labels()[::-1]


class LabelsOutOfRange(Good):
    def label(self) -> int:
        return super().label() + 1

    def labels(self) -> Any:
        return super().labels() + 1


class GlobalNoise(Good):
    def _draw(self, streams: Any, size: int) -> Any:
        for X, y in super()._draw(streams, size):
            yield np.random.permutation(X), y  # noqa: NPY002


class Worn(Good):
    """An episode leaves something behind."""

    worn = 0.0

    def _draw(self, streams: Any, size: int) -> Any:
        self.worn += 0.1
        for X, y in super()._draw(streams, size):
            yield X * (1.0 - self.worn), y


class Spiteful(Good):
    def _played(self, context: Any, action: int, label: int) -> None:
        if self._pending is not None and action == 1:
            next(self._rows)


class AdaptiveBlocks(Adaptive):
    def blocks(self, rounds: int, size: int) -> Any:
        yield np.zeros((rounds, 2)), np.zeros(rounds)


class OtherBlocks(Good):
    def blocks(self, rounds: int, size: int) -> Any:
        for X, y in super().blocks(rounds, size):
            yield X, (y + 1) % 3


class FloatLabels(Good):
    def blocks(self, rounds: int, size: int) -> Any:
        for X, y in super().blocks(rounds, size):
            yield X, y.astype(float)


class SizeMatters(Good):
    def blocks(self, rounds: int, size: int) -> Any:
        for X, y in super().blocks(rounds, size):
            yield X, np.roll(y, 1)


class TooFew(Good):
    def blocks(self, rounds: int, size: int) -> Any:
        yield next(super().blocks(rounds, size // 2))


class HorizonMatters(Good):
    def _draw(self, streams: Any, size: int) -> Any:
        for X, y in super()._draw(streams, size):
            yield X / self.horizon, y


class Bits(Good):
    """Has no labels."""

    labelled = False


class SpitefulLabels(Good):
    """The next label depends on the action, the next context does not."""

    last = 0

    def step(self, action: int) -> Any:
        self.last = int(action)
        return super().step(action)

    def _take(self) -> Any:
        x, y = super()._take()
        return x, (y + (self.last == 1)) % 3


class LabelAtTheEnd(Good):
    def step(self, action: int) -> Any:
        *rest, info = super().step(action)
        return *rest, {"true_label": 0} if rest[2] else info


class LabelOnTheWay(Good):
    """The last info that comes with a context tells a label, and no other does."""

    def step(self, action: int) -> Any:
        *rest, info = super().step(action)
        return *rest, {"true_label": 0} if self._round == 63 else info


CONTEXT = "it must be a non-empty one-line string"
BROKEN = [
    (NoSummary, "env_metadata", f"summary is '': {CONTEXT}"),
    (OddId, "env_metadata", "id is 'good': an environment's id must read namespace/Name-vN"),
    (BadVersion, "env_metadata", "version is '1': it must be an integer of at least 1"),
    (Undecided, "env_metadata", "oblivious is not set: it must be True or False"),
    (Positional, "env_settings", "the setting 'spread' is not keyword-only: put it after a *"),
    (
        Unannotated,
        "env_settings",
        "the setting 'spread' has no annotation: annotate it, because values are converted to its type",
    ),
    (
        Forgotten,
        "env_settings",
        "the setting 'width' is not stored in an attribute: store its resolved value under its name",
    ),
    (ArraySetting, "env_settings", "the setting 'spread' is stored as array([0.]): it must be plain JSON data"),
    (
        without_horizon,
        "env_settings",
        "the constructor takes no horizon: the number of rounds must be a keyword-only argument",
    ),
    (
        Unbounded,
        "gymnasium_check",
        "gymnasium's check_env warns: WARN: A Box observation space minimum value is -infinity. "
        "This is probably too low.",
    ),
    (Unbounded, "spaces", "the observation space has infinite bounds: they must be finite, for instance -R and R"),
    (BareProblem, "spaces", "problem is a tuple: it must be a banditlab.problem.Problem"),
    (
        Single,
        "spaces",
        "the observation space is Box(-1.0, 1.0, (3,), float32): it must be Box of shape (3,) and float64",
    ),
    (MoreActions, "spaces", "the action space is Discrete(4): it must be Discrete(3)"),
    (OwnHorizon, "spaces", "problem.horizon is 1000 for horizon = 64: they must be equal"),
    (TooLong, "contexts", "the context at round 0 has norm 1.5: it must be at most R = 1"),
    (NotFinite, "contexts", "the context at round 2 is not finite"),
    (Outside, "contexts", "the context at round 0 lies outside the observation space"),
    (OddReward, "one_bit", "the reward at round 0 is 1.0 for action 2 and label 0: it must be 0.0"),
    (
        Endless,
        "one_bit",
        "after round 63 of 64 (terminated, truncated) is (False, False): an episode must terminate after its "
        "last round and not before",
    ),
    (NamedLabel, "hidden_label", "info['true_label'] reveals the label: info must not contain it"),
    (RenamedLabel, "hidden_label", "info['z'] reveals the label: info must not contain it"),
    (LabelAhead, "hidden_label", "info['hint'] reveals the label: info must not contain it"),
    (LabelAtTheEnd, "hidden_label", "info['true_label'] reveals the label: info must not contain it"),
    (LabelOnTheWay, "hidden_label", "info['true_label'] reveals the label: info must not contain it"),
    (LabelEarly, "label_guards", "label() returned a value before the first step: it must raise"),
    (LabelsEarly, "label_guards", "labels() returned a value before the first step: it must raise"),
    (LabelsAfterOne, "label_guards", "labels() returned a value before the episode had ended: it must raise"),
    (OtherLabels, "label_guards", "labels() differs from the values of label() in each round: they must agree"),
    (LabelsOutOfRange, "label_guards", "labels range over 1 ... 3: they must lie in 0 ... 2"),
    (
        GlobalNoise,
        "env_seeds",
        "two episodes from one seed differ (a fresh object): all randomness must come from the seed",
    ),
    (Worn, "env_seeds", "two episodes from one seed differ (a used object): all randomness must come from the seed"),
    (
        Spiteful,
        "actions_do_not_matter",
        "other actions changed the stream: it must not depend on them, or the class must set oblivious = False",
    ),
    (
        SpitefulLabels,
        "actions_do_not_matter",
        "other actions changed the stream: it must not depend on them, or the class must set oblivious = False",
    ),
    (
        AdaptiveBlocks,
        "actions_do_not_matter",
        "an adaptive environment has blocks: it must have step only",
    ),
    (OtherBlocks, "steps_are_blocks", "blocks and step differ for the same seed: both must give the same stream"),
    (
        FloatLabels,
        "steps_are_blocks",
        "blocks yields float64 contexts and float64 labels: they must be float64 and integers",
    ),
    (
        SizeMatters,
        "block_sizes",
        "blocks of 1 and of 1500 rounds differ: the stream must be the same for any block size",
    ),
    (TooFew, "block_sizes", "blocks(1500, 1500) yields (750, 3) contexts and (750,) labels: rounds must be 1500"),
    (
        HorizonMatters,
        "prefixes",
        "the first 64 rounds of a longer episode differ: longer streams must extend shorter ones (a "
        "distribution that depends on the horizon needs a separate parameter)",
    ),
]


@pytest.mark.parametrize(("subject", "name", "message"), BROKEN, ids=lambda v: getattr(v, "__name__", None))
def test_a_broken_environment_is_told_what_is_wrong(subject: Any, name: str, message: str) -> None:
    result = outcome(subject, name)
    assert (result.status, result.reason) == ("failed", message)


def test_gymnasiums_own_complaint_is_passed_on() -> None:
    result = outcome(NoSeed, "gymnasium_check")
    assert result.status == "failed"
    assert result.reason.startswith("gymnasium's check_env raised ")


def test_labels_out_of_range_are_seen() -> None:
    class OutOfRange(Adaptive):
        def _next(self) -> Any:
            x, y = super()._next()
            return x, y + 1

    result = outcome(OutOfRange, "label_guards")
    assert (result.status, result.reason) == (
        "failed",
        "raised EnvironmentContractError: OutOfRange returned the label 3: labels must lie in 0 ... 2",
    )


def test_every_check_has_a_broken_subject() -> None:
    assert {check.name for check in check_env(Good)} - {"own_round"} == {name for _, name, _ in BROKEN}


def test_without_labels_there_is_nothing_to_guard() -> None:
    results = {result.name: (result.status, result.reason) for result in run_checks(Bits)}
    assert results["one_bit"] == results["hidden_label"] == ("passed", "")
    reason = "the environment has no labels; mistakes are counted from the rewards"
    assert results["label_guards"] == ("excluded", reason)


# ----------------------------------------------------------------------------------------------- rewards of other rounds


class Sectors(Adaptive):
    """The label is the sector that the context lies in, `delay` rounds before."""

    delay = 0

    def _begin(self, streams: Any) -> None:
        angle = streams.contexts.uniform(0.0, 2.0 * np.pi, size=self.horizon + 40)
        self._X, self._sector = np.stack([np.cos(angle), np.sin(angle)], axis=1), (angle * 1.5 / np.pi).astype(int)
        self._t, self._actions = 20, list[int]()

    def _next(self) -> Any:
        self._t += 1
        return self._X[self._t - 1], int(self._sector[self._t - 1 - self.delay])


class SectorBits(Sectors):
    """Without labels."""

    labelled = False


class LateBits(SectorBits):
    """Without labels, the bit is that of context and action `late` rounds before."""

    late = 0

    def step(self, action: int) -> Any:
        x, _, *rest = super().step(action)
        self._actions.append(action)
        n = len(self._actions)
        known = n > self.late and self._actions[-1 - self.late] == self._sector[20 + n - 1 - self.late]
        return x, float(known), *rest


class Arms(LateBits):
    """Without labels, all contexts alike: one action is right more often."""

    def _begin(self, streams: Any) -> None:
        super()._begin(streams)
        self._X[:] = self._X[0]
        self._sector = np.where(streams.labels.random(len(self._sector)) < 0.6, 1, self._sector)


@pytest.mark.parametrize("base", [Sectors, SectorBits, LateBits, Arms])
def test_a_reward_of_its_own_round_passes(base: Any) -> None:
    assert outcome(base, "own_round").status == "passed"


@pytest.mark.parametrize(
    ("base", "setting", "rounds"),
    [
        *[(base, "delay", rounds) for base in (Sectors, SectorBits) for rounds in (1, 2, 5)],
        *[(base, "late", rounds) for base in (LateBits, Arms) for rounds in (1, 2, 5)],
    ],
)
def test_a_reward_of_another_round_is_refused(base: Any, setting: str, rounds: int) -> None:
    subject = type("Other", (base,), {setting: rounds})
    found = outcome(subject, "own_round")
    assert (found.status, f"{rounds} rounds earlier explains" in found.reason) == ("failed", True), found.reason
