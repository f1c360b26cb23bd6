"""The fast Gauss transform: Gaussian sums by Hermite and Taylor expansions, with bounds of their errors."""

REPULSIONS = {"fgt": "kernels.fast_gauss.FastGauss"}
SUMS_BY_NUMBER = {"order": "interface.gauss_transform"}
