"""Names a checkout outside the project in the project's settings, where imported problems look for it. Trusted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.files import outside
from harness.shared.foreign import FORMS, ForeignForm
from kernelmark.interop.importing.folder import together
from kernelmark.interop.importing.toml import written
from kernelmark.project.settings import FILE_NAME, PREFIX, Settings


@dataclass(frozen=True)
class NamedCheckout:
    """A checkout from which problems are imported into a folder, and what the settings say of it."""

    settings: Settings
    form: ForeignForm
    checkout: Path
    into: Path

    def refuse_another(self) -> None:
        """Check that the settings name no other checkout, where problems imported from this one would be looked for.

        Raises:
            UsageError: they do.
        """
        known = self.settings.checkouts.get(self.form)
        if known not in (None, outside.real(self.checkout)) and not self._together:
            remedy = f"import from there, or change `{self._setting}` in {FILE_NAME} or {self._variable}"
            raise UsageError(str(self.checkout), f"is not the checkout that the settings name, {known}", remedy)

    def write(self) -> str:
        """Set the checkout in kernelmark.toml, unless it is set, or in the project; returns what was done, if anything.

        Raises:
            UsageError: the file cannot be changed.
        """
        if self._together or self.form in self.settings.checkouts:
            return ""
        file, here = self.settings.root / FILE_NAME, outside.real(self.checkout)
        key = written({self._setting: os.path.relpath(here, outside.real(self.settings.root))})
        try:
            text = outside.text(file) if file.exists() else ""
            file.write_text(key + text, encoding="utf-8")  # a key at the beginning is in no table
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise UsageError(str(file), f"cannot be changed ({why})", f"set {self._variable}={here}") from None
        return f"wrote `{self._setting}` to {FILE_NAME}; where the checkout is elsewhere, set {self._variable}"

    @property
    def _together(self) -> bool:
        return together(self.into, self.checkout, self.settings.root)

    @property
    def _setting(self) -> str:
        return FORMS[self.form].setting

    @property
    def _variable(self) -> str:
        return PREFIX + self._setting.upper()
