"""Noise and selection by OpenDP, whose samplers are exact: what each draws, and the privacy loss that it has."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError
from .accounting import GAUSSIAN, Loss, needs

# The most that a scale is raised so that OpenDP's upward rounding of epsilon stays at what was asked for.
STEP = 1 + 2.0**-51
# The largest scale of noise: beyond 64 bits, where OpenDP cuts numbers off, it is with a probability below e^-32.
MOST_SCALE = 2.0**58


def opendp() -> Any:
    """Return the library; raises InputError if it is not installed."""
    needs("opendp")
    import opendp.prelude as library

    library.enable_features("contrib")
    return library


def _vector(metric: str, kind: str = "i64") -> tuple[Any, Any]:
    """Return OpenDP's domain and metric of vectors of whole numbers."""
    library = opendp()
    return library.vector_domain(library.atom_domain(T="i64")), getattr(library, metric)(T=kind)


@dataclass(frozen=True)
class Noise:
    """Noise on whole numbers, or a choice among candidates, with what it loses.

    loss: the privacy loss. draw: takes a list of whole numbers, and returns the list with noise (the place of the
    lowest for a choice). threshold: the least noisy count that is released; None without a threshold.
    """

    loss: Loss
    draw: Callable[[Any], Any]
    threshold: int | None = None

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise on a number; of discrete Gaussian noise, a bound just above it."""
        scale = self.loss.scale
        return scale if self.loss.kind in GAUSSIAN else 1 / (math.sqrt(2) * math.sinh(1 / (2 * scale)))

    def drawn(self, numbers: Any) -> Any:
        """Return whole numbers with noise; of `threshold` those that pass, by key. OpenDP takes no empty ones."""
        return self.draw(numbers) if numbers else numbers


def _calibrated(make: Callable[[float], Any], steps: int, shift: int, epsilon: float) -> tuple[Any, float]:
    """Return a mechanism of the smallest scale from `steps / epsilon` on, and the scale.

    Its epsilon for a shift, rounded up, is at most `epsilon`. Raises InputError if the scale exceeds `MOST_SCALE`.
    """
    if steps > MOST_SCALE * epsilon:
        raise InputError(
            "epsilon: expected one whose noise fits into numbers of 64 bits, got a smaller one. Ask for a larger "
            "epsilon; nothing was spent."
        )
    scale = steps / epsilon
    made = make(scale)
    while made.map(shift) > epsilon:
        scale *= STEP
        made = make(scale)
    return made, scale


def laplace(epsilon: float, sensitivity: int, times: int = 1) -> Noise:
    """Return discrete Laplace noise.

    sensitivity: how far a neighbour shifts one value, in all. times: how many values a neighbour shifts so far.
    """
    library, space = opendp(), _vector("l1_distance")
    all_shifts = times * sensitivity
    made, scale = _calibrated(
        lambda scale: library.m.make_laplace(*space, scale=scale), all_shifts, all_shifts, epsilon
    )
    return Noise(Loss("discrete_laplace", scale, sensitivity, times, epsilon), made)


def gaussian(epsilon: float, delta: float, sensitivity: int, times: int = 1) -> Noise:
    """Return discrete Gaussian noise, (epsilon, delta)-differentially private by zero-concentrated DP."""
    library, space = opendp(), _vector("l2_distance", "f64")
    from opendp.mod import OpenDPException

    shift = math.sqrt(times) * sensitivity

    def make(scale: float) -> Any:
        return library.m.make_gaussian(*space, scale=scale)

    def guaranteed(scale: float) -> Any:
        return library.c.make_fix_delta(library.c.make_zCDP_to_approxDP(make(scale)), delta)

    try:
        scale = library.binary_search_param(guaranteed, d_in=shift, d_out=(epsilon, delta))
    except (ValueError, OpenDPException):
        raise InputError(
            f"epsilon: no Gaussian noise is ({epsilon:g}, {delta:g})-differentially private that OpenDP can draw. Ask "
            "for more."
        ) from None
    return Noise(Loss("discrete_gaussian", scale, sensitivity, times, epsilon, delta), make(scale))


def threshold(epsilon: float, delta: float, sensitivity: int, times: int = 1) -> Noise:
    """Return Laplace noise on counts by key; keys whose noisy count is low stay secret, but for a probability `delta`.

    Its `draw` takes and returns a dictionary of counts.
    """
    library = opendp()
    domain = library.map_domain(library.atom_domain(T="i64"), library.atom_domain(T="i64"))
    metric, plain = library.l01inf_distance(library.absolute_distance(T="i64")), laplace(epsilon, sensitivity, times)
    shift = (times * sensitivity, times * sensitivity, sensitivity)

    def make(scale: float, least: int) -> Any:
        return library.m.make_laplace_threshold(domain, metric, scale=scale, threshold=least)

    scale = plain.loss.scale
    while make(scale, 2 * sensitivity).map(shift)[0] > epsilon:
        scale *= STEP
    # Noise falls by e every `scale`: this many scales make it rarer than any delta.
    steps = scale * (math.log(times * sensitivity) - math.log(delta) + 2)
    highest = sensitivity + math.ceil(min(steps, 2.0**62))

    def hides(least: int) -> bool:
        return bool(make(scale, least).map(shift)[1] <= delta)

    # The library's own search fails if all thresholds hide enough.
    span = range(sensitivity, highest + 1)
    least = sensitivity + bisect_left(span, True, key=hides)
    if least > highest:
        raise InputError(f"delta: no threshold hides new values up to {delta:g}. Ask for a larger delta.")
    loss = replace(plain.loss, scale=scale, failure=delta)
    # OpenDP 0.16 shows noisy counts from the threshold on, yet its delta is of counts above: one more makes it right.
    return Noise(loss, make(scale, least + 1), least + 1)


def choice(epsilon: float, sensitivity: int) -> Noise:
    """Return the choice of the lowest of several scores, by permute-and-flip (McKenna and Sheldon, 2020)."""
    library, space = opendp(), _vector("linf_distance")
    made, _ = _calibrated(
        lambda scale: library.m.make_noisy_max(*space, library.max_divergence(), scale=scale, negate=True),
        2 * sensitivity,
        sensitivity,
        epsilon,
    )
    return Noise(Loss("pure", 1 / epsilon, 1, 1, epsilon), made)
