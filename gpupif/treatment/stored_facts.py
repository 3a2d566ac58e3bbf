"""Facts of rows in files, one for each name, so that those of some rows are read alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..io.file_errors import disk_errors
from ..utils.private_folder import open_private, private_folder
from .base import RowFacts


class StoredFacts(RowFacts):
    """Facts in a folder, in the order of the rows."""

    def __init__(self, folder: Path, types: Mapping[str, str]) -> None:
        self.names = list(types)
        self._files = {name: folder / f"{place}.bin" for place, name in enumerate(types)}
        self._types = {name: np.dtype(kind) for name, kind in types.items()}

    def read(self, start: int, rows: int) -> dict[str, npt.NDArray[Any]]:
        """Those of some rows."""
        return {
            name: np.fromfile(file, self._types[name], rows, offset=start * self._types[name].itemsize)
            for name, file in self._files.items()
        }


class FactsWriter:
    """Writes facts to a folder, rows after rows. types: by name, known when there are some."""

    def __init__(self, folder: Path) -> None:
        self.types: dict[str, str] = {}
        self._folder = folder
        with disk_errors(folder):
            private_folder(folder)

    def write(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Facts of the next rows."""
        if not self.types:
            self.types = {name: np.asarray(array).dtype.str for name, array in arrays.items()}
            for place in range(len(arrays)):
                (self._folder / f"{place}.bin").unlink(missing_ok=True)
        with disk_errors(self._folder):
            for place, (name, kind) in enumerate(self.types.items()):
                with open_private(self._folder / f"{place}.bin", "ab") as file:
                    np.ascontiguousarray(arrays[name], kind).tofile(file)
