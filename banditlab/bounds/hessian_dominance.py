"""Why AIOLI's analysis does not carry over to K > 2 (Agarwal, Kale and Zimmert, ALT 2022, Appendix F)."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import within


@within(beyond=math.inf)
def hessian_dominance(norm_bound: float, radius: float) -> float:
    """Return the least c that (F.2) may have at K = 3 over W = diag(0, 0, B), x = (0, 0, R), label 1: e^(B R)/2 + 1.

    Hessian dominance asks a regularizer phi(W) = psi(W x) for (grad phi - grad loss)(...)' - grad phi grad phi' <= c
    Hessian. Along (e_1 - e_2) (x) x the left side is |x|^4 and the Hessian (s_1 + s_2) |x|^4 = 2 |x|^4/(e^(B R) + 2),
    whatever psi is as long as it treats equal logits alike. A regret of c ln T with this c is no better than Online
    Newton Step's.
    """
    return 0.5 * math.exp(norm_bound * radius) + 1.0
