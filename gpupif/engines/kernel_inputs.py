"""The inputs of the kernels from a job: the values of its columns, and the axes of the values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpupif.kernels import walks
from gpupif.kernels.cohorts import ScoredValues

from .base import EDGE, NOTHING, Axis, Job

# Largest rounding error of a prior mass, for each value.
WHOLE = 2.0**-52


def kernel_axes(axes: Sequence[Axis | None]) -> walks.Axes:
    """Return the axes of scored columns in arrays for kernels, in the order of ranks. None gives an empty axis."""
    none = np.empty(0, np.int64)
    empty = Axis(walks.NOMINAL, none, none, NOTHING, np.empty((0, 0), np.int64), NOTHING, 1)
    known = [axis or empty for axis in axes]
    values_first = np.cumsum([0, *(len(axis.places) for axis in known)])
    steps_first = np.cumsum([0, *(len(axis.prior) + 1 for axis in known)])
    masses_first = np.cumsum([0, *(len(axis.masses) for axis in known)])
    nodes_first = np.cumsum([0, *(axis.nodes.size for axis in known)])
    in_tree = np.array([axis.kind == walks.TREE for axis in known])
    prior = [np.append(np.cumsum(axis.prior), 1.0) for axis in known]
    return walks.Axes(
        kinds=np.array([axis.kind for axis in known]),
        values_first=values_first,
        places=np.concatenate([axis.places for axis in known]),
        steps_first=steps_first[:-1],
        steps=np.array([len(axis.prior) for axis in known]),
        prior=np.concatenate(prior),
        prior_sum=np.concatenate([np.concatenate([[0.0], np.cumsum(shares[:-1])]) for shares in prior]),
        levels=np.array([len(axis.nodes) for axis in known]),
        nodes_first=np.where(in_tree, nodes_first[:-1], masses_first[:-1]),
        nodes=np.concatenate([axis.nodes.ravel() + start for axis, start in zip(known, masses_first, strict=False)]),
        masses=np.concatenate([axis.masses for axis in known]),
        lengths=np.full(masses_first[-1], EDGE),
        bases=np.array([EDGE * float(axis.masses.sum()) for axis in known]),
    )


def kernel_values(job: Job, columns: Sequence[int]) -> ScoredValues:
    """Return the values of some columns in arrays for kernels."""
    known = {*job.known}
    whole = [value_mass(job.priors[column]) if job.whole is None else job.whole[column] for column in columns]
    return ScoredValues(
        np.cumsum([0, *(len(job.priors[column]) for column in columns)]),
        np.concatenate([job.priors[column] for column in columns]),
        np.concatenate([job.log2_priors[column] for column in columns]),
        np.array([job.unit_bits[column] for column in columns], np.int64),
        np.array([job.accuracies[column] for column in columns], np.float64),
        np.array([values for values, _ in whole]),
        np.array([mass for _, mass in whole]),
        np.array([column in known and not job.class_without_scored_column for column in columns], np.int64),
        kernel_axes([None if job.axes is None else job.axes[column] for column in columns]),
    )


def value_mass(probabilities: npt.NDArray[np.float64]) -> tuple[int, float]:
    """Return the number of values with a prior above 0, and their prior mass: exactly 1 if only rounding differs."""
    mass, values = math.fsum(probabilities), int((probabilities > 0).sum())
    return values, 1.0 if abs(mass - 1.0) <= WHOLE * values else mass
