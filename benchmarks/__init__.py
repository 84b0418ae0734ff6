"""Speed, memory and set size against peers and against what the machine can do; run with ``make bench``."""
