"""The result of `gradcli hessian`: second derivatives, and products with them."""
