"""What `gradcli run` tells of each backward: the system, the gradients, what became of `.grad`, and each step."""
