"""The plots of the result of `protect`, as axes of Matplotlib."""

from __future__ import annotations

from typing import Any

from ..errors import InputError, did_you_mean
from ..utils.axes import ink, label, open_axes

# A figure whose highest value is this many times its lowest is drawn on a logarithmic scale.
WIDE_RANGE = 100
# The name of the figure beside those of the criteria.
SUPPRESSED = "suppressed_rows"


class ProtectionPlots:
    """Plots of the result of `protect` as axes of Matplotlib (extra ``plot``); made by `Protection.plot`."""

    def __init__(self, protection: Any) -> None:
        self._protection = protection

    def frontier(self, criterion: str | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw risk against loss of the best nodes that were checked: the value of a criterion over the share lost.

        A filled point meets all criteria, a hollow point does not. A star is the plan, and a dashed line the limit of
        the criterion.

        criterion: a criterion as it was required, such as "k>=5", or "suppressed_rows". Default: the first of these in
        which nodes differ. ax: the axes to draw on. Default: a new figure. options: of ``Axes.plot``, for the points.
        Raises InputError for another criterion, for axes that are none, and without Matplotlib.
        """
        protection = self._protection
        limits = {str(value.criterion): value.criterion for value in protection.before}
        names = [*limits, SUPPRESSED]
        nodes = [(node, {**node.values, SUPPRESSED: node.suppressed_rows}) for node in protection.frontier]
        if criterion is None:
            criterion = next((name for name in names if len({figures[name] for _, figures in nodes}) > 1), names[0])
        if criterion not in names:
            near = did_you_mean(str(criterion), names)
            raise InputError(f"criterion: expected {' or '.join(map(repr, names))}, got {criterion!r}.{near}")
        ax = open_axes(ax)
        whole = protection.highest_loss or 1.0
        looks = {"linestyle": "none", "color": ink(ax)}
        kinds: dict[str, dict[str, Any]] = {
            "meets all criteria": {"marker": "o"},
            "does not": {"marker": "o", "fillstyle": "none"},
            "the plan": {"marker": "*", "markersize": 14},
        }
        for kind, own_looks in kinds.items():
            own = [(100 * node.loss / whole, figures[criterion]) for node, figures in nodes if self._kind(node) == kind]
            if own:
                ax.plot(*zip(*own, strict=True), **{**looks, **own_looks, "label": kind, **options})
        limit = limits.get(criterion)
        if limit is not None:
            ax.axhline(limit.limit, color=ink(ax), linestyle="--", label=f"limit: {label(criterion)}")
        values = [figures[criterion] for _, figures in nodes]
        if values and 0 < WIDE_RANGE * min(values) < max(values):
            ax.set_yscale("log")
        ax.legend()
        lost = "information lost (% of all bits)" if protection.unit == "bits" else "loss (% of the highest)"
        risk = "suppressed rows"
        if limit is not None:
            risk = f"{label(limit.figure)} ({'lower' if limit.at_most else 'higher'} is safer)"
        ax.set(title="Risk against loss, of the best nodes checked", xlabel=lost, ylabel=risk)
        return ax

    def _kind(self, node: Any) -> str:
        """Return the words of the legend for a node of the frontier."""
        plan = node.levels == self._protection.levels
        return "the plan" if plan else "meets all criteria" if node.is_met else "does not"
