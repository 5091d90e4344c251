"""The result of `gradcli jacobian`: J, how much of it is shown, and the number of passes."""
