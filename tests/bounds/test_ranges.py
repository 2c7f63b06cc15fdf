"""Every bound of the registry, over its range and beyond: never negative, never false, never a traceback."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

import banditlab.bounds
from banditlab.bounds import THEOREMS
from banditlab.bounds._theorem import RANGES
from banditlab.bounds.aggregating import quadrature_error, quadrature_nodes
from banditlab.bounds.aioli import aioli_steps
from banditlab.bounds.boosting_mbbm import least_error_rate, least_rounds
from banditlab.bounds.curvature import margin_range, simple_curvature, tight_curvature
from banditlab.bounds.exploration import theorem_9_gamma
from banditlab.bounds.folklore import folklore_error
from banditlab.bounds.ftrl import ftrl_regularization
from banditlab.bounds.gaf import gaf_mu, gaf_regularization, gaf_samples, gaf_smoothing
from banditlab.bounds.gaptron import gaptron_gamma, gaptron_step
from banditlab.bounds.hessian_dominance import hessian_dominance
from banditlab.bounds.minimax import minimax_regret, minimax_regret_on_ball, shamir_theorem_3, shamir_theorem_7
from banditlab.bounds.obama import obama_gamma
from banditlab.bounds.ons import exp_concavity
from banditlab.bounds.randomized_decoding import decoding_step
from banditlab.bounds.rdue import rdue_decoded_gamma, rdue_gamma, rdue_radius, rdue_smoothness
from banditlab.bounds.template import logistic_smoothness, template_gamma, template_label_step, template_step

USUAL: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("rounds", "total_weight", "total_gamma"), (0, 1, 37, 1000, 10**6)),
    **dict.fromkeys(("norm_bound", "margin_bound", "frobenius_bound", "diameter"), (0.01, 0.3, 1.0, 2.5, 20.0)),
    **dict.fromkeys(("comparator_norm", "frobenius_norm"), (0.0, 0.3, 1.0, 20.0)),
    **dict.fromkeys(("radius", "deviation"), (0.1, 1.0, 3.0)),
    **dict.fromkeys(("regularization",), (1e-2, 0.3, 1.0, 50.0, 1e4)),
    **dict.fromkeys(("curvature", "beta", "step"), (1e-3, 0.02, 0.1)),
    **dict.fromkeys(("mixability", "sharpness", "smoothness", "target_bound"), (0.1, 1.0, 3.0)),
    **dict.fromkeys(("regret", "member_regret", "best_expert", "excess", "hinge_loss"), (0.0, 1.0, 30.0, 5e3)),
    **dict.fromkeys(("edges_squared", "absolute_edges", "weights", "effective_dimension"), (0.0, 0.1, 2.0, 9.0)),
    **dict.fromkeys(("n_features", "nodes"), (1, 2, 10, 300)),
    "samples": (1, 300, 10**6),
    **dict.fromkeys(("members", "size", "n_learners"), (1, 2, 10, 60)),
    **dict.fromkeys(("gamma", "last_gamma"), (0.0, 1e-3, 0.2, 1.0)),
    **dict.fromkeys(("edge", "true_edge"), (0.0, 0.05, 0.3, 1.0)),
    **dict.fromkeys(("delta", "probability", "epsilon"), (1e-6, 0.05, 0.9)),
    "n_classes": (2, 3, 10, 26),
    "queries": (0.5, 20, 900),
    "delay": (0, 1, 300),
    "query_rate": (1e-3, 0.2, 1.0),
    "smoothing": (0.0, 1e-3, 0.1, 0.5),
    "heaviest": (0.0, 0.01, 0.4),
    "error": (0.0, 1e-3, 1.0),
    "error_rate": (0.0, 0.2, 3.0),
    "clip": (0.0, 1.0, 9.0),
    "votes_left": (0, 1, 7, 50),
    "littlestone_dimension": (1, 2, 30),
    "least_weight": (0.01, 0.3, 1.0),
    "margin": (0.0, 0.5, 10.0),
}
"""What an argument of this name may be, by no means extreme, in ascending order."""

EXTREME = (0, 0.0, -1, -1.0, 5e-324, -5e-324, 1e-200, -1e-200, 1e200, -1e200, 1.7e308, 10**200, 10**400,
           math.nan, math.inf, -math.inf)  # fmt: skip

HELPERS: dict[str, Callable[..., float]] = {
    f.__name__: f for f in (least_error_rate, least_rounds,
                            minimax_regret, minimax_regret_on_ball, shamir_theorem_3, shamir_theorem_7,
                            quadrature_error, aioli_steps, margin_range, simple_curvature, tight_curvature, ftrl_regularization,
                            theorem_9_gamma, gaf_regularization, gaf_smoothing, gaf_mu, gaf_samples, folklore_error,
                            hessian_dominance, gaptron_gamma, gaptron_step, obama_gamma,
                            exp_concavity, decoding_step, rdue_gamma, rdue_radius, rdue_smoothness, rdue_decoded_gamma,
                            logistic_smoothness, template_gamma, template_label_step, template_step)
}  # fmt: skip
"""The settings computed beside the bounds."""
FUNCTIONS: dict[str, Callable[..., float]] = {name: theorem.function for name, theorem in THEOREMS.items()} | HELPERS

Values = dict[str, Any]


def no_theorem(name: str, v: Values) -> bool:
    """Whether arguments that are each in range are outside the hypotheses together."""
    if name in ("aioli", "aioli_kernel") and v["curvature"] is not None:
        return bool(v["curvature"] > tight_curvature(v["margin_bound"] * v["radius"]))
    if name == "gaf_theorem_1":
        least = max(4, v["n_features"]) * v["sharpness"] / v["mixability"]
        return v["regularization"] is not None and v["regularization"] < least
    if name == "folklore_frobenius":
        B = v["frobenius_bound"] / math.sqrt(2.0)
        return bool(v["curvature"] > tight_curvature(margin_range(v["n_classes"], B, v["radius"])))
    if name in ("folklore_after", "folklore_inexact", "folklore_kernel", "gaf_kernel"):
        return bool(v["curvature"] > tight_curvature(margin_range(v["n_classes"], v["norm_bound"], v["radius"])))
    if name in ("folklore", "folklore_any_regularization", "gaf"):
        c = v["curvature"] or simple_curvature(v["n_classes"], v["norm_bound"], v["radius"])
        lam = v["regularization"] or 2.0 * v["radius"] / v["norm_bound"]
        too_little = name == "folklore" and c * v["radius"] ** 2 > lam
        return bool(too_little or c > tight_curvature(margin_range(v["n_classes"], v["norm_bound"], v["radius"])))
    if name == "gaf_corollary_2":
        K, d, R = v["n_classes"], v["n_features"], v["radius"]
        too_little = v["regularization"] is not None and v["regularization"] < 4 * max(4, K * d) * R**2
        margin = margin_range(K, v["norm_bound"], R)
        return too_little or (v["beta"] is not None and v["beta"] / 2 > tight_curvature(margin))
    if name == "ons" and v["step"] is not None:
        return bool(v["step"] < 2 / exp_concavity(v["n_classes"], v["norm_bound"], v["radius"]))
    if name == "aggregating_fine_quadrature":
        return quadrature_error(v["rounds"], v["norm_bound"], v["radius"], v["nodes"]) > 0.5
    if name == "least_error_rate":
        return bool(v["edge"] > 0.5)
    if name == "least_rounds":
        return not (0.0 < v["edge"] <= 0.5 and 0.0 < v["error_rate"] <= 1.0)
    if name == "label_efficient_experts":
        return bool(v["queries"] > v["rounds"])
    if name == "minimax_regret_on_ball":
        return bool(v["rounds"] > 1e5)
    if name == "shamir_theorem_3":
        return bool(v["rounds"] < 2)
    if name == "shamir_theorem_7":
        return not (v["rounds"] >= 2 and v["n_classes"] < (v["rounds"] / v["n_features"]) ** (1.0 - v["epsilon"]))
    if name == "simulated_excess":
        return bool(v["true_edge"] <= v["edge"])
    if name == "gaptron_fixed":
        return False
    if name == "template_fixed":
        delay = v.get("delay", 0)
        return v["step"] > template_step(v["n_classes"], v["radius"], v["gamma"], delay=delay) * (1 + 1e-12)
    rates = ("theorem_9_gamma", "gaptron_gamma", "rdue_gamma", "obama_gamma", "rdue_decoded_gamma", "template_gamma")
    return name in rates and v["rounds"] == 0


INFINITE: dict[str, Callable[[Values], bool]] = {
    **dict.fromkeys(("exploration", "obama_gaussian_prior", "obama_net", "rdue_fixed"), lambda v: v["gamma"] == 0),
    **dict.fromkeys(
        ("decoded_exploration", "decoded_obama", "decoded_obama_net", "rdue_decoded"), lambda v: v["gamma"] == 0
    ),
    **dict.fromkeys(
        ("exploration_well_specified", "decoded_exploration_well_specified"), lambda v: v["last_gamma"] == 0
    ),
    "gaf_sampling": lambda v: v["smoothing"] == 0,
    "gaf_sampling_high_probability": lambda v: True,
    "gaf_sampling_theory": lambda v: True,
    "gaf_kernel": lambda v: v["radius"] ** 2 / v["regularization"] > 50,
    "gaf": lambda v: v["radius"] ** 2 / v["regularization"] > 50,
    "ons": lambda v: v["norm_bound"] * v["radius"] > 10,
    "quadrature_error": lambda v: True,
    "link_excess": lambda v: v["edge"] == 0,
    "hessian_dominance": lambda v: v["norm_bound"] * v["radius"] > 700,
}
"""Where a bound may say nothing although its arguments are moderate."""


def optional(parameter: inspect.Parameter) -> bool:
    return parameter.default is None


def draws(name: str, n: int) -> Iterator[Values]:
    rng = np.random.default_rng(0)
    parameters = numeric(name)
    for _ in range(n):
        yield {
            key: None if optional(p) and rng.random() < 0.4 else USUAL[key][int(rng.integers(len(USUAL[key])))]
            for key, p in parameters.items()
        }


def numeric(name: str) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    return {key: p for key, p in parameters.items() if key not in ("loss", "wide", "decoding", "norm")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_range_it_is_a_number_and_never_negative(name: str) -> None:
    said = 0
    for values in draws(name, 400):
        value = FUNCTIONS[name](**values)
        if no_theorem(name, values):
            assert math.isnan(value), values
        elif value == math.inf:
            assert INFINITE[name](values), values
        else:
            assert value >= 0.0, (values, value)
            said += 1
    assert said >= 40


def truth(value: float) -> bool:
    return math.isnan(value) or value >= 0.0


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.few(40)
def test_one_extreme_argument_gives_no_number_that_is_false(name: str) -> None:
    for values in draws(name, 12):
        for key, extreme in itertools.product(values, EXTREME):
            changed = values | {key: extreme}
            value = FUNCTIONS[name](**changed)
            assert truth(value), (changed, value)
            places = list(itertools.takewhile(changed.__contains__, inspect.signature(FUNCTIONS[name]).parameters))
            by_name = {key: changed[key] for key in changed if key not in places}
            assert FUNCTIONS[name](*(changed[key] for key in places), **by_name) == value or math.isnan(value)
            if extreme < 0 or extreme != extreme or (extreme == 10**400 and RANGES[key][1] < math.inf):
                assert math.isnan(value), (changed, value)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.few(40)
def test_many_extreme_arguments_raise_nothing(name: str) -> None:
    rng = np.random.default_rng(1)
    for values in draws(name, 400):
        changed = {
            key: EXTREME[int(rng.integers(len(EXTREME)))] if rng.random() < 0.6 else v for key, v in values.items()
        }
        value = FUNCTIONS[name](**changed)
        assert truth(value), (changed, value)


# ------------------------------------------------------------------------------------------------- against 60 digits

PRECISE = SimpleNamespace(
    **{name: getattr(mpmath, name) for name in ("log", "log1p", "exp", "expm1", "sqrt", "cosh", "sinh", "asinh", "sin")},
    isfinite=mpmath.isfinite,
    ceil=lambda x: int(mpmath.ceil(x)),
    floor=lambda x: int(mpmath.floor(x)), inf=math.inf, nan=math.nan, e=math.e,
)  # fmt: skip


def modules() -> list[ModuleType]:
    names = [info.name for info in pkgutil.iter_modules(banditlab.bounds.__path__) if not info.name.startswith("_")]
    return [importlib.import_module(f"banditlab.bounds.{name}") for name in names]


@pytest.mark.parametrize(
    "name", sorted(set(FUNCTIONS) - {"mbbm_weight", "mbbm_mistakes", "least_error_rate", "minimax_regret_on_ball"})
)  # numpy's walk, and a sum of as many terms as rounds
@pytest.mark.few(40)
def test_a_wide_range_loses_no_digits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same formula in 60 digits: where floats give a number it is that one, or at least no smaller bound."""
    rng = np.random.default_rng(2)
    function, tried = FUNCTIONS[name], []
    for values in draws(name, 150):
        for key in (
            "rounds",
            "norm_bound",
            "margin_bound",
            "radius",
            "regularization",
            "step",
            "frobenius_bound",
            "diameter",
        ):
            if values.get(key):
                values[key] = values[key] * float(10.0 ** rng.uniform(-8, 8))
        tried.append((values, function(**values)))
    for module in modules():
        if hasattr(module, "math"):
            monkeypatch.setattr(module, "math", PRECISE)
    if hasattr(tight_curvature, "__wrapped__"):
        tight_curvature.__wrapped__.cache_clear()
    compared = 0
    with mpmath.workdps(60):
        for values, value in tried:
            if not math.isfinite(value):
                continue
            precise = {k: v if v is None or isinstance(v, int) else mpmath.mpf(v) for k, v in values.items()}
            exact = float(function(**precise))
            assert value >= exact * (1 - 1e-9), (values, value, exact)
            assert value <= exact * (1 + 1e-6) + 1e-300, (values, value, exact)
            compared += 1
    tight_curvature.__wrapped__.cache_clear()
    assert compared >= 20


# ---------------------------------------------------------------------------------------------------------- monotone


@pytest.mark.parametrize("arguments", [(math.nan, 1.0, 1.0), (10, -1.0, 1.0), (10, math.inf, 1.0), (1e300, 1e9, 1e9)])
def test_a_count_of_nodes_that_there_is_not_is_refused(arguments: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="no number of nodes"):
        quadrature_nodes(*arguments)
