"""Counting of combinations of sets of columns, and the search for single rows, on GPUs, by sorting row keys.

If all rows were added at once and fit on the device, a set is counted when it is requested, and its counts are not
kept. Otherwise each chunk of rows is counted on the device, and the host adds up the counts. Counts are whole numbers,
so the result is equal.
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
from ..base import FindSingles
from ..cpu.count_tables import DENSE, Combinations, key_layout
from ..cpu.counting import SubsetCounter
from .rows import find_equal_rows, lowest_bit, narrow_words, pack_device_keys, sort_keys

# Most arrays of 8 bytes a row at one time, beside codes, multiplicities and keys: the order before and after a sort,
# the sort's buffers, counts, heads, starts and sizes of sets of equal rows.
WORKING_ARRAYS = 12
# Fewest rows that are counted at once, however little memory is free.
LEAST_ROWS = 256

Answer = TypeVar("Answer")


class Chunk(NamedTuple):
    """Rows: codes by column (None: in no set), on the host or the device, and multiplicities (None: 1 each)."""

    codes: Sequence[Any]
    multiplicities: Any
    rows: int

    def smaller(self, start: int, most: int) -> Chunk:
        """Return at most `most` of the rows, from `start` on."""
        stop = min(self.rows, start + most)
        codes = [None if values is None else values[start:stop] for values in self.codes]
        return Chunk(codes, None if self.multiplicities is None else self.multiplicities[start:stop], stop - start)


class DeviceCombinations(NamedTuple):
    """The combinations of a set, on the device: the words of their keys, ascending, and the rows with each
    combination.
    """

    keys: Sequence[Any]
    counts: Any


def upload_chunk(library: CupyLibrary, chunk: Chunk) -> Chunk:
    """Return the rows on the device."""
    for values in (*chunk.codes, chunk.multiplicities):
        library.settle(values)
    codes = [None if values is None else library.upload(values) for values in chunk.codes]
    multiplicities = None if chunk.multiplicities is None else library.upload(chunk.multiplicities).astype("int64")
    return Chunk(codes, multiplicities, chunk.rows)


def count_keys(library: CupyLibrary, chunk: Chunk, subset: Sequence[int], layout: KeyLayout) -> DeviceCombinations:
    """Return the combinations of a set in rows on the device. layout: fields by place of a column in the set."""
    xp = library.xp
    keys = pack_device_keys(
        library, {place: chunk.codes[column] for place, column in enumerate(subset)}, chunk.rows, layout
    )
    if layout.words == 1 and chunk.multiplicities is None:
        # Without multiplicities the keys alone are sorted, and no order of rows is needed.
        low = lowest_bit(layout, 0)
        ordered = xp.sort(narrow_words(keys[0], low))
        del keys
        heads = xp.ones(chunk.rows, "bool")
        heads[1:] = ordered[1:] != ordered[:-1]
        starts = xp.append(xp.flatnonzero(heads), chunk.rows)
        return DeviceCombinations([ordered[starts[:-1]].astype("uint64") << low], starts[1:] - starts[:-1])
    multiplicities = xp.ones(chunk.rows, "int64") if chunk.multiplicities is None else chunk.multiplicities
    equal = find_equal_rows(
        library, keys, multiplicities, sort_keys(library, keys, layout), layout.masks(layout.fields)
    )
    first, sizes = equal.order[equal.starts[:-1]], equal.sizes
    if chunk.multiplicities is not None:
        there = sizes > 0
        first, sizes = first[there], sizes[there]
    return DeviceCombinations([words[first] for words in keys], sizes)


class CudaCounter:
    """A counter of the combinations of sets of columns on a GPU (see `Counter`).

    counting: the maker of this counter. library: the device that counts.
    subsets, cardinalities: see `SubsetCounter`.
    rows: about the number of rows that will be added.
    dense: see `SubsetCounter`, for counts that the host adds up.
    """

    def __init__(
        self,
        counting: CudaCounting,
        library: CupyLibrary,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
        rows: int,
        dense: int,
    ) -> None:
        self._counting, self._library = counting, library
        self._subsets = [list(subset) for subset in subsets]
        self._used = {column for subset in subsets for column in subset}
        self._cardinalities = [[cardinalities[column] for column in subset] for subset in subsets]
        self._layouts = [key_layout(own) for own in self._cardinalities]
        self._rows, self._dense = rows, dense
        words = max((layout.words for layout in self._layouts), default=1)
        row = 8 * (words + WORKING_ARRAYS) + np.dtype(np.uint32).itemsize * len(self._used)
        # The most rows on the device at once.
        self._most = max(LEAST_ROWS, int(counting.share * library.free_bytes()) // row)
        # All rows, if one call added them and no counts were added up; and their copy on the device, if they fit.
        self._whole: Chunk | None = None
        self._there: Chunk | None = None
        # Counts on the host, by place of a set: of all sets if rows are added in chunks, else of the last set only.
        self._added: dict[int, SubsetCounter] = {}

    def add(self, codes: Sequence[Any], multiplicities: npt.NDArray[Any] | None = None) -> None:
        """Count further rows (see `Counter`). codes: on the host or a device."""
        if not len(codes[0]):
            return
        used = [values if column in self._used else None for column, values in enumerate(codes)]
        chunk = Chunk(used, multiplicities, len(codes[0]))
        if self._whole is None and not self._added:
            self._whole = chunk
        else:
            self._add_whole()
            self._add_up(chunk, range(len(self._subsets)))

    def nbytes(self) -> int:
        """Return the bytes of the counts on the host so far (see `Counter`)."""
        self._add_whole()
        return sum(counter.nbytes() for counter in self._added.values())

    def combinations(self, place: int, ordered: bool = True) -> Combinations:
        """Return the combinations of a set (see `Counter`). A device always returns them in order."""
        return self._answer(
            place,
            lambda there: self._combinations(there, self._layouts[place]),
            lambda added: added.combinations(0, ordered),
        )

    def counts(self, place: int) -> npt.NDArray[Any]:
        """Return the number of rows with each combination of a set (see `Counter`)."""
        return self._answer(place, lambda there: self._library.to_host(there.counts), lambda added: added.counts(0))

    def sizes(self, place: int) -> Sizes:
        """Return the number of combinations of each count of a set (see `Counter`)."""
        return self._answer(place, self._sizes, lambda added: added.sizes(0))

    def _combinations(self, there: DeviceCombinations, layout: KeyLayout) -> Combinations:
        codes = []
        for place in range(len(layout.fields)):
            word, shift, mask = layout.fields[place]
            part = (there.keys[word] >> shift) & mask
            codes.append(self._library.to_host(part.astype(code_type(mask + 1))))
        return Combinations(codes, self._library.to_host(there.counts))

    def _sizes(self, there: DeviceCombinations) -> Sizes:
        sizes, multiplicities = self._library.xp.unique(there.counts[there.counts > 1], return_counts=True)
        return Sizes.from_counts(self._library.to_host(sizes), self._library.to_host(multiplicities))

    def _answer(
        self, place: int, on_device: Callable[[DeviceCombinations], Answer], on_host: Callable[[SubsetCounter], Answer]
    ) -> Answer:
        """Return an answer about the combinations of a set: from the device if all rows fit, else from the host."""
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
        """Return the counter on the host that adds up the combinations of a set."""
        if place not in self._added:
            own = self._cardinalities[place]
            every = list(range(len(own)))
            self._added[place] = SubsetCounter([every], own, self._rows, self._counting.workers, self._dense)
        return self._added[place]

    def _add_whole(self) -> None:
        """Add up the rows that were added first, because there are more rows or the size of the counts is requested."""
        whole, self._whole, self._there = self._whole, None, None
        if whole is not None:
            self._added = {}
            self._add_up(whole, range(len(self._subsets)))

    def _add_up(self, chunk: Chunk, places: Sequence[int]) -> None:
        """Add rows to the counts of some sets on the host, in chunks that fit on the device."""
        start = 0
        while start < chunk.rows:
            smaller = chunk.smaller(start, self._most)
            left = self._add_chunk(smaller, places)
            if left:
                self._library.release()
                self._most = (smaller.rows + 1) // 2
                self._add_up(smaller, left)
            start += smaller.rows

    def _add_chunk(self, smaller: Chunk, places: Sequence[int]) -> Sequence[int]:
        """Count rows of some sets, one after the other, and return the sets for which the device's memory was too
        small.

        This is a function of its own so that its arrays on the device are freed before fewer rows are tried.
        """
        done = 0
        try:
            with self._library.active():
                there = upload_chunk(self._library, smaller)
                for place in places:
                    layout = self._layouts[place]
                    counted = count_keys(self._library, there, self._subsets[place], layout)
                    combinations = self._combinations(counted, layout)
                    # A set without columns has one combination and no codes: any array of the right length serves.
                    self._counter(place).add(combinations.codes or [combinations.counts], combinations.counts)
                    done += 1
        except DeviceMemoryError as error:
            if smaller.rows == 1:
                raise self._too_large() from error
        return places[done:]

    def _too_large(self) -> DeviceError:
        return DeviceError(
            f"device {self._counting.name!r}: {self._library.name} ran out of memory on a single row; "
            f"{self._library.free_bytes() / 2**30:.3f} GiB are free. Free some, or use "
            "gpupif.config(device='cpu')."
        )


class _DeviceRows:
    """The rows on one device, uploaded on first use.

    often: (rows,) 1 for multiplicity 1, 2 for any higher multiplicity.
    """

    def __init__(self, library: CupyLibrary, codes: Sequence[Any], often: npt.NDArray[np.uint8]) -> None:
        self.library = library
        self._host = codes, often
        self._there: tuple[list[Any], Any] | None = None

    def find(self, columns: Sequence[int], layout: KeyLayout, known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Find single rows (see `FindSingles`). Raise DeviceMemoryError."""
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
            equal = find_equal_rows(library, keys, often, order, layout.masks(layout.fields))
            del keys
            # A set of size 1 is a single row: one distinct row, with multiplicity 1.
            rows = order[equal.starts[:-1]][equal.sizes == 1]
            bits = library.upload(known)[rows >> 6] >> (rows & 63).astype("uint64")
            rows = xp.sort(rows[(bits & 1) == 0])
            return library.to_host(rows.astype("uint32"))

    def forget(self) -> None:
        """Free the device's memory."""
        self._there = None
        self.library.release()


