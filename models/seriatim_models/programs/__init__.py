"""Small closed programs over the references, and wrong references that they must find."""

from seriatim_models.programs.base import Mutant as Mutant
from seriatim_models.programs.base import Program as Program
from seriatim_models.programs.check import ProgramResult as ProgramResult
from seriatim_models.programs.check import check_program as check_program
from seriatim_models.programs.check import replay as _replay
from seriatim_models.programs.client import CLIENT_PROGRAMS
from seriatim_models.programs.client_mutants import CLIENT_MUTANTS
from seriatim_models.programs.fair import FAIR_PROGRAMS
from seriatim_models.programs.fair_mutants import FAIR_MUTANTS
from seriatim_models.programs.handover import HANDOVER_PROGRAMS
from seriatim_models.programs.log import LOG_PROGRAMS
from seriatim_models.programs.log_mutants import LOG_MUTANTS
from seriatim_models.programs.push import PUSH_PROGRAMS
from seriatim_models.programs.queue import QUEUE_PROGRAMS
from seriatim_models.programs.queue_mutants import QUEUE_MUTANTS
from seriatim_models.programs.workpool import WORKPOOL_PROGRAMS

PROGRAMS: dict[str, Program] = {
    **QUEUE_PROGRAMS,
    **PUSH_PROGRAMS,
    **HANDOVER_PROGRAMS,
    **WORKPOOL_PROGRAMS,
    **CLIENT_PROGRAMS,
    **LOG_PROGRAMS,
    **FAIR_PROGRAMS,
}
MUTANTS: dict[str, Mutant] = {**QUEUE_MUTANTS, **CLIENT_MUTANTS, **LOG_MUTANTS, **FAIR_MUTANTS}


def replay(token: str, *, attributes: bool = False) -> ProgramResult:
    """Run the one schedule that a token of `seriatim check` stands for; raises `BadToken`."""
    return _replay(token, PROGRAMS, MUTANTS, attributes=attributes)
