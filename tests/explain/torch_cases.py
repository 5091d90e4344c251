"""Commands whose PyTorch script PyTorch has run: `record_torch.py` writes what it printed."""

CASES = {
    "main": ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100"),
    "scalar": ("y=x**2", "--at", "x=3"),
    "calls": ("y=x**2", "--at", "x=3", "--v", "1", "--v", "10"),
    "retained": ("h=2*x", "z=h**3", "--at", "x=0.5", "--retain", "h"),
    "matrices": ("y=x@M", "--at", "x=[[2,1]],M=[[1,2],[3,4]]", "--v", "[[1,10]]"),
    "constants": ("y=k*sum(x**2)", "--at", "x=[1,2,3],k=2", "--wrt", "x"),
    "corners": ("y=relu(x)+abs(x)+hardtanh(x+1)+leaky_relu(x)+maximum(x,0)+clamp(x,0,1)", "--at", "x=0"),
    "ties": ("y=max(x)+max(x,axis=0)+norm(z)+min(x)", "--at", "x=[1,3,3,1],z=[0,0]"),
    "network": (
        "h=relu(X@W+b)",
        "L=mean((h@u-t)**2)",
        "--at",
        "X=[[1,2],[3,4]],W=[[1,-1],[0.5,2]],b=[0,1],u=[1,2],t=[1,0]",
    ),
    "softmax": ("p=softmax(z)", "L=-sum(t*log(p))", "--at", "z=[1,2,3],t=[0,0,1]", "--wrt", "z"),
    "losses": (
        "a=cross_entropy(z,2)",
        "b=huber_loss(z,t)",
        "c=gelu(z[0])+elu(z[1],0.5)+softplus(z[2])",
        "--at",
        "z=[1,-2,3],t=[0,0,1]",
        "--v",
        "ones",
    ),
    "normalised": (
        "y=layer_norm(x,3)",
        "s=std(x)+var(x)",
        "--at",
        "x=[[1,2,4],[0,3,1]]",
        "--v",
        "y=[[1,0,0],[0,2,0]],s=1",
    ),
    "assembled": ("y[0]=x[0]**2", "y[1]=sin(x[1])*x[0]", "--at", "x=[1,2]", "--v", "1,-10"),
    "large v": ("y=2*x", "--at", "x=[1,2,3,4,5,6,7,8,9,10,11,12,13,14]", "--v", "ones"),
    "linear algebra": ("y=det(A)+trace(inv(A)@B)+sum(solve(A,b))", "--at", "A=[[2,1],[1,3]],B=[[1,0],[2,1]],b=[1,1]"),
}
