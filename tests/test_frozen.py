"""What is handed on cannot be changed: descriptions that ids are hashes of, answers, results, events, settings."""

from __future__ import annotations

import dataclasses
import importlib

import pytest

FROZEN = {
    "banditlab.analysis.arena": ["Pick", "Arena"],
    "banditlab.analysis.curves": ["Curve", "Panel", "Grid"],
    "banditlab.analysis.findings": ["Model", "Facts", "Sentence"],
    "banditlab.analysis.report": ["Picture", "Section"],
    "banditlab.analysis.statistics": ["Interval", "_Spread", "Place", "Choice"],
    "banditlab.analysis.summary": ["Standing"],
    "banditlab.analysis.tables": ["Results"],
    "banditlab.bounds._theorem": ["Theorem"],
    "banditlab.checks._core": ["CheckResult", "Check"],
    "banditlab.checks._envs": ["EnvProbe", "Episode"],
    "banditlab.checks._probe": ["PlayerProbe"],
    "banditlab.comparators.ball": ["Comparator"],
    "banditlab.comparators.frobenius": ["FrobeniusComparator"],
    "banditlab.engine.plan": ["Run", "Seen"],
    "banditlab.engine.sweep": ["Estimate"],
    "banditlab.engine.work": ["Task", "Outcome"],
    "banditlab.envs._columns": ["Recipe"],
    "banditlab.envs._words": ["TextFeatures"],
    "banditlab.policy.status": ["LogStatus"],
    "banditlab.problem": ["Problem"],
    "banditlab.registry": ["Entry"],
    "banditlab.regression.losses": ["Squared", "Huber"],
    "banditlab.results.reading": ["Skip", "Failure"],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in FROZEN.items() for name in names])
def test_its_fields_cannot_be_set(module: str, name: str) -> None:
    cls = getattr(importlib.import_module(module), name)
    one = object.__new__(cls)
    for field in dataclasses.fields(cls):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, field.name, None)
