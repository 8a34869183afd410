"""The command line: arguments, dispatch, and errors as one sentence."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from manykernels.cli.flags import in_flags

# Each command is a module of this package, imported when its arguments are needed: some take seconds to import.
COMMANDS = {
    "demo": "learn from built-in data and explain the result",
    "fit": "learn from a table and write a model",
    "predict": "apply a model to a table",
    "report": "report on a model in one HTML file",
    "bench": "list or run the benchmarks of a checkout",
}
OK, BAD_INPUT, INTERRUPTED = 0, 2, 130

DESCRIPTION = """\
Learn which kernels matter: give manykernels a table and the column to
predict, and it returns a predictor, the weight of every kernel, and a
certificate of how close to the optimum it is."""

EPILOG = """\
examples:
  manykernels demo
  manykernels fit people.csv --target churn
  manykernels predict people.mkl new_people.csv --output predictions.csv
  manykernels report people.mkl people.csv --out people.html"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are exceptions, so that `main` words every error alike."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print and exit on."""
        raise ValueError(f"{message} (see {self.prog} --help).")


def build_parser(wanted: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of the command and of its subcommands.

    Parameters
    ----------
    wanted : iterable of str, default=COMMANDS
        The subcommands whose arguments are needed; the others get only a summary.

    Returns
    -------
    parser : argparse.ArgumentParser

    Examples
    --------
    >>> build_parser().parse_args(["fit", "people.csv", "--target", "churn"]).norm
    1.0
    """
    raw, wanted = argparse.RawDescriptionHelpFormatter, set(wanted)
    parser = Parser(prog="manykernels", description=DESCRIPTION, epilog=EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"manykernels {version('manykernels')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="command")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, formatter_class=raw)
        if name in wanted:
            module = import_module(f"manykernels.cli.{name}")
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; None means those of the process.

    Returns
    -------
    status : int
        0 when all went well, 2 on bad input (explained in one sentence on standard error), 130 after Ctrl-C.
    """
    _replace_unprintable()
    try:
        given = sys.argv[1:] if argv is None else list(argv)
        arguments = build_parser([word for word in given if word in COMMANDS][:1]).parse_args(given)
        arguments.run(arguments)
    except BrokenPipeError:
        # The reader (such as `head`) has seen enough. Python would complain again while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("manykernels: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError, MemoryError) as error:
        print(f"manykernels: error: {_sentence(error)}", file=sys.stderr)
        return BAD_INPUT
    return OK


def _sentence(error: BaseException) -> str:
    # The first argument, as the text of an error would have its settings spelled already.
    words = in_flags(error.args[0]) if len(error.args) == 1 else str(error)
    text = " ".join(str(words).split())
    return text or f"{type(error).__name__} (the data may be too large for this machine)."


def _replace_unprintable() -> None:
    """Print a question mark where the terminal has no such character, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
