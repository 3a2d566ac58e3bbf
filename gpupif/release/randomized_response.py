"""The public `randomized_response`: what a randomised answer tells, and what many of them tell together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..treatment.field_checks import probability
from ..treatment.random.randomized_response import MOST_EPSILON
from ..treatment.random.response_formulas import epsilon_of_keep, estimate_shares, keep_of_epsilon
from ..utils.display import Displayable, Heading, as_percent, bits, draw_table, draw_verdict, plural
from ..utils.validation import brief, whole_number, within

if TYPE_CHECKING:
    from rich.console import Console


def _said(what: str) -> Any:
    """Return a field of a dataclass that is printed under these words."""
    return field(metadata={"what": what})


@dataclass(frozen=True, kw_only=True)
class ResponseFacts(Displayable):
    """The figures of randomised response; made by `gpupif.randomized_response`. Prints as a table.

    keep: float. The probability t that a value is kept; else one of all values is drawn, equally likely.
    values: int. The number k of possible values.
    epsilon, epsilon_bits: float. Local differential privacy, ln(1 + kt / (1 - t)) nats, and in bits. Infinite at t = 1.
    likelihood_ratio: float. e^epsilon: how much likelier a record is for people with its value than for any others.
    prior: float or None. The share p of the people who have the value.
    recorded: float or None. The share of records with the value: as given, else the expected tp + (1 - t)/k.
    posterior: float or None. P(value | record of it) = (t + (1 - t)/k) p / (tp + (1 - t)/k).
    posterior_otherwise: float or None. P(value | record of the other value); None for more than two values.
    odds: float or None. The posterior odds, posterior / (1 - posterior).
    privacy_loss: float or None. log2(posterior / prior), bits.
    most_learnt_prior, most_learnt_posterior, most_learnt: float or None. The prior at which posterior - prior is
        largest, and both there. None at t = 0, as nothing is learnt.
    estimate: float or None. The unbiased estimate (recorded - (1 - t)/k) / t of the people's share.
    standard_error: float or None. Of the estimate, for rows that are a random sample of a population.
    rows: int or None. The number of records.
    """

    keep: float = _said("probability that a value is kept, t")
    values: int
    epsilon: float = _said("epsilon, nats")
    epsilon_bits: float = _said("epsilon, bits")
    likelihood_ratio: float = _said("likelihood ratio, at most (e^epsilon)")
    prior: float | None = _said("share of the people with the value, p")
    recorded: float | None = _said("records that say so, expected or given")
    posterior: float | None = _said("posterior if the record says so")
    posterior_otherwise: float | None = _said("posterior if the record says the other value")
    odds: float | None = _said("posterior odds")
    privacy_loss: float | None = _said("privacy loss, bits (posterior over prior)")
    most_learnt_prior: float | None = _said("p at which most is learnt")
    most_learnt_posterior: float | None = _said("posterior there")
    most_learnt: float | None = _said("posterior less prior there")
    estimate: float | None = _said("estimated share of the people")
    standard_error: float | None = _said("standard error of the estimate")
    rows: int | None

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        said = [
            f"Each of {self.values} values is kept with probability {self.keep:.4g}: epsilon is {self.epsilon:.4g} "
            f"nats, {bits(self.epsilon_bits)}."
        ]
        if self.posterior is not None and self.prior is not None:
            loss = f", {bits(self.privacy_loss)}" if self.privacy_loss is not None else ""
            said.append(
                f"A record raises the probability from {as_percent(self.prior)} to {as_percent(self.posterior)}{loss}."
            )
        if self.estimate is not None and self.standard_error is not None:
            said.append(
                f"By {self.rows:,} {plural(self.rows or 0, 'record')}, the estimated share is {self.estimate:.4g}, "
                f"with a standard error of {self.standard_error:.4g}."
            )
        if self.estimate is not None and not 0 <= self.estimate <= 1:
            said.append("An estimate outside 0 to 1 comes by chance, or by answers that were not drawn by this t.")
        return said

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        console.print()
        said = [(own.metadata.get("what"), getattr(self, own.name)) for own in fields(self)]
        lines = [(what, value) for what, value in said if what is not None and value is not None]
        console.print(draw_table("Randomised response", [Heading("what", text=True), Heading("figure")], lines))


def randomized_response(
    *,
    keep: float | None = None,
    epsilon: float | None = None,
    values: int = 2,
    prior: float | None = None,
    recorded: float | None = None,
    rows: int | None = None,
) -> ResponseFacts:
    """Calculate what a randomised answer tells about a person, and what many answers tell about a population.

    Each value is kept with probability t. Else one of the k values takes its place, all equally likely: the treatment
    `gpupif.treatments.RandomizedResponse`, by the same formulas.

    Parameters
    ----------
    keep:
        The probability t to keep a value, from 0 to 1. Give either `keep` or `epsilon`.
    epsilon:
        Local differential privacy in nats, from 0 to 40. With two values t is tanh(epsilon / 2).
    values:
        The number k of possible values, 2 or more. Default: 2.
    prior:
        The share p of the people who have the value, from 0 to 1. Default: not known; then no posterior.
    recorded:
        The share of the records that have the value, from 0 to 1. Default: what `prior` lets expect.
    rows:
        The number of records, for the standard error. Default: not known.

    Returns
    -------
    ResponseFacts
        epsilon, posterior, privacy loss in bits, the prior at which most is learnt, the estimate and its standard
        error. Prints as a table; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        An argument out of range; neither or both of `keep` and `epsilon`.

    References
    ----------
    S. L. Warner, Randomized response, Journal of the American Statistical Association 60 (1965), 63-69. The variance of
    the estimate is q (1 - q) / (N t^2), with q = tp + (1 - t) / k, for a random sample of a population.

    Examples
    --------
    >>> import gpupif
    >>> coin = gpupif.randomized_response(keep=0.5, prior=0.25, rows=1000)
    >>> coin.posterior, coin.privacy_loss
    (0.5, 1.0)
    >>> round(coin.epsilon, 4), round(coin.most_learnt_prior, 3), round(coin.most_learnt_posterior, 3)
    (1.0986, 0.366, 0.634)

    """
    if (keep is None) == (epsilon is None):
        came = "neither" if keep is None else "both"
        raise InputError(f"keep: expected either keep= (a probability) or epsilon= (in nats), got {came}.")
    values = whole_number("values", values, "possible values", 2)
    shares = (("keep", keep), ("prior", prior), ("recorded", recorded))
    keep, prior, recorded = (None if given is None else probability(name, given) for name, given in shares)
    if epsilon is not None and not within(epsilon, 0, MOST_EPSILON):
        raise InputError(f"epsilon: expected a number from 0 to {MOST_EPSILON:g} (nats), got {brief(epsilon)}.")
    rows = None if rows is None else whole_number("rows", rows, "records")
    exact = Fraction(keep) if keep is not None else keep_of_epsilon(float(epsilon or 0), Fraction(1, values))
    t, r = float(exact), float((1 - exact) / values)
    nats = epsilon_of_keep(exact, (1 - exact) / values)
    expected = None if prior is None else t * prior + r
    share = expected if recorded is None else recorded
    posterior = (t + r) * prior / expected if prior is not None and expected else None
    otherwise = r * prior / (1 - expected) if prior is not None and expected is not None and expected < 1 else None
    # The gain (t + r) p / (tp + r) - p is largest where tp + r is the geometric mean of t + r and r.
    mean = math.sqrt(r * (t + r))
    most = (mean - r) / t if t else None
    most_posterior = None if most is None else (t + r) * most / mean if mean else 1.0
    estimate, error = (None, None) if share is None or not t else estimate_shares(share, rows or 1, t, r)
    return ResponseFacts(
        keep=t,
        values=values,
        epsilon=nats,
        epsilon_bits=nats / math.log(2),
        likelihood_ratio=(t + r) / r if r else math.inf,
        prior=prior,
        recorded=share,
        posterior=posterior,
        posterior_otherwise=otherwise if values == 2 else None,
        odds=None if posterior is None else posterior / (1 - posterior) if posterior < 1 else math.inf,
        privacy_loss=math.log2((t + r) / expected) if posterior is not None and expected else None,
        most_learnt_prior=most,
        most_learnt_posterior=most_posterior,
        most_learnt=None if most is None or most_posterior is None else most_posterior - most,
        estimate=estimate,
        standard_error=None if rows is None or error is None else float(error),
        rows=rows,
    )
