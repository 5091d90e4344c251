"""The pages of each backward, and of each step of an optimizer.

`page` has the system and its gradients, `functions` those with functions of the script's own, `gradients` what became
of each `.grad`, `sums` what adds up there from call to call, `steps` an optimizer's rule, `rows` a call as JSON.
"""
