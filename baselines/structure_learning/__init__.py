"""Score-based structure learning of Bayesian networks on binary rows with interventions.

Input: a frame of n binary rows and, for each variable, the rows in which it was set. Output: a DAG, a DAG with a
posterior for each arc, or arc strengths. Rows in which a variable was set do not count in its local score (G. F.
Cooper and C. Yoo, 1999).

`scores`: decomposable scores, a sum of local scores of (child, parent set): BDe(u), BDs, BDJ, K2, BIC, AIC, each with
its source. `search`: hill climbing and tabu search over single-arc additions, deletions and reversals, step for step
as the R package bnlearn performs them; strengths of arcs over resampled rows, and the threshold that turns them into
a network (M. Scutari and R. Nagarajan, 2013). `levels`: the exact optimum, the k best, and arc posteriors by dynamic
programming over subsets, O(m 2**m) local scores for m variables (T. Silander and P. Myllymaki, 2006; M. Koivisto and
K. Sood, 2004). `graph`: orders, blocks and known roots as masks of allowed and required parents.

Invariants: parent sets are bit masks, bit i for column i. A search is deterministic for one order of columns: ties
within a tolerance go to the first candidate, as in bnlearn, so another order of columns can give another DAG.
"""
