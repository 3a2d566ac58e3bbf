"""Commands on a Dask cluster, whose workers read Parquet, and write scores to a folder of Parquet files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..dask.cluster_client import Place, check_place, connected
from ..dask.cluster_progress import watching
from ..dask.parquet_partitions import read_files
from ..dask.scores_folder import check_names_folder
from ..io.base import Pick, every_column
from ..io.paths import find_input
from ..io.score_files import check_folder
from ..io.write import attacker_names
from ..results.provenance import describe_files
from ..scoring.files import check_selection
from ..scoring.score import score_table
from ..utils.config import config

if TYPE_CHECKING:
    from ..attack.arguments import Arguments
    from ..results.cell_selection import Selection

Found = TypeVar("Found")


def score_on_cluster(
    table: Path,
    output: Path,
    place: Place,
    overwrite: bool,
    asked: Arguments,
    elsewhere: Mapping[str, Any],
    selection: Selection | None = None,
) -> dict[str, Any]:
    """Score a Parquet file or folder on a cluster.

    asked: the arguments of `gpupif.score`, a population as a path. elsewhere: options that only make sense without a
    cluster; refused if they are set. selection: cells to be written in place of all scores.

    Writes a folder of Parquet files, columns named as by `Scores.frame`, rows in order by the files' names, that
    appears whole or not at all. All workers have to see both places under the same paths. Returns facts to be shown.

    Raises what `gpupif.score` does; InputError for what a cluster cannot do; OutputError; DeviceError where the cluster
    cannot be reached or lost its workers.
    """
    check_place(place, elsewhere, "reads Parquet and writes a folder of it")
    columns = asked.columns
    given = find_input(table)
    check_names_folder(output)
    check_folder(output, overwrite, given)
    files = read_files("table", given, every_column if columns is None else asked.needed)
    scored_columns = (
        list(columns)
        if columns is not None
        else [name for name in files.names if name not in (*files.index_names, asked.weights)]
    )
    if selection is None:
        attacker_names(asked.outputs, scored_columns, [])
    check_selection(selection, asked)
    written = {}
    started = time.perf_counter()
    with connected(place) as (client, report), watching(client, report), config(progress=False):
        origin = describe_files(given.path, given.stamps())
        scores = score_table(files.frame, replace(asked, columns=scored_columns), origin)
        several = len(client.nthreads())
        if selection is None:
            scores.to_parquet(output, overwrite=overwrite, write_index=False)
        else:
            cells = scores.cells(**selection.to_dict())
            written = {"cells_written": cells.write(output, overwrite, write_index=False)}
        subsets = scores.subsets
        attackers = {"attackers": list(scores.attackers)} if scores.attackers else {}
    return {
        "input": str(table),
        "output": str(output),
        "rows": files.rows,
        "columns": scored_columns,
        "measures": list(scores.measures),
        **(attackers if subsets is None else {"attackers": repr(subsets), "known_any": subsets.to_dict()}),
        "workers": several,
        "partitions": files.partitions,
        **written,
        "seconds": time.perf_counter() - started,
    }


def find_anywhere(find: Callable[..., Found], table: Path, pick: Pick, place: Place, here: Mapping[str, Any]) -> Found:
    """Return what `find` finds in the files of a table, here or on a cluster, as a Dask frame of Parquet.

    find: takes files or a Dask frame. pick: returns the columns that are needed; None for all but the labels of rows.
    here: the options sep, memory_limit and temp, for files that are read here; refused on a cluster. Raises what `find`
    does, InputError, and DeviceError.
    """
    if not place.named:
        return find(find_input(table, here["sep"]))
    check_place(place, here, "reads Parquet, and whose workers have memory of their own")
    files = read_files("table", find_input(table), pick)
    kept = [name for name in files.names if name not in files.index_names] or files.names
    frame: Any = files.frame
    if pick(files.names) is None and kept != files.names:
        from dask.utils import M

        labels = list(files.index_names)
        frame = frame.map_partitions(M.set_index, labels, meta=frame._meta.set_index(labels))
    with connected(place) as (client, report), watching(client, report), config(progress=False):
        return find(frame)
