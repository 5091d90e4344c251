"""Systems whose pictures are drawn in every format."""

from __future__ import annotations

SYSTEMS = {
    "main": ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100"),
    "used twice": ("y=x**2+x", "--at", "x=3"),
    "formulas": ("y=x**2+x/3",),
    "shapes": ("h=tanh(x@W+b)", "L=-log(softmax(h@U)[0])", "--shape", "x=2,W=2x3,b=3,U=3x4"),
    "network": (
        "h=tanh(x@W+b)", "L=sum((h-target)**2)", "--at", "x=[1,2],W=[[1,2],[3,4]],b=[0,0],target=[1,0]"
    ),
    "signs": ("y=where((x<1)&(x>-3),x,2*x)", "z=einsum(\"i,i->\",[x,x],[x,2])", "--at", "x=0.5"),
    "names": ("größe_1=λ*a_b__c", "y=größe_1**2", "--at", "λ=2,a_b__c=3"),
    "not finite": ("y=log(x)", "z=1/(x-x)", "--at", "x=-1", "--v", "1,1"),
    "large": ("y=sum(A**2)", "--at", f"A=[{','.join(['[1.5,2,3,4,5,6,7]'] * 9)}]"),
    "chain": ("\n".join(["t1=sin(x)", *(f"t{k + 1}=sin(t{k})" for k in range(1, 40))]), "--at", "x=1"),
    "branches": (
        "; ".join(f"h{k}=tanh(w*x{k}+b)" for k in range(9)), "L=" + "+".join(f"h{k}**2" for k in range(9)),
        "--at", ",".join([*(f"x{k}={k}" for k in range(9)), "w=0.1,b=0.2"]),
    ),
    "sample": ("-F", "samples/bundle_adjustment.grad", "--v", "ones"),
}  # fmt: skip
