"""The names of the sections of each command's page, and what they show: `--only` takes them, `--help` lists them."""

BACKWARD = {
    "system": "the statements and their values",
    "v": "the cotangent, and the scalar whose gradient it asks for",
    "jacobian": "J, with v beside its rows and vᵀJ below",
    "steps": "the forward and the reverse pass",
    "calls": "what each call adds to .grad",
    "grad": "the gradients, with their arithmetic",
    "pytorch": "the same in PyTorch; alone, a complete script",
}
JACOBIAN = {
    "system": "the statements and their values",
    "jacobian": "J, in formulas and in numbers",
    "steps": "the forward pass, and a reverse pass for each row of J",
}
