"""Agents, which observe one bit of feedback (`Agent`), and references, which observe the label (`LabelAgent`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.agents.apple_tasting import AppleTasting as AppleTasting
    from banditlab.agents.banditron import Banditron as Banditron
    from banditlab.agents.beta_ts import BetaTS as BetaTS
    from banditlab.agents.decoded_descent import DecodedDescent as DecodedDescent
    from banditlab.agents.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from banditlab.agents.epsilon_greedy_direct import EpsilonGreedyDirect as EpsilonGreedyDirect
    from banditlab.agents.exploration import Exploration as Exploration
    from banditlab.agents.gaptron import Gaptron as Gaptron
    from banditlab.agents.inverse_gap.fastcb import FastCB as FastCB
    from banditlab.agents.inverse_gap.squarecb import SquareCB as SquareCB
    from banditlab.agents.label_efficient import LabelEfficient as LabelEfficient
    from banditlab.agents.newtron import Newtron as Newtron
    from banditlab.agents.obama.obama_lite import ObamaLite as ObamaLite
    from banditlab.agents.ovr_perceptron import OvRPerceptron as OvRPerceptron
    from banditlab.agents.peers.coba import CobaLinTS as CobaLinTS
    from banditlab.agents.peers.coba import CobaLinUCB as CobaLinUCB
    from banditlab.agents.peers.contextualbandits import ContextualBanditsLinTS as ContextualBanditsLinTS
    from banditlab.agents.peers.contextualbandits import ContextualBanditsLinUCB as ContextualBanditsLinUCB
    from banditlab.agents.peers.contextualbandits import ContextualBanditsSGD as ContextualBanditsSGD
    from banditlab.agents.peers.mabwiser import MABWiserLinTS as MABWiserLinTS
    from banditlab.agents.peers.mabwiser import MABWiserLinUCB as MABWiserLinUCB
    from banditlab.agents.peers.river import RiverLinUCB as RiverLinUCB
    from banditlab.agents.peers.river import RiverLogistic as RiverLogistic
    from banditlab.agents.peers.vw import VW as VW
    from banditlab.agents.perceptron import Perceptron as Perceptron
    from banditlab.agents.pnewtron import PNewtron as PNewtron
    from banditlab.agents.randomized_decoding import RandomizedDecoding as RandomizedDecoding
    from banditlab.agents.rdue import RDUE as RDUE
    from banditlab.agents.ridge.confidit import Confidit as Confidit
    from banditlab.agents.ridge.lints import LinTS as LinTS
    from banditlab.agents.ridge.linucb import LinUCB as LinUCB
    from banditlab.agents.sampled import Sampled as Sampled
    from banditlab.agents.soba import SOBA as SOBA
    from banditlab.agents.soba_diag import SOBAdiag as SOBAdiag
    from banditlab.agents.stacked.stackcb import StackCB as StackCB
    from banditlab.agents.uniform import Uniform as Uniform
    from banditlab.players.actor import Trace as Trace
    from banditlab.players.agent import Agent as Agent
    from banditlab.players.agent import KernelAgent as KernelAgent
    from banditlab.players.label_agent import KernelLabelAgent as KernelLabelAgent
    from banditlab.players.label_agent import LabelAgent as LabelAgent
    from banditlab.problem import Decision as Decision
    from banditlab.problem import Problem as Problem

BUILT_IN = {
    "agents": {
        "Uniform": ("uniform", "banditlab.agents.uniform"),
        "BetaTS": ("beta-ts", "banditlab.agents.beta_ts"),
        "AppleTasting": ("apple-tasting", "banditlab.agents.apple_tasting"),
        "Banditron": ("banditron", "banditlab.agents.banditron"),
        "Exploration": ("exploration", "banditlab.agents.exploration"),
        "Newtron": ("newtron", "banditlab.agents.newtron"),
        "Gaptron": ("gaptron", "banditlab.agents.gaptron"),
        "ObamaLite": ("obama-lite", "banditlab.agents.obama.obama_lite"),
        "FastCB": ("fastcb", "banditlab.agents.inverse_gap.fastcb"),
        "SquareCB": ("squarecb", "banditlab.agents.inverse_gap.squarecb"),
        "StackCB": ("stackcb", "banditlab.agents.stacked.stackcb"),
        "LinUCB": ("linucb", "banditlab.agents.ridge.linucb"),
        "LinTS": ("lints", "banditlab.agents.ridge.lints"),
        "Confidit": ("confidit", "banditlab.agents.ridge.confidit"),
        "EpsilonGreedy": ("epsilon-greedy", "banditlab.agents.epsilon_greedy"),
        "EpsilonGreedyDirect": ("epsilon-greedy-direct", "banditlab.agents.epsilon_greedy_direct"),
        "PNewtron": ("pnewtron", "banditlab.agents.pnewtron"),
        "SOBA": ("soba", "banditlab.agents.soba"),
        "SOBAdiag": ("soba-diag", "banditlab.agents.soba_diag"),
        "RDUE": ("rdue", "banditlab.agents.rdue"),
        "DecodedDescent": ("decoded-descent", "banditlab.agents.decoded_descent"),
        "OvRPerceptron": ("ovr-perceptron", "banditlab.agents.ovr_perceptron"),
        "Perceptron": ("perceptron", "banditlab.agents.perceptron"),
        "RandomizedDecoding": ("randomized-decoding", "banditlab.agents.randomized_decoding"),
        "Sampled": ("sampled", "banditlab.agents.sampled"),
        "LabelEfficient": ("label-efficient", "banditlab.agents.label_efficient"),
        "VW": ("vw", "banditlab.agents.peers.vw"),
        "RiverLogistic": ("river-logistic", "banditlab.agents.peers.river"),
        "RiverLinUCB": ("river-linucb", "banditlab.agents.peers.river"),
        "MABWiserLinUCB": ("mabwiser-linucb", "banditlab.agents.peers.mabwiser"),
        "MABWiserLinTS": ("mabwiser-lints", "banditlab.agents.peers.mabwiser"),
        "ContextualBanditsLinUCB": ("contextualbandits-linucb", "banditlab.agents.peers.contextualbandits"),
        "ContextualBanditsLinTS": ("contextualbandits-lints", "banditlab.agents.peers.contextualbandits"),
        "ContextualBanditsSGD": ("contextualbandits-sgd", "banditlab.agents.peers.contextualbandits"),
        "CobaLinUCB": ("coba-linucb", "banditlab.agents.peers.coba"),
        "CobaLinTS": ("coba-lints", "banditlab.agents.peers.coba"),
    },
}
"""For each kind, the id and the module of every class; the registry and the listings use it."""
_OTHERS = {
    "banditlab.players.actor": ("Trace",),
    "banditlab.players.agent": ("Agent", "KernelAgent"),
    "banditlab.players.label_agent": ("KernelLabelAgent", "LabelAgent"),
    "banditlab.problem": ("Decision", "Problem"),
}

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _OTHERS, BUILT_IN)
