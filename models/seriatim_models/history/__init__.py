"""Histories: the qh/1 schema, and reading and writing it."""

from seriatim_models.history.event import SCHEMA as SCHEMA
from seriatim_models.history.event import Event as Event
from seriatim_models.history.event import event as event
from seriatim_models.history.faults import HistoryError as HistoryError
from seriatim_models.history.faults import Rejected as Rejected
from seriatim_models.history.header import Header as Header
from seriatim_models.history.reading import History as History
from seriatim_models.history.reading import iter_history as iter_history
from seriatim_models.history.reading import read_history as read_history
from seriatim_models.history.writing import write_history as write_history
