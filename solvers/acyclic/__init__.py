"""Acyclic parent-set assignments: least total cost, and sums over all of them.

Input: for each of m variables a list of candidate parent sets with a cost (optimization) or a weight (counting). A
parent-set assignment takes one set per variable so that the directed graph of parents is acyclic. This is score-based
structure learning of Bayesian networks with sizes or log-weights in place of scores; optimization is NP-hard (D. M.
Chickering, Learning Bayesian networks is NP-complete, 1996), counting is at least as hard.

Optimization: `least` removes dominated sets and splits into strongly connected parts; it has dynamic programming over
subsets, O(2**m) states (T. Silander and P. Myllymaki, 2006), Edmonds' branching, and a heuristic search over orders.
`maxsat` adds cluster cuts to a core-guided solver; `integer_program` is branch and cut. `optimum` chooses between
them.

Counting: `count` is inclusion and exclusion over sinks, O(3**m) terms (R. W. Robinson, 1973), or bucket elimination
along a tree decomposition (`elimination`); `count.bounds` certifies bounds of sums with too many terms. `draws` samples
exactly, `estimate` is sequential Monte Carlo.

Invariants: costs and weights are Python or fixed-width integers, so no exact result depends on rounding. Every engine
ranks by size, then mentions (occurrences of variables), then the smallest parent set of each variable in turn. Sets are
bit masks: bit i is variable i.
"""
