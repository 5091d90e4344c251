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
JVP = {
    "system": "the statements and their values",
    "u": "how fast the inputs change",
    "jacobian": "J, in formulas and in numbers",
    "steps": "the forward pass with its tangents",
    "jvp": "J·u, with its arithmetic",
    "pairing": "vᵀ(J·u) and (vᵀJ)·u",
}
HESSIAN = {
    "system": "the statements and their values",
    "hessian": "H, or H·u",
    "curvature": "the gradient, and what the eigenvalues say",
}
CHECK = {"claims": "the verdicts"}
