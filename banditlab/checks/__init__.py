"""Conformance checks: whether a forecaster, an agent or an environment satisfies its contract.

    for check in check_agent(MyAgent):
        check()                          # raises CheckFailed with a one-line reason

    for result in run_checks(MyAgent):   # or all of them, as results
        print(result)

A class to which a check does not apply sets, for example,
`excluded_checks = {"bounded_memory": "keeps a replay buffer"}`. The check is then reported as excluded, with that
reason. The command `banditlab check ID|FILE` runs the same checks.

`subject` is a class of players or environments, a `functools.partial` of one, or a factory; `settings` are those of its
constructor. `path` is a Python file with agents or environments, and `id_` an id as in `banditlab list`.

Functions that look up a file or an id raise a UsageError if it does not exist or cannot be loaded. A check that does
not pass raises CheckFailed or CheckExcluded when it is called; a result has a status and a reason instead.
"""

from __future__ import annotations

import contextlib
import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from banditlab.checks._core import (
    Check,
    CheckExcluded,
    CheckFailed,
    CheckResult,
    bound_checks,
    one_line,
)
from banditlab.errors import UsageError, nearest
from banditlab.validation import PLUGIN_SECONDS, keyword_only, limit

__all__ = [
    "Check",
    "CheckExcluded",
    "CheckFailed",
    "CheckResult",
    "check_agent",
    "check_env",
    "check_file",
    "check_forecaster",
    "check_gymnasium",
    "check_id",
    "run_checks",
]


def check_forecaster(subject: Callable[..., Any], **settings: Any) -> Iterator[Check[Any]]:
    """Yield the checks of a forecaster, given as a class or a factory `(problem, rng, **settings)`."""
    from banditlab.checks._forecasters import FORECASTER
    from banditlab.checks._probe import player_probe

    probe = player_probe(partial(subject, **settings) if settings else subject, lambda cls: FORECASTER)
    return bound_checks(FORECASTER, probe)


def check_agent(subject: Callable[..., Any], **settings: Any) -> Iterator[Check[Any]]:
    """Yield the checks of an agent (bit or label), given as a class or a factory `(problem, rng, **settings)`."""
    from banditlab.checks._agents import agent_checks
    from banditlab.checks._probe import player_probe

    probe = player_probe(partial(subject, **settings) if settings else subject, agent_checks)
    return bound_checks(agent_checks(probe.cls), probe)


def check_env(subject: Callable[..., Any], **settings: Any) -> Iterator[Check[Any]]:
    """Yield the checks of an environment, given as a class or a factory `(*, horizon, **settings)`."""
    from banditlab.checks._envs import ENV, env_probe

    return bound_checks(ENV, env_probe(partial(subject, **settings) if settings else subject, ENV))


_BY_KIND = {"agents": check_agent, "boosters": check_agent, "forecasters": check_forecaster, "envs": check_env}


def check_gymnasium(name: str, **settings: Any) -> Iterator[CheckResult]:
    """Yield the results of checks of whether banditlab can use a Gymnasium environment.

    Parameters
    ----------
    name
        The name for `gymnasium.make`, for instance "buffalo_gym:ContextualBandit-v0".
    settings
        Settings of `banditlab.envs.GymnasiumEnv`: options, label_key, right_above.
    """
    from banditlab.checks._gymnasium import FOREIGN, foreign_probe

    return (check.result() for check in bound_checks(FOREIGN, foreign_probe(name, settings)))


def run_checks(subject: Callable[..., Any], kind: str | None = None, **settings: Any) -> list[CheckResult]:
    """Run every check that applies to the subject and return the results.

    Parameters
    ----------
    subject
        A class of player or environment, a `functools.partial` of one, or a factory (then `kind` is needed).
    kind
        "agents", "boosters", "forecasters" or "envs"; for a class it is detected.
    settings
        Constructor settings for the checks, for instance those without a default.
    """
    return list(_one_by_one(subject, kind, settings))


