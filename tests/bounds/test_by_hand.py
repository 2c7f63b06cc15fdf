"""Every bound at one point, computed by hand from its formula."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds import THEOREMS

LN2, LN3 = 0.6931471805599453, 1.0986122886681098

BY_HAND: dict[str, tuple[tuple[float | None, ...], float]] = {
    # n = Kd = 2, 4 B R T = 400, h = 2/400: 2 ln 200 + 2; -100 ln(1 - 1/2)
    "aggregating": ((100, 1, 2, 1.0, 1.0, 0.5), 2 * 5.298317366548036 + 2 + 100 * LN2),
    # 2 w = .02, h = .02 + 1/400: ln 400 + 400 * .0225
    "aggregating_quadrature": ((100, 1.0, 1.0, 0.01), 5.991464547107982 + 9),
    # 1 + ln 4, the error of 801 nodes for one round being below rounding
    "aggregating_fine_quadrature": ((1, 1.0, 1.0, 801), 1 + 2 * LN2),
    "aggregating_net": ((10, 8, 0.5), 3 * LN2 + 10 * LN2),
    # lambda B^2 = 1, d (1 + BR) = 2, n R^2/(8 d (1 + BR) lambda) = 16/16
    "aioli": ((16, 1, 1.0, 1.0, 1.0), 1 + 2 * LN2),
    # B R = 1 + sinh 1 = 2.1752012, so b = 1; lambda B^2 = 4.7315002; (1 + cosh 1)/2 = 1.2715403 = 1/(2c);
    # n c R^2/(4 d lambda) = c/4 = .0983060 and ln 1.0983060 = .0937691
    "aioli_tight": ((1, 1, 2.1752011936438014, 1.0, 1.0), 4.7315002 + 1.2715403 * 0.0937691),
    # as aioli; 16 [1 + 1/4 + 15/32] .1 = 2.75
    "aioli_inexact": ((16, 1, 1.0, 1.0, 1.0, 0.1), 1 + 2 * LN2 + 2.75),
    "aioli_theorem_4": ((16, 1, 1.0, 1.0, 1.0), 2 + 2 * LN2),
    # c = 1/4: 1/(2c) = 2, n c R^2/(4 lambda) = 1: 1 + 3 * 2 * (1 + ln 2)
    "aioli_kernel": ((16, 3.0, 1.0, 1.0, 1.0), 7 + 6 * LN2),
    # 4 * 1 * ln 2 * 10,000 + 16 sqrt(2) * 1 * 9 * 100 = 27725.887 + 20364.675, over 8
    "olm_best_expert": ((10_000, 2, 9, 8.0), 5000 * LN2 + 1800 * 1.4142135623730951),
    # 2 [2 * 10,000 + 2 sqrt(2) * 3 * 4 * 100] / 10
    "olm_square_hinge_best_expert": ((10_000, 3, 4, 10.0), 4000 + 480 * 1.4142135623730951),
    # 4 (100 ln 4 + 2 * 5) / 40
    "olm_plus_best_expert": ((100, 4, 2, 40.0, 5.0), 20 * LN2 + 1),
    # clip = 1: ln(1 + e^0)
    "boosting_regression": ((100, 1.0, 7.0), 7 + 100 * LN2),
    # (10 + ln 8) * 1.5819767
    "hedge_mistakes": ((10, 8), (10 + 3 * LN2) * 1.5819767068693265),
    # 2 e^(-1/4 * 8/2)
    "mbbm_error_rate": ((3, 8, 0.5), 2 * 0.36787944117144233),
    # four fair draws of -1, 0, 1: the sum is 0 in 19 of 81 ways; 3 * 2 * 19/81, below k - 1 = 2
    "mbbm_weight": ((3, 4, 0.0), 6 * 19 / 81),
    "mbbm_mistakes": ((3, 8, 0.5, 1000, 2.0, None, 5.0), 735.7588823428847 + 10),
    # 4 * 1 / (2 * 1/4)
    "simulated_excess": ((4, 0.5, 0.25, math.exp(-1.0)), 8.0),
    # .1 * 3/4 * 1000 + .9 * 40 * 5
    "exploration": ((1000, 4, 0.1, 5.0), 255.0),
    "exploration_theorem_9": ((10_000, 4, 4.0), 800.0),
    # 3/4 * 100 + .9 * 40 * 5
    "exploration_well_specified": ((4, 100.0, 0.1, 5.0), 255.0),
    # lambda = 2 R/B = 2, c = 1/(2 + ln 2 + 2) = 1/4.6931472; lambda K B^2 = 4; (K-1) d/(4c) = 1.1732868;
    # 2 c T/(K d lambda) = c * 46.931472/2 = 5 at T = 46.931472
    "folklore": ((46.931471805599453, 1, 2, 1.0, 1.0), 4 + 1.1732867951399863 * 1.791759469228055),
    # r = 1/2: 1.5/.4 * 2 ln(1 + 6/3); .1 * 3 * 1/4
    "folklore_any_regularization": ((6, 1, 3, 0.5, 1.0, 0.1, 0.1), 7.5 * LN3 + 0.075),
    # .1 * 3/4 and 1/.4 * 2 ln(1 + 6/3)
    "folklore_after": ((6, 1, 3, 0.5, 1.0, 0.1, 0.1), 0.075 + 5 * LN3),
    # R^2/lambda = 10: 5 ln(1 + 12/3) + .075 as folklore, and 6 (sqrt 2 + 1/sqrt 2)(1 + 10/4) 2 = 6 * 2.1213203 * 7
    "folklore_inexact": ((6, 1, 3, 0.5, 1.0, 0.1, 0.1, 2.0), 5 * 1.6094379124341003 + 0.075 + 89.09545442950498),
    # as folklore_any_regularization with D^2 = 1/2 for K B^2
    "folklore_frobenius": ((6, 1, 3, 0.7071067811865476, 1.0, 0.1, 0.1), 7.5 * LN3 + 0.05),
    # r = 1/2: 1.5/.4 * 2 * 4 (1 + ln(1 + 2)); .1 * 3 * 1/4
    "folklore_kernel": ((4, 4.0, 3, 0.5, 1.0, 0.1, 0.1), 30 * (1 + LN3) + 0.075),
    "ftrl": ((100, 2, 1.0, 1.0, 5.0), 20.0),
    # lambda K B^2 = 32, K d (1/2 + 2 sqrt(3)/.4) = 18.3205081, n beta R^2/(2 lambda) = 80 * .4/32 = 1
    "gaf_corollary_2": ((80, 1, 2, 1.0, 1.0, 16.0, 0.4), 32 + 18.32050807568877 * LN2),
    # sigma^2 = 1, kappa = e^(2 + 1); 1.5 + e^3/.4 * 2 ln(1 + .1 * 15/1.5)
    "gaf": ((15, 1, 3, 1.0, 1.0, 0.5, 0.1), 1.5 + 20.085536923187668 / 0.2 * LN2),
    # a = 1/4: .5/(4 * 1/4 * 100) = .005, e^-25 ln 4 is nothing, -ln(1/2)
    "gaf_sampling": ((10, 2, 100, 0.5), 10 * (0.005 + LN2)),
    # ln(n/delta) = 4: epsilon = sqrt(2 * 4/(.5 * 1600)) = .1
    "gaf_sampling_high_probability": ((10, 2, 1600, 0.5, 10 * math.exp(-4.0)), 11.0),
    # sigma^2 = 1, kappa = e^3; 1.5 + e^3/.4 * 2 * 4 (1 + ln(1 + .05 * 20/.5))
    "gaf_kernel": ((20, 4.0, 3, 1.0, 1.0, 0.5, 0.1), 1.5 + 20.085536923187668 / 0.05 * (1 + LN3)),
    # lambda = 4/2 = 2: 2 + 1/2 (1/2 + 2 sqrt 3) ln(1 + 4/4)
    "gaf_theorem_1": ((4, 1, 1.0, 2.0, 1.0, 1.0, 1.0), 2 + 0.5 * 3.9641016151377544 * LN2),
    # 1/4 + 4 * 2 ln(1 + 4/2)
    "vovk_azoury_warmuth": ((4, 2, 0.5, 1.0, 2.0, 1.0), 0.25 + 8 * LN3),
    # 1/4 + 2 * 2 ln(1 + 8/4)
    "gaf_huber": ((8, 2, 0.5, 1.0, 2.0, 1.0), 0.25 + 4 * LN3),
    # n = 4, ln(n/delta) = 27: m = 1728,
    # mu = (54/1728)^(1/3) = .3149803, epsilon = mu: 4 * 3 mu
    "gaf_sampling_theory": ((4, 2, 4 * math.exp(-27.0)), 12 * 0.03125 ** (1 / 3)),
    "grid": ((5.0, 8), 5 + 3 * LN2),
    # s = 1, ||U||^2 = 2, T_w = .5 * 16/2 = 4: mix = 1 + ln(1 + 1/2 * 4/2); 4 mix + .5 * .5 * 16
    "obama_gaussian_prior": ((16, 1, 2, 1.0, 1.0, 0.5), 4 * (1 + LN2) + 4),
    "obama_net": ((100, 8, 2, 0.5), 12 * LN2 + 25),
    # D = 2 sqrt(2), G = sqrt(2): 3/2 * 4 * 10
    "ogd": ((100, 2, 1.0, 1.0), 60.0),
    # s = 2 e^2, eps = s^2/8 = 27.2990750; K B^2 eps/(2 s) = s/8 = 1.8472640; at T = eps/2 the logarithm is ln 2
    "ons": ((13.649537508286055, 1, 2, 1.0, 1.0), 1.8472640247326626 + 7.38905609893065 * LN2),
    # L = 3, R F = 2: 3 + 2 + 2 sqrt(3 + 1) = 9
    "ovr_perceptron_mistakes": ((3, 1.0, 2.0, 3.0), 18.0),
    # f = 1/(2 ln 2): 2 f
    "decoded_forecast": ((2.0, 3), 1 / LN2),
    # as exploration, with f times its last term
    "decoded_exploration": ((1000, 4, 0.1, 5.0), 75 + 90 / LN2),
    "decoded_exploration_tuned": ((10_000, 4, 4.0), 800 * math.sqrt(0.5 / LN2)),
    "decoded_exploration_well_specified": ((4, 100.0, 0.1, 5.0), 75 + 90 / LN2),
    # as obama_gaussian_prior and obama_net, with f times the first term
    "decoded_obama": ((16, 1, 2, 1.0, 1.0, 0.5), 2 * (1 + LN2) / LN2 + 4),
    "decoded_obama_net": ((100, 8, 2, 0.5), 31.0),
    # b D^2/(4 c) with b = 1/ln 2, c = 1/2, D = 2
    "template_label": ((3, 1.0, 2.0), 2 / LN2),
    # P = b K D^2/(4 c) = 1/ln 2: 2 sqrt(100 P)
    "template_bandit": ((2, 1.0, 1.0, 100), 20 / math.sqrt(LN2)),
    # 1/(2 * .1), the largest step being 2 c gamma ln 2/K = .173; .5 * 1/2 * 100
    "template_fixed": ((2, 1.0, 1.0, 0.1, 0.5, 100), 30.0),
    # as rdue_fixed at a = 1/2: 25 + 2 ln 2 * 2/(2 * .5 * .5)
    "rdue_decoded": ((2, 1.0, 1.0, 0.5, 100), 25 + 8 * LN2),
    # D = 2: 8 + 2 + sqrt(16)
    "perceptron": ((8.0, 1.0, 1.0), 14.0),
    "randomized_decoding": ((2.0, 0.5), 4.0),
    # b/(2a) = ln 2/(1 - ln 2) = 2.2588914
    "rdue_bandit": ((2, 1.0, 1.0, 100), 3.2588913532709 * 14.142135623730951),
    # .5 * 1/2 * 100; b K/(2 a gamma) = 4 ln 2/.3068528
    "rdue_fixed": ((2, 1.0, 1.0, 0.5, 100), 25 + 4 * LN2 / 0.3068528194400547),
}
ELSEWHERE = {
    **dict.fromkeys((name for name in THEOREMS if name.startswith("gaptron")), "test_gaptron.py, test_values_by_hand"),
    "gaussian_mix_regret": "test_obama.py, test_by_hand",
}


def test_every_bound_has_its_point() -> None:
    assert set(BY_HAND) | set(ELSEWHERE) == set(THEOREMS)
    assert not set(BY_HAND) & set(ELSEWHERE)


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str) -> None:
    arguments, value = BY_HAND[name]
    assert THEOREMS[name].function(*arguments) == pytest.approx(value, rel=2e-7)
