"""Treatments of columns and rows, to be put into a `gpupif.Plan`, and the key by which random treatments draw."""

from .treatment.continuous.correlated_noise import CorrelatedNoise as CorrelatedNoise
from .treatment.continuous.microaggregate_together import MicroaggregateTogether as MicroaggregateTogether
from .treatment.continuous.rank_swap import RankSwap as RankSwap
from .treatment.continuous.shuffle import Shuffle as Shuffle
from .treatment.dropped_columns import DeclaredColumns as DeclaredColumns
from .treatment.dropped_columns import Drop as Drop
from .treatment.random.key import Key as Key
from .treatment.random.moved_values import Jitter as Jitter
from .treatment.random.moved_values import Noise as Noise
from .treatment.random.moved_values import ShiftDates as ShiftDates
from .treatment.random.pram import Pram as Pram
from .treatment.random.randomized_response import RandomizedResponse as RandomizedResponse
from .treatment.random.swap import Swap as Swap
from .treatment.suppression.suppress import Suppress as Suppress
from .treatment.suppression.suppress import SuppressRows as SuppressRows
from .treatment.value_maps.date_part import DatePart as DatePart
from .treatment.value_maps.microaggregate import Microaggregate as Microaggregate
from .treatment.value_maps.pooled_values import BottomCode as BottomCode
from .treatment.value_maps.pooled_values import Cap as Cap
from .treatment.value_maps.pooled_values import Rare as Rare
from .treatment.value_maps.pooled_values import TopCode as TopCode
from .treatment.value_maps.pseudonym import Pseudonym as Pseudonym
from .treatment.value_maps.recode import Recode as Recode
from .treatment.value_maps.recode_rows import RecodeRows as RecodeRows
from .treatment.value_maps.rounding import Round as Round
from .treatment.value_maps.zip3 import Zip3 as Zip3
