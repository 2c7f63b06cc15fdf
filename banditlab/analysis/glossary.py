"""The words of a report, explained: on hover or focus where they stand, and in a list at the end of the page."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup, escape


@dataclass(frozen=True)
class Term:
    """A word, what it means in a sentence or two, and the forms it is found by (a regular expression)."""

    name: str
    meaning: str
    forms: str

    @property
    def key(self) -> str:
        """The name as a part of an id."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


TERMS = (
    Term(
        "player",
        "An agent or a forecaster: what chooses a class in every round.",
        r"players?",
    ),
    Term(
        "agent",
        "A player that is told one bit after each round: whether its class was right.",
        r"agents?",
    ),
    Term(
        "forecaster",
        "A player that is told the label itself after each round.",
        r"forecasters?",
    ),
    Term(
        "told one bit",
        "After each round the player learns whether its class was right, not which one was.",
        r"told one bit",
    ),
    Term(
        "told the label",
        "After each round the player learns the right class, whatever it chose.",
        r"told the label",
    ),
    Term(
        "round",
        "One example: the player sees a context, names a class and gets its feedback.",
        r"rounds?",
    ),
    Term(
        "repetition",
        "The same sweep with other random numbers; intervals are over repetitions.",
        r"repetitions?",
    ),
    Term(
        "stream",
        "The contexts and labels of one repetition, in their order; all players meet the same ones.",
        r"streams?",
    ),
    Term(
        "setting",
        "The values of a player's parameters in one run, such as γ and B.",
        r"settings?",
    ),
    Term(
        "γ",
        "gamma: how much an agent explores. In some, the probability of a random class; the paper of each says.",
        r"γ",
    ),
    Term(
        "B",
        "The norm bound: no row of the models compared with is longer than B. Larger balls hold stronger models.",
        r"B(?= = |\b in \{)|norm bounds?",
    ),
    Term(
        "expected mistakes",
        "The sum over rounds of the probability that the player gave to wrong classes: mistakes without the luck of "
        "its own draws.",
        r"expected mistakes",
    ),
    Term(
        "counted",
        "Mistakes as they were made: wrong classes drawn, or for forecasters rounds whose likeliest class was wrong.",
        r"[Cc]ounted",
    ),
    Term(
        "relative mistakes",
        "Expected mistakes minus the loss of the comparator in nats. Below 0: fewer mistakes than its loss.",
        r"[Rr]elative mistakes",
    ),
    Term(
        "nats",
        "The unit of the logistic loss with natural logarithms; 1 nat is 1.44 bits. A guess among K classes costs ln "
        "K.",
        r"nats?",
    ),
    Term(
        "bits",
        "The unit of the logistic loss with logarithms to base 2; 1 bit is 0.69 nats.",
        r"bits(?! after)",
    ),
    Term(
        "comparator",
        "The best logistic model in a ball of norm B, fitted in hindsight to the whole stream with every label known: "
        "what a theorem compares a player with.",
        r"comparators?|best logistic model(?: in hindsight)?|best linear model",
    ),
    Term(
        "most frequent class",
        "Always saying the class that turns out to be most frequent: what a player has to beat to have learnt "
        "anything.",
        r"most frequent class",
    ),
    Term(
        "95 % interval",
        "Where the mean would lie in 95 of 100 such experiments: Student's t over repetitions and, for a table, over "
        "its rows.",
        r"95 % intervals?",
    ),
    Term(
        "tied",
        "No difference shown: the interval of the difference contains 0.",
        r"tied?(?= |\b)",
    ),
    Term(
        "cross-fitted",
        "Settings chosen on one half of the repetitions and reported on the other, so that no run helps to choose the "
        "setting it is reported at.",
        r"cross-fitted|chosen for each half",
    ),
    Term(
        "bound",
        "What a theorem promises: expected mistakes ≤ loss of the comparator + bound.",
        r"bounds?|guarantee",
    ),
    Term(
        "vacuous",
        "A bound that is the number of rounds or more: it promises nothing, as nobody errs more often.",
        r"vacuous",
    ),
    Term(
        "explores",
        "Plays a class drawn at random instead of its best guess, to learn from the answer.",
        r"explor(?:es|ed)",
    ),
    Term(
        "first showing",
        "The first time a row of a table is shown. Ranks go by these: rows shown again may be remembered.",
        r"first showings?|for the first time",
    ),
    Term(
        "paired",
        "Differences taken on the same streams, where luck of the data cancels.",
        r"[Pp]aired|on the same streams",
    ),
    Term(
        "conditional",
        "An expectation given the player's internal draws, where its distribution over them is not known.",
        r"[Cc]onditional",
    ),
    Term(
        "ess",
        "Effective sample size: how many independent draws a weighted or correlated sample is worth.",
        r"\bess\b",
    ),
    Term(
        "known to within",
        "The duality gap: the best loss in the ball lies between the loss found and that much less.",
        r"known to within|duality gap",
    ),
    Term(
        "log loss",
        "The sum over rounds of −ln of the probability given to the right class, in nats.",
        r"[Ll]og loss",
    ),
    Term(
        "theory",
        "An agent, or a value of γ, as a theorem sets it: safe in the worst case for these rounds, often far from "
        "best.",
        r"theory(?=\b)",
    ),
)

_FORM = re.compile("|".join(rf"(?P<t{i}>(?<![\w-])(?:{term.forms})(?![\w-]))" for i, term in enumerate(TERMS)))


def glossed(text: str) -> Markup:
    """Return a text, escaped, in which the first appearance of each term of the glossary explains itself.

    A term is a link to its entry; what it means is shown on hover and on focus by the page's style, without a script.
    """
    parts, end, seen = [], 0, set()
    for match in _FORM.finditer(text):
        term = TERMS[int((match.lastgroup or "t0")[1:])]
        if term.name in seen:
            continue
        seen.add(term.name)
        parts += [escape(text[end : match.start()]), linked(term, match.group())]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def linked(term: Term, shown: str) -> Markup:
    """Return a word as a link to its entry of the glossary."""
    return Markup('<a class="term" href="#term-{}" data-tip="{}">{}</a>').format(term.key, term.meaning, shown)
