"""Arrays that refuse what CuPy's refuse: host and device in one expression, silent copies."""

from __future__ import annotations

import numpy as np

from tests.helpers.gpu.numpy_device import OnDevice, PandasFrames
from tests.helpers.gpu.without_gpu import DeviceLibrary


def is_host(value):
    return isinstance(value, np.ndarray) and not isinstance(value, OnDevice) and value.ndim > 0


def refuse_host(values):
    for value in values:
        if isinstance(value, list | tuple):
            refuse_host(value)
        elif is_host(value):
            raise TypeError(f"an array of the host, {value.dtype} {value.shape}, where the device's are")


def plain(value):
    if hasattr(value, "_fields"):
        return type(value)(*map(plain, value))
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value)
    return value.view(np.ndarray) if isinstance(value, OnDevice) else value


def there(value):
    if isinstance(value, tuple):
        return tuple(there(item) for item in value)
    # A reduction gives an array without dimensions, as CuPy's do, not a number.
    return np.asarray(value).view(Strict) if isinstance(value, np.ndarray | np.generic) else value


class Strict(OnDevice):
    """An array that works with its like only."""

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        refuse_host(inputs)
        out = named.pop("out", None)
        if out is not None:
            named["out"] = plain(out)
        return there(getattr(ufunc, method)(*plain(inputs), **named))

    def __array_function__(self, function, types, arguments, named):
        refuse_host(arguments)
        refuse_host(named.values())
        named = {name: plain(value) for name, value in named.items()}
        return there(function(*plain(tuple(arguments)), **named))

    def __getitem__(self, index):
        refuse_host([index])
        return there(self.view(np.ndarray)[plain(index)])

    def __setitem__(self, index, value):
        refuse_host([index, value])
        self.view(np.ndarray)[plain(index)] = plain(value)

    def __index__(self):
        raise TypeError("an array of the device is no index")


class StrictArrays:
    """NumPy over such arrays, in the place of CuPy."""

    def __getattr__(self, name):
        function = getattr(np, name)

        def strict(*arguments, **named):
            if name not in ("asarray", "array"):
                refuse_host(arguments)
            return there(function(*plain(arguments), **named))

        return strict


class StrictLibrary(DeviceLibrary):
    xp = StrictArrays()

    def launch(self, kernel, size, *arguments):
        refuse_host(arguments)
        super().launch(kernel, size, *plain(arguments))

    def stable_order(self, keys):
        return self.xp.argsort(keys, kind="stable")

    def group_rows(self, words, counts):
        refuse_host([*words.values(), counts])
        groups = super().group_rows({word: plain(values) for word, values in words.items()}, plain(counts))
        return groups._replace(
            words={word: there(values) for word, values in groups.words.items()},
            counts=there(groups.counts),
            of_row=there(groups.of_row),
        )

    def empty(self, shape, dtype):
        return super().empty(shape, dtype).view(Strict)

    def start_download(self, array, pinned):
        assert isinstance(array, Strict)
        assert not isinstance(pinned, OnDevice)
        return super().start_download(plain(array), pinned)

    def start_upload(self, pinned, array):
        assert isinstance(array, Strict)
        return super().start_upload(pinned, plain(array))

    def bring(self, array):
        assert isinstance(array, np.ndarray)
        return there(plain(array).copy())


class StrictFrames(PandasFrames):
    xp = StrictArrays()

    def array(self, series):
        return np.asarray(series).view(Strict)

    def full(self, size, value, dtype):
        return there(np.full(size, value, dtype))

    def frame(self, columns, index=None):
        assert all(isinstance(array, Strict) for array in columns.values())
        return super().frame({name: plain(array) for name, array in columns.items()}, index)
