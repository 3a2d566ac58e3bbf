"""Clusters of Dask that tests share, and the command line on one."""

from __future__ import annotations

import re

from gpupif.cli.cluster import score_on_cluster
from gpupif.cli.options import Place

ROWS, PARTITIONS = 4_000, 12


WORKERS = 3


def on_cluster(
    table, output, scheduler=None, workers=None, overwrite=False, measures=("cig", "csf"), visible=None, **more
):
    names = ("columns", "known", "priors", "accuracies", "population", "among", "subsets")
    given = {name: more.pop(name, None) for name in names}
    question = {**given, "missing": "category", "dtype": "float64", "population_lacks": "error"}
    return score_on_cluster(
        table, output, Place(scheduler, workers), overwrite, measures, "auto", question, more, visible
    )


def at(client):
    """The options that name a cluster."""
    return "--scheduler", client.scheduler.address


def without_times(text):
    """What is printed but for the seconds of each stage."""
    return re.sub(r", [a-z ]+ \d+\.\d+ s\b", "", text)
