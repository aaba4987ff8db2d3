"""The properties, executable over histories."""

from seriatim_models.properties.base import Finding as Finding
from seriatim_models.properties.base import Property as Property
from seriatim_models.properties.base import Verdict as Verdict
from seriatim_models.properties.base import audit as audit
