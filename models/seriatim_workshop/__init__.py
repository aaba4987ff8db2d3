"""What only `make` reaches, and the wheel leaves out: bench, proofs, mutation testing, cross-checks, real systems."""

import sys

if sys.argv[:1] == ["-m"]:  # `python -m` looks for a module of this package, to run it as a command
    from seriatim_models.ending import end_in_a_word

    end_in_a_word()
