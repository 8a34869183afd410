"""Words of refusals that several tests expect."""

import inspect

from sklearn.utils.validation import _check_sample_weight

# From 1.9 on, scikit-learn looks for a weight that is not zero whenever it checks weights, before the library does.
_ASKS_FIRST = "allow_all_zero_weights" in inspect.signature(_check_sample_weight).parameters
ALL_ZERO = (
    r"^Sample weights must contain at least one non-zero number\.$"
    if _ASKS_FIRST
    else r"^sample_weight is zero for every sample: there is nothing to learn from\.$"
)
