"""The API calls of each system with their preconditions, declared once, and the stages on which they are made.

The matrix makes every call beside every other; `seriatim_workshop.machines` generates longer use of the same tables.
"""
