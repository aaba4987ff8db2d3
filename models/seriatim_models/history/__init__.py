"""Histories: the qh/1 schema, and reading and writing it."""

from seriatim_models.history.event import SCHEMA as SCHEMA
from seriatim_models.history.event import Event as Event
from seriatim_models.history.event import event as event
