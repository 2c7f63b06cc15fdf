"""Read a saved encoder from JSON: check every entry before use, and report any fault in a one-line error."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from banditlab.envs._columns import Missing, Recipe
from banditlab.envs._norm_rule import NormRule
from banditlab.envs._outliers import EXTREME
from banditlab.envs._steps import LISTED, Finite, Positive, Step
from banditlab.envs._words import TextFeatures
from banditlab.errors import UsageError
from banditlab.numerics.exponents import divided
from banditlab.validation import FEATURES, UNPACKED, refuse_beyond

FORMAT = "banditlab encoder"
VERSION = 3
"""The version of files with text columns; other files have the version before it."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _SavedRecipe(_Part):
    scaling: Literal["none", "minmax", "standard", "maxabs", "robust", "rowwise"]
    missing: Missing
    normalize: bool
    intercept: bool
    na_values: Annotated[tuple[str, ...], LISTED] = ()


class _SavedText(_Part):
    name: str
    words: list[str]
    idf: list[Positive]
    axes: list[list[Finite]]


class _Saved(_Part):
    format: Literal["banditlab encoder"]
    version: Literal[1, 2, 3]
    recipe: _SavedRecipe
    norm: NormRule
    columns: list[Step]
    texts: list[_SavedText] = []


def read(data: bytes, source: str) -> tuple[list[Step], Recipe, NormRule, list[TextFeatures]]:
    """Return the parts of a saved encoder.

    Raises
    ------
    UsageError
        The bytes are not a saved encoder, have a later format version, or are inconsistent.
    """
    refuse_beyond(UNPACKED, len(data), f"{source}: {len(data):,} bytes")
    try:
        plain: Any = json.loads(data.decode("utf-8", "surrogatepass"))
        version = plain.get("version") if isinstance(plain, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise UsageError(
                f"{source}: format version {version} was written by a later version of banditlab; this version reads {VERSION}"
            )
        saved = _Saved.model_validate(plain)
        texts = [TextFeatures.of(**text.model_dump()) for text in saved.texts]
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:80] or "text"
        raise UsageError(f"{source}: not a saved encoder ({where}: {first['msg']})") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{source}: not a saved encoder ({' '.join(str(error).split())[:120]})") from None
    recipe = Recipe(**saved.recipe.model_dump())
    _refuse_contradictions(saved.columns, recipe, saved.norm, [text.name for text in texts], source)
    return saved.columns, recipe, saved.norm, texts


def _refuse_contradictions(steps: list[Step], recipe: Recipe, norm: NormRule, texts: list[str], source: str) -> None:
    refuse_beyond(FEATURES, sum(len(s.categories) + 1 for s in steps), f"{source}: the number of features")
    names = [*(step.name for step in steps), *texts]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"{source}: not a saved encoder (no column, or two columns with the same name)")
    wrong = _contradiction(steps, recipe, norm)
    if wrong:
        raise UsageError(f"{source}: not a saved encoder ({wrong})")


def _contradiction(steps: list[Step], recipe: Recipe, norm: NormRule) -> str:
    """Return a contradiction between the parts, or "" if there is none."""
    for s in steps:
        nominal = s.role == "nominal"
        if nominal != bool(s.categories) or len(set(s.categories)) < len(s.categories):
            return f"the categories of column {s.name[:60]!r} do not fit its role, or one occurs twice"
        if nominal and (s.constant or s.shift or s.fill or s.center or s.scale != 1.0):
            return f"column {s.name[:60]!r} is nominal and has numbers"
        if len(s.shares) != (len(s.categories) if nominal and recipe.missing == "mean" else 0):
            return f"the frequencies of column {s.name[:60]!r} do not fit its categories"
        if len(s.knots) == 1 or not (np.diff(s.knots) >= 1.0 / EXTREME).all() or (s.knots and (nominal or s.shift)):
            return f"the knots of column {s.name[:60]!r} are too close, or the column is not numeric"
        if s.constant and recipe.scaling in ("none", "rowwise"):
            return f"column {s.name[:60]!r} is constant without a scaling"
    if (norm.rowwise, norm.normalize, norm.intercept) != (
        recipe.scaling == "rowwise",
        recipe.normalize or recipe.scaling == "rowwise",
        recipe.intercept,
    ):
        return "norm and recipe differ"
    if bool(norm.one) != (recipe.intercept and recipe.scaling in ("standard", "maxabs", "robust")):
        return "the constant does not fit the scaling"
    if norm.normalize and norm.radius != 1.0:
        return "rows are divided by their norm and have a radius other than 1"
    if not norm.rowwise and norm.divisor != (float(np.hypot(norm.reach, norm.one)) if norm.one else norm.reach):
        return "norm.divisor is not the largest norm"
    if not norm.normalize and norm.radius != float(divided(norm.divisor, -norm.exponent)):
        return "norm.radius is not the largest norm"
    return ""
