"""Branch and cut for acyclic parent-set assignments of least total cost, with HiGHS (extra `large`).

Model: a binary column x[v, S] for each variable v and candidate parent set S; for each v exactly one column is 1; the
objective is the sum of costs. Acyclicity is enforced by k-cluster cuts alone, separated at fractional points (T.
Jaakkola, D. Sontag, A. Globerson and M. Meila, 2010; J. Cussens, 2011). The overall method is that of GOBNILP (M.
Bartlett and J. Cussens, Integer linear programming for the Bayesian network structure learning problem, 2017).

`tree` is the search: best bound first, branching on whether u is a parent of v, columns removed by reduced cost.
`relaxation` solves linear programs, derives bounds and separates cuts; `tree.OrderLocalSearch` is the primal heuristic,
an iterated local search over orders; `least` runs the criteria of the tie rule one after another.

Invariants: a bound is derived from dual prices that are rounded to multiples of 2**-14 and added up in integers, so
it holds whatever HiGHS returns (A. Neumaier and O. Shcherbina, 2004). An incumbent is an acyclic assignment whose
cost is recomputed in integers. Worst case exponential; 60 variables with 600 and 1,379 parent sets took 15 and 131 s
(docs/limits.md).
"""
