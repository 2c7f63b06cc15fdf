"""Direct forms of six algorithms with 45 digits: full matrices, the papers' equations, nothing shared with the kernels.

Each class keeps A, b or G as sums over the rounds, minimises what the paper says over all K d (or d) numbers by Newton's
method, and has `predict(x)`, `update(x, y)` and `certificate()`. Corrected forms (docs/errata.md). Slow: for problems of
some 40 numbers and some 40 rounds.

Every certificate here is the sum it stands for: the losses suffered less the least value of the surrogates' sum, plus the
price of the comparator (ONS and OGD: the sum of their proof).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mpmath import mp, mpf

mp.dps = 45

Vector = list[Any]
Matrix = list[Vector]

CONVERGED, SURE = mpf(10) ** -36, mpf(10) ** -25
"""g'H^{-1}g at which a Newton step is the last, what is left being its square, and below which it needs no line search."""


def dot(u: Sequence[Any], v: Sequence[Any]) -> Any:
    """Return u'v."""
    return mp.fdot(u, v)


def times(A: Matrix, v: Vector) -> Vector:
    """Return A v."""
    return [dot(row, v) for row in A]


def scaled_identity(n: int, factor: Any) -> Matrix:
    """Return factor I (n, n)."""
    return [[factor if i == j else mpf(0) for j in range(n)] for i in range(n)]


def cholesky(A: Matrix) -> Matrix:
    """Return the rows of the lower factor L, A = L L'; row i has i + 1 entries."""
    L: Matrix = []
    for i in range(len(A)):
        row: Vector = []
        for j in range(i):
            row.append((A[i][j] - dot(row, L[j][:j])) / L[j][j])
        row.append(mp.sqrt(A[i][i] - dot(row, row)))
        L.append(row)
    return L


def solve(L: Matrix, v: Vector) -> Vector:
    """Return (L L')^{-1} v."""
    w: Vector = []
    for i, row in enumerate(L):
        w.append((v[i] - dot(row[:i], w)) / row[i])
    for i in range(len(L) - 1, -1, -1):
        w[i] /= L[i][i]
        for j in range(i):
            w[j] -= L[i][j] * w[i]
    return w


def softmax(z: Vector) -> Vector:
    """Return exp(z_k) / sum_j exp(z_j)."""
    top = max(z)
    e = [mp.exp(a - top) for a in z]
    total = mp.fsum(e)
    return [a / total for a in e]


def loss(z: Vector, y: int) -> Any:
    """Return -ln softmax(z)_y."""
    top = max(z)
    return top + mp.log(mp.fsum(mp.exp(a - top) for a in z)) - z[y]


def curvature_of(s: Vector) -> Matrix:
    """Return S = diag(s) - s s'."""
    return [[(s[k] if k == l else 0) - s[k] * s[l] for l in range(len(s))] for k in range(len(s))]


def add_kronecker(A: Matrix, factor: Any, S: Matrix, x: Vector) -> None:
    """A += factor S (x) x x'."""
    d = len(x)
    for k in range(len(S)):
        for l in range(len(S)):
            weight = factor * S[k][l]
            for i in range(d):
                row, f = A[k * d + i], weight * x[i]
                for j in range(d):
                    row[l * d + j] += f * x[j]


def kronecker(v: Vector, x: Vector) -> Vector:
    """Return v (x) x."""
    return [a * b for a in v for b in x]


def unit(K: int, k: int) -> Vector:
    """Return e_k (K,)."""
    return [mpf(int(k == l)) for l in range(K)]


def logits(w: Vector, x: Vector) -> Vector:
    """Return W x for w = vec(W), rows one after another."""
    d = len(x)
    return [dot(w[k : k + d], x) for k in range(0, len(w), d)]


def exact(x: Any) -> Vector:
    """Return the entries as they are, without rounding."""
    return [mpf(float(a)) for a in x]


def newton(w: Vector, value: Callable[[Vector], Any], gradient: Callable[[Vector], Vector], hessian: Any) -> Vector:
    """Return the minimiser of a strictly convex function: Newton's method, steps halved until the value falls."""
    now = value(w)
    for _ in range(500):
        g = gradient(w)
        step = solve(cholesky(hessian(w)), g)
        slope, length = dot(g, step), mpf(1)
        if slope <= CONVERGED:
            return [a - b for a, b in zip(w, step, strict=True)]
        while True:
            trial = [a - length * b for a, b in zip(w, step, strict=True)]
            after = value(trial)
            if after <= now - length * slope / 10 or slope <= SURE:
                break
            length /= 2
        w, now = trial, after
    raise ArithmeticError("Newton's method did not come to an end in 500 steps")


