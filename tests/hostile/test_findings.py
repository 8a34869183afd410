"""Cases that once went wrong, each as simple as it gets; found by ``benchmarks/robust/fuzz.py`` or by hand."""

from math import inf

import pytest

from tests.hostile.cases import Case, KernelRecipe, replaced
from tests.hostile.test_properties import check

WIDE = KernelRecipe(value=3.0)
LINEAR, NARROW = KernelRecipe("linear"), KernelRecipe(value=1e-3)
ZERO = KernelRecipe("given zero", group="b")
GIVEN = KernelRecipe("given gaussian")
GAUSSIAN_LADDER = KernelRecipe("ladder")


def free(width: float, kind: str = "gaussian") -> tuple[KernelRecipe]:
    return (KernelRecipe(kind, width, related=False),)


NUMBERS = {
    "a width of 1e160": Case(kernels=free(1e160)),
    "a width of 1e-170": Case(kernels=free(1e-170)),
    "a ladder from 1e160": Case(kernels=free(1e160, "ladder")),
    "a ladder from 1e-170": Case(kernels=free(1e-170, "ladder")),
    "a ladder on data of 1e-160": Case(scale=1e-160, kernels=(KernelRecipe("ladder"),)),
    "data of 1e-27": Case(scale=1e-27),
    "data of 1e22": Case(scale=1e22, kernels=(KernelRecipe(value=3.0),)),
    "data of 1e160": Case(scale=1e160),
    "linear on data of 1e160": Case(scale=1e160, kernels=(LINEAR,)),
    "widths far below the spread": Case(task="regression", n=45, d=4, scale=1e8, kernels=free(1.0)),
    "seconds since 1970, sparse": Case(shift=1.6e9, scale=10.0, layout="csr"),
    "seconds since 1970, sparse, a ladder": Case(
        task="regression", shift=1.6e9, layout="csr64", kernels=free(1e-3, "ladder"), loss="epsilon_insensitive"
    ),
    "seconds since 1970, aligned": Case(
        estimator="two_stage", shift=1.6e9, layout="csr", kernels=free(1e-3), alignment="stagewise"
    ),
    "targets of 1e160": Case(task="regression", y_scale=1e160),
    "targets of 1e160, aligned": Case(estimator="two_stage", task="regression", y_scale=1e160),
    "targets of 1e160, epsilon-insensitive": Case(
        task="regression", y_scale=1e160, loss="epsilon_insensitive", epsilon=1e157
    ),
    "targets of 1e100, projected gradients": Case(
        task="regression", n=40, y_scale=1e100, norm=("penalty", 1.0, 1.0), solver="pgd", C=1e-4
    ),
    "targets of 1e160, a quadratic penalty": Case(task="regression", y_scale=1e160, norm=("penalty", 2.0, 1.0)),
    "polynomials that vanish": Case(
        n=40, d=1, scale=1e-160, norm=("lp", inf), kernels=(KernelRecipe("polynomial", degree=3, coef0=0.0), WIDE)
    ),
    "cosines of features of 1e160": Case(scale=1e160, kernels=(LINEAR,), normalize="cosine", approximation="nystroem"),
    "cosines of cubes": Case(
        task="regression", scale=1e30, kernels=(KernelRecipe("polynomial", degree=3),), normalize="cosine", center=True
    ),
    "waves far too fast for their features": Case(
        n=40, scale=1e22, kernels=free(1e-170), loss="logistic", approximation="fourier"
    ),
    "targets of 1e160, UFO": Case(estimator="ufo", task="regression", y_scale=1e160),
    "one target of 1e36, UFO": Case(estimator="ufo", task="regression", target="constant", y_scale=1e30, y_shift=1e6),
    "targets of 1e160, a family": Case(
        estimator="family", task="regression", n=3, d=1, y_scale=1e160, weights="one 1e12"
    ),
    "targets far from 0": Case(
        task="regression", y_shift=1e6, y_scale=1e30, C=1e6, kernels=(NARROW,), weights="all 1e12"
    ),
    "cosines of data of 1e-160": Case(scale=1e-160, kernels=(LINEAR,), normalize="cosine"),
    "projections of data far from the origin": Case(
        task="multiclass",
        n=7,
        d=5,
        scale=10.0,
        shift=1.6e9,
        kernels=(KernelRecipe(value=30.0, columns=(0,)), KernelRecipe("overlap", columns=(3, 4))),
        norm=("mixed", 1.5),
        loss="squared_hinge",
        normalize=None,
        approximation="fourier",
        rank=100,
    ),
    "predictions that are best from the start": Case(
        task="multiclass",
        seed=320,
        n=7,
        d=1,
        values="integers",
        kernels=(LINEAR,),
        loss="logistic",
        normalize="trace",
        intercept=False,
    ),
    "targets of 1e160, steps in the weights": Case(task="regression", y_scale=1e160, solver="reduced_newton"),
    "features of data of 1e-160": Case(
        scale=1e-160, kernels=(KernelRecipe("overlap"),), loss="squared", solver="mirror", approximation="fourier"
    ),
    "cubes of 1e27, aligned": Case(
        estimator="two_stage",
        d=5,
        scale=1e22,
        shift=1e27,
        kernels=(KernelRecipe("polynomial", 0.3, columns=(3, 4), degree=3),),
        normalize=None,
    ),
    "targets of 1e160, mirror descent": Case(
        task="regression",
        d=5,
        y_scale=1e160,
        kernels=(KernelRecipe("dirichlet", 1e-3, related=False, columns=(4,)),),
        solver="mirror",
    ),
    "slopes too far apart for a linear program": Case(
        scale=1e8,
        values="integers",
        kernels=(KernelRecipe("overlap"), KernelRecipe("ladder", 1e-3, columns=(0,))),
        loss="squared",
        solver="level",
        C=0.01,
        normalize=None,
    ),
    "a narrow kernel and one of 1e10, UFO": Case(
        estimator="ufo", n=12, shift=1e5, kernels=(KernelRecipe(value=0.3), LINEAR)
    ),
    "a wide kernel, UFO": Case(estimator="ufo", kernels=(KernelRecipe(value=1e3, columns=(0,)),), C=100.0),
    "samples that differ by 1e-5, UFO": Case(
        estimator="ufo",
        seed=930,
        n=2,
        scale=1e-30,
        shift=1e-25,
        kernels=(KernelRecipe("overlap"), LINEAR, KernelRecipe("polynomial", 0.03)),
    ),
    "a polynomial without normalization": Case(
        task="regression", n=40, scale=10.0, shift=2000.0, C=1e3, kernels=(KernelRecipe("polynomial"),), normalize=None
    ),
}
WEIGHTS = {
    "costs of 1e18, regression": Case(task="regression", kernels=(NARROW,), C=1e6, weights="all 1e12"),
    "costs of 1e18, squared loss": Case(kernels=(NARROW,), loss="squared", C=1e6, weights="all 1e12"),
    "a cost of 1e12": Case(kernels=(KernelRecipe(columns=(0,)),), weights="one 1e12"),
    "a cost of 1e12, fast waves": Case(
        d=5, values="heavy", kernels=(KernelRecipe("dirichlet", 1e-3, columns=(3,)),), weights="one 1e12"
    ),
    "a weight of 5e-324": Case(
        kernels=(KernelRecipe("polynomial", degree=3),), loss="squared_hinge", weights="one 5e-324"
    ),
    "a weight of 5e-324, aligned": Case(estimator="two_stage", kernels=(LINEAR,), weights="one 5e-324"),
    "a weight of 5e-324, a penalty": Case(
        n=4, loss="squared", norm=("penalty", 1.0, 1e-2), C=1e-6, weights="one 5e-324"
    ),
    "a weight of 1e-300, huge targets": Case(task="regression", n=2, y_scale=1e12, C=100.0, weights="one 1e-300"),
    "costs of 1e12, two stages": Case(
        estimator="two_stage",
        seed=281,
        kernels=(KernelRecipe("overlap", columns=(0,)), KernelRecipe("linear", columns=(1,))),
        weights="all 1e12",
    ),
    "a cost of 1e12 and the last bit of the intercept": Case(
        n=2, kernels=(KernelRecipe("polynomial", columns=(0,), degree=3, coef0=0.0),), C=1e-6, weights="one 1e12"
    ),
    "a cost of 1e12 at the corner of its loss": Case(
        task="regression",
        seed=185,
        n=5,
        d=1,
        duplicates=True,
        target="rare",
        kernels=(WIDE, KernelRecipe(value=30.0)),
        norm=("lp", inf),
        loss="epsilon_insensitive",
        C=1e6,
        epsilon=0.0,
        normalize="trace",
        weights="one 1e12",
    ),
    "a cost of 1e12, aligned": Case(
        estimator="two_stage", task="regression", n=40, duplicates=True, weights="one 1e12", alignment="qp"
    ),
    "a cost of 1e12, unit trace": Case(
        seed=345,
        n=7,
        scale=1e22,
        shift=1e27,
        constant="zero",
        kernels=(KernelRecipe("overlap"),),
        loss="squared",
        normalize="trace",
        weights="one 1e12",
        again="split sample",
    ),
    "a weight of 5e-324, regression": Case(
        task="regression", d=3, kernels=(LINEAR,), loss="epsilon_insensitive", weights="one 5e-324"
    ),
}
IDLE = Case(kernels=(GIVEN, ZERO), C=0.01, normalize="trace")  # a machine that learns next to nothing
KERNELS = {
    "a zero kernel, p = 10": replaced(IDLE, norm=("lp", 10.0)),
    "a zero kernel, p = inf": replaced(IDLE, norm=("lp", inf)),
    "a zero kernel in a group of its own": replaced(IDLE, norm=("mixed", inf)),
    "a zero kernel and a penalty": replaced(IDLE, norm=("penalty", 2.0, 1.0), n=2, weights="one 1e-300"),
    "a zero kernel and an elastic norm": replaced(IDLE, norm=("elastic", 10.0)),
    "given matrices of rank one, far apart": Case(
        seed=520,
        n=12,
        target="noise",
        kernels=(KernelRecipe("given rank one", 1e30), KernelRecipe("given rank one")),
        norm=("elastic", 0.0),
        loss="squared_hinge",
        normalize=None,
        intercept=False,
        weights="all 1e12",
    ),
    "a zero kernel, nothing to align with": Case(
        estimator="two_stage",
        task="regression",
        target="constant",
        constant="zero",
        kernels=(LINEAR, KernelRecipe("linear", columns=(1,))),
        alignment="independent",
    ),
    "groups of linear kernels, one of 1e30": Case(
        seed=983,
        n=60,
        d=1,
        kernels=(
            KernelRecipe("given linear", 1e3, group="b"),
            KernelRecipe("given rank one"),
            KernelRecipe("given linear", 1e30),
        ),
        norm=("mixed", 2.0),
        loss="squared",
        C=100.0,
        normalize=None,
    ),
    "a given matrix of 1e30": Case(
        seed=598,
        n=7,
        d=1,
        target="noise",
        kernels=(KernelRecipe("given gaussian", 1e30),),
        normalize=None,
        solver="group_lasso",
    ),
    "a constant ladder, centered, without normalization": Case(
        task="regression", n=3, kernels=(GAUSSIAN_LADDER,), center=True, normalize=None, weights="some zero"
    ),
    "a polynomial and a ladder": Case(n=3, d=1, kernels=(KernelRecipe("polynomial"), GAUSSIAN_LADDER)),
    "centered waves that hardly move": Case(
        seed=774,
        n=7,
        d=5,
        scale=1e-8,
        values="heavy",
        C=1e6,
        center=True,
        kernels=(KernelRecipe("dirichlet", 1e-3, related=False, columns=(0,)),),
    ),
}
ROWS = {  # one row is predicted as among others
    "huge phases, samples in Fortran order": Case(
        n=5, scale=1e8, layout="F", kernels=free(1e-27), approximation="fourier", rank=10
    ),
    "huge phases, some columns of a table": Case(
        n=12,
        d=3,
        scale=1e22,
        kernels=(KernelRecipe(value=1e-27, related=False, columns=(1, 2)),),
        approximation="fourier",
        rank=10,
    ),
    "seconds since 1970, a frame and a single wave": Case(
        task="regression",
        n=12,
        d=5,
        scale=10.0,
        shift=1.6e9,
        layout="frame",
        kernels=(KernelRecipe(value=0.3),),
        approximation="fourier",
        rank=2,
    ),
    "centered around a sample of cost 1e16": Case(
        seed=1, n=20, d=1, kernels=(WIDE,), C=1e4, center=True, intercept=False, weights="one 1e12"
    ),
}
ESTIMATORS = {
    "ufo": Case(estimator="ufo"),
    "ufo with a large C": Case(
        estimator="ufo",
        task="regression",
        n=2,
        loss="epsilon_insensitive",
        C=1e4,
        kernels=(KernelRecipe("ladder", 0.03, columns=(0,)),),
    ),
    "two stages, without normalization": Case(
        estimator="two_stage",
        task="multiclass",
        seed=757,
        n=60,
        scale=1e9,
        layout="int",
        target="rare",
        kernels=(GAUSSIAN_LADDER, KernelRecipe("overlap")),
        alignment="independent",
        normalize=None,
    ),
    "two stages": Case(estimator="two_stage"),
    "products": Case(estimator="family", family="products", norm=("lp", 2.0)),
    "monomials": Case(estimator="family", family="monomials", norm=("lp", 2.0)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    check(NUMBERS[name])


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name):
    check(WEIGHTS[name])


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    check(KERNELS[name])


@pytest.mark.parametrize("name", ROWS)
def test_single_rows(name):
    check(ROWS[name])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name):
    check(ESTIMATORS[name])
