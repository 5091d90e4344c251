"""Counts the slips that `check` names: `python tests/pages/check/count_slips.py ONE TWO [SEED]`, claims with each."""

import sys
import warnings
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from checked import here  # noqa: E402
from spoiler import wrong_claims  # noqa: E402
from test_slips import judged  # noqa: E402

from gradcli.algebra.bounded import Bounded  # noqa: E402


def main(one: int, two: int, seed: int = 0) -> None:
    for slips, count in ((1, one), (2, two)):
        tried, named = Counter(), Counter()
        for claim in wrong_claims(count, slips, seed + slips):
            found, is_named = judged(claim)
            kinds = " + ".join(dict.fromkeys(s.kind for s in claim.slips))
            tried[kinds] += 1
            named[kinds] += is_named
            if not is_named:
                said = [(s.kind, s.node, s.operand, s.wrote, s.times) for s in found.slips]
                made = [(s.kind, s.step, s.by, s.wrote) for s in claim.slips]
                print(
                    found.verdict, "|", claim.guise, "|", claim.system, "|", claim.text, "|", made, "|", found.why, said
                )
        for kind, count in sorted(tried.items()):
            print(f"{named[kind]:5d} of {count:5d}  {kind}")
        print(f"{sum(named.values())} of {sum(tried.values())} named, {slips} slip(s)")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    Bounded.ask = here
    main(*map(int, sys.argv[1:]))