class Quadratic:
    """lambda ||W||^2 + the sum of the surrogates so far, w'A w + G'w + constant, and the losses suffered."""

    def __init__(self, K: int, d: int, lam: float, c: float, B: float) -> None:
        self.K, self.d, self.lam, self.c, self.B = K, d, mpf(lam), mpf(c), mpf(B)
        self.A, self.G = scaled_identity(K * d, self.lam), [mpf(0)] * (K * d)
        self.constant, self.suffered = mpf(0), mpf(0)

    def value(self, w: Vector) -> Any:
        """Return lambda ||W||^2 + the sum of the surrogates at w."""
        return dot(w, times(self.A, w)) + dot(self.G, w) + self.constant

    def add_surrogate(self, w: Vector, x: Vector, y: int) -> None:
        """Add (3.2) with the corrected constant: the loss expanded at w, its Hessian times c."""
        z = logits(w, x)
        s = softmax(z)
        S, g = curvature_of(s), [a - b for a, b in zip(s, unit(self.K, y), strict=True)]
        Sz = times(S, z)
        add_kronecker(self.A, self.c, S, x)
        linear = [a - 2 * self.c * b for a, b in zip(g, Sz, strict=True)]
        self.G = [a + b for a, b in zip(self.G, kronecker(linear, x), strict=True)]
        self.constant += loss(z, y) - dot(g, z) + self.c * dot(z, Sz)

    def least(self) -> Any:
        """Return the least value of lambda ||W||^2 + the sum of the surrogates."""
        return self.constant - dot(self.G, solve(cholesky(self.A), self.G)) / 4

    def certificate(self) -> Any:
        """Return lambda K B^2 + the losses suffered - the least value of the surrogates' sum."""
        return self.lam * self.K * self.B**2 + self.suffered - self.least()


class Folklore(Quadratic):
    """Algorithm 1 of Agarwal, Kale and Zimmert: (3.1), (3.3), Lemma 8; corrected constant and linear term."""

    def minimiser(self, x: Vector) -> Vector:
        """Return W_t, the minimiser of (3.3)."""
        K, d, A, G = self.K, self.d, self.A, self.G
        L = cholesky(A)
        diagonal: Vector = []  # diag_(x)(A^{-1}) (1 (x) x): block k is (A^{-1})_kk x
        for k in range(K):
            diagonal += solve(L, kronecker(unit(K, k), x))[k * d : (k + 1) * d]
        B_t = [a / K - b / 2 for a, b in zip(x * K, times(A, diagonal), strict=True)]  # Lemma 8

        def value(w: Vector) -> Any:
            z = logits(w, x)
            phi = mp.fsum(loss(z, k) for k in range(K)) / K + dot(B_t, w)  # (3.1)
            return dot(w, times(A, w)) + dot(G, w) + phi

        def gradient(w: Vector) -> Vector:
            s = softmax(logits(w, x))
            of_phi = kronecker([a - mpf(1) / K for a in s], x)
            return [2 * a + b + c + e for a, b, c, e in zip(times(A, w), G, of_phi, B_t, strict=True)]

        def hessian(w: Vector) -> Matrix:
            H = [[2 * a for a in row] for row in A]
            add_kronecker(H, 1, curvature_of(softmax(logits(w, x))), x)
            return H

        return newton([mpf(0)] * (K * d), value, gradient, hessian)

    def predict(self, x: Any) -> Vector:
        """Return W_t x."""
        return logits(self.minimiser(exact(x)), exact(x))

    def update(self, x: Any, y: int) -> Vector:
        """Learn that x has the class y; return the forecast that was made."""
        x = exact(x)
        w = self.minimiser(x)
        z = logits(w, x)
        self.suffered += loss(z, y)
        self.add_surrogate(w, x, y)
        return z


