"""Exact posteriors of extended items: SCMs weighted by prior and by the probability of noisy rows.

Noise is in mechanisms, and each mechanism is judged on observed parents, so the probability of the rows is a product
over variables. `subset_tables` sums it over all functions of each parent set, by Moebius inversion; the sum over
acyclic choices of parent sets is solvers.acyclic's. Hidden variables are columns that are summed over
(solvers.replayscm.hidden). Everything here is exact: weights are integers over a common denominator.
"""
