"""A check is a named function of a probe. If the contract is violated, it raises an error with the violation and the
requirement.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar

from banditlab.errors import BanditlabError

Status = Literal["passed", "failed", "excluded"]


class CheckFailed(BanditlabError):
    """The subject violates its contract; the message contains the violation and the requirement."""


class CheckExcluded(BanditlabError):
    """The check does not apply to this subject; the message gives the reason."""


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check on one subject."""

    subject: str
    """The name of the file, id or class that was checked."""
    name: str
    """The name of the check."""
    status: Status
    """ "passed", "failed" or "excluded"."""
    reason: str = ""
    """What is wrong, why the check does not apply, or a note on how a passed check was done."""
    contract: str = field(default="", compare=False)
    """The requirement, in one sentence."""

    def __str__(self) -> str:
        return f"{self.status:8}  {self.subject}: {self.name}" + (f" ({self.reason})" if self.reason else "")


class Probe(Protocol):
    """The argument of every check: the subject's name, a note on how it is checked, and the checks that it excludes."""

    name: str
    note: str
    exclusions: dict[str, str]


P = TypeVar("P", bound=Probe)


@dataclass(frozen=True)
class Check(Generic[P]):
    """One named check of a subject. Calling it raises CheckFailed, CheckExcluded or an error of the subject."""

    function: Callable[[P], None]
    """The function that is called; its docstring is the contract."""
    probe: P
    """The subject, ready for use."""

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def contract(self) -> str:
        """The requirement: the first sentence of the check's docstring."""
        return " ".join((self.function.__doc__ or "").strip().split("\n\n")[0].split())

    def __call__(self) -> None:
        reason = self.probe.exclusions.get(self.name)
        if reason is not None:
            raise CheckExcluded(reason)
        self.function(self.probe)

    def result(self) -> CheckResult:
        """Run the check, and return its outcome or its error as a result."""
        try:
            self()
        except CheckExcluded as error:
            return CheckResult(self.probe.name, self.name, "excluded", str(error))
        except CheckFailed as error:
            return CheckResult(self.probe.name, self.name, "failed", str(error), self.contract)
        except Exception as error:  # any error of a subject is a result
            return CheckResult(
                self.probe.name, self.name, "failed", f"raised {one_line(error)}{_advice(error)}", self.contract
            )
        return CheckResult(self.probe.name, self.name, "passed", self.probe.note)


def bound_checks(functions: tuple[Callable[[P], None], ...], probe: P) -> Iterator[Check[P]]:
    """Yield each function as a check of the probe's subject."""
    for function in functions:
        yield Check(function, probe)


def fail(message: str) -> NoReturn:
    """Raise CheckFailed with a message."""
    raise CheckFailed(message)


def _advice(error: Exception) -> str:
    """Return advice on an error of Python, or ""."""
    if isinstance(error, ValueError) and "read-only" in str(error):
        return " (an array that is passed in must not be changed: copy it first)"
    return ""


def one_line(error: BaseException) -> str:
    """Return "Type: text" of an error on one line, shortened if it is long (such as a compiler's)."""
    text = textwrap.shorten(str(error), width=200, placeholder=" ...")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def declared_exclusions(cls: Any, functions: tuple[Callable[..., None], ...]) -> dict[str, str]:
    """Return the checks that a class excludes, by name, each with its reason (`excluded_checks`).

    Raises
    ------
    CheckFailed
        A check is unknown, or a reason is empty.
    """
    exclusions = dict(getattr(cls, "excluded_checks", {}))
    known = [function.__name__ for function in functions]
    for name, reason in exclusions.items():
        if name not in known:
            fail(f"excluded_checks names {name!r}: it must be one of {', '.join(known)}")
        if not (isinstance(reason, str) and reason.strip()):
            fail(f"excluded_checks gives no reason for {name!r}: an exclusion needs a reason")
    return exclusions


def require_metadata(cls: Any) -> None:
    """Fail if a class has no valid id, summary, reference or version."""
    for name in ("id", "summary", "reference"):
        value = getattr(cls, name, "")
        if not (isinstance(value, str) and value.strip() and "\n" not in value):
            fail(f"{name} is {value!r}: it must be a non-empty one-line string")
    if type(cls.version) is not int or cls.version < 1:
        fail(f"version is {cls.version!r}: it must be an integer of at least 1")


def require_setting(parameter: inspect.Parameter) -> None:
    """Fail unless a parameter of a constructor is keyword-only and annotated."""
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        fail(f"the setting {parameter.name!r} is not keyword-only: put it after a *")
    if parameter.annotation is inspect.Parameter.empty:
        fail(f"the setting {parameter.name!r} has no annotation: annotate it, because values are converted to its type")
