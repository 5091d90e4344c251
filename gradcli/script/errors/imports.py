"""An import of a package that is not installed."""

from __future__ import annotations

from gradcli.script.errors.failure import Answer, Failure

# The packages whose names differ from those of their modules.
_PACKAGES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


def missing(at: Failure, name: str) -> Answer | None:
    """Return the answer about a module that is not there; None for one in a package that is there."""
    if "." in name:
        return None
    reason = f"{at.code(at.line)} needs `{name}`, and the Python that runs gradcli has no module of this name."
    command = f"`python -m pip install {_PACKAGES.get(name, name)}`"
    fix = f"{command} where gradcli is installed, if it is a package; a file of yours must be beside the script"
    return Answer(reason, fix)