class CudaSingles:
    """A finder of single rows on GPUs (see `FindSingles`). It sorts row keys, and keeps the keys that differ from both
    neighbours.

    Each search runs on the first free device. codes: by column, of distinct rows.
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
        """Find single rows, or return None if the device's memory is too small (see `FindSingles`)."""
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
    """The maker of counters on a GPU: the GPU that has the codes, else the first (see `Counting`).

    workers: threads of the host. share: the share of the device's free memory to use. name: the name of the device in
        error messages.
    """

    def __init__(self, libraries: Sequence[CupyLibrary], workers: Workers, share: float, name: str) -> None:
        self._libraries, self.workers, self.share, self.name = libraries, workers, share, name

    def counter(
        self,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
        rows: int,
        dense: int = DENSE,
        library: CupyLibrary | None = None,
    ) -> CudaCounter:
        """Return a counter of sets (see `Counting`). library: the device that counts. Default: the first."""
        return CudaCounter(self, library or self._libraries[0], subsets, cardinalities, rows, dense)

    def counters(
        self,
        codes: Sequence[Any],
        cardinalities: Sequence[int],
        sets: Sequence[Sequence[int]],
        multiplicities: npt.NDArray[Any] | None = None,
        differ: bool = False,
    ) -> Iterator[tuple[CudaCounter, int]]:
        """Yield a counter and a place for each set (see `Counting`). Equal rows are not collapsed: sorting needs no
        time more.
        """
        home = self._libraries[0].device_of(codes[0])
        library = next((one for one in self._libraries if one.device == home), self._libraries[0])
        counter = self.counter(sets, cardinalities, len(codes[0]), library=library)
        counter.add(codes, multiplicities)
        for place in range(len(sets)):
            yield counter, place

    def singles(self, codes: Sequence[Any], cardinalities: Sequence[int], often: npt.NDArray[np.uint8]) -> FindSingles:
        """Return a finder of single rows on all GPUs (see `Counting`)."""
        return CudaSingles(self._libraries, codes, cardinalities, often).find
