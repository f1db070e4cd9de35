"""Run folders: plain files, written atomically, that everything else is built from."""

from suite.record.run_folder import RunFolder

__all__ = ["RunFolder"]
