"""Which gangs there are: values and places, never text.

keys       labels, annotations, kinds, needles: each spelled once
resources  an object -> InferenceService, PodGroup; refuses wrong types with a place
lifecycle  Go durations, the clamp
names      names of PodGroups
shapes     an InferenceService's component -> its gangs, one module for each way to run it
podgroup   a gang -> its PodGroup as a value
plan       all services and options -> gangs, changes, findings
"""
