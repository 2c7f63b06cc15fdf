"""Encode a table's row of finite numbers in one call, by the steps of the fitted encoder."""

from __future__ import annotations

from banditlab.numerics.jit import njit


@njit
def fill_row(numbers, centers, scales, places, most, divisor, root, hair, constant, x):
    r"""Complete the context x (d,) of a row, which already contains the nominal features, and return True.

    For the row's numbers :math:`v_j`, `x[places[j]]` is set to :math:`(v_j - \text{center}_j)/\text{scale}_j`. If the
    squared norm of all features is NaN or at least `most`, the function returns False and x is undefined. Otherwise the
    features are divided by `divisor` and `root` in turn, and multiplied by `hair`, a factor slightly below 1 that keeps
    norms at most R. The last entry is set to `constant`, unless `constant` is NaN.
    """
    size = x.shape[0]
    if constant == constant:
        size -= 1
        x[size] = constant
    for j in range(numbers.shape[0]):
        x[places[j]] = (numbers[j] - centers[j]) / scales[j]
    total = 0.0
    for i in range(size):
        total += x[i] * x[i]
    if not total < most:
        return False
    for i in range(size):
        x[i] = x[i] / divisor / root * hair
    return True
