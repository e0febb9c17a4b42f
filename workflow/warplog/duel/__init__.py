"""The duel: two versions of a kernel take turns in one process, which tells differences that two campaigns cannot."""
