"""Typical slips of a plug-in: what is wrong, how it is made of a right one, and what `banditlab check` says of it.

The right ones are those of the tutorials; `tests/docs/test_slips.py` makes each slip and compares the message word for word.
"""
# ruff: noqa: E501 - messages stand word for word

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

TUTORIALS = Path(__file__).parents[1] / "tutorials"
AGENT, ENV = "own-agent.md", "own-environment.md"


class Slip(NamedTuple):
    """One slip: what it is, the page whose plug-in it is made in, the texts replaced, the check that fails, its message."""

    what: str
    page: str
    changes: tuple[tuple[str, str], ...]
    check: str
    message: str


def plugin(page: str) -> str:
    """Return the first Python file that a tutorial writes."""
    text = (TUTORIALS / page).read_text(encoding="utf-8")
    found = re.search(r"<!-- file: \S+\.py -->\n```python\n(.*?)```", text, re.DOTALL)
    if found is None:
        raise ValueError(f"{page} writes no Python file")
    return found.group(1)


def made(slip: Slip) -> str:
    """Return the plug-in with the slip in it; a text to be replaced that is not there is an error."""
    text = plugin(slip.page)
    for old, new in slip.changes:
        if old not in text:
            raise ValueError(f"{slip.what}: {slip.page} has no {old!r}")
        text = text.replace(old, new)
    return text


def table() -> str:
    """Return the slips as they stand on the page that tells how to mend them."""
    parts = []
    for kind, page in (("In an agent", AGENT), ("In an environment", ENV)):
        parts.append(f"## {kind}")
        rows = [f"**{slip.what}**\n: `{slip.message}`" for slip in SLIPS if slip.page == page]
        parts += rows
    return "\n\n".join(parts)


