r"""The part of a policy that a replay reproduces bit for bit: agent, classes and generator, but no clock, ids or files.

Actions are drawn from the agent's distribution p if all classes are allowed. If some are not allowed, or retired,
actions are drawn from p restricted to the allowed classes and divided by its sum s there, or uniformly if
:math:`s = 0`. The agent's draw is used if it is allowed; otherwise the action is drawn again:
:math:`P(k) = p_k + (1 - s) p_k/s = p_k/s`.

If a class was added, or the policy has a floor, let q be the distribution of the previous paragraph. Actions are then
drawn from

.. math::

    P(k) = \epsilon + (1 - K' \epsilon) (f_k + (1 - \textstyle\sum_j f_j)\, q_k), \qquad
    f_k = \min(1, (\text{YOUNG}/n_k)^2) \min(1/4, 1/(2 J)), \tag{1}

:math:`\epsilon` is the floor, K' the number of allowed classes, and J the number of allowed added classes. For an added
class k, :math:`n_k` is the number of times it was chosen so far. For all other classes, :math:`f_k = 0`. The
distribution P is reported, logged and passed to the agent with the feedback, so importance weights and inverse
propensities are correct.

With a holdback h, another policy with distribution b (by default uniform over the allowed classes) makes a decision
with probability h, and q in (1) is replaced by :math:`(1 - h) q + h b`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import PlayerError, UsageError
from banditlab.numerics.read_only import as_contexts
from banditlab.players.agent import Agent
from banditlab.players.inputs import TOLERANCE, as_context
from banditlab.policy.choice import Held, Name, Record, are_alike, as_name, short, unknown_class
from banditlab.policy.direct import Direct, is_direct
from banditlab.policy.growing import grown
from banditlab.validation import probability

CHOSEN_IN_PAYLOAD = ("newtron", "pnewtron")
"""Agents whose payload has numbers of the chosen class, so another class cannot replace it."""
CHOSEN_READ_AGAIN = ("stackcb", "epsilon-greedy-direct")
"""Agents whose payload has numbers of the chosen class, but which compute them again in an update if the payload is NaN."""
CLASS_IN_PAYLOAD = ("banditron",)
"""Agents whose payload begins with a class index."""
YOUNG = 30
"""The number of choices of an added class before its least probability begins to decrease."""
MOST = 0.25
"""The least probability of an added class until it was chosen `YOUNG` times."""
SLACK = 1e-4
"""The tolerance for the sum of a distribution in a file, because some libraries compute with 32 bits."""
SHARES = (0.001, 0.999)
"""The least and the largest holdback above 0."""


class Core:
    """An agent with named classes, some of which may be retired.

    Parameters
    ----------
    agent
        An agent that learns from one bit.
    classes
        The names of the K classes.
    rng
        Generator for the draws that replace the agent's draw if its class is not allowed, or if (1) applies.
    """

    def __init__(self, agent: Agent, classes: Sequence[Name], rng: np.random.Generator) -> None:
        self.classes, self.rng = list(classes), rng
        self._take(agent)
        self.retired: set[int] = set()
        self.added: dict[int, int] = {}
        """The number of times each added class was chosen, by its index."""
        self.floor = 0.0
        """The least probability of any allowed class."""
        self.holdback = 0.0
        """The fraction of decisions made by `other`, or by uniform choice if it is None."""
        self.other: Core | None = None
        self.generation = self.decisions = self.answered = self.right = self.closed = 0
        self._places = {name: k for k, name in enumerate(self.classes)}

    def _take(self, agent: Agent) -> None:
        """Set the agent, whose kernels are called directly, because contexts are checked here."""
        self.agent: Any = agent
        self._quick = is_direct(agent)
        self._direct: Direct | None = None
        self._shape = (agent.problem.n_features,)
        self._reach = (agent.problem.radius * (1.0 + TOLERANCE)) ** 2

    def copy(self) -> Core:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy, without `_direct`, which is bound to this object's state."""
        return vars(self) | {"_direct": None}

    # ------------------------------------------------------------------------------------------------------------ classes

    def place(self, name: Any) -> int:
        """Return the index of a class name, or raise a UsageError that suggests the nearest one."""
        name = name.item() if isinstance(name, np.generic) else name
        k = self._places.get(name) if isinstance(name, str | int | float) else None
        if k is None or not are_alike(name, self.classes[k]):
            raise unknown_class(name, self.classes)
        return k

    def mask(self, allowed: Sequence[Name] | None) -> NDArray[np.bool_] | None:
        """Return the mask of classes that may be chosen, or None for all; raise a UsageError if it is empty or unsupported."""
        if allowed is None and not self.retired:
            return None
        K = len(self.classes)
        mask = np.ones(K, np.bool_)
        if allowed is not None:
            if isinstance(allowed, str) or not isinstance(allowed, Sequence):
                raise UsageError(f"allowed must be a list of classes, got {short(allowed)}")
            mask[:] = False
            mask[[self.place(name) for name in allowed]] = True
        mask[list(self.retired)] = False
        if mask.all():
            return None
        if not mask.any():
            raise UsageError("allowed must include a class that is not retired")
        self.require_replaceable("allowed")
        return mask

    def require_replaceable(self, what: str) -> None:
        """Raise a UsageError if the agent's choice cannot be replaced by another class."""
        agent, size = self.agent, getattr(self.agent, "payload_size", None)
        ours = type(agent).__module__.startswith("banditlab.")
        if agent.id in CHOSEN_IN_PAYLOAD or (size != 0 and not ours):
            raise UsageError(
                f"{what}: {agent.id} stores numbers about the class it chose until feedback arrives, so another class "
                "cannot replace it; train with another agent, for instance stackcb"
            )

    def add(self, name: Name) -> None:
        """Add a class, or allow a retired one again."""
        name = as_name(name)
        known = self.place(name) if name in self._places else None
        if known is not None and known not in self.retired:
            raise UsageError(f"there is already a class called {name!r}")
        if known is None and type(name) is not type(self.classes[0]):
            raise UsageError(f"class names must have the type {type(self.classes[0]).__name__}, got {name!r}")
        self._require_room(self.floor, 1)
        if known is not None:
            self.retired.remove(known)
            return
        self._take(grown(self.agent))
        self._places[name] = len(self.classes)
        self.added[len(self.classes)] = 0
        self.classes.append(name)
        self.generation += 1

    def set_floor(self, floor: float) -> None:
        """Set the least probability of allowed classes; raise a UsageError if there are too many classes for it."""
        self._require_room(probability("floor", floor), 0)
        if floor > 0.0:
            self.require_replaceable("floor")
        self.floor = float(floor)

    def set_holdback(self, share: float, other: Core | None = None) -> None:
        """Set the fraction of decisions made by another policy or uniform choice; raise a UsageError if unsupported."""
        low, high = SHARES
        if share and not low <= probability("holdback", share) <= high:
            raise UsageError(f"holdback must be 0, or from {low:g} to {high:g}, got {share:g}")
        if share:
            self.require_replaceable("holdback")
        self.holdback, self.other = float(share), other

    def _require_room(self, floor: float, more: int) -> None:
        able = len(self.classes) - len(self.retired) + more
        if floor * able > 1.0:
            raise UsageError(f"floor must be at most 1/{able} because {able} classes may be chosen, got {floor:g}")

    def retire(self, name: Name) -> None:
        """Retire a class, which is then not chosen. Its model remains, and feedback on earlier choices updates it."""
        k = self.place(name)
        if k in self.retired:
            raise UsageError(f"the class {name!r} is already retired")
        if len(self.classes) - len(self.retired) <= 1:
            raise UsageError(f"{name!r} cannot be retired: it is the last class that is not retired")
        self.require_replaceable("retire")
        self.retired.add(k)

    # ------------------------------------------------------------------------------------------------- decide and learn

    def choose(self, x: NDArray[np.float64], mask: NDArray[np.bool_] | None) -> Record:
        """Choose a class among those of the mask (K,) at the finite context x (d,)."""
        x = as_contexts(x)
        # vdot, because dot warns of an overflow
        if not (x.shape == self._shape and np.vdot(x, x) <= self._reach):
            as_context(x, self.agent.problem)  # raises an error that names the fault
        return self.choose_own(x, mask)

    def choose_own(self, x: NDArray[np.float64], mask: NDArray[np.bool_] | None) -> Record:
        """Choose as `choose` does at a valid context: (d,), of norm at most R, contiguous and read-only."""
        if self._quick:
            action, p, explored, payload = self._verbs(x).decide(self.agent, x)
        else:
            decision = self.agent.act(x)
            action, p, explored = decision.action, decision.probabilities, decision.explored
            payload = _payload(self.agent, decision.payload)
        drawn = action
        if mask is not None:
            action, p = self._cut(action, p, mask)
        held, b = False, p
        if self.holdback:
            instead, b = self._other_choice(x, mask)
            held = bool(self.rng.random() < self.holdback)
            action, p = instead if held else action, (1.0 - self.holdback) * p + self.holdback * b
        forced = False
        if self.floor or self.added:
            least = self._least(len(p), mask)
            total = least.sum()
            forced = bool(self.rng.random() < total)
            action = self._drawn(least / total) if forced else action
            p, b = (least + max(0.0, 1.0 - total) * q for q in (p, b))  # (1)
        explored = explored and not (forced or held)  # the action is not from the agent's own draw
        if action != drawn and self.agent.id in CHOSEN_READ_AGAIN:
            payload[:] = math.nan
        if action in self.added:
            self.added[action] += 1
        self.decisions += 1
        mark = Held(held, self.holdback, b.item(action)) if self.holdback else None
        return Record(x, action, p, explored, payload, self.generation, mark)

    def _verbs(self, x: NDArray[np.float64]) -> Direct:
        """Return the agent's compiled methods for its current state."""
        direct = self._direct
        if direct is None or direct.state is not self.agent.state:
            direct = self._direct = Direct(self.agent, x)
        return direct

    def admitted(self, record: Record) -> Record:
        """Return a stored decision for `learn_own`, or raise a UsageError if this agent cannot have made it."""
        if record.generation > self.generation:
            raise UsageError("the decision has more classes than the policy")
        if record.generation < self.generation:  # it leads to no update
            return record
        K, p, s = len(self.classes), record.probabilities, record.payload
        fits = 0 <= record.action < K and p.shape == (K,) and record.context.shape == self._shape
        size = getattr(self.agent, "payload_size", None)
        fits = fits and (s is None or size is None or s.shape == (size,)) and not (s is None and self._quick)
        # A distribution without NaN, with a probability by which an update can divide.
        fits = fits and bool((p >= -SLACK).all() and abs(p.sum() - 1.0) <= SLACK and p[record.action] > 0.0)
        if fits and s is not None and self.agent.id in CLASS_IN_PAYLOAD:
            fits = bool(0 <= s[0] < K)  # compiled code uses it as an index
        if not fits:
            raise UsageError(
                f"the decision was not made by this {self.agent.id}: its shapes, action, distribution or payload differ"
            )
        as_context(record.context, self.agent.problem)
        payload = None if s is None else np.ascontiguousarray(s, np.float64)
        return record._replace(context=as_contexts(record.context), payload=payload)

    def _cut(self, action: int, p: NDArray[np.float64], mask: NDArray[np.bool_]) -> tuple[int, NDArray[np.float64]]:
        kept = np.where(mask, p, 0.0)
        s = kept.sum()
        q = kept / s if s > 0.0 else mask / np.count_nonzero(mask)
        return action if mask[action] and q[action] > 0.0 else self._drawn(q), q

    def _drawn(self, q: NDArray[np.float64]) -> int:
        """Return a class drawn from q (K,)."""
        able = np.flatnonzero(q)
        drawn = np.searchsorted(np.cumsum(q[able]), self.rng.random(), side="right")
        return int(able[min(int(drawn), len(able) - 1)])

    def _other_choice(self, x: NDArray[np.float64], mask: NDArray[np.bool_] | None) -> tuple[int, NDArray[np.float64]]:
        """Return the holdback policy's choice and distribution (K,)."""
        able = np.ones(len(self.classes), np.bool_) if mask is None else mask
        if self.other is None:
            p = able / np.count_nonzero(able)
            return self._drawn(p), p
        record = self.other.choose_own(x, self.other.mask(None))
        p = np.pad(record.probabilities, (0, len(able) - len(record.probabilities)))
        return self._cut(record.action, p, able)

    def _least(self, n: int, mask: NDArray[np.bool_] | None) -> NDArray[np.float64]:
        r"""Return :math:`\epsilon + (1 - K' \epsilon) f_k` of (1) for each of n classes, 0 for classes not allowed."""
        able = np.ones(n, np.bool_) if mask is None else mask
        young = [k for k in self.added if able[k]]
        share = np.zeros(n)
        for k in young:  # (1)
            share[k] = min(1.0, (YOUNG / max(self.added[k], 1)) ** 2) * min(MOST, 0.5 / len(young))
        return np.where(able, self.floor, 0.0) + (1.0 - np.count_nonzero(able) * self.floor) * share

    def warm(self) -> None:
        """Compile the kernels by one decision and update of a copy of the agent."""
        twin, x = copy.deepcopy(self.agent), np.zeros(self.agent.problem.n_features)
        x[0] = self.agent.problem.radius / 2
        twin.learn(x, twin.act(x), True)

    def learn(self, record: Record, correct: bool) -> None:
        """Update with feedback on a decision, after a check of the decision.

        Raises
        ------
        UsageError
            The decision was not made by this agent; nothing was updated.
        """
        self.learn_own(self.admitted(record), correct)

    def learn_own(self, record: Record, correct: bool) -> None:
        """Update with feedback on a decision of `choose_own` or `admitted`, without a check."""
        if record.generation == self.generation:
            if self._quick:
                self._verbs(record.context).learn(record, correct)
            else:
                self.agent.learn(record.context, record.decision(), correct)
        self.answered += 1
        self.right += correct

    def learn_of_another(self, x: NDArray[np.float64], action: int, p: NDArray[np.float64], correct: bool) -> None:
        """Update with feedback on an action that another policy drew from p (K,) at the context x (d,)."""
        record = self.choose(x, None)
        if action != record.action and self.agent.id in CHOSEN_READ_AGAIN and record.payload is not None:
            record.payload[:] = math.nan
        self.learn_own(record._replace(action=action, probabilities=p), correct)


def _payload(agent: Agent, payload: Any) -> NDArray[np.float64] | None:
    """Return the payload for the log; raise a PlayerError if it is neither None nor a numeric array (n,)."""
    if payload is None or (isinstance(payload, np.ndarray) and payload.dtype == np.float64 and payload.ndim == 1):
        return payload
    raise PlayerError(f"{agent.id}: a logged payload must be an array of numbers (n,), got a {type(payload).__name__}")
