"""The help of every command: whole summaries, commands in sections, examples below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Write and grade kernels": ("start", "check", "debug", "bench", "compare", "profile", "submit"),
    "See problems and results": ("problems", "board", "runs", "show", "explain", "site"),
    "Use a server": ("login", "logout", "servers", "queue", "watch", "cancel", "tokens"),
    "Organize a course or a competition": (
        "grade",
        "marks",
        "regrade",
        "moderate",
        "select",
        "audit",
        "similar",
        "verify",
        "export",
        "merge-ledger",
        "import",
    ),
    "Train models": ("grade-many",),
    "Set up a project and a machine": ("init", "doctor", "calibrate", "fleet", "cache"),
    "Serve a project": ("serve", "worker", "workers", "accounts", "invitations", "import-ledger", "repair-ledger"),
}
"""The sections of the help. Commands that are in none of them are listed last."""

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": ("kernelmark start softmax", "kernelmark check softmax softmax.py", "kernelmark submit softmax softmax.py"),
    "start": ("kernelmark start softmax", "kernelmark start matmul my_matmul.py --lang triton"),
    "check": ("kernelmark check softmax softmax.py", "kernelmark check softmax - --language py < softmax.py"),
    "debug": ("kernelmark debug softmax softmax.py", 'kernelmark debug softmax softmax.py --test "one row" -i'),
    "bench": ("kernelmark bench softmax softmax.py --quick", "kernelmark bench softmax softmax.py --baseline compiled"),
    "profile": (
        'kernelmark profile softmax softmax.py --case "4096 × 4096"',
        "kernelmark profile softmax softmax.py --sweep cols=128:16384",
    ),
    "compare": (
        "kernelmark compare my.py reference/softmax/triton.py --problem softmax",
        "kernelmark compare 81def7 3fa1",
    ),
    "submit": (
        "submit softmax softmax.py",
        "submit softmax softmax.py --thorough --profile",
        "submit softmax softmax.py --to bench",
    ),
    "login": (
        "kernelmark login 'https://bench.example.org/join#kmi_0123' --name ada",
        "kernelmark login https://bench.example.org --as bench",
    ),
    "logout": ("kernelmark logout bench",),
    "accounts change": ("kernelmark accounts change ada --team red", "kernelmark accounts change ada --role assistant"),
    "accounts ban": ("kernelmark accounts ban mallory",),
    "accounts unban": ("kernelmark accounts unban mallory",),
    "accounts link": ("kernelmark accounts link grace2 grace",),
    "accounts sign-out": ("kernelmark accounts sign-out ada",),
    "invitations make": (
        "kernelmark invitations make",
        "kernelmark invitations make --count 60 --csv > class.csv",
        "kernelmark invitations make --role assistant --name tina",
        "kernelmark invitations make --account ada",
    ),
    "invitations revoke": ("kernelmark invitations revoke 17",),
    "tokens make": ("kernelmark tokens make --label 'training loop' --scope batch --scope read",),
    "tokens revoke": ("kernelmark tokens revoke 3",),
    "workers add": ("kernelmark workers add gpu1 > gpu1.token",),
    "workers revoke": ("kernelmark workers revoke gpu1",),
    "workers resume": ("kernelmark workers resume gpu1",),
    "workers pin": ("kernelmark workers pin", "kernelmark workers pin softmax"),
    "queue pause": (
        "kernelmark queue pause --why 'the machine is needed'",
        "kernelmark queue pause --account ada --why 'too many at once'",
    ),
    "queue again": ("kernelmark queue again 81def7c3a90b4412",),
    "watch": ("kernelmark watch", "kernelmark watch 81def7 --server bench"),
    "cancel": ("kernelmark cancel 81def7",),
    "board": ("kernelmark board softmax", "kernelmark board softmax --from bench"),
    "runs": ("kernelmark runs softmax --author ada", "kernelmark runs --from bench"),
    "show": ("kernelmark show 81def7", "kernelmark show 81def7 --diff", "kernelmark show 81def7 3fa1 --diff"),
    "explain": ("kernelmark explain wrong_answer", "kernelmark explain not_replayed"),
    "problems": ("kernelmark problems list", "kernelmark problems show softmax"),
    "problems show": ("kernelmark problems show softmax",),
    "problems new": ("kernelmark problems new swish", "kernelmark problems new swish --style returns"),
    "problems lint": ("kernelmark problems lint softmax", "kernelmark problems lint --no-samples"),
    "problems schema": ("kernelmark problems schema > problems/problem.schema.json",),
    "site": ("kernelmark site build --out public", "kernelmark site serve"),
    "site build": ("kernelmark site build --out public",),
    "grade": (
        "kernelmark grade softmax handins.zip --csv marks.csv --feedback feedback/",
        "kernelmark grade --changed origin/main --no-record",
    ),
    "marks": (
        "kernelmark marks softmax --csv marks.csv --feedback feedback/",
        "kernelmark marks softmax --gradebook worksheet.csv",
    ),
    "regrade": ("kernelmark regrade softmax --dry-run",),
    "select": ("kernelmark select 81def7 3c90aa --author ada",),
    "moderate": ('kernelmark moderate disqualify 81def7 --actor grace --reason "reads old memory"',),
    "moderate disqualify": ('kernelmark moderate disqualify 81def7 --actor grace --reason "reads old memory"',),
    "moderate reinstate": ('kernelmark moderate reinstate 81def7 --actor grace --reason "my mistake"',),
    "moderate list": ("kernelmark moderate list softmax",),
    "moderate undo": ('kernelmark moderate undo 5f2c91ab --actor grace --reason "the wrong ada"',),
    "moderate annotate": ('kernelmark moderate annotate 81def7 --actor grace --reason "see the forum"',),
    "audit": ("kernelmark audit 81def7", "kernelmark audit --self-test"),
    "similar": (
        "kernelmark similar softmax",
        "kernelmark similar softmax handins.zip --base starter.py --with 2025.zip --html similar.html",
    ),
    "export": (
        "kernelmark export --out record",
        "kernelmark export gpu_mode_pmpp_v2_vectoradd my.py --form popcorn --out submission.py",
    ),
    "merge-ledger": ("kernelmark merge-ledger ours.jsonl theirs.jsonl",),
    "import-ledger": ("kernelmark import-ledger ../my-copy",),
    "repair-ledger": ("kernelmark repair-ledger", "kernelmark repair-ledger --append"),
    "import": ("kernelmark import kernelbench ../KernelBench 1/19",),
    "import gpu-mode": ("kernelmark import gpu-mode ../reference-kernels pmpp_v2/sort_py",),
    "import kernelbench": ("kernelmark import kernelbench ../KernelBench 1/19 3",),
    "grade-many": (
        "kernelmark grade-many jobs.jsonl > results.jsonl",
        "kernelmark grade-many jobs.jsonl --out results.jsonl --effort screen --baseline eager",
    ),
    "init": (
        "kernelmark init my-project",
        "kernelmark init --problem matmul --problem attention",
        "kernelmark init my-course --course",
    ),
    "cache": ("kernelmark cache", "kernelmark cache --empty"),
    "doctor": ("kernelmark doctor", "kernelmark doctor -v", "kernelmark doctor --end-resident"),
    "serve": (
        "kernelmark serve",
        "kernelmark serve --no-grading --listen 10.0.0.5:8080 --behind-proxy 10.0.0.2",
    ),
    "fleet": ("kernelmark fleet start", "kernelmark fleet status"),
    "worker": (
        "kernelmark worker --to https://bench.example.org --token-file worker.token",
        "kernelmark worker --to https://bench.example.org --token-file worker.token --fleet fleet.address",
    ),
    "fleet join": ("kernelmark fleet join fleet.address",),
}
"""Examples by the path of the command; the example of any other command is the command itself."""


class Group(click.Group):
    """A group whose help has whole summaries."""

    sections: Mapping[str, tuple[str, ...]] = {}

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """As in click, except that summaries are wrapped, not cut, and that there may be sections."""
        placed = {name for names in self.sections.values() for name in names}
        rest = tuple(name for name in self.list_commands(context) if name not in placed)
        for title, names in [*self.sections.items(), ("Others" if placed else "Commands", rest)]:
            found = [(name, command) for name in names if (command := self.get_command(context, name))]
            if found:
                with formatter.section(title):
                    formatter.write_dl([(name, command.get_short_help_str(limit=1000)) for name, command in found])


def complete(root: click.Group) -> None:
    """Give every command below the root, and the root, its examples and the flag -h."""
    for path, command in [("", root), *commands(root)]:
        command.context_settings = {**command.context_settings, "help_option_names": ["-h", "--help"]}
        shown = EXAMPLES.get(path, (f"kernelmark {path}",))
        title = "Examples:" if len(shown) > 1 else "Example:"
        command.epilog = "\n".join(["\b", title, *(f"  {example}" for example in shown)])


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, by its path, such as `problems list`; groups too."""
    for name, command in group.commands.items():
        yield f"{path} {name}".strip(), command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
