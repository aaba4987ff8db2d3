"""``python -m seriatim_workshop.right``: drawn right systems by the thousand, none of which may be reported."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from seriatim_workshop.right.judging import sweep


def main(argv: list[str] | None = None) -> int:
    """Judge the histories; returns 1 if one was reported."""
    parser = argparse.ArgumentParser(prog="python -m seriatim_workshop.right", description=__doc__)
    parser.add_argument("--n", type=int, default=500, help="how many histories (default: 500)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--out", type=Path, default=Path("build/right"), help="where files go")
    args = parser.parse_args(argv)
    seeds = [args.seed] if args.seed is not None else range(args.first, args.first + args.n)
    begun = time.monotonic()
    found = sweep(seeds, args.out)
    for each in found:
        print(each)
    seconds = time.monotonic() - begun
    print(f"{len(seeds)} right histories, {len(found)} reported, {seconds:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
