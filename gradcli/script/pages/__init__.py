"""The pages of each backward, and of each step of an optimizer.

`page` has the system and its gradients, `functions` those with functions of the script's own, `effects` what became of
each `.grad`, `flow` the gradients of many parameters, `steps` an optimizer's rule, `rows` a call as JSON.  All
read the record alone.
"""
