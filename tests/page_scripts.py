"""The scripts behind pages of the documentation, as modules."""

import importlib.util
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def load_script(name):
    """The script ``docs/name.py``, which can import its neighbours."""
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))
    spec = importlib.util.spec_from_file_location(f"{name}_page", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