SLIPS = (
    Slip(
        "No id.",
        AGENT,
        (('    id = "my-first"\n', ""),),
        "",
        'p.py: defines no agent, forecaster or environment with an id; MyFirst has none: id = "..."',
    ),
    Slip(
        "No summary.",
        AGENT,
        (('    summary = "a perceptron for each class, played epsilon-greedily"\n', ""),),
        "metadata",
        "summary is '': the class must carry a non-empty one-line string",
    ),
    Slip(
        "A group of one's own.",
        AGENT,
        (('"practice"', '"mine"'),),
        "metadata",
        "group is 'mine': it must be one of 'theory', 'practice', 'reference', 'baseline', 'adapter'",
    ),
    Slip(
        "Settings that are not keyword-only.",
        AGENT,
        (("rng, *, gamma", "rng, gamma"),),
        "settings",
        "the setting 'gamma' is not keyword-only: put it after a *",
    ),
    Slip(
        "A setting without its type.",
        AGENT,
        (("gamma: float = 0.05", "gamma=0.05"),),
        "settings",
        "the setting 'gamma' has no annotation: settings are coerced to theirs",
    ),
    Slip(
        "A setting that is kept under another name.",
        AGENT,
        (("self.gamma", "self.rate"),),
        "settings",
        "the setting 'gamma' is no attribute afterwards: store its resolved value under its name",
    ),
    Slip(
        "A setting that nobody looks at.",
        AGENT,
        (('probability("gamma", gamma)', "gamma"),),
        "bad_settings",
        "gamma = -1 was accepted: it must raise UsageError",
    ),
    Slip(
        "Randomness of its own.",
        AGENT,
        (("u = self.rng.random(2)", "u = np.random.default_rng().random(2)"),),
        "seeds",
        "two runs from one seed differ at round ...: all randomness must come from the rng handed in",
    ),
    Slip(
        "One number a round.",
        AGENT,
        (("u = self.rng.random(2)", "u = self.rng.random(1)"), ("u[1]", "u[0]")),
        "two_uniforms",
        "act at round 0 did not leave the generator as two uniforms do: draw rng.random(2) on every branch",
    ),
    Slip(
        "A context that is written to.",
        AGENT,
        (
            (
                "        k = decision.action\n",
                "        k = decision.action\n        context /= np.linalg.norm(context)\n",
            ),
        ),
        "decisions",
        "raised ValueError: output array is read-only (an array that is handed in must not be written to: copy it first)",
    ),
    Slip(
        "Contexts that are kept.",
        AGENT,
        (
            (
                "            self.W[k] += sign * context\n",
                "            self.W[k] += sign * context\n        self.kept.append(context.copy())\n",
            ),
            ("        self.W = np", "        self.kept = []\n        self.W = np"),
        ),
        "bounded_memory",
        "the state takes 7830 bytes after 100 rounds and 28830 after 400: memory must not grow with T (or excluded_checks says why)",
    ),
    Slip(
        "State that is made later.",
        AGENT,
        (
            (
                "            self.W[k] += sign * context\n",
                "            self.W[k] += sign * context\n        self.rounds = getattr(self, 'rounds', 0) + 1\n",
            ),
        ),
        "saving",
        "rounds: made after the constructor; all of the state must be there from the start",
    ),
    Slip(
        "Probabilities that do not sum to 1.",
        AGENT,
        (("+= 1.0 - self.gamma", "+= 1.0"),),
        "decisions",
        "at round 0 the probabilities sum to 1.05: they must sum to 1",
    ),
    Slip(
        "Probabilities after the draw.",
        AGENT,
        (("        return Decision(action, p)", "        return Decision(action, np.eye(K)[action])"),),
        "true_probabilities",
        "the probabilities depend on the round's two uniforms: they must be those before the draw",
    ),
    Slip(
        "An action instead of a decision.",
        AGENT,
        (("return Decision(action, p)", "return action"),),
        "decisions",
        "at round 0 act returned a int: it must return a Decision(action, probabilities)",
    ),
    Slip(
        "A coin that is not reported.",
        AGENT,
        (("    explores = False\n", ""),),
        "decisions",
        "at round 0 explored is None: it must be a bool, or the class says explores = False",
    ),
    Slip(
        "Something remembered from act.",
        AGENT,
        (
            ("        self.W = np", "        self.last = np.zeros(problem.n_features)\n        self.W = np"),
            ("        action = min", "        self.last = context.copy()\n        action = min"),
            ("(self.W[k] @ context)", "(self.W[k] @ self.last)"),
            ("sign * context", "sign * self.last"),
        ),
        "late_feedback",
        "learn depends on the context of a later act: what it needs of its round must travel in the payload or be computed again",
    ),
    Slip(
        "One array for all decisions.",
        AGENT,
        (
            ("        p = np.full(K, self.gamma / K)\n", "        p = self.p\n        p[:] = self.gamma / K\n"),
            ("        self.W = np", "        self.p = np.zeros(problem.n_classes)\n        self.W = np"),
        ),
        "decisions_are_kept",
        "the next act rewrote an earlier decision: probabilities and payload must be arrays of their own",
    ),
    Slip(
        "A function in an attribute.",
        AGENT,
        (("        self.W = np", "        self.score = lambda x: self.W @ x\n        self.W = np"),),
        "pickling",
        "it cannot be pickled (AttributeError: Can't pickle local object 'MyFirst.__init__.<locals>.<lambda>'): attributes are numbers, arrays and texts, no functions or files",
    ),
    Slip(
        "A probability too many.",
        AGENT,
        (("return Decision(action, p)", "return Decision(action, np.append(p, 0.0))"),),
        "decisions",
        "at round 0 the probabilities are array([...]): they must be a float64 array of shape (3,)",
    ),
    Slip(
        "An action that is a float.",
        AGENT,
        (("return Decision(action, p)", "return Decision(float(action), p)"),),
        "decisions",
        "at round 0 the action is ...: it must be an int or a numpy integer",
    ),
    Slip(
        "Classes counted from 1.",
        AGENT,
        (("return Decision(action, p)", "return Decision(action + 1, p)"),),
        "decisions",
        "at round ... the action is 3: it must lie in 0 ... 2",
    ),
    Slip(
        "Probabilities that are no numbers.",
        AGENT,
        (("return Decision(action, p)", "return Decision(action, p * np.nan)"),),
        "decisions",
        "at round 0 the probabilities are [nan nan nan]: they must be finite and 0 or above",
    ),
    Slip(
        "State that all instances share.",
        AGENT,
        (
            ("        self.W = np.zeros((problem.n_classes, problem.n_features))\n", ""),
            ("    explores = False\n", "    explores = False\n    W = np.zeros((3, 5))\n"),
        ),
        "own_state",
        "W belongs to the class and changed while it played: all instances share it; make it in the constructor",
    ),
    Slip(
        "A learn that is a generator.",
        AGENT,
        (("+= sign * context\n", "+= sign * context\n        yield\n"),),
        "verbs",
        "learn has a yield: calling it would run none of it; it must be a plain method",
    ),
    Slip(
        "An act that is async.",
        AGENT,
        (("    def act", "    async def act"),),
        "verbs",
        "act is async: calling it would run none of it; it must be a plain method",
    ),
    Slip(
        "A learn without the bit.",
        AGENT,
        (("def learn(self, context, decision, correct)", "def learn(self, context, decision)"),),
        "verbs",
        "learn takes (context, decision): it must take (context, decision, correct)",
    ),
    Slip(
        "A constructor that does not call its base's.",
        AGENT,
        (("        super().__init__(problem, rng)\n", ""),),
        "construction",
        "it has no problem: the constructor must call super().__init__(problem, rng) first",
    ),
    Slip(
        "A method under another name.",
        AGENT,
        (("def learn", "def learns"),),
        "construction",
        "leaves learn to be written: methods with these names (a class to derive from has no id)",
    ),
    Slip(
        "A file that ends the process.",
        AGENT,
        (("import numpy as np\n", "import sys\n\nimport numpy as np\n\nsys.exit(0)\n"),),
        "",
        "p.py: its import ends the process: sys.exit(0) is called",
    ),
    Slip(
        "A file that does not parse.",
        AGENT,
        (("def act(self, context):", "def act(self, context)"),),
        "",
        "p.py: cannot be imported: SyntaxError: expected ':' (p.py, line 33)",
    ),
    Slip(
        "An id without a namespace.",
        ENV,
        (('"lab/Moons-v0"', '"Moons"'),),
        "env_metadata",
        "id is 'Moons': an environment's id must read namespace/Name-vN",
    ),
    Slip(
        "No horizon.",
        ENV,
        ((", horizon: int = 10_000", ""), ("horizon=horizon", "horizon=1000")),
        "construction",
        "the constructor takes no horizon: the number of rounds must be a keyword-only argument",
    ),
    Slip(
        "Contexts longer than R.",
        ENV,
        (("radius=4.0", "radius=1.0"),),
        "contexts",
        "the context at round 0 has norm 1.5264: it must be at most R = 1",
    ),
    Slip(
        "Labels that are no integers.",
        ENV,
        (("), y\n", "), y.astype(float)\n"),),
        "contexts",
        "raised EnvironmentContractError: Moons._draw must yield labels (1024,) int64, got (1024,) float64",
    ),
    Slip(
        "A stream that ends.",
        ENV,
        (("while True:", "for _ in range(1):"),),
        "steps_are_blocks",
        "raised EnvironmentContractError: Moons._draw ended; it must yield for ever",
    ),
    Slip(
        "Randomness from nowhere.",
        ENV,
        (("streams.contexts.random(size)", "np.random.default_rng().random(size)"),),
        "env_seeds",
        "two episodes from one seed differ (a fresh object): all randomness must come from the seed",
    ),
    Slip(
        "A stream that depends on the horizon.",
        ENV,
        (("np.pi * ", "np.pi / (1 + self.horizon % 7) * "),),
        "prefixes",
        "the first 64 rounds of a longer episode differ: longer streams must extend shorter ones (a law that depends on the horizon takes it as a parameter of its own)",
    ),
    Slip(
        "Labels counted from 1.",
        ENV,
        (("), y\n", "), y + 1\n"),),
        "contexts",
        "raised EnvironmentContractError: Moons gave the label 2: with 2 classes, labels lie in 0 ... 1",
    ),
    Slip(
        "A context that is no number.",
        ENV,
        (("[np.ones(size),", "[np.full(size, np.nan),"),),
        "contexts",
        "the context at round 0 is not finite",
    ),
    Slip(
        "A feature too few.",
        ENV,
        (("[np.ones(size), a,", "[a,"),),
        "contexts",
        "raised EnvironmentContractError: Moons._draw must yield contexts (1024, 6) float64 in C order, got (1024, 5) float64",
    ),
    Slip(
        "A stream that is returned.",
        ENV,
        (("            yield ", "            return "),),
        "contexts",
        "raised EnvironmentContractError: Moons._draw returned a tuple: it must yield (contexts, labels)",
    ),
    Slip(
        "Labels in a list.",
        ENV,
        (("), y\n", "), list(y)\n"),),
        "contexts",
        "raised EnvironmentContractError: Moons._draw must yield labels (1024,) int64, got (1024,) list",
    ),
    Slip(
        "State that grows from episode to episode.",
        ENV,
        (("            yield", "            self.spread += 0.01\n            yield"),),
        "env_seeds",
        "two episodes from one seed differ (a used object): all randomness must come from the seed",
    ),
)
