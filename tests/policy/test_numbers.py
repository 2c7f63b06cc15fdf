"""Numbers of a policy's log and status by other forms: intervals by the paper's formulas, bytes by their lengths, texts."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.policy.choice import as_name
from banditlab.policy.confidence import ZETA, rise, sequence
from banditlab.policy.events import from_bytes, to_bytes
from banditlab.policy.status import LogStatus, Plays, _bins
from banditlab.policy.unanswered import Unanswered

X = [1.0, 1.0, 0.0, 1.0] * 30 + [0.0, 1.0, 0.0] * 40


def crossing(x: list[float], start: int, end: int, alpha: float) -> float:
    """u(V) of Howard et al., eq. (10), V the squared distances of answers from the mean before and one half."""
    V = sum((x[i] - (0.5 + sum(x[:i])) / (i + 1)) ** 2 for i in range(start, end))
    v = max(V, 10.0)
    l = 1.4 * math.log(1 + math.log2(v / 10.0)) + math.log(ZETA / alpha)
    k1, k2 = (2**0.25 + 2**-0.25) / math.sqrt(2), (math.sqrt(2) + 1) / 2
    return math.sqrt(k1**2 * v * l + k2**2 * l**2) + k2 * l


@pytest.mark.parametrize("level", [0.95, 0.7])
def test_the_interval_is_where_both_of_the_paper_agree(level: float) -> None:
    """Each gets half of what is left to err, and half of that on each side."""
    mean, low, high = sequence(X, level)
    if level == 0.95:
        np.testing.assert_array_equal(low, sequence(X)[1])
    narrower = set()
    for t in (1, 7, 60, 240):
        a = (1 - level) / 2
        mixture = math.sqrt((t / 4 + 10) * math.log((t / 4 + 10) / (10 * a**2)))  # eq. (14), rho = 10
        stitched = crossing(X, 0, t, a / 2)
        narrower.add(mixture < stitched)
        half = min(mixture, stitched) / t
        assert mean[t - 1] == pytest.approx(sum(X[:t]) / t)
        assert low[t - 1] == pytest.approx(max(0.0, mean[t - 1] - half), abs=1e-12)
        assert high[t - 1] == pytest.approx(min(1.0, mean[t - 1] + half), abs=1e-12)
    assert narrower >= {True}
    certain = [0.0] * 5000  # where hardly anything varies the stitched one is the narrower
    assert sequence(certain, level)[2][-1] == pytest.approx(crossing(certain, 0, 5000, (1 - level) / 4) / 5000)


@pytest.mark.parametrize("level", [0.95, 0.5])
def test_a_rise_is_where_the_intervals_of_before_and_since_lie_furthest_apart(level: float) -> None:
    """From every 32nd answer on; the sequence that starts at the k-th place has 6/(pi k)^2 of its half."""
    found = set()
    for more in (5, 12, 20, 45):
        x = [0.0, 0.0, 0.0, 1.0] * 40 + [1.0, 1.0, 0.0, 1.0] * more
        n, a = len(x), (1 - level) / 2
        gaps = {}
        for start in range(32, n, 32):
            before = (sum(x[:start]) + crossing(x, 0, start, a)) / start
            since = (sum(x[start:]) - crossing(x, start, n, 6 * a / (math.pi * start / 32) ** 2)) / (n - start)
            gaps[start] = since - before
        place = max(gaps, key=lambda at: gaps[at])
        assert rise(x, level) == (place if gaps[place] > 0 else None)
        found.add(rise(x, level))
    assert {None, 160} <= found
    if level == 0.95:
        assert rise(x) == rise(x, 0.95)


# ------------------------------------------------------------------------------------------------------------- the status


def status(**changes: object) -> LogStatus:
    plain: dict[str, object] = {
        "source": "log.db", "agent": "fastcb", "trained": {"rows": 1250, "mistakes": 331}, "decisions": 4321, "feedback": 8,
        "imputed": 0, "unknown": 0, "refused": 0, "rule": Unanswered(), "closed": 0,
        "left": 4321, "waiting": 13, "left_out": 0,
        "since": 0.0, "until": 90061.0, "delays": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 500.0]),
        "mistakes": np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]), "share": 0.523, "low": 0.114, "high": 0.937,
        "holdback": None, "drift": None, "unequal": [],
        "plays": [Plays("a", 40, 31.0 - 1.5e-6, 2.0), Plays("b", 40, 31.0, 2.0)],  # 4.5 standard deviations are 9
        "bins": _bins(np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0]), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])),
    }  # fmt: skip
    return LogStatus(**(plain | changes))  # type: ignore[arg-type]


def test_a_status_says_every_number_in_its_place() -> None:
    assert status().lines() == [
        "log.db: fastcb, 4,321 decisions from 1970-01-01 00:00:00 to 1970-01-02 01:01:01 UTC",
        "feedback: 8 of 4,321 (0.2%), half of it within 4.5 s, nine tenths within 2.58 min, all within 8.33 min",
        "counted: 8 of 4,321 decisions, in their order up to the oldest whose answer may still arrive in time; 13 are waiting",
        "mistakes: 52.3% of the decisions that count, 95 % interval 11.4% ... 93.7% (holds however often you look)",
        "drift: none shown",
        "in training: 26.5% of 1,250 rows",
        "warning: class 'a' was chosen 40 times, but its probabilities add up to 31.0 +- 2.0: the logged probabilities are "
        "not those of the choices",
        "right, by the probability of the action: 0-0.2: 0% of 1; 0.2-0.4: 100% of 1; 0.4-0.6: 100% of 1; "
        "0.6-0.8: 0% of 1; 0.8-0.95: 100% of 1; 0.95-1: 50% of 2",
    ]
    assert status(drift=3).lines()[4] == (
        "warning: drift: the mistake rate increased about decision 3 of those that count, from 0.0% before to "
        "80.0% since; the probability of a false alarm at any time is at most 5 %"
    )
    some = status(left_out=40).lines()
    assert some[3] == (
        "left out: 40 decisions without an answer within the next 1,000 decisions; the mistake rate is that of all decisions "
        "only if those left out are wrong as often as the others"
    )
    assert some[5] == "drift: none shown; unknown for the 40 decisions left out"
    none = status(mistakes=np.zeros(0)).lines()
    assert none[2:4] == [
        "counted: 0 of 4,321 decisions, in their order up to the oldest whose answer may still arrive in time; 13 are waiting",
        "in training: 26.5% of 1,250 rows",
    ]
    assert status(feedback=0).lines()[1:] == ["feedback: none yet"]
    for name in ("imputed", "unknown", "refused"):
        assert status(**{name: 1}).lines()[1].startswith("input: ")
    for seconds, text in ((86400, "1 days"), (3600, "1 h"), (60, "1 min"), (1, "1 s"), (0.5, "500 ms")):
        assert status(delays=np.array([seconds])).lines()[1].endswith(f", all within {text}")
    assert status(decisions=1, since=math.nan, until=math.nan).lines()[0] == "log.db: fastcb, 1 decision"


# --------------------------------------------------------------------------------------------------------- bytes and names


@pytest.mark.parametrize("cut", [1, 4, 8])
@pytest.mark.parametrize("x", [np.arange(1.0, 6.0), np.eye(1, 20)[0]])
def test_bytes_that_are_too_few_or_too_many_are_no_numbers(x: np.ndarray, cut: int) -> None:
    data = to_bytes(x)
    for damaged in (data[:-cut], data + b"\0" * cut, data[:4], b"\2" + data[1:], b"\2" + data[1:5]):
        with pytest.raises(ValueError, match="no numbers"):
            from_bytes(damaged)


def test_names_reach_their_limits() -> None:
    for name in ("x" * 1000, 2**63 - 1, -(2**63), 1e300, True, np.int64(3)):
        assert as_name(name) == name
    for name in ("x" * 1001, 2**63, -(2**63) - 1, math.inf, math.nan, "\ud800", "\udfff", None):
        with pytest.raises(UsageError, match=r"name must be text"):
            as_name(name)


def test_numbers_take_the_fewer_bytes() -> None:
    for filled, n, length in ((5, 10, 5 + 12 * 5), (6, 10, 5 + 8 * 10), (12, 20, 5 + 12 * 12)):
        assert len(to_bytes(np.arange(n) < filled)) == length


def test_numbers_beyond_a_gibibyte_are_refused() -> None:
    assert from_bytes(struct.pack("<BI", 1, 2**27)).shape == (2**27,)
    with pytest.raises(ValueError, match="no numbers"):
        from_bytes(struct.pack("<BI", 1, 2**27 + 1))
    places = struct.pack("<BI", 1, 4) + struct.pack("<I", 3) + struct.pack("<d", 2.5)
    assert from_bytes(places).tolist() == [0.0, 0.0, 0.0, 2.5]
    with pytest.raises(ValueError, match="no numbers"):
        from_bytes(places[:5] + struct.pack("<I", 4) + places[9:])
