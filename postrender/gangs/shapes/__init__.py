"""One module for each way to run a component with several pods."""
