"""Statistics of execution times: quantiles, confidence intervals of medians and of paired ratios, pooling of repeated
estimates, and tests for drift and for two modes.

The judge and the board call it. Trusted, pure Python. Nothing here assumes that times are independent or normally
distributed. They are skewed, have several modes if the chip changes its clock, and are correlated through its
temperature.
"""

from harness.stats.estimate import Estimate, combine, estimate_median, estimate_pseudomedian, geometric_mean
from harness.stats.pool import UncheckedEstimate, pool
from harness.stats.ratio import paired_ratio, steady_ratio
from harness.stats.series import correlation_time, drift, looks, median, quantile, two_modes
