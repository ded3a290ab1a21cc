"""Exact solvers for ReplaySCM: a smallest SCM that replays the training worlds, and the version space of all of them.

An SCM is train-exact iff every mechanism agrees with the rows in which its variable is not intervened on. So the
problem decomposes: (1) `roots_and_parents` lists, for each variable, the parent sets that determine its column; (2)
solvers.formulas has a least formula over each, or a lower bound of its size where that is expensive; (3)
solvers.acyclic has an acyclic, admissible assignment of least total size; (4) bounds that the assignment uses are made
exact and (3) is repeated, until all are. As in branch and bound, the result is proved least because every other
assignment costs at least its bound.

`space` counts instead: the functions over each parent set that agree with the rows (Moebius inversion over
subsets), then the weighted sum over acyclic assignments. Tests compare with the plain solvers of tests.oracles.

Invariants: every model that is returned has been replayed by dsl.replayscm.reference (`certified`). A claim names its
class: at most `max_parents` parents, the grammar's operators, the disclosure. Step (1) inspects O(m**(k+1)) sets for
m variables and k parents; steps (2) to (4) are exponential in the worst case, and a budget ends them with a bound.
"""
