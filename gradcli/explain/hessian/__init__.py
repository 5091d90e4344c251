"""What `gradcli hessian` shows: second derivatives, and products with them."""
