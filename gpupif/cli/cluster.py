"""The command line on a cluster, whose workers read Parquet; scores they write to a folder of Parquet files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..attack.known_subsets import KNOWN, AnyKnown, as_attackers, known_of, outputs_of
from ..attack.request import needed_columns
from ..dask.client import check_place, connected
from ..dask.read import read_files
from ..dask.watch import await_result, watching
from ..dask.write import check_written, marked, replacing
from ..errors import OutputError
from ..io.common import Pick, every_column
from ..io.paths import find_input
from ..io.score_files import check_folder, is_file
from ..io.write import attacker_names
from ..measures import POPULATION_SIZE, resolve_measures

if TYPE_CHECKING:
    from .options import Place

Found = TypeVar("Found")


def score_on_cluster(
    table: Path,
    output: Path,
    place: Place,
    overwrite: bool,
    measures: Sequence[str],
    device: str,
    question: Mapping[str, Any],
    elsewhere: Mapping[str, Any],
    visible: bool | None = None,
) -> dict[str, Any]:
    """Score a Parquet file or folder on a cluster.

    question: the other arguments of `gpupif.score`, a population as a path.
    elsewhere: options that only make sense without a cluster, refused where they are set. visible: show progress; None
    for only where standard error is a terminal, and the command line was not asked to be quiet.

    Writes a folder of Parquet files, columns named as by `DaskScores.frame`, rows in order by the files' names, that
    appears whole or not at all. All workers have to see both places under the same paths. Returns facts to be shown.

    Raises what `gpupif.score` does; InputError for what a cluster cannot do; OutputError; DeviceError where the cluster
    cannot be reached or lost its workers.
    """
    check_place(place, elsewhere, "reads Parquet and writes a folder of it")
    wanted = [measure.name for measure in resolve_measures(measures)]
    columns, weights, attackers = (question.get(name) for name in ("columns", "weights", "attackers"))
    known = known_of(*(question.get(name, other) for name, other in KNOWN))
    needed = needed_columns(columns, known, weights=weights, attackers=attackers)
    given = find_input(table)
    if is_file(output):
        raise OutputError(f"{output}: a cluster writes a folder of Parquet files. Name one, without an ending.")
    check_folder(output, overwrite, given)
    files = read_files("table", given, every_column if columns is None else needed)
    targets = (
        list(columns)
        if columns is not None
        else [name for name in files.names if name not in (*files.index_names, weights)]
    )
    population = question.get("population")
    if population is not None:
        check_folder(output, overwrite, find_input(Path(population)))
    measured = [*wanted, *([] if population is None else [POPULATION_SIZE.name])]
    outputs = outputs_of(as_attackers(attackers), known, measured)
    attacker_names(outputs, targets, [])
    any_known = attackers is None and isinstance(known, AnyKnown)
    started = time.perf_counter()
    with connected(place, visible) as (client, report), replacing(output, overwrite) as folder:
        from ..scoring.score import score

        scores: Any = score(files.frame, wanted, device=device, **{**question, "columns": targets})
        options = marked({"write_index": False, "compression": "zstd", "compute": False})
        written = scores.frame().to_parquet(str(folder), **options)
        several = len(client.nthreads())
        await_result(client, client.compute(written), report)
        check_written(folder, files.partitions)
    return {
        "input": str(table),
        "output": str(output),
        "rows": files.rows,
        "columns": targets,
        "measures": list(dict.fromkeys(measure for measures in outputs.values() for measure in measures)),
        **({"attackers": repr(scores.subsets), "known_any": scores.subsets.to_dict()} if any_known else {}),
        "workers": several,
        "partitions": files.partitions,
        "seconds": time.perf_counter() - started,
    }


def look_on_cluster(
    find: Callable[..., Found],
    table: Path,
    pick: Pick,
    place: Place,
    elsewhere: Mapping[str, Any],
    visible: bool | None,
) -> Found:
    """What `find` finds in the Dask frame of a Parquet file or folder, computed on a cluster.

    pick: the columns that are needed, None for all that do not only label rows. elsewhere, visible: as of
    `score_on_cluster`. Raises what `find` does; InputError, DeviceError.
    """
    check_place(place, elsewhere, "reads Parquet, and whose workers have memory of their own")
    files = read_files("table", find_input(table), pick)
    kept = [name for name in files.names if name not in files.index_names] or files.names
    frame = files.frame if pick(files.names) is not None or kept == files.names else files.frame[kept]
    with connected(place, visible) as (client, report), watching(client, report):
        return find(frame, progress=False)
