"""What only a running program can do for gangs: reset a PodGroup that failed, report who else holds one of ours."""