class Gaf(Quadratic):
    """Efficient-GAF of Jézéquel, Gaillard and Rudi (2021), corrected: covariance (1/2) Phi'A^{-1} Phi, b_t at theta_{t+1}.

    The Gaussian of the logits is put in place of its samples by points (m, K) for N(0, I), its symmetric root times
    each, with weights (m,).
    """

    def __init__(self, K: int, d: int, lam: float, c: float, B: float, mu: float) -> None:
        super().__init__(K, d, lam, c, B)
        self.mu = mpf(mu)

    def forecast(self, x: Vector, points: Any, weights: Any) -> Vector:
        """Return ln((1 - mu) sum_i w_i softmax(theta'Phi + root point_i) + mu / K)."""
        K, L = self.K, cholesky(self.A)
        mean = [-a / 2 for a in logits(solve(L, self.G), x)]  # theta_t = -A^{-1} b / 2
        columns = [logits(solve(L, kronecker(unit(K, k), x)), x) for k in range(K)]
        values, V = mp.eigsy(mp.matrix([[a / 2 for a in column] for column in columns]))
        roots = [mp.sqrt(max(values[k], 0)) for k in range(K)]
        root = [[mp.fsum(V[i, k] * roots[k] * V[j, k] for k in range(K)) for j in range(K)] for i in range(K)]
        p = [mpf(0)] * K
        for point, weight in zip(points, exact(weights), strict=True):
            shifted = [a + b for a, b in zip(mean, times(root, exact(point)), strict=True)]
            p = [a + weight * b for a, b in zip(p, softmax(shifted), strict=True)]
        return [mp.log((1 - self.mu) * a + self.mu / K) for a in p]  # (6), smoothed

    def implicit(self, x: Vector, y: int) -> Vector:
        """Return theta_{t+1}, the minimiser of theta'A theta + b'theta + loss_t(theta)."""
        A, b = self.A, self.G

        def value(w: Vector) -> Any:
            return dot(w, times(A, w)) + dot(b, w) + loss(logits(w, x), y)

        def gradient(w: Vector) -> Vector:
            g = [a - e for a, e in zip(softmax(logits(w, x)), unit(self.K, y), strict=True)]
            return [2 * a + c + e for a, c, e in zip(times(A, w), b, kronecker(g, x), strict=True)]

        def hessian(w: Vector) -> Matrix:
            H = [[2 * a for a in row] for row in A]
            add_kronecker(H, 1, curvature_of(softmax(logits(w, x))), x)
            return H

        return newton([-a / 2 for a in solve(cholesky(A), b)], value, gradient, hessian)

    def predict(self, x: Any, points: Any, weights: Any) -> Vector:
        """Return the forecast with these points."""
        return self.forecast(exact(x), points, weights)

    def update(self, x: Any, y: int, points: Any, weights: Any) -> Vector:
        """Learn that x has the class y; return the forecast that was made."""
        x = exact(x)
        z = self.forecast(x, points, weights)
        self.suffered -= z[y]
        self.add_surrogate(self.implicit(x, y), x, y)
        return z


class Ftrl:
    """The minimiser of all losses so far + lambda ||W||_F^2."""

    def __init__(self, K: int, d: int, lam: float, B: float) -> None:
        self.K, self.d, self.lam, self.B = K, d, mpf(lam), mpf(B)
        self.w, self.past = [mpf(0)] * (K * d), list[tuple[Vector, int]]()
        self.suffered = mpf(0)

    def value(self, w: Vector) -> Any:
        """Return the objective."""
        return self.lam * dot(w, w) + mp.fsum(loss(logits(w, x), y) for x, y in self.past)

    def gradient(self, w: Vector) -> Vector:
        """Return its gradient."""
        g = [2 * self.lam * a for a in w]
        for x, y in self.past:
            r = [a - e for a, e in zip(softmax(logits(w, x)), unit(self.K, y), strict=True)]
            g = [a + b for a, b in zip(g, kronecker(r, x), strict=True)]
        return g

    def hessian(self, w: Vector) -> Matrix:
        """Return its Hessian."""
        H = scaled_identity(self.K * self.d, 2 * self.lam)
        for x, _ in self.past:
            add_kronecker(H, 1, curvature_of(softmax(logits(w, x))), x)
        return H

    def predict(self, x: Any) -> Vector:
        """Return the leader's logits."""
        return logits(self.w, exact(x))

    def update(self, x: Any, y: int) -> Vector:
        """Learn that x has the class y; return the forecast that was made."""
        z = self.predict(x)
        self.suffered += loss(z, y)
        self.past.append((exact(x), y))
        lam = self.lam
        self.lam = max(lam, mpf(1))
        while True:  # from a large ridge downwards: from the last leader Newton's steps can be short for very long
            self.w = newton(self.w, self.value, self.gradient, self.hessian)
            if self.lam == lam:
                return z
            self.lam = max(lam, self.lam / 30)

    def certificate(self) -> Any:
        """Return lambda K B^2 + the losses suffered - the least value of the objective."""
        return self.lam * self.K * self.B**2 + self.suffered - self.value(self.w)


