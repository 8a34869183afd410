"""What surrounds the commands: arguments, errors, help, Ctrl-C."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from manykernels.cli import fitting, learning_bars
from manykernels.cli.main import main

FIT = ("fit", "people.csv", "--target", "churn")


class TestBadInput:
    @pytest.mark.usefixtures("people")
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("fit", "absent.csv", "--target", "y"), "The table must be a file that exists; got 'absent.csv'"),
            (("fit", "people.xlsx", "--target", "y"), "The table must end in one of .csv"),
            (("fit", "people.csv"), "the following arguments are required: --target"),
            (("fit", "people.csv", "--target", "chum"), "did you mean 'churn'?"),
            (("fit", "people.csv", "--target", "churn", "--regression"), "must hold finite numbers"),
            (("fit", "scores.csv", "--target", "score"), "add --regression"),
            ((*FIT, "--C", "-1"), "argument --C: it must be a positive number; got '-1'"),
            ((*FIT, "--C", "much"), "argument --C: it must be a positive number; got 'much'"),
            (
                (*FIT, "--norm", "0.5"),
                "argument --norm: it must be a number of at least 1, or inf; got '0.5'",
            ),
            ((*FIT, "--norm", "nan"), "argument --norm"),
            ((*FIT, "--tol", "0"), "argument --tol: it must be a positive number; got '0'"),
            ((*FIT, "--test-size", "1"), "argument --test-size: it must be at least 0 and below 1; got '1'"),
            (
                (*FIT, "--max-iter", "0"),
                "argument --max-iter: it must be a whole number of at least 1; got '0'",
            ),
            ((*FIT, "--max-iter", "inf"), "argument --max-iter"),
            ((*FIT, "--seed", "1.5"), "argument --seed: it must be a whole number"),
            ((*FIT, "--seed", "-1"), "argument --seed: it must be a whole number"),
            (
                (*FIT, "--loss", "epsilon_insensitive"),
                "--loss must be one of hinge, squared_hinge, logistic, squared for classes",
            ),
            ((*FIT, "--model", "absent/x.mkl"), "--model must be a file that can be written"),
            ((*FIT, "--model", "."), "but it is a folder"),
            (
                (*FIT, "--cv", "--C", "5", "--norm", "2"),
                "--cv chooses C and the norm; leave out --C and --norm, or --cv.",
            ),
            (("fit", "scores.csv", "--target", "score", "--regression", "--balance", "yes"), "is for classes"),
            ((*FIT, "--depth", "3"), "unrecognized arguments: --depth 3"),
            (("learn",), "invalid choice: 'learn'"),
            ((), "the following arguments are required: COMMAND"),
        ],
    )
    def test_one_sentence(self, fail, arguments, message):
        assert message in fail(*arguments)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a,y\n", "has 0 rows"),
            ("a,y\n1,x\n2,x\n", "must have at least two classes"),
            ("a,y\n1,x\n2,\n3,z\n", "must have a value in every row"),
            ("a,y\n1,x\n2,x\n3,z\n", "class 'z' has one"),
            ("y\nx\nz\nx\nz\nx\nz\nx\nz\n", "must have a column to learn from"),
            ("a,y\n1,x\n2,z\ninf,x\n4,z\n5,x\n6,z\n7,x\n8,z\n", "must hold finite numbers"),
        ],
    )
    def test_tables(self, folder, fail, content, message):
        (folder / "bad.csv").write_text(content)
        assert message in fail("fit", "bad.csv", "--target", "y")
        assert not (folder / "bad.mkl").exists()


class TestHelp:
    @pytest.mark.parametrize("command", ["", "demo", "fit", "predict"])
    def test_has_an_example(self, capsys, command):
        with pytest.raises(SystemExit) as caught:
            main([*command.split(), "--help"])
        assert caught.value.code == 0
        assert re.search(rf"examples?:\n  manykernels {command or 'demo'}", capsys.readouterr().out)

    def test_explains_every_argument(self, capsys):
        with pytest.raises(SystemExit):
            main(["fit", "--help"])
        out = capsys.readouterr().out
        options = re.findall(r"--[\w-]+", out.split("options:")[0])
        assert {"--target", "--regression", "--norm", "--C", "--loss", "--model", "--test-size"} <= set(options)
        for option in options:
            assert re.search(rf"^  {option}( \[?[A-Z]+\]?)?\s+\S", out, re.MULTILINE), option

    @pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]])
    def test_comes_at_once(self, arguments):
        """None of the packages that take seconds to import is."""
        code = (
            "import sys\nfrom manykernels.cli.main import main\n"
            f"try:\n    main({arguments})\nexcept SystemExit:\n    pass\n"
            "print(sorted({'numpy', 'pandas', 'sklearn', 'numba', 'rich'} & set(sys.modules)))"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert ended.stdout.splitlines()[-1] == "[]"

    def test_version(self, capsys):
        with pytest.raises(SystemExit) as caught:
            main(["--version"])
        assert caught.value.code == 0
        assert re.match(r"manykernels \d+\.\d+", capsys.readouterr().out)


def test_parts_of_the_package_are_there_when_asked_for():
    code = (
        "import manykernels\nassert manykernels.kernels.Gaussian(1.0)\nassert manykernels.norms.LpNorm(2.0)\n"
        "assert {'MKLClassifier', 'kernels'} <= set(dir(manykernels))\n"
        "[getattr(manykernels, name) for name in dir(manykernels)]\n"
        "from manykernels import *\nassert MKLClassifier is manykernels.MKLClassifier\n"
        "try:\n    manykernels.absent\nexcept AttributeError as error:\n    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "module 'manykernels' has no attribute 'absent'\n"


class TestTrouble:
    def raising(self, monkeypatch, error):
        def fit_fails(*arguments):
            raise error

        monkeypatch.setattr(fitting.MKLClassifier, "fit", fit_fails)

    @pytest.mark.usefixtures("people")
    def test_interrupt(self, capsys, monkeypatch):
        self.raising(monkeypatch, KeyboardInterrupt)
        assert main(FIT) == 130
        assert capsys.readouterr().err.splitlines()[-1] == "manykernels: interrupted"
        assert not Path("people.mkl").exists()

    @pytest.mark.usefixtures("people")
    def test_interrupt_of_a_fit_that_would_keep_its_model(self, capsys, monkeypatch):
        monkeypatch.setattr(learning_bars.GapMeter, "__call__", lambda *_: signal.raise_signal(signal.SIGINT))
        assert main(FIT) == 130
        assert capsys.readouterr().err.splitlines()[-1] == "manykernels: interrupted"
        assert not Path("people.mkl").exists()

    @pytest.mark.usefixtures("people")
    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (MemoryError(), "MemoryError"),
            (ValueError("kernels must\nbe  good."), "error: kernels must be good.\n"),
        ],
    )
    def test_errors_of_the_fit(self, capsys, monkeypatch, error, message):
        self.raising(monkeypatch, error)
        assert main(FIT) == 2
        assert message in capsys.readouterr().err

    @pytest.mark.usefixtures("people")
    def test_a_defect_is_not_taken_for_bad_input(self, monkeypatch):
        self.raising(monkeypatch, TypeError("a defect"))
        with pytest.raises(TypeError, match="a defect"):
            main(FIT)
