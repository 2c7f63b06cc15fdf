"""Checks of an environment: Gymnasium's interface, the hidden label, and reproducible streams."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.checks._core import (
    CheckExcluded,
    declared_exclusions,
    fail,
    one_line,
    require_metadata,
    require_setting,
)
from banditlab.checks._players import _plain
from banditlab.problem import Problem

HORIZON = 64
"""Rounds of an episode in a check; the check on prefixes uses twice as many."""
STREAM = 1500
"""Rounds over which block sizes are compared; environments usually draw fewer at a time."""
SEED = 7
MOST_LATE = 10
"""The largest distance, in rounds, of an earlier context or action that is compared with the current one."""
SURE = 6.0
"""Number of standard deviations by which another round must explain rewards better for the check to fail."""


@dataclass(frozen=True)
class EnvProbe:
    """A factory of environments, `(*, horizon) -> env`."""

    subject: Callable[..., Any]
    name: str
    note: str
    exclusions: dict[str, str]

    def make(self, horizon: int = HORIZON) -> Any:
        """Return a new environment."""
        return self.subject(horizon=horizon)


@dataclass(frozen=True)
class Episode:
    """The record of an episode: contexts (T, d), labels (T,) or bits (T, K), rewards (T,), infos, and the flags
    (terminated, truncated) of each step.
    """

    contexts: NDArray[np.float64]
    labels: NDArray[np.int64]
    rewards: list[Any]
    infos: list[dict[str, Any]]
    ends: list[tuple[bool, bool]]


def env_probe(subject: Callable[..., Any], checks: tuple[Callable[..., None], ...]) -> EnvProbe:
    """Return the probe for a class or factory."""
    if inspect.isclass(subject) and "horizon" not in inspect.signature(subject).parameters:
        fail("the constructor takes no horizon: the number of rounds must be a keyword-only argument")
    env = subject(horizon=HORIZON)
    cls = type(env)
    if "observation_space" not in vars(env.unwrapped):
        fail("it has no observation_space: the constructor must call super().__init__(Problem(...))")
    return EnvProbe(subject, getattr(cls, "id", "") or cls.__name__, "", declared_exclusions(cls, checks))


def episode(env: Any, actions: Any, seed: int = SEED) -> Episode:
    """Run one episode with fixed actions."""
    x, info = env.reset(seed=seed)
    contexts, labels, rewards, infos, ends = [], [], [], [info], []
    for action in actions:
        contexts.append(np.array(x))
        x, reward, terminated, truncated, info = env.step(int(action))
        labels.append(_finished_round(env.unwrapped))
        rewards.append(reward)
        infos.append(info)
        ends.append((terminated, truncated))
    return Episode(np.stack(contexts), np.array(labels), rewards, infos, ends)


def _finished_round(base: Any) -> Any:
    """Return the label of the last finished round, or its bits, or -1 if neither is known."""
    if getattr(base, "several_right", False):
        return base.right()
    return base.label() if _labelled(base) else -1


def _labelled(env: Any) -> bool:
    return bool(getattr(env.unwrapped, "labelled", True))


def _refuse_unlabelled(env: Any) -> None:
    if not _labelled(env):
        raise CheckExcluded("the environment has no labels; mistakes are counted from the rewards")


def _actions(env: Any, seed: int = 0, horizon: int = HORIZON) -> Any:
    return np.random.default_rng(seed).integers(env.unwrapped.problem.n_classes, size=horizon)


def _blocks(env: Any, rounds: int, size: int, seed: int = SEED) -> tuple[Any, Any]:
    """Return the stream (X, y) that `blocks` yields, with sparse blocks made dense."""
    env.reset(seed=seed)
    blocks = list(env.unwrapped.blocks(rounds, size))
    X = np.concatenate([x.toarray() if hasattr(x, "toarray") else np.asarray(x) for x, _ in blocks])
    return X, np.concatenate([y for _, y in blocks])


def env_metadata(probe: EnvProbe) -> None:
    """The class defines id, summary, reference, version and oblivious."""
    cls = type(probe.make().unwrapped)
    require_metadata(cls)
    if not re.fullmatch(r"[\w.-]+/[\w.-]+-v\d+", cls.id):
        fail(f"id is {cls.id!r}: an environment's id must read namespace/Name-vN")
    if not isinstance(getattr(cls, "oblivious", None), bool):
        fail("oblivious is not set: it must be True or False")


def env_settings(probe: EnvProbe) -> None:
    """The constructor takes keyword-only annotated settings and horizon, and stores each in an attribute as plain JSON
    data.
    """
    env = probe.make().unwrapped
    parameters = list(inspect.signature(type(env).__init__).parameters.values())[1:]
    for parameter in parameters:
        require_setting(parameter)
        value = _resolved(env, parameter.name)
        if not _plain(value):
            fail(f"the setting {parameter.name!r} is stored as {value!r}: it must be plain JSON data")
    if "horizon" not in [parameter.name for parameter in parameters]:
        fail("the constructor takes no horizon: the number of rounds must be a keyword-only argument")


def _resolved(env: Any, name: str) -> Any:
    """Return a setting's resolved value, from `params()` if that is defined, otherwise from the attribute."""
    try:
        return env.params()[name] if hasattr(env, "params") and name != "horizon" else getattr(env, name)
    except (AttributeError, KeyError):
        fail(f"the setting {name!r} is not stored in an attribute: store its resolved value under its name")


