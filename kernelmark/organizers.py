"""The commands of those who run a competition: moderation, and everything that is not a grading at a keyboard.

`cli` adds them to `kernelmark`. Trusted. What is slow to import is imported by the command that needs it.
"""

from __future__ import annotations

import click

from kernelmark.printing import form_option, load_settings, print_lines


@click.group()
def moderate() -> None:
    """Say something about a recorded run; it is appended, and nothing is ever edited or removed."""


def _moderating(action: str, text: str) -> click.Command:
    @click.argument("run")
    @click.option("--actor", required=True, help="Who says so.")
    @click.option("--reason", required=True, help="Why; it stands on the board.")
    @form_option
    def command(run: str, actor: str, reason: str, form: str) -> None:
        from kernelmark import show
        from kernelmark.project import moderate

        event = moderate(load_settings(), run, action, actor, reason)  # type: ignore[arg-type]  # one of the three below
        print_lines([event.to_json()] if form == "json" else [event.run, *show.moderation([event])])

    return click.command(action, help=text)(command)


moderate.add_command(_moderating("disqualify", "Take RUN from the ranking; `show` still shows it."))
moderate.add_command(_moderating("reinstate", "Let RUN rank again, or for the first time if it came late."))
moderate.add_command(_moderating("annotate", "Say something about RUN; its state stays as it is."))

COMMANDS: tuple[click.Command, ...] = (moderate,)
