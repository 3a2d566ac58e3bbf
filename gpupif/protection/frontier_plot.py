"""The plots of the result of `protect`, as axes of Matplotlib."""

from __future__ import annotations

from typing import Any

from ..errors import InputError, did_you_mean
from ..utils.axes import GREY, label, open_axes

# A figure whose highest value is this many times its lowest is drawn on a logarithmic scale.
WIDE_RANGE = 100


class ProtectionPlots:
    """Plots of the result of `protect` as axes of Matplotlib (extra ``plot``); made by `Protection.plot`."""

    def __init__(self, protection: Any) -> None:
        self._protection = protection

    def frontier(self, criterion: str | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw risk against loss of the best nodes that were checked: the value of a criterion over the share lost.

        A filled point meets all criteria, a hollow point does not. A star is the plan, and a dashed line the limit of
        the criterion.

        criterion: a criterion as it was required, such as "k>=5". Default: the first. ax: the axes to draw on. Default:
        a new figure. options: of ``Axes.plot``, for the points. Raises InputError for another criterion, for axes that
        are none, and without Matplotlib.
        """
        protection = self._protection
        required = {str(value.criterion): value.criterion for value in protection.before}
        name = next(iter(required)) if criterion is None else criterion
        if name not in required:
            near = did_you_mean(str(name), required)
            raise InputError(f"criterion: expected {' or '.join(map(repr, required))}, got {name!r}.{near}")
        ax = open_axes(ax)
        whole = protection.highest_loss or 1.0
        plan = [node for node in protection.frontier if node.levels == protection.levels]
        rest = [node for node in protection.frontier if node.levels != protection.levels]
        for nodes, legend, marker, size, filled in (
            ([node for node in rest if node.is_met], "meets all criteria", "o", 6, "full"),
            ([node for node in rest if not node.is_met], "does not", "o", 6, "none"),
            (plan, "the plan", "*", 14, "full"),
        ):
            looks = {"marker": marker, "markersize": size, "linestyle": "none", "color": "black", "fillstyle": filled}
            if nodes:
                losses = [100 * node.loss / whole for node in nodes]
                ax.plot(losses, [node.values[name] for node in nodes], **{**looks, "label": legend, **options})
        ax.axhline(required[name].limit, color=GREY, linestyle="--", label=f"limit: {label(name)}")
        values = [node.values[name] for node in protection.frontier]
        if values and 0 < WIDE_RANGE * min(values) < max(values):
            ax.set_yscale("log")
        ax.legend()
        of_what = "information lost (% of all bits)" if protection.unit == "bits" else "loss (% of the highest)"
        ax.set(title="Risk against loss, of the best nodes checked", xlabel=of_what, ylabel=label(name))
        return ax