def gymnasium_check(probe: EnvProbe) -> None:
    """Gymnasium's own check_env passes without a warning."""
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            # No rendering; without a spec the checker would warn about render modes.
            check_env(probe.make().unwrapped, skip_render_check=True)
        except Exception as error:
            fail(f"gymnasium's check_env raised {one_line(error)}")
    if caught:
        text = re.sub(r"\x1b\[\d+m", "", str(caught[0].message)).strip().split("\n")[0]
        fail(f"gymnasium's check_env warns: {text}")


def spaces(probe: EnvProbe) -> None:
    """The spaces match the problem: Box (d,) float64 with finite bounds, and Discrete(K) from 0; the horizon is T."""
    env = probe.make()
    problem = env.unwrapped.problem
    if not isinstance(problem, Problem):
        fail(f"problem is a {type(problem).__name__}: it must be a banditlab.problem.Problem")
    box, discrete = env.observation_space, env.action_space
    if getattr(box, "shape", None) != (problem.n_features,) or box.dtype != np.float64:
        fail(f"the observation space is {box}: it must be Box of shape ({problem.n_features},) and float64")
    if not (np.isfinite(box.low).all() and np.isfinite(box.high).all()):
        fail("the observation space has infinite bounds: they must be finite, for instance -R and R")
    if getattr(discrete, "n", None) != problem.n_classes or discrete.start != 0:
        fail(f"the action space is {discrete}: it must be Discrete({problem.n_classes})")
    if problem.horizon != HORIZON:
        fail(f"problem.horizon is {problem.horizon} for horizon = {HORIZON}: they must be equal")


def contexts(probe: EnvProbe) -> None:
    """Every context is finite, lies in the observation space and has norm at most R."""
    env = probe.make()
    radius = env.unwrapped.problem.radius
    for t, x in enumerate(episode(env, _actions(env)).contexts):
        if not np.isfinite(x).all():
            fail(f"the context at round {t} is not finite")
        if np.linalg.norm(x) > radius * (1.0 + 1e-9):
            fail(f"the context at round {t} has norm {np.linalg.norm(x):.6g}: it must be at most R = {radius:g}")
        if not env.observation_space.contains(x):
            fail(f"the context at round {t} lies outside the observation space")


def one_bit(probe: EnvProbe) -> None:
    """The reward is 1.0 for the label, or a right action, and 0.0 for any other; an episode terminates after its last
    round."""
    env = probe.make()
    actions = _actions(env)
    played = episode(env, actions)
    for t, (action, label, reward) in enumerate(zip(actions, played.labels, played.rewards, strict=True)):
        hit = label[action] if np.ndim(label) else action == label
        expected = 1.0 if hit or (np.array_equal(label, -1) and reward == 1.0) else 0.0
        if not isinstance(reward, float) or reward != expected:
            fail(f"the reward at round {t} is {reward!r} for action {action} and label {label}: it must be {expected}")
    for t, (terminated, truncated) in enumerate(played.ends):
        if terminated != (t == HORIZON - 1) or truncated:
            fail(f"after round {t} of {HORIZON} (terminated, truncated) is {(terminated, truncated)}: "
                 "an episode must terminate after its last round and not before")  # fmt: skip


