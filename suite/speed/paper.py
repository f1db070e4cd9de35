"""The plans by which the paper's methods are compared."""

# By method: the title of its plan among all that are predicted. Dense merges as well as LAGS-SGD does, or the
# comparison would be with a dense baseline that nobody has to use.
PLANS = {"dense": "dense, merged", "slgs": "SLGS", "lags": "LAGS, merged"}
