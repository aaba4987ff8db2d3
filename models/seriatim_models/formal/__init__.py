"""Another witness: Spin, which knows nothing of our Python.

`manifest` says what is run and what must come out, `tools` finds or installs Spin, `pan` compiles and runs one model,
`trail` makes a counterexample readable, `spin` runs all of it.
"""

from pathlib import Path

SPEC = Path(__file__).resolve().parents[3] / "spec"
"""The folder of the specifications, in a checkout."""
