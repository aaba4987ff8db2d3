"""The black-box properties: what the recording of a broker's clients can show.

All reason by intervals and report a violation only where no placement inside the bounds explains what was seen.
Give them events that `seriatim_models.history.complete` has completed.
"""

from __future__ import annotations

from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.callbacks import CallbackOrder, CallReply
from seriatim_models.properties.blackbox.confirms import AnsweredOnce
from seriatim_models.properties.blackbox.conservation import Conservation
from seriatim_models.properties.blackbox.consumers import ConsumerPriority, SoleConsumer
from seriatim_models.properties.blackbox.credit import Prefetch
from seriatim_models.properties.blackbox.groups import OneConsumerOfGroup
from seriatim_models.properties.blackbox.holding import OneHolder, RedeliveredFlag
from seriatim_models.properties.blackbox.in_time import InTime
from seriatim_models.properties.blackbox.linear import QueueLinearizable
from seriatim_models.properties.blackbox.offsets import LogReader
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder
from seriatim_models.properties.blackbox.own_messages import NothingOfItsOwn
from seriatim_models.properties.blackbox.priority import MessagePriority
from seriatim_models.properties.blackbox.requeue import RequeueLateness
from seriatim_models.properties.blackbox.requeue_end import RequeueEnd
from seriatim_models.properties.blackbox.strict import StrictOrder
from seriatim_models.properties.blackbox.tags import DeliveryTags, SilenceAfterEnd
from seriatim_models.properties.blackbox.wakeups import NoLostWakeup

BLACKBOX: tuple[AnyProperty, ...] = (
    Conservation(),
    OneHolder(),
    RedeliveredFlag(),
    FirstDeliveryOrder(),
    StrictOrder(),
    RequeueLateness(),
    Prefetch(),
    DeliveryTags(),
    SilenceAfterEnd(),
    SoleConsumer(),
    ConsumerPriority(),
    CallbackOrder(),
    CallReply(),
    NoLostWakeup(),
    LogReader(),
    QueueLinearizable(),
    AnsweredOnce(),
    MessagePriority(),
    OneConsumerOfGroup(),
    NothingOfItsOwn(),
    RequeueEnd(),
    InTime(),
)
"""All of them; P16 to P19 are for recorders inside a queue: `properties.whitebox.composites`."""
