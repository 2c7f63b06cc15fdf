"""`list` groups the agents, `describe` says what a player is told, does, costs and promises, for every one of them."""

from __future__ import annotations

import inspect
import re
import sys

import pytest

from banditlab import distributions
from banditlab.bounds import THEOREMS
from banditlab.cli import listing
from banditlab.cli.listing import GROUPS, UNWRAPPED, print_description, print_list, without_dollars, without_latex
from banditlab.registry import KINDS, Registry

PLAYERS = [
    entry for kind in ("agents", "forecasters") for entry in Registry().entries(kind) if entry.origin == "banditlab"
]


def listed(capsys) -> dict[str, list[str]]:
    """Return the lines under each heading."""
    print_list("agents")
    sections: dict[str, list[str]] = {}
    for line in filter(None, capsys.readouterr().out.splitlines()):
        if line.rstrip() in GROUPS.values():
            rows = sections.setdefault(line.rstrip(), [])
        else:
            rows.append(line)
    return sections


def test_every_agent_has_one_line_under_its_group(capsys) -> None:
    sections = listed(capsys)
    assert list(sections) == list(GROUPS.values())
    for entry in (entry for entry in PLAYERS if entry.kind == "agents"):
        [heading] = [h for h, lines in sections.items() for line in lines if line.split()[0] == entry.id]
        group = entry.load().group
        assert heading == GROUPS["reference" if group == "baseline" else group]
    assert [line.split()[0] for line in sections[GROUPS["reference"]]] == [
        "label-efficient", "perceptron", "randomized-decoding", "sampled", "uniform"
    ]  # fmt: skip


def test_adapters_are_listed_without_their_library(capsys, monkeypatch) -> None:
    library = {name for entry in PLAYERS for name in entry.load().requires}
    assert library
    for name in library:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(distributions, "find_spec", lambda name: None)
    lines = listed(capsys)[GROUPS["adapter"]]
    assert {line.split()[0] for line in lines} >= {"vw", "river-logistic", "mabwiser-lints", "mabwiser-linucb"}
    assert all("(needs " in line for line in lines)
    assert not library & set(sys.modules)  # listing imports none of them
    print_description("vw")
    assert "needs vowpalwabbit: pip install vowpalwabbit" in capsys.readouterr().out


@pytest.mark.parametrize("entry", PLAYERS, ids=lambda entry: entry.id)
def test_describe_says_everything(capsys, entry) -> None:
    print_description(entry.id)
    text, cls = capsys.readouterr().out, entry.load()
    assert text.startswith(f"{entry.id} ({entry.kind[:-1]}, from banditlab, version {cls.version})\n")
    assert f"\nFeedback: {listing.FEEDBACK[cls.feedback]}\nGroup: {cls.group}\n" in text
    assert "\nBound: " in text
    assert re.search(r"\b[Uu]pdate", text)
    assert re.search(r"\bCost", text)
    assert f"\nReference: {cls.reference}\n" in text
    for name in cls.own_settings():
        assert f"\n  {name}: " in text


def test_a_bound_is_worked_out_or_refused_in_words(capsys) -> None:
    def bound(name: str) -> str:
        print_description(name)
        [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Bound: ")]
        return line

    at = "with default settings, d = 10, K = 3, R = 1, T = 10,000"
    assert bound("banditron") == f"Bound: no value {at}; for what is proved, see Guarantee"
    want = f"Bound: expected mistakes <= loss(U) + 352.6, loss(U) in bits, adaptive adversary, {at}"
    assert bound("randomized-decoding") == want
    assert bound("folklore").startswith("Bound: log loss <= loss(U) + ")
    assert "K = 2" in bound("aioli")


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"a :math:`\|U\|_F \le D` b", "a ||U||_F <= D b"),
        (r":math:`W_{k} \mathrel{-}= \text{step}\, g / \sqrt{G_k}`", "W_{k} -= step g / sqrt(G_k)"),
        (r":math:`\hat{y}_t \cdot \sqrt{K T\, \mathrm{Reg}_{t+1}}`", "hat(y)_t * sqrt(K T Reg_{t+1})"),
        (r":math:`\mathbb{E}[M] \ge \langle g, \hat y \rangle \otimes \gamma`", "E[M] >= <g, hat y> (x) gamma"),
        ("is\n\n.. math::\n\n    \\{x \\ne y\\}\n\n    z\n\nand a\\b", "is\n\n    {x != y}\n\n    z\n\nand a\\b"),
    ],
)
def test_formulas_are_plain_text_in_a_terminal(latex: str, shown: str) -> None:
    assert without_latex(latex) == shown


LATEX = r"\\|:math:|math::|\$|(sqrt|hat|tilde|bar|text)\{"


def test_no_command_of_latex_is_left_over() -> None:
    things = [entry.load() for kind in KINDS for entry in Registry().entries(kind)]
    for thing in [*things, *(theorem.function for theorem in THEOREMS.values())]:
        assert not re.search(LATEX, without_latex(inspect.getdoc(thing) or "")), thing


@pytest.mark.parametrize("columns", [80, UNWRAPPED])
def test_lists_and_theorems_show_no_latex(capsys, monkeypatch, columns: int) -> None:
    monkeypatch.setattr(listing, "UNWRAPPED", columns)
    for kind in (*KINDS, "bounds"):
        print_list(kind)
    for name in THEOREMS:
        print_description(name)
    shown = capsys.readouterr().out
    assert not re.search(LATEX, shown)
    for formula in ("||W_k|| <= B, ||x|| <= R", "2 sqrt(K T Reg(T))"):
        assert formula in " ".join(shown.split())


def test_dollars_that_hold_no_formula_stay() -> None:
    assert without_dollars(r"steps $s/\sqrt{t}$, $\|x\| \le R$") == "steps s/sqrt(t), ||x|| <= R"
    assert without_dollars("a $5 or $6 prize") == "a $5 or $6 prize"
