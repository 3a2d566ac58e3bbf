"""Prior tables as score files keep them: packed, and only small ones."""

from __future__ import annotations

import base64
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..attack.priors import Prior
from ..errors import InputError

# The most bytes of all packed priors together; those of the fewest values come first.
PRIOR_BYTES = 1 << 20
# No further prior is packed if this little of that is left.
FULL = 1 << 10
# The bytes of a probability. A column whose probabilities alone take more than all may is left out unseen.
PROBABILITY_BYTES = 8


def pack_priors(priors: Mapping[Hashable, Prior]) -> dict[str, str]:
    """Return the priors of fewest values, packed, as many as there is room for."""
    values = {
        name: prior.column.cardinality if prior.given is None else len(prior.given) for name, prior in priors.items()
    }
    room, kept = PRIOR_BYTES, {}
    for name in sorted(values, key=values.__getitem__):
        if values[name] > PRIOR_BYTES // PROBABILITY_BYTES or room < FULL:
            break
        text = _pack(priors[name].as_dict())
        if text and len(text) <= room:
            kept[str(name)] = text
            room -= len(text)
    return kept


def _pack(prior: Mapping[Any, float]) -> str:
    """Return a prior as Arrow's stream of values and probabilities, in base 64; empty for values of several types."""
    try:
        values = pa.array(list(prior))
    except (pa.ArrowException, TypeError, OverflowError):
        return ""
    batch = pa.record_batch([values, pa.array(list(prior.values()), pa.float64())], ["value", "probability"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue()).decode()


@dataclass(frozen=True)
class PackedPrior:
    """The prior of a column of stored scores. packed: None if it was left out. place: of the scores, for errors."""

    column: Hashable
    packed: str | None
    place: str

    def as_dict(self) -> dict[Any, float]:
        """Return the probability of each value. Raises InputError if the prior was left out."""
        if self.packed is None:
            raise InputError(
                f"priors: {self.place} has none of column {self.column!r}: kept are those that take up to "
                f"{PRIOR_BYTES:,} bytes together, the fewest values first, and whose values are of one type. Score the "
                "table again for it."
            )
        table = pa.ipc.open_stream(base64.b64decode(self.packed)).read_all()
        return dict(zip(table["value"].to_pylist(), table["probability"].to_pylist(), strict=True))
