"""k, distinct l and t by pyCANON, for an interpreter that has no gpupif: prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings


def main(table: str, sensitive: str) -> None:
    """Print k, l, t and the seconds of pyCANON; all columns except the sensitive one are quasi-identifiers."""
    import pandas as pd
    from pycanon import anonymity

    warnings.simplefilter("ignore")
    frame = pd.read_csv(table)
    known = [name for name in frame.columns if name != sensitive]
    started = time.perf_counter()
    k = anonymity.k_anonymity(frame, known)
    distinct = anonymity.l_diversity(frame, known, [sensitive])
    t = anonymity.t_closeness(frame, known, [sensitive])
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "figures": [int(k), int(distinct), float(t)]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
