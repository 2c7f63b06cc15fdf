"""Registration of theorems. Each is a pure function of numbers, with its source and the range in which it holds."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., float])
Range = tuple[float, float]

ADVERSARIES = ("oblivious", "adaptive")
LARGEST = sys.float_info.max
LEAST = 5e-324
"""The smallest number above 0, the lower end of ranges that exclude 0."""
BELOW_ONE = math.nextafter(1.0, 0.0)

NONNEGATIVE: Range = (0.0, LARGEST)
POSITIVE: Range = (LEAST, LARGEST)
EXTENDED: Range = (0.0, math.inf)
"""The range of arguments that are bounds, which may be infinite."""
RANGES: dict[str, Range] = {
    **dict.fromkeys(("rounds", "total_weight", "total_gamma", "error", "effective_dimension", "delay"), NONNEGATIVE),
    **dict.fromkeys(("comparator_norm", "frobenius_norm", "frobenius_bound", "diameter", "hinge_loss"), NONNEGATIVE),
    **dict.fromkeys(("edges_squared", "absolute_edges", "clip", "best_expert", "excess", "weights"), NONNEGATIVE),
    **dict.fromkeys(("norm_bound", "margin_bound", "radius", "regularization", "curvature", "beta"), POSITIVE),
    **dict.fromkeys(("deviation", "step", "queries"), POSITIVE),
    **dict.fromkeys(("mixability", "sharpness", "smoothness", "target_bound"), POSITIVE),
    **dict.fromkeys(("regret", "member_regret", "error_rate"), EXTENDED),
    **dict.fromkeys(("n_features", "n_learners", "nodes", "members", "samples", "size"), (1.0, LARGEST)),
    "n_classes": (2.0, LARGEST),
    "margin": NONNEGATIVE,
    "votes_left": NONNEGATIVE,
    "littlestone_dimension": (1.0, LARGEST),
    "least_weight": (LEAST, 1.0),
    "smoothing": (0.0, 0.5),
    "heaviest": (0.0, math.nextafter(0.5, 0.0)),
    "gamma": (0.0, 1.0),
    "last_gamma": (0.0, 1.0),
    "edge": (0.0, 1.0),
    "true_edge": (0.0, 1.0),
    "delta": (LEAST, BELOW_ONE),
    "epsilon": (LEAST, BELOW_ONE),
    "query_rate": (LEAST, 1.0),
    "probability": (LEAST, BELOW_ONE),
}
"""The closed range of an argument of this name, unless a theorem specifies another."""
ANYTHING: tuple[Any, Any] = (None, None)
"""The range of an argument that is not a number, such as the name of a loss."""


@dataclass(frozen=True)
class Theorem:
    """One registered bound, as shown by `banditlab list bounds`."""

    name: str
    """The name in `THEOREMS` and in `banditlab list bounds`."""
    function: Callable[..., float]
    """A function of numbers, which returns a number, or NaN if the hypotheses do not hold."""
    source: str
    """Paper and theorem."""
    unit: str
    """The unit of the comparator's loss: "nats", "bits", or "mistakes"."""
    assumes: str
    """The hypotheses. Here and in `source`, `rests_on` and `printed`, formulas are LaTeX between dollar signs."""
    adversary: str
    """ "adaptive" if the bound holds for contexts and labels that depend on earlier actions, and for a comparator chosen in
    hindsight; "oblivious" if the stream and the comparator must not depend on the actions."""
    rests_on: str
    """The line of the paper, or of the proof here, that justifies `adversary`."""
    printed: str
    """What the paper prints, if it differs."""
    summary: str
    """The first paragraph of the function's docstring."""


THEOREMS: dict[str, Theorem] = {}


def theorem(
    *,
    source: str,
    unit: str,
    assumes: str,
    adversary: str = "oblivious: the source does not specify the adversary, so the weaker claim",
    printed: str = "as here",
    ranges: dict[str, Range] | None = None,
) -> Callable[[F], F]:
    """Register a bound with its source, the unit of the comparator's loss, its assumptions and its erratum, if any.

    The bound becomes NaN if an argument is outside its range (see `within`), and infinite if it overflows.

    Parameters
    ----------
    source
        Paper and theorem.
    unit
        Unit of the comparator's loss.
    assumes
        The hypotheses.
    adversary
        "adaptive" or "oblivious" (see `Theorem`), then a colon and the line of the paper, or of this package's proof,
        that justifies this word. A theorem that does not specify the adversary counts as oblivious, the weaker claim.
        The bound of an oblivious theorem is not shown for adaptive environments.
    printed
        What the paper prints, if it differs.
    ranges
        The closed range of an argument by its name, if it is not the usual range of that name.

    Returns
    -------
    A decorator that registers the function and returns it.

    Raises
    ------
    ValueError
        Two theorems have the same name, or the adversary is neither "adaptive" nor "oblivious".
    """

    def register(function: F) -> F:
        if function.__name__ in THEOREMS:
            raise ValueError(f"two theorems are called {function.__name__}")
        word, _, line = str(adversary).partition(": ")
        if word not in ADVERSARIES:
            raise ValueError(f"{function.__name__}: adversary must be one of {ADVERSARIES}, got {adversary!r}")
        summary = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
        checked = within(ranges, beyond=math.inf)(function)
        said = (source, unit, assumes, word, line, printed, summary)
        THEOREMS[function.__name__] = Theorem(function.__name__, checked, *said)
        return checked

    return register


def within(ranges: dict[str, Range] | None = None, *, beyond: float = math.nan) -> Callable[[F], F]:
    """Make a function return NaN if an argument is NaN or outside its range, and `beyond` if the computation overflows.

    `ranges` contains ranges by argument name, which take precedence over `RANGES`. An argument None stands for a
    default and is not checked. For an upper bound, `beyond` may be infinity, which is a valid bound.
    """
    known = RANGES | (ranges or {})

    def check(function: F) -> F:
        names = tuple(inspect.signature(function).parameters)
        limits = [known.get(name, ANYTHING) for name in names]

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> float:
            # plain loops, because the anytime rate computes a bound in every round
            for value, (low, high) in zip(args, limits, strict=False):
                if value is not None and low is not None and not low <= value <= high:
                    return math.nan
            for name, value in kwargs.items():
                low, high = known.get(name, ANYTHING)
                if value is not None and low is not None and not low <= value <= high:
                    return math.nan
            try:
                return function(*args, **kwargs)
            except (OverflowError, ZeroDivisionError):
                return beyond

        return checked  # type: ignore[return-value]  # the same signature

    return check
