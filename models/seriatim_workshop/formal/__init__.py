"""Other witnesses: Spin, which knows nothing of our Python, and z3, which knows no bound on threads.

Spin: `manifest` declares what is run and the verdicts expected, `tools` finds or installs Spin,
`pan` compiles and runs one model, `trail` makes a counterexample readable, `spin` runs all of it.
The same in Python: `pairs` are the programs that exist twice, `outcomes` compares what they end in.
z3: `theory` is how a system is written down, `induction` proves it, `cti` makes a refutation readable.
The same in Python: `concrete` evaluates a system on concrete states,
`recorder` takes down every operation of the reference, `followers` map each of them to a step,
`exploring` follows the executions of one program, `traces` those of all programs and mutants.
"""

from pathlib import Path

SPEC = Path(__file__).resolve().parents[3] / "spec"
"""The folder of the specifications, in a checkout."""