def _one_by_one(subject: Callable[..., Any], kind: str | None, settings: dict[str, Any]) -> Iterator[CheckResult]:
    """Yield the results of a subject's checks."""
    from banditlab.registry import kind_of

    cls = subject.func if isinstance(subject, partial) else subject
    if kind is None:
        if not inspect.isclass(cls):
            raise UsageError("run_checks: a factory needs kind = 'agents', 'boosters', 'forecasters' or 'envs'")
        kind = kind_of(cls)
    if kind not in _BY_KIND:
        raise UsageError(f"run_checks: no kind is called {kind!r}{nearest(kind, _BY_KIND)}")
    name = getattr(cls, "id", "") or getattr(cls, "__name__", "factory")
    needed = sorted(_without_default(cls) - set(settings) - set(getattr(subject, "keywords", {})))
    if needed:
        yield CheckResult(name, "construction", "excluded", f"needs settings without a default: {', '.join(needed)}")
        return
    try:
        checks = list(_BY_KIND[kind](subject, **settings))
    except Exception as error:  # any error of a constructor with default settings is reported
        reason = str(error) if isinstance(error, CheckFailed) else f"cannot be built: {one_line(error)}"
        yield CheckResult(name, "construction", "failed", reason)
        return
    for check in checks:
        yield check.result()


def _without_default(cls: Any) -> set[str]:
    """Return the constructor settings that have no default."""
    if not inspect.isclass(cls):
        return set()
    settings = keyword_only(cls).items()  # type: ignore[arg-type]  # mypy treats a class as unhashable
    return {name for name, p in settings if p.default is inspect.Parameter.empty and name != "horizon"}


def check_file(path: str | Path) -> Iterator[CheckResult]:
    """Yield the results of checking every player and environment that a file defines.

    Raises
    ------
    UsageError
        The file does not exist, cannot be imported, or defines nothing with an `id`.
    """
    from banditlab.registry import classes_of, load_file

    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{path}: no such file")
    if file.suffix != ".py":
        raise UsageError(f"{path}: is not a Python file")
    try:
        with _not_for_ever(str(path)):
            module = load_file(file)
    except (UsageError, KeyboardInterrupt):
        raise
    except SystemExit as error:
        raise UsageError(f"{path}: its import ends the process by sys.exit({error.code!r})") from error
    except BaseException as error:
        raise UsageError(f"{path}: cannot be imported: {one_line(error)}") from error
    found = classes_of(module)
    unfinished = [
        _unfinished(cls) for cls in _own(module, inspect.isclass) if vars(cls).get("id") and inspect.isabstract(cls)
    ]
    if not found and not unfinished:
        raise UsageError(f"{path}: defines no agent, forecaster or environment with an id{_without_id(module)}")
    return chain(unfinished, (result for kind, cls in found for result in _one_by_one(cls, kind, {})))


def _unfinished(cls: Any) -> CheckResult:
    """Return the failed check of a class that has an id and abstract methods."""
    missing = ", ".join(sorted(cls.__abstractmethods__))
    reason = f"does not define {missing}: write these methods (a base class must have no id)"
    return CheckResult(str(cls.id), "construction", "failed", reason)


class _ForEver(BaseException):
    """Raised within a file's own code if its import takes too long. A BaseException, because that code may catch Exception."""


@contextlib.contextmanager
def _not_for_ever(path: str) -> Iterator[None]:
    """Raise a UsageError if the import of a file takes too long; there is no limit on Windows and in threads."""
    seconds = limit(PLUGIN_SECONDS)
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise _ForEver

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _ForEver:
        raise UsageError(f"{path}: its import did not end within {seconds} s ({PLUGIN_SECONDS.variable})") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _own(module: Any, kind: Callable[[Any], bool]) -> list[Any]:
    """Return the classes of a kind that a module itself defines."""
    return [thing for thing in vars(module).values() if kind(thing) and thing.__module__ == module.__name__]


def _without_id(module: Any) -> str:
    """Return a hint about functions with an id and classes without one in a file, or ""."""
    functions = [thing.__name__ for thing in _own(module, inspect.isfunction) if hasattr(thing, "id")]
    if functions:
        return f"; {', '.join(functions)} is a function: a plug-in is a class"
    own = _own(module, inspect.isclass)
    meant = [cls.__name__ for cls in own if any(hasattr(cls, verb) for verb in ("act", "predict", "step"))]
    return f'; {", ".join(meant)} has none: id = "..."' if meant else ""


def check_id(id_: str, **settings: Any) -> Iterator[CheckResult]:
    """Yield the results of checking the class with this id in the registry, of any kind.

    Raises
    ------
    UsageError
        The id is unknown (the message suggests the nearest), or a plug-in cannot be loaded.
    """
    from banditlab.registry import KINDS, registry

    known = {entry.id: entry for kind in KINDS for entry in registry().entries(kind)}
    if id_ not in known:
        raise UsageError(f"nothing is called {id_!r}{nearest(id_, known)}")
    return _one_by_one(known[id_].load(), known[id_].kind, settings)