def own_round(probe: Any) -> None:
    """The reward depends on the current context and action, not on those of an earlier round.

    A context and action explain a reward if the round with the nearest context, among those with the same action, has
    the same reward. The context of an earlier round, with the action of that round or of the current one, must not
    explain more rewards than the current context and action. The two numbers of explained rewards are compared by
    McNemar's statistic: the difference of the discordant counts divided by the square root of their sum.
    """
    env = probe.make(STREAM)
    actions = _actions(env, horizon=STREAM)
    played = episode(env, actions)
    X, rewards = played.contexts, np.array(played.rewards)
    squares = np.einsum("td,td->t", X, X)
    # Ties between equal contexts are broken at random.
    apart = np.maximum(squares[:, None] + squares - 2.0 * (X @ X.T), 0.0)
    apart += (1e-9 * apart.max() or 1.0) * np.random.default_rng(SEED).random(apart.shape)
    np.fill_diagonal(apart, np.inf)
    rounds = np.arange(MOST_LATE, STREAM)

    def explained(lag: int, action_lag: int) -> Any:
        at, played_at = rounds - lag, actions[rounds - action_lag]
        nearest = np.where(played_at[:, None] == played_at, apart[np.ix_(at, at)], np.inf).argmin(axis=1)
        return rewards[rounds][nearest] == rewards[rounds]

    own = explained(0, 0)
    for lag in range(1, MOST_LATE + 1):
        for action_lag in (0, lag):
            other = explained(lag, action_lag)
            more = int(other.sum()) - int(own.sum())
            if more > SURE * np.sqrt(np.count_nonzero(other != own)):
                fail(
                    f"the context {lag} rounds earlier explains {more} of {len(rounds)} rewards more than the current "
                    "context: a reward "
                    "must depend on the current context and action"
                )


def hidden_label(probe: EnvProbe) -> None:
    """info never contains the label, under any name."""
    env = probe.make()
    played = episode(env, _actions(env))
    if not _labelled(env):
        _refuse_infos(played)
        return
    ahead, behind = played.infos[:-1], played.infos[1:]  # info before the action, and with the reward
    for infos in (ahead, behind):
        for name in infos[-1]:
            if "label" in str(name).lower() or all(
                np.array_equal(np.asarray(info.get(name)), label)
                for info, label in zip(infos, played.labels, strict=True)
            ):
                fail(f"info[{name!r}] reveals the label: info must not contain it")


def _refuse_infos(played: Episode) -> None:
    """Require an empty info, because without labels its content cannot be checked."""
    for info in played.infos:
        if info:
            fail(f"info contains {', '.join(map(repr, info))}: it must be empty in an environment without labels")


def label_guards(probe: EnvProbe) -> None:
    """label() raises before the first step; labels() raises until the episode has ended, and then returns all
    labels.
    """
    env = probe.make()
    _refuse_unlabelled(env)
    bare = env.unwrapped
    env.reset(seed=SEED)
    _must_raise(bare.label, "label() returned a value before the first step: it must raise")
    _must_raise(bare.labels, "labels() returned a value before the first step: it must raise")
    env.step(0)
    bare.label()
    _must_raise(bare.labels, "labels() returned a value before the episode had ended: it must raise")
    played = episode(env, _actions(env))
    if not np.array_equal(bare.labels(), played.labels):
        fail("labels() differs from the values of label() in each round: they must agree")
    if played.labels.min() < 0 or played.labels.max() >= bare.problem.n_classes:
        fail(f"labels range over {played.labels.min()} ... {played.labels.max()}: "
             f"they must lie in 0 ... {bare.problem.n_classes - 1}")  # fmt: skip