class Ogd:
    """W <- Proj(W - (step / sqrt t) g) with rows clipped to norm B (Zinkevich 2003)."""

    def __init__(self, K: int, d: int, B: float, step: float) -> None:
        self.K, self.d, self.B, self.step = K, d, mpf(B), mpf(step)
        self.w, self.t, self.spent = [mpf(0)] * (K * d), 0, mpf(0)

    def predict(self, x: Any) -> Vector:
        """Return W x."""
        return logits(self.w, exact(x))

    def update(self, x: Any, y: int) -> Vector:
        """Learn that x has the class y; return the forecast that was made."""
        z, x = self.predict(x), exact(x)
        r = [a - e for a, e in zip(softmax(z), unit(self.K, y), strict=True)]
        g = kronecker(r, x)
        self.t += 1
        eta = self.step / mp.sqrt(self.t)
        self.spent += eta * dot(g, g)
        w = [a - eta * b for a, b in zip(self.w, g, strict=True)]
        self.w = [a for k in range(self.K) for a in in_ball(w[k * self.d : (k + 1) * self.d], self.B)]
        return z

    def certificate(self) -> Any:
        """Return D^2 / (2 eta_t) + (1/2) sum eta_t ||g_t||^2, D = 2 sqrt(K) B."""
        return 4 * self.K * self.B**2 * mp.sqrt(self.t) / (2 * self.step) + self.spent / 2


def in_ball(row: Vector, B: Any) -> Vector:
    """Return the point of the ball next to `row`."""
    norm = mp.sqrt(dot(row, row))
    return [a * B / norm for a in row] if norm > B else row


