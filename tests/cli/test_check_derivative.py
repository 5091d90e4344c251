"""gradcli check: what it says of a wrong claim about an array, typed as the claim, is right."""

import pytest

CASES = {  # system, shapes, wrong claim: the derivative
    ("p=softmax(z); L=-log(p[0])", "z=3", "dL/dz=p-[0,1,0]"): "p - [1, 0, 0]",
    ("y=x@M", "x=2,M=2x2", "x.grad=v@M"): "M @ v",
    ("L=sum((X@w-t)**2)", "X=3x2,w=2,t=3", "dL/dw=2*X.T@(X@w+t)"): "2*X.T @ (X @ w - t)",
    ("h=tanh(x); L=sum(h**2)", "x=3", "dL/dx=2*h"): "2*h*(1 - h**2)",
    ("f=x@A@x", "A=3x3,x=3", "df/dx=A@x"): "(A + A.T) @ x",
    ("L=sum(relu(x))", "x=3", "dL/dx=x"): "where(x <= 0, 0, 1)",
    ("L=sum((X@w-t)**2)", "X=30x25,w=25,t=30", "dL/dw=X.T@(X@w-t)"): "2*X.T @ (X @ w - t)",
    ("p=softmax(z); L=-log(p[0])", "z=9", "dL/dz=p"): "p - [1, 0, 0, 0, 0, 0, 0, 0, 0]",
    ("f=det(A)", "A=3x3", "df/dA=A"): "cofactors(A)",
    ("L=mean(x)**2", "x=3", "dL/dx=x"): "expand(2/3*mean(x), (3,))",
    ("L=log(det(A))", "A=4x4", "dL/dA=A"): "inv(A).T",
    ("f=x[0]*x[1]", "x=2", "df/dx=x"): "",  # elements say more than an array of zeros with elements in it
}


@pytest.mark.parametrize(("system", "shapes", "claim"), CASES)
def test_the_derivative_of_a_wrong_claim(cli, system, shapes, claim):
    derivative = CASES[system, shapes, claim]
    (wrong,) = cli("check", system, claim, "--shape", shapes, "-f", "json").objects
    assert wrong.get("derivative", "") == derivative
    page = cli("check", system, claim, "--shape", shapes).out
    left = claim.partition("=")[0]
    assert (f"  {left} is {derivative}\n" in page) == bool(derivative)
    if derivative:
        assert cli("check", system, f"{left}={derivative}", "--shape", shapes).status == 0
