"""The composition of differentially private releases: by sum, zCDP, Renyi DP and privacy loss distributions.

Every loss is stated by the worst pair of outputs that two neighbouring tables can have:

* Continuous noise: two densities, shifted by the sensitivity.
* Discrete noise, which OpenDP draws: two distributions on whole numbers, shifted by the sensitivity. With sensitivity 1
  discrete Laplace noise is randomised response, the worst of all (epsilon, 0) mechanisms: 100 releases of epsilon 0.1
  compose to 4.307 (delta 1e-5), and not to the 4.220 of continuous noise.
* Noise on many cells whose changes add up to the sensitivity: one cell that changes by all of it is worst, as both
  kinds of noise are log-concave (Dong, Roth and Su, Gaussian differential privacy, appendix A).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..treatment.field_checks import positive, set_checked, whole
from ..utils.validation import brief, check_word, is_number, whole_number

KINDS = ("laplace", "gaussian", "discrete_laplace", "discrete_gaussian", "pure")
GAUSSIAN = ("gaussian", "discrete_gaussian")
# Steps that stand for a larger sensitivity of discrete Laplace noise. Noise on a finer grid is noise on a coarser grid
# and independent noise added to it, so that the coarser grid loses at least as much privacy.
MOST_STEPS = 1024
# No loss distribution is made beyond these: it would take gigabytes.
MOST_LOSS, MOST_DISCRETE_SCALE = 200.0, 1e6
# The most that a sensitivity may be of a scale, and the least: squares stay finite and above 0.
MOST_RATIO, LEAST_RATIO = 1e6, 1e-150
# A larger epsilon promises nothing: e^epsilon is how much likelier a row can make an answer.
MOST_EPSILON = 100.0
# The theorems of `Composition` in words.
THEOREMS = {
    "sum": "sum of all",
    "zcdp": "zero-concentrated DP",
    "rdp": "Renyi DP",
    "pld": "privacy loss distributions",
}
# The rounding of epsilons, relative.
ROUNDING = 1e-12


def check_epsilon(argument: str, value: Any) -> float:
    """Return epsilon, in nats; raises InputError for a value out of range."""
    if not is_number(value) or not 0 < value <= MOST_EPSILON:
        raise InputError(f"{argument}: expected a number above 0 and up to {MOST_EPSILON:g}, got {brief(value)}.")
    return float(value)


def check_delta(argument: str, value: Any, least: str = "from 0") -> float:
    """Return delta; raises InputError for a value out of range. least: "from 0" or "above 0"."""
    if not is_number(value) or not 0 <= value < 1 or (least == "above 0" and not value):
        raise InputError(f"{argument}: expected a number {least} to below 1, got {brief(value)}.")
    return float(value)


@dataclass(frozen=True)
class Loss:
    """The privacy loss of one release of noise.

    kind: str. "laplace" or "gaussian" (continuous), "discrete_laplace" or "discrete_gaussian" (on whole numbers), or
        "pure" (any mechanism that is (1 / scale, 0)-differentially private).
    scale: float. The scale of Laplace noise, or the standard deviation of Gaussian noise.
    sensitivity: float. How far the worst neighbour shifts the value. Default 1.
    times: int. How many independent values one neighbour shifts so far. Default 1; 2 where a row is replaced.
    epsilon, delta: float. What the release guarantees alone; delta of Gaussian noise only. Default: epsilon of Laplace
        noise, and infinity for Gaussian noise, which then has no sum.
    failure: float. The probability that the release breaks the guarantee of its noise. Default 0; the delta of a
        threshold, and of any other mechanism without Gaussian noise.
    """

    kind: str
    scale: Annotated[float, positive]
    sensitivity: Annotated[float, positive] = 1
    times: Annotated[int, whole("values")] = 1
    epsilon: float = None  # type: ignore[assignment]
    delta: Annotated[float, check_delta] = 0.0
    failure: Annotated[float, check_delta] = 0.0

    def __post_init__(self) -> None:
        check_word("kind", self.kind, KINDS)
        set_checked(self)
        if self.kind.startswith("discrete"):
            whole_number("sensitivity", self.sensitivity, "steps")
        if self.sensitivity / self.scale > MOST_RATIO:
            raise InputError(f"scale: expected a millionth of the sensitivity or more, got {brief(self.scale)}.")
        if self.sensitivity / self.scale < LEAST_RATIO:
            raise InputError(f"scale: expected at most 1e150 times the sensitivity, got {brief(self.scale)}.")
        is_gaussian = self.kind in GAUSSIAN
        if self.delta and not is_gaussian:
            raise InputError("delta: is of Gaussian noise. Give the delta of another mechanism by failure=.")
        least = math.inf if is_gaussian else self.times * self.sensitivity / self.scale
        epsilon = least if self.epsilon is None else self.epsilon
        if not is_number(epsilon) or not epsilon > 0:
            raise InputError(f"epsilon: expected a number above 0, got {brief(epsilon)}.")
        object.__setattr__(self, "epsilon", float(epsilon))
        if not is_gaussian and epsilon < least * (1 - ROUNDING):
            raise InputError(f"epsilon: expected at least {least:.6g}, which this noise loses; got {epsilon:.6g}.")
        if is_gaussian and self.delta < (fails := self._gaussian_delta(epsilon)) * (1 - ROUNDING):
            raise InputError(f"delta: expected at least {fails:.6g}, its chance to fail; got {self.delta:.6g}.")

    def _gaussian_delta(self, epsilon: float) -> float:
        """Return the delta of Gaussian noise at an epsilon: Balle and Wang, Analytic Gaussian mechanism, 2018."""
        shift = math.sqrt(2 * self.rho)

        def below(place: float) -> float:
            return math.erfc(-place / math.sqrt(2)) / 2

        return below(shift / 2 - epsilon / shift) - math.exp(min(epsilon, 700)) * below(-shift / 2 - epsilon / shift)

    @property
    def rho(self) -> float:
        """The parameter of zero-concentrated DP; (epsilon, 0)-DP is epsilon^2 / 2 (Bun and Steinke, 2016)."""
        return self.times * (self.sensitivity / self.scale) ** 2 / 2

    def renyi(self, orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the Renyi divergence of each order, in nats: float64 (orders,)."""
        a, shift = orders, self.sensitivity / self.scale
        if self.kind in GAUSSIAN:
            # For discrete noise too: Canonne, Kamath and Steinke, The discrete Gaussian, 2020, proposition 5.
            return a * self.rho
        if self.kind == "laplace":
            # Mironov, Renyi differential privacy, 2017, proposition 6.
            terms = [np.log(a / (2 * a - 1)) + (a - 1) * shift, np.log((a - 1) / (2 * a - 1)) - a * shift]
        else:
            losses, log_masses = _discrete_losses(*self._steps())
            terms = [mass + (a - 1) * loss for loss, mass in zip(losses, log_masses, strict=True)]
        return self.times * np.logaddexp.reduce(terms, axis=0) / (a - 1)  # type: ignore[no-any-return]

    def _steps(self) -> tuple[int, float]:
        """Return a sensitivity in steps, at most `MOST_STEPS`, and epsilon of a step, for discrete Laplace noise."""
        steps = 1 if self.kind == "pure" else int(self.sensitivity)
        width = -(-steps // MOST_STEPS)
        return -(-steps // width), width * (self.sensitivity if self.kind == "pure" else 1) / self.scale

    def distribution(self) -> Any:
        """Return the privacy loss distribution of the noise, of dp-accounting; pessimistic."""
        from dp_accounting.pld import privacy_loss_distribution as made

        if self.kind == "gaussian":
            found = made.from_gaussian_mechanism(self.scale / self.sensitivity)
        elif self.kind == "discrete_gaussian":
            found = made.from_discrete_gaussian_mechanism(self.scale, int(self.sensitivity))
        elif self.kind == "laplace":
            found = made.from_laplace_mechanism(self.scale / self.sensitivity)
        else:
            steps, epsilon = self._steps()
            found = made.from_discrete_laplace_mechanism(epsilon, steps)
        return found.self_compose(self.times)


def _discrete_losses(steps: int, epsilon: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the losses of discrete Laplace noise that is shifted by `steps`, and the logarithms of their masses.

    epsilon: the loss of one step. P(noise = k) is tanh(epsilon / 2) e^(-epsilon |k|).
    """
    places = np.arange(steps + 1, dtype=np.float64)
    # All k from 0 down have the highest loss, all from `steps` up the lowest.
    log_masses = -epsilon * places + math.log(math.tanh(epsilon / 2))
    log_masses[[0, -1]] -= math.log(-math.expm1(-epsilon))
    return epsilon * (steps - 2 * places), log_masses


@dataclass(frozen=True)
class Composition:
    """Epsilon of all releases together at one delta, by four theorems; infinity where a theorem says nothing.

    sum: basic composition. zcdp: zero-concentrated DP, rho + 2 sqrt(rho ln(1 / delta)). rdp: Renyi DP at the best
    order. pld: privacy loss distributions. The last two are None if they were not needed.
    """

    sum: float
    zcdp: float
    rdp: float | None = None
    pld: float | None = None

    @property
    def least(self) -> float:
        """The smallest epsilon, which is what was spent."""
        return min(own for own in (self.sum, self.zcdp, self.rdp, self.pld) if own is not None)


def exact_sum(numbers: Sequence[float]) -> Fraction:
    """Return the sum of numbers as they are written: ten times 0.1 is 1."""
    return sum((Fraction(repr(float(number))) for number in numbers), Fraction(0))


def compose(losses: Sequence[Loss], delta: float, enough: float | None = None) -> Composition:
    """Return epsilon of all losses together at `delta`.

    enough: an epsilon that will do: if the sum or zCDP is no larger, the other two are not computed. Default None: all
    are computed. The four hold if the epsilons of all releases are chosen beforehand; the sum and zCDP also if they are
    chosen by earlier answers. Raises InputError if dp-accounting is needed and absent.
    """
    if not losses:
        return Composition(0.0, 0.0, 0.0, 0.0)
    without_failures = exact_sum([delta, *(-own.failure for own in losses)])
    total = math.inf
    if without_failures >= exact_sum([own.delta for own in losses]) and all(own.epsilon < math.inf for own in losses):
        total = float(exact_sum([own.epsilon for own in losses]))
    left = float(without_failures)
    if left <= 0:
        return Composition(total, math.inf, math.inf, math.inf)
    rho = math.fsum(own.rho for own in losses)
    concentrated = rho + 2 * math.sqrt(rho * -math.log(left))
    if enough is not None and min(total, concentrated) <= enough:
        return Composition(total, concentrated)
    needs("dp_accounting")
    from dp_accounting.rdp import rdp_privacy_accountant as accountant

    orders = np.array(accountant.DEFAULT_RDP_ORDERS, np.float64)
    # Claims and failures make no difference to the distribution of the loss.
    alike = Counter(Loss(own.kind, own.scale, own.sensitivity, own.times) for own in losses)
    divergences = sum(number * own.renyi(orders) for own, number in alike.items())
    rdp = accountant.compute_epsilon(orders, divergences, left)[0]
    if rdp > MOST_LOSS or any(own.kind == GAUSSIAN[1] and own.scale > MOST_DISCRETE_SCALE for own in alike):
        return Composition(total, concentrated, float(rdp), math.inf)
    # Never by an accountant's count=: dp-accounting 0.6 ignores it for randomised response.
    distributions = [own.distribution().self_compose(number) for own, number in alike.items()]
    composed = reduce(lambda first, second: first.compose(second), distributions)
    return Composition(total, concentrated, float(rdp), float(composed.get_epsilon_for_delta(left)))


def needs(package: str, argument: str = "release") -> None:
    """Raise InputError, which names an argument, if a package of the extra `release` is not installed."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        name = package.replace("_", "-")
        raise InputError(f"{argument}: needs {name}, which is not installed here: pip install 'gpupif[release]'")
