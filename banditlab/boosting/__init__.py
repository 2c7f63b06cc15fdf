"""Online multiclass boosting: boosters, weak learners, and their shared code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.boosting.best_single import BestSingle as BestSingle
    from banditlab.boosting.booster import Booster as Booster
    from banditlab.boosting.exploration import BoostedExploration as BoostedExploration
    from banditlab.boosting.mbbm import OnlineMBBM as OnlineMBBM
    from banditlab.boosting.olm import AdaBoostOLM as AdaBoostOLM
    from banditlab.boosting.olm_plus import AdaBoostOLMPlus as AdaBoostOLMPlus
    from banditlab.boosting.one_vs_all import AdaBoostOLOneVsAll as AdaBoostOLOneVsAll
    from banditlab.boosting.one_vs_all import AdaOVA as AdaOVA
    from banditlab.boosting.oza import Oza as Oza
    from banditlab.boosting.potentials import ExactPotentials as ExactPotentials
    from banditlab.boosting.potentials import Potentials as Potentials
    from banditlab.boosting.potentials import SampledPotentials as SampledPotentials
    from banditlab.boosting.remembered import RememberedPotentials as RememberedPotentials
    from banditlab.boosting.trees.hoeffding import HoeffdingTree as HoeffdingTree
    from banditlab.boosting.weak.forecasting import Forecasting as Forecasting
    from banditlab.boosting.weak.simulated import Simulated as Simulated
    from banditlab.boosting.weak.weak_learner import ProbableLearner as ProbableLearner
    from banditlab.boosting.weak.weak_learner import WeakLearner as WeakLearner
    from banditlab.problem import Decision as Decision
    from banditlab.problem import Problem as Problem

BUILT_IN = {
    "agents": {
        "BoostedExploration": ("boosted-exploration", "banditlab.boosting.exploration"),
    },
    "boosters": {
        "AdaBoostOLM": ("adaboost-olm", "banditlab.boosting.olm"),
        "AdaBoostOLMPlus": ("adaboost-olm++", "banditlab.boosting.olm_plus"),
        "AdaBoostOLOneVsAll": ("adaboost-ol-ova", "banditlab.boosting.one_vs_all"),
        "AdaOVA": ("adaova", "banditlab.boosting.one_vs_all"),
        "Oza": ("oza", "banditlab.boosting.oza"),
        "BestSingle": ("best-single", "banditlab.boosting.best_single"),
        "OnlineMBBM": ("online-mbbm", "banditlab.boosting.mbbm"),
    },
    "weak_learners": {
        "HoeffdingTree": ("hoeffding-tree", "banditlab.boosting.trees.hoeffding"),
        "Forecasting": ("forecaster", "banditlab.boosting.weak.forecasting"),
        "Simulated": ("simulated", "banditlab.boosting.weak.simulated"),
    },
}
"""For each kind, the id and the module of every class; the registry and the listings use it."""
_OTHERS = {
    "banditlab.boosting.booster": ("Booster",),
    "banditlab.boosting.potentials": ("ExactPotentials", "Potentials", "SampledPotentials"),
    "banditlab.boosting.remembered": ("RememberedPotentials",),
    "banditlab.boosting.weak.weak_learner": ("ProbableLearner", "WeakLearner"),
    "banditlab.problem": ("Decision", "Problem"),
}

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _OTHERS, BUILT_IN)
