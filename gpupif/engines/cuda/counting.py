"""Count combinations of sets of columns, and find single rows, on GPUs: row keys in order, equal ones neighbours.

Rows that came all at once are counted when a set is asked for, and nothing of it is kept. Of rows that come in chunks,
or do not fit at once, each piece is counted on the device, and its combinations are added up on the host: in whole
numbers, so that what comes out is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import DeviceError
from ...gpu.cupy_arrays import CupyLibrary, DeviceMemoryError
from ...rows.keys import KeyLayout, code_type
from ...rows.threads import Workers
from ...utils.information import Sizes
from ..cpu.count_tables import DENSE, Combinations, key_layout
from ..cpu.counting import SubsetCounter
from .rows import find_runs, lowest_bit, narrow_words, pack_device_keys, sort_keys

# Arrays of 8 bytes a row that are there at the same time at most, beside codes, times and keys: order before and after
# a sort, the sort's own buffers, counts, heads, starts and sizes of runs.
WORKING_ARRAYS = 12
# So many rows are counted at once however little memory seems to be there.
LEAST_ROWS = 256

Answer = TypeVar("Answer")


class Chunk(NamedTuple):
    """Rows: codes by column (None: of no set), of the host or the device, and what each counts (None: 1)."""

    codes: Sequence[Any]
    times: Any
    rows: int

    def piece(self, start: int, most: int) -> Chunk:
        """Some of the rows, from `start` on, at most so many."""
        stop = min(self.rows, start + most)
        codes = [None if values is None else values[start:stop] for values in self.codes]
        return Chunk(codes, None if self.times is None else self.times[start:stop], stop - start)


class DeviceCombinations(NamedTuple):
    """Combinations of a set on the device: by word of their keys, ascending, and rows with each."""

    keys: Sequence[Any]
    counts: Any


def upload_chunk(library: CupyLibrary, chunk: Chunk) -> Chunk:
    """The rows on the device."""
    for values in (*chunk.codes, chunk.times):
        library.settle(values)
    codes = [None if values is None else library.upload(values) for values in chunk.codes]
    times = None if chunk.times is None else library.upload(chunk.times).astype("int64")
    return Chunk(codes, times, chunk.rows)


def count_keys(library: CupyLibrary, chunk: Chunk, subset: Sequence[int], layout: KeyLayout) -> DeviceCombinations:
    """The combinations of a set in rows of the device; layout: its columns by their places in the set."""
    xp = library.xp
    keys = pack_device_keys(
        library, {place: chunk.codes[column] for place, column in enumerate(subset)}, chunk.rows, layout
    )
    if layout.words == 1 and chunk.times is None:
        # Without times rows need not be known: their keys alone are sorted.
        low = lowest_bit(layout, 0)
        ordered = xp.sort(narrow_words(keys[0], low))
        del keys
        heads = xp.ones(chunk.rows, "bool")
        heads[1:] = ordered[1:] != ordered[:-1]
        starts = xp.append(xp.flatnonzero(heads), chunk.rows)
        return DeviceCombinations([ordered[starts[:-1]].astype("uint64") << low], starts[1:] - starts[:-1])
    times = xp.ones(chunk.rows, "int64") if chunk.times is None else chunk.times
    runs = find_runs(library, keys, times, sort_keys(library, keys, layout), layout.masks(layout.fields))
    first, sizes = runs.order[runs.starts[:-1]], runs.sizes
    if chunk.times is not None:
        there = sizes > 0
        first, sizes = first[there], sizes[there]
    return DeviceCombinations([words[first] for words in keys], sizes)


class CudaCounter:
    """Counts combinations of sets of columns on a GPU (see `Counter`).

    rows: about how many there will be. most: rows that are planned to be on the device at once. dense: see
    `SubsetCounter`, of what is added up on the host. name: of the device, for errors.
    """

    def __init__(
        self,
        library: CupyLibrary,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
        rows: int,
        most: int,
        workers: Workers,
        dense: int,
        name: str,
    ) -> None:
        self._library = library
        self._subsets = [list(subset) for subset in subsets]
        self._used = {column for subset in subsets for column in subset}
        self._cardinalities = [[cardinalities[column] for column in subset] for subset in subsets]
        self._layouts = [key_layout(own) for own in self._cardinalities]
        self._rows = rows
        self._most = most
        self._workers = workers
        self._dense = dense
        self._name = name
        # All rows, as long as they came at once and were not looked at otherwise; on the device too, where they fit.
        self._whole: Chunk | None = None
        self._there: Chunk | None = None
        # By place of a set what was added up of it on the host: of chunks all sets, of all rows at once the last one.
        self._added: dict[int, SubsetCounter] = {}

    def add(self, codes: Sequence[Any], times: npt.NDArray[Any] | None = None) -> None:
        """See `Counter`; codes may be on a device."""
        if not len(codes[0]):
            return
        used = [values if column in self._used else None for column, values in enumerate(codes)]
        chunk = Chunk(used, times, len(codes[0]))
        if self._whole is None and not self._added:
            self._whole = chunk
        else:
            self._add_whole()
            self._add_up(chunk, range(len(self._subsets)))

    def nbytes(self) -> int:
        """See `Counter`."""
        self._add_whole()
        return sum(counter.nbytes() for counter in self._added.values())

    def combinations(self, place: int, ordered: bool = True) -> Combinations:
        """See `Counter`; what a device has counted is in order."""
        return self._answer(
            place,
            lambda found: self._combinations(found, self._layouts[place]),
            lambda added: added.combinations(0, ordered),
        )

    def counts(self, place: int) -> npt.NDArray[Any]:
        """See `Counter`."""
        return self._answer(place, lambda found: self._library.to_host(found.counts), lambda added: added.counts(0))

    def sizes(self, place: int) -> Sizes:
        """See `Counter`."""
        return self._answer(place, self._sizes, lambda added: added.sizes(0))

    def _combinations(self, found: DeviceCombinations, layout: KeyLayout) -> Combinations:
        codes = []
        for place in range(len(layout.fields)):
            word, shift, mask = layout.fields[place]
            part = (found.keys[word] >> shift) & mask
            codes.append(self._library.to_host(part.astype(code_type(mask + 1))))
        return Combinations(codes, self._library.to_host(found.counts))

    def _sizes(self, found: DeviceCombinations) -> Sizes:
        sizes, times = self._library.xp.unique(found.counts[found.counts > 1], return_counts=True)
        return Sizes.from_counts(self._library.to_host(sizes), self._library.to_host(times))

    def _answer(
        self, place: int, on_device: Callable[[DeviceCombinations], Answer], on_host: Callable[[SubsetCounter], Answer]
    ) -> Answer:
        """What is asked of the combinations of a set."""
        whole = self._whole
        if whole is not None and whole.rows <= self._most and place not in self._added:
            try:
                with self._library.active():
                    self._there = self._there or upload_chunk(self._library, whole)
                    return on_device(count_keys(self._library, self._there, self._subsets[place], self._layouts[place]))
            except DeviceMemoryError:
                self._there = None
                self._most = max(1, whole.rows // 2)
            self._library.release()
        if whole is not None and place not in self._added:
            self._added = {}
            self._add_up(whole, [place])
        return on_host(self._counter(place))

    def _counter(self, place: int) -> SubsetCounter:
        """Where the combinations of a set are added up."""
        if place not in self._added:
            own = self._cardinalities[place]
            every = list(range(len(own)))
            self._added[place] = SubsetCounter([every], own, self._rows, self._workers, self._dense)
        return self._added[place]

    def _add_whole(self) -> None:
        """Add up what came first, for there is more, or what is kept of it is asked for."""
        whole, self._whole, self._there = self._whole, None, None
        if whole is not None:
            self._added = {}
            self._add_up(whole, range(len(self._subsets)))

    def _add_up(self, chunk: Chunk, places: Sequence[int]) -> None:
        """Add the rows to what is known of some sets, in pieces that fit on the device."""
        start = 0
        while start < chunk.rows:
            piece = chunk.piece(start, self._most)
            left = self._add_piece(piece, places)
            if left:
                self._library.release()
                self._most = (piece.rows + 1) // 2
                self._add_up(piece, left)
            start += piece.rows

    def _add_piece(self, piece: Chunk, places: Sequence[int]) -> Sequence[int]:
        """Add up rows of some sets, one after the other; returns those for which the device's memory was too small.

        What was on the device is let go of with the frame of this function, before fewer rows are tried.
        """
        done = 0
        try:
            with self._library.active():
                there = upload_chunk(self._library, piece)
                for place in places:
                    layout = self._layouts[place]
                    found = self._combinations(count_keys(self._library, there, self._subsets[place], layout), layout)
                    # On no columns all agree; how many there are is told by an array of any codes.
                    self._counter(place).add(found.codes or [found.counts], found.counts)
                    done += 1
        except DeviceMemoryError as error:
            if piece.rows == 1:
                raise self._too_large() from error
        return places[done:]

    def _too_large(self) -> DeviceError:
        return DeviceError(
            f"device {self._name!r}: {self._library.name} ran out of memory on a single row; "
            f"{self._library.free_bytes() / 2**30:.3f} GiB are free. Free some, or use "
            "gpupif.config(device='cpu')."
        )


class _DeviceRows:
    """The rows on one device, brought there when they are first needed.

    often: 1, or 2 for a row that occurs several times in the table.
    """

    def __init__(self, library: CupyLibrary, codes: Sequence[Any], often: npt.NDArray[np.uint8]) -> None:
        self.library = library
        self._host = codes, often
        self._there: tuple[list[Any], Any] | None = None

    def find(self, columns: Sequence[int], layout: KeyLayout, known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Find rows as `Singles` does; raises DeviceMemoryError."""
        library, xp = self.library, self.library.xp
        with library.active():
            if self._there is None:
                codes, often = self._host
                self._there = [library.upload(values) for values in codes], library.upload(often).astype("int64")
            codes, often = self._there
            keys = pack_device_keys(
                library, {place: codes[column] for place, column in enumerate(columns)}, len(often), layout
            )
            order = sort_keys(library, keys, layout)
            runs = find_runs(library, keys, often, order, layout.masks(layout.fields))
            del keys
            # What is left is one row, and one of the table.
            rows = order[runs.starts[:-1]][runs.sizes == 1]
            bits = library.upload(known)[rows >> 6] >> (rows & 63).astype("uint64")
            rows = xp.sort(rows[(bits & 1) == 0])
            return library.to_host(rows.astype("uint32"))

    def forget(self) -> None:
        """Give back memory."""
        self._there = None
        self.library.release()


