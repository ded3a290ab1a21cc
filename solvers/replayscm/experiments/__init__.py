"""Which world to ask for: exact expected shares and bits, greedy choices, and what nobody can do better.

`candidates` rates one world under a posterior, by listing its readings, and compares all candidate worlds on a class
whose members are listed: cells, greedy and optimal trees, the clairvoyant minimum. `clairvoyant` finds that minimum
without listing members, by implicit hitting sets, with a certificate. `greedy` chooses at real size.
"""
