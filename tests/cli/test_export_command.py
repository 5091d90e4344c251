"""gradcli export: files for each target, what is in them, and what is refused."""

import shutil
import subprocess
import sys

import pytest

SYSTEM = ("y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1")


@pytest.mark.parametrize("to", ["numpy", "torch", "jax", "c", "javascript"])
def test_a_file_has_the_functions_and_the_system(cli, to):
    out = cli.done("export", *SYSTEM, "--to", to, "--name", "curve").out
    assert all(f"{name}(" in out for name in ("curve", "curve_vjp", "curve_jacobian"))
    assert "y1 = x0**2+2*x1**3" in out
    if to in ("numpy", "torch", "jax"):
        compile(out, "curve.py", "exec")


def test_the_file_tests_itself(cli, tmp_path):
    path = tmp_path / "curve.py"
    outcome = cli.done("export", *SYSTEM, "--at", "x0=1,x1=2", "--output", str(path))  # whose extension says the target
    assert outcome.out == ""
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "as gradcli has it\n")


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_names_that_c_has_a_meaning_for(cli, tmp_path):
    path = tmp_path / "model.c"
    system = ("double=x*y1", "exp=double+lambda_*y0", "y=exp**2", "λ=int*y1", "main=λ+y", "float=x", "sin=cos(x)")
    point = "x=1,y1=2,y0=3,lambda_=4,int=5"
    cli.done("export", *system, "--to", "c", "--at", point, "--output", str(path))
    program = str(tmp_path / "model")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-DMODEL_TEST"]
    subprocess.run(["cc", *flags, str(path), "-lm", "-o", program], check=True)
    assert subprocess.run([program], check=False).returncode == 0
