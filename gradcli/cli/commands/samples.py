"""gradcli samples: writes the samples into a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import click


@click.command()
@click.argument("folder", default="samples")
def samples(folder: str) -> None:
    """Write the samples: systems, PyTorch scripts, models and shell scripts to try.

    FOLDER must be new or empty; without it, it is the folder samples, whose paths the guide's examples have.

    Examples:
        gradcli samples examples
        gradcli run examples/vector_to_vector.py

    """
    from gradcli.cli.output import wrote
    from gradcli.data.replacement import write_folder
    from gradcli.process.streams import print_error

    count = write_folder(folder, copy_samples)
    print_error(wrote(folder, f"{count} files; `gradcli explain samples` says what each shows"))


def copy_samples(folder: Path) -> None:
    """Copy the samples into a folder, which may be there."""
    shutil.copytree(samples_folder(), folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def samples_folder() -> Path:
    """Return the folder of the samples: that of a checkout, or where a wheel puts it."""
    import sysconfig

    beside = Path(__file__).parents[3] / "samples"
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    installed = (Path(sysconfig.get_path("data", scheme)) / "share" / "gradcli" / "samples" for scheme in schemes)
    return next((path for path in (beside, *installed) if (path / "vector_to_vector.py").is_file()), beside)
