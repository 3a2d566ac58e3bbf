"""Clusters of Dask that tests share, and the command line on one."""

from __future__ import annotations

import re

from gpupif.attack.arguments import Arguments
from gpupif.cli.cluster import score_on_cluster
from gpupif.dask.cluster_client import Place

ROWS, PARTITIONS = 4_000, 12


WORKERS = 3


def on_cluster(table, output, scheduler=None, workers=None, overwrite=False, elsewhere=(), **asked):
    asked = Arguments.from_user(asked.pop("measures", ("cig", "csf")), **asked)
    return score_on_cluster(table, output, Place(scheduler, workers), overwrite, asked, dict(elsewhere))


def at(client):
    """The options that name a cluster."""
    return "--scheduler", client.scheduler.address


def without_times(text):
    """What is printed but for the seconds of each stage."""
    return re.sub(r", [a-z ]+ \d+\.\d+ s\b", "", text)