class Ons:
    """Online Newton Step (Hazan, Agarwal and Kale 2007, Figure 2): A = eps I + sum g g', the projection in its norm."""

    def __init__(self, K: int, d: int, B: float, step: float, eps: float) -> None:
        self.K, self.d, self.B, self.step, self.eps = K, d, mpf(B), mpf(step), mpf(eps)
        self.A, self.w, self.spent = scaled_identity(K * d, self.eps), [mpf(0)] * (K * d), mpf(0)

    def predict(self, x: Any) -> Vector:
        """Return W x."""
        return logits(self.w, exact(x))

    def update(self, x: Any, y: int) -> Vector:
        """Learn that x has the class y; return the forecast that was made."""
        z, x = self.predict(x), exact(x)
        g = kronecker([a - e for a, e in zip(softmax(z), unit(self.K, y), strict=True)], x)
        for i in range(len(g)):
            for j in range(len(g)):
                self.A[i][j] += g[i] * g[j]
        direction = solve(cholesky(self.A), g)
        self.spent += dot(g, direction)
        self.w = self.projected([a - self.step * b for a, b in zip(self.w, direction, strict=True)])
        return z

    def norms(self, w: Vector) -> Vector:
        """Return ||W_k|| for every row."""
        return [mp.sqrt(dot(w[k : k + self.d], w[k : k + self.d])) for k in range(0, len(w), self.d)]

    def at(self, nu: Vector, v: Vector) -> Vector:
        """Return (A + diag(nu) (x) I)^{-1} A v, where the Lagrangian is least."""
        M = [list(row) for row in self.A]
        for i in range(len(v)):
            M[i][i] += nu[i // self.d]
        return solve(cholesky(M), times(self.A, v))

    def projected(self, v: Vector) -> Vector:
        """Return the w with rows in the ball for which (w - v)'A(w - v) is least.

        The multipliers' equations ||W_k(nu)|| = B (nu_k > 0), ||W_k|| <= B (nu_k = 0): each row by bisection in turn until the
        set of positive ones stands, then the secant method in all of them with a Jacobian by differences.
        """
        nu = [mpf(0)] * self.K
        if max(self.norms(v)) <= self.B:
            return v
        for _ in range(40):
            for k in range(self.K):
                nu[k] = self.alone(nu, k, v)
        for _ in range(60):
            free = [k for k in range(self.K) if nu[k] > 0]
            off = self.excess(nu, free, v)
            if max(abs(a) for a in off) <= mpf(10) ** -36:
                return self.at(nu, v)
            step = self.secant(nu, free, off, v)
            for k, move in zip(free, step, strict=True):
                nu[k] = max(nu[k] - move, nu[k] / 1000)
        raise ArithmeticError("the projection did not come to an end")

    def excess(self, nu: Vector, free: list[int], v: Vector) -> Vector:
        """Return 1 / B - 1 / ||W_k|| of the rows on the sphere, times B."""
        norms = self.norms(self.at(nu, v))
        return [1 - self.B / norms[k] for k in free]

    def secant(self, nu: Vector, free: list[int], off: Vector, v: Vector) -> Vector:
        """Return the Newton step in the multipliers, the Jacobian by differences."""
        columns = []
        for k in free:
            h = nu[k] * mpf(10) ** -20
            moved = [a + (h if k == l else 0) for l, a in enumerate(nu)]
            columns.append([(a - b) / h for a, b in zip(self.excess(moved, free, v), off, strict=True)])
        J = mp.matrix([[columns[j][i] for j in range(len(free))] for i in range(len(free))])
        return list(mp.lu_solve(J, mp.matrix(off)))

    def alone(self, nu: Vector, k: int, v: Vector) -> Any:
        """Return row k's multiplier with the others held, to three digits."""

        def norm(value: Any) -> Any:
            return self.norms(self.at([value if k == l else a for l, a in enumerate(nu)], v))[k]

        if norm(mpf(0)) <= self.B:
            return mpf(0)
        low, high = mpf(0), max(nu[k], self.A[k * self.d][k * self.d])
        while norm(high) > self.B:
            low, high = high, 4 * high
        while high - low > high / 1000:
            middle = (low + high) / 2
            low, high = (middle, high) if norm(middle) > self.B else (low, middle)
        return (low + high) / 2

    def certificate(self) -> Any:
        """Return (beta eps / 2) K B^2 + (1 / (2 beta)) sum g'A^{-1} g, step = 1 / beta."""
        return self.eps * self.K * self.B**2 / (2 * self.step) + self.step * self.spent / 2


class Aioli:
    """Equations (2), (3) and (5) of Jézéquel, Gaillard and Rudi (2020): labels +1 (class 0) and -1 (class 1)."""

    def __init__(self, d: int, lam: float, c: float, margin_bound: float, weight: float = 1.0) -> None:
        self.d, self.lam, self.c, self.B, self.weight = d, mpf(lam), mpf(c), mpf(margin_bound), mpf(weight)
        self.A, self.b = scaled_identity(d, self.lam), [mpf(0)] * d
        self.constant, self.suffered = mpf(0), mpf(0)

    def minimiser(self, x: Vector) -> Vector:
        """Return the minimiser of (3): theta'A theta - 2 b'theta + the losses of both labels at x."""
        A, b, w = self.A, self.b, self.weight

        def both(t: Any) -> Any:
            return w * (mp.log1p(mp.exp(-abs(t))) * 2 + abs(t))

        def value(theta: Vector) -> Any:
            return dot(theta, times(A, theta)) - 2 * dot(b, theta) + both(dot(theta, x))

        def gradient(theta: Vector) -> Vector:
            slope = w * mp.tanh(dot(theta, x) / 2)
            return [2 * a - 2 * e + slope * f for a, e, f in zip(times(A, theta), b, x, strict=True)]

        def hessian(theta: Vector) -> Matrix:
            bend = w / (2 * mp.cosh(dot(theta, x) / 2) ** 2)
            return [[2 * A[i][j] + bend * x[i] * x[j] for j in range(self.d)] for i in range(self.d)]

        return newton([mpf(0)] * self.d, value, gradient, hessian)

    def predict(self, x: Any) -> Vector:
        """Return (theta'x, 0)."""
        x = exact(x)
        return [dot(self.minimiser(x), x), mpf(0)]

    def update(self, x: Any, y: int) -> Vector:
        """Learn that x has the class y; return the forecast that was made."""
        x, sign = exact(x), 1 - 2 * y
        theta = self.minimiser(x)
        t = dot(theta, x)
        ell = mp.log1p(mp.exp(-sign * t))
        eta = 2 * self.c * mp.exp(sign * t)  # (2)
        g = [-sign * a / (1 + mp.exp(sign * t)) for a in x]
        slope = dot(g, theta)
        for i in range(self.d):
            for j in range(self.d):
                self.A[i][j] += eta * g[i] * g[j] / 2  # (5)
            self.b[i] += (eta * slope - 1) * g[i] / 2
        self.constant += ell - slope + eta * slope**2 / 2
        self.suffered += ell
        return [t, mpf(0)]

    def certificate(self) -> Any:
        """Return lambda B^2 + the losses suffered - the least value of lambda ||theta||^2 + the surrogates' sum."""
        least = self.constant - dot(self.b, solve(cholesky(self.A), self.b))
        return self.lam * self.B**2 + self.suffered - least