def _must_raise(call: Callable[[], Any], otherwise: str) -> None:
    try:
        call()
    except Exception:  # any error, because the runner must not obtain a label too early
        return
    fail(otherwise)


def env_seeds(probe: EnvProbe) -> None:
    """The same seed gives the same episode, in a new and a used object, for any state of numpy's global generator."""
    env = probe.make()
    actions = _actions(env)
    before = np.random.get_state()  # noqa: NPY002 - the check is that this state is not used
    try:
        np.random.seed(1)  # noqa: NPY002
        one = episode(env, actions)
        np.random.seed(2)  # noqa: NPY002
        for other, which in ((episode(probe.make(), actions), "fresh"), (episode(env, actions), "used")):
            same = np.array_equal(one.contexts, other.contexts) and one.rewards == other.rewards
            if not (same and np.array_equal(one.labels, other.labels)):
                fail(f"two episodes from one seed differ (a {which} object): all randomness must come from the seed")
    finally:
        np.random.set_state(before)  # noqa: NPY002


def actions_do_not_matter(probe: EnvProbe) -> None:
    """Contexts and labels do not depend on the actions; an adaptive environment has no blocks."""
    env = probe.make()
    if not env.unwrapped.oblivious:
        if hasattr(env.unwrapped, "blocks"):
            fail("an adaptive environment has blocks: it must have step only")
        raise CheckExcluded("adaptive: the label may depend on earlier actions")
    one, other = (episode(env, _actions(env, seed)) for seed in (0, 1))
    if not (np.array_equal(one.contexts, other.contexts) and np.array_equal(one.labels, other.labels)):
        fail("other actions changed the stream: it must not depend on them, or the class must set oblivious = False")


def steps_are_blocks(probe: EnvProbe) -> None:
    """step returns the contexts and labels that blocks yields."""
    env = _oblivious(probe, STREAM)
    X, y = _blocks(env, STREAM, STREAM)
    played = episode(env, _actions(env, horizon=STREAM))
    if X.dtype != np.float64 or y.dtype.kind not in "iub":
        fail(f"blocks yields {X.dtype} contexts and {y.dtype} labels: they must be float64 and integers")
    if not (np.array_equal(X, played.contexts) and np.array_equal(y, played.labels)):
        fail("blocks and step differ for the same seed: both must give the same stream")


def block_sizes(probe: EnvProbe) -> None:
    """The stream is the same for any block size."""
    env = _oblivious(probe, STREAM)
    X, y = _blocks(env, STREAM, STREAM)
    if X.shape != (STREAM, env.unwrapped.problem.n_features) or len(y) != STREAM:
        fail(f"blocks({STREAM}, {STREAM}) yields {X.shape} contexts and {y.shape} labels: rounds must be {STREAM}")
    for size in (1, 7, STREAM // 2, 2 * STREAM):
        X_other, y_other = _blocks(env, STREAM, size)
        if not (np.array_equal(X, X_other) and np.array_equal(y, y_other)):
            fail(f"blocks of {size} and of {STREAM} rounds differ: the stream must be the same for any block size")


def prefixes(probe: EnvProbe) -> None:
    """Longer runs extend shorter ones."""
    env = _oblivious(probe)
    X, y = _blocks(env, HORIZON, HORIZON)
    X_long, y_long = _blocks(probe.make(2 * HORIZON), 2 * HORIZON, HORIZON)
    if not (np.array_equal(X, X_long[:HORIZON]) and np.array_equal(y, y_long[:HORIZON])):
        fail(
            f"the first {HORIZON} rounds of a longer episode differ: longer streams must extend shorter ones (a "
            "distribution that depends on the horizon needs a separate parameter)"
        )


def _oblivious(probe: EnvProbe, horizon: int = HORIZON) -> Any:
    env = probe.make(horizon)
    if not env.unwrapped.oblivious:
        raise CheckExcluded("adaptive: it has no blocks")
    return env


ENV = (
    env_metadata,
    env_settings,
    spaces,
    contexts,
    one_bit,
    own_round,
    hidden_label,
    label_guards,
    env_seeds,
    gymnasium_check,
    actions_do_not_matter,
    steps_are_blocks,
    block_sizes,
    prefixes,
)
