"""Mutations of the references that nothing can catch, each with the reason why.

The key is `Mutation.name`, which says the function and the change. A test holds that every name still stands for a
mutation: when the code is changed, its reason is read again or goes.
"""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
