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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..utils.validation import brief, is_number

KINDS = ("laplace", "gaussian", "discrete_laplace", "discrete_gaussian", "pure")
GAUSSIAN = ("gaussian", "discrete_gaussian")
# Steps that stand for a larger sensitivity of discrete Laplace noise. Noise on a finer grid is noise on a coarser grid
# and independent noise added to it, so that the coarser grid loses at least as much privacy.
MOST_STEPS = 1024
# No loss distribution is made beyond these: it would take gigabytes.
MOST_LOSS, MOST_DISCRETE_SCALE = 200.0, 1e6
# The most that a sensitivity may be of a scale: squares stay finite.
MOST_RATIO = 1e6
# The rounding of epsilons, relative.
ROUNDING = 1e-12


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
    scale: float
    sensitivity: float = 1
    times: int = 1
    epsilon: float | None = None
    delta: float = 0.0
    failure: float = 0.0

    def __post_init__(self) -> None:
        for name in ("scale", "sensitivity", "times", "epsilon", "delta", "failure"):
            if is_number(value := getattr(self, name)) and not isinstance(value, int | float):
                # Numbers of NumPy have no JSON.
                object.__setattr__(self, name, float(value))
        whole = self.kind.startswith("discrete") if isinstance(self.kind, str) else False
        if self.kind not in KINDS:
            raise InputError(f"kind: expected {', '.join(map(repr, KINDS))}; got {brief(self.kind)}.")
        for name, least in (("scale", False), ("sensitivity", False), ("times", False), ("delta", True)):
            value = getattr(self, name)
            if not (is_number(value) and math.isfinite(value) and (value > 0 or (least and value == 0))):
                raise InputError(f"{name}: expected a number above 0, got {brief(value)}.")
        if not is_number(self.failure) or not 0 <= self.failure < 1 or self.delta >= 1:
            raise InputError(f"delta: expected a number from 0 to below 1, got {brief(self.failure or self.delta)}.")
        if int(self.times) != self.times or (whole and int(self.sensitivity) != self.sensitivity):
            raise InputError(f"sensitivity: expected a whole number for discrete noise, got {brief(self.sensitivity)}.")
        if self.sensitivity / self.scale > MOST_RATIO:
            raise InputError(f"scale: expected a millionth of the sensitivity or more, got {brief(self.scale)}.")
        if self.delta and self.kind not in GAUSSIAN:
            raise InputError("delta: is of Gaussian noise. Give the delta of another mechanism by failure=.")
        own = math.inf if self.kind in GAUSSIAN else self.times * self.sensitivity / self.scale
        if self.epsilon is None:
            object.__setattr__(self, "epsilon", own)
        elif not (is_number(self.epsilon) and self.epsilon > 0):
            raise InputError(f"epsilon: expected a number above 0, got {brief(self.epsilon)}.")
        elif self.kind not in GAUSSIAN and self.epsilon < own * (1 - ROUNDING):
            raise InputError(f"epsilon: expected at least {own:.6g}, which this noise loses; got {self.epsilon:.6g}.")
        elif self.kind in GAUSSIAN and self.delta < (fails := self._gaussian_delta(self.epsilon)) * (1 - ROUNDING):
            raise InputError(f"delta: expected at least {fails:.6g}, its chance to fail; got {self.delta:.6g}.")

    def _gaussian_delta(self, epsilon: float) -> float:
        """Return the delta of Gaussian noise at an epsilon: Balle and Wang, Analytic Gaussian mechanism, 2018."""
        shift = math.sqrt(2 * self.rho)

        def below(place: float) -> float:
            return math.erfc(-place / math.sqrt(2)) / 2

        return below(shift / 2 - epsilon / shift) - math.exp(min(epsilon, 700)) * below(-shift / 2 - epsilon / shift)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; None for an infinite epsilon."""
        return asdict(self) | {"epsilon": None if math.isinf(self.epsilon or 0) else self.epsilon}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Loss:
        """Return the loss from the dictionary of `to_dict`. Raises InputError, KeyError or TypeError if damaged."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

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
        return found.self_compose(int(self.times))


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
    spent = exact_sum([own.delta for own in losses]) + exact_sum([own.failure for own in losses])
    total = math.inf
    if spent <= Fraction(repr(float(delta))) and all(math.isfinite(own.epsilon or 0) for own in losses):
        total = float(exact_sum([own.epsilon or 0 for own in losses]))
    left = float(Fraction(repr(float(delta))) - exact_sum([own.failure for own in losses]))
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
    whole = None
    for own, number in alike.items():
        part = own.distribution().self_compose(number)
        whole = part if whole is None else whole.compose(part)
    return Composition(total, concentrated, float(rdp), float(whole.get_epsilon_for_delta(left)))  # type: ignore[union-attr]


def needs(package: str) -> None:
    """Raise InputError if a package of the extra `release` is not installed."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        name = package.replace("_", "-")
        raise InputError(f"release: needs {name}, which is not installed here: pip install 'gpupif[release]'")
