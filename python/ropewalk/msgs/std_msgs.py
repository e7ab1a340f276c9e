# Made by UPDATE=1 cargo test -p ropewalk-generate --test python_files; do not edit.
"""The types of std_msgs."""

from . import _package

__getattr__, __dir__ = _package(__name__)