class CudaSingles:
    """Finds single rows on GPUs: sorts row keys, and keeps those unlike their neighbours (see `Singles`).

    Each search runs on the first device that is free.

    codes (columns, rows): of rows that all differ.
    """

    def __init__(
        self,
        libraries: Sequence[CupyLibrary],
        codes: Sequence[Any],
        cardinalities: Sequence[int],
        often: npt.NDArray[np.uint8],
    ) -> None:
        self._cardinalities = cardinalities
        self._idle: SimpleQueue[_DeviceRows] = SimpleQueue()
        for library in {library.device: library for library in reversed(libraries)}.values():
            self._idle.put(_DeviceRows(library, codes, often))

    def find(self, columns: Sequence[int], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32] | None:
        """Find rows as `Singles` does."""
        layout = key_layout([self._cardinalities[column] for column in columns])
        device = self._idle.get()
        try:
            return device.find(columns, layout, known)
        except DeviceMemoryError:
            device.forget()
            return None
        finally:
            self._idle.put(device)


class CudaCounting:
    """Counts on a GPU: the one that the codes lie on, or else the first (see `Counting`).

    share: of the device's free memory what is planned with. name: of the device, for errors.
    """

    def __init__(self, libraries: Sequence[CupyLibrary], workers: Workers, share: float, name: str) -> None:
        self._libraries = libraries
        self._workers = workers
        self._share = share
        self._name = name

    def counter(
        self,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
        rows: int,
        dense: int = DENSE,
        library: CupyLibrary | None = None,
    ) -> CudaCounter:
        """See `Counting`; library: of the device that counts."""
        library = library or self._libraries[0]
        words = max((key_layout([cardinalities[column] for column in subset]).words for subset in subsets), default=1)
        columns = len({column for subset in subsets for column in subset})
        row = 8 * (words + WORKING_ARRAYS) + np.dtype(np.uint32).itemsize * columns
        most = max(LEAST_ROWS, int(self._share * library.free_bytes()) // row)
        return CudaCounter(library, subsets, cardinalities, rows, most, self._workers, dense, self._name)

    def counters(
        self,
        codes: Sequence[Any],
        cardinalities: Sequence[int],
        sets: Sequence[Sequence[int]],
        times: npt.NDArray[Any] | None = None,
        differ: bool = False,
    ) -> Iterator[tuple[CudaCounter, int]]:
        """See `Counting`; here equal rows cost no more than others."""
        home = self._libraries[0].device_of(codes[0])
        library = next((one for one in self._libraries if one.device == home), self._libraries[0])
        counter = self.counter(sets, cardinalities, len(codes[0]), library=library)
        counter.add(codes, times)
        for place in range(len(sets)):
            yield counter, place

    def singles(self, codes: Sequence[Any], cardinalities: Sequence[int], often: npt.NDArray[np.uint8]) -> CudaSingles:
        """See `Counting`; on all GPUs."""
        return CudaSingles(self._libraries, codes, cardinalities, often)
