"""The objectives of `protect` by their definitions, by plain Python."""

from __future__ import annotations

import math
from collections import Counter

from tests.helpers import naive_protection as naive


def entropy_sum(counts):
    """n H, in bits, of values that occur so often."""
    return math.fsum(count * math.log2(sum(counts) / count) for count in counts if count)


def cost(objective, table, hierarchies, node, importance=None, k=1, stays=None):
    """The loss of a node by the definition of the objective. Rows in classes of fewer than k are suppressed.

    stays: whether a row is not suppressed, instead of k.
    """
    after, n = naive.treated(table, hierarchies, node), len(table)
    importance = {name: (importance or {}).get(name, 1) for name in hierarchies}
    classes = list(naive.classes(after, list(hierarchies)).values())
    kept = [[row for row in rows if stays(row)] if stays else rows for rows in classes]
    kept = [rows for rows in kept if len(rows) >= k]
    gone = [row for rows in classes for row in rows if not (stays(row) if stays else len(rows) >= k)]
    if objective.startswith("entropy"):
        total = naive.loss(table, hierarchies, node, importance)
        if objective == "entropy":
            return total
        return total + sum(
            importance[name] * entropy_sum(Counter(row[name] for row in gone).values()) for name in hierarchies
        )
    if objective == "height":
        return sum(importance[name] * level for name, level in zip(hierarchies, node, strict=True))
    if objective == "discernibility":
        return sum(len(rows) ** 2 for rows in kept) + n * len(gone)
    if objective == "average_class_size":
        return n / (len(kept) + bool(gone))
    if objective == "utility(ill)":
        left = sum(entropy_sum(Counter(row["ill"] for row in rows).values()) for rows in [*kept, gone])
        return left / entropy_sum(Counter(row["ill"] for row in table).values())
    if objective == "utility(ill, classify)":
        return 1 - sum(max(Counter(row["ill"] for row in rows).values()) for rows in kept) / n
    own = {}
    for (name, groups), level in zip(hierarchies.items(), node, strict=True):
        sizes = Counter(path[level - 1] for path in groups.values())
        losses = []
        for row in (row for rows in kept for row in rows):
            size = sizes[row[name]] if level else 1
            height = len(next(iter(groups.values())))
            losses.append(level / height if objective == "precision" else (size - 1) / (len(groups) - 1))
        own[name] = (sum(losses) + len(gone)) / n
    weights = {name: importance[name] / sum(importance.values()) for name in hierarchies}
    if objective == "loss_gm":
        return math.prod((1 + loss) ** weights[name] for name, loss in own.items()) - 1
    return sum(weights[name] * loss for name, loss in own.items())
