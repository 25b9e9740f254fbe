"""What stands in for a cluster where the reconciler is tested: an API server in memory, the PodGroup controller, a clock.

`tests/e2e/test_reconciler_models.py` holds the first two against the real programs.
"""
