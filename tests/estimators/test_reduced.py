"""Two-stage models in files: learners reduced to numbers predict what they predicted."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from manykernels import AlignedKernel, TwoStageMKLClassifier, TwoStageMKLRegressor, load
from manykernels.kernels import Gaussian, GaussianFamily, Linear

X, y = load_iris(return_X_y=True)
KERNELS = [Linear(), Gaussian(1.0), Gaussian(3.0)]


def reopened(model, tmp_path):
    model.save(tmp_path / "model.mkl")
    return load(tmp_path / "model.mkl")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("learner", [None, SVC(C=3.0, kernel="precomputed"), NuSVC(nu=0.05, kernel="precomputed")])
def test_classifiers_predict_the_same_from_a_file(learner, classes, tmp_path):
    rows = y < classes
    model = TwoStageMKLClassifier(KERNELS, learner=learner, random_state=0).fit(X[rows], y[rows])
    again = reopened(model, tmp_path)
    Z = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))
    np.testing.assert_allclose(again.decision_function(Z), model.decision_function(Z), atol=1e-9)
    assert again.alignment_ == model.alignment_
    assert again.held_out_alignment_ == model.held_out_alignment_


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(
    "learner", [None, KernelRidge(kernel="precomputed"), SVR(kernel="precomputed"), NuSVR(kernel="precomputed")]
)
def test_regressors_predict_the_same_from_a_file(learner, repeated, tmp_path):
    target = X[:, 0] + 0.1 * y
    rows = np.r_[0:150, 0:20] if repeated else np.arange(150)
    family = GaussianFamily(0.1, 10.0)
    model = TwoStageMKLRegressor(family, learner=learner, random_state=0).fit(X[rows], target[rows])
    again = reopened(model, tmp_path)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)
    # It can be saved once more.
    np.testing.assert_allclose(reopened(again, tmp_path).predict(X), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("option", [{"break_ties": True}, {"decision_function_shape": "ovo"}])
def test_learners_that_predict_in_another_way_are_refused(option, tmp_path):
    model = TwoStageMKLClassifier(KERNELS, learner=SVC(kernel="precomputed", **option), random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="cannot be saved"):
        model.save(tmp_path / "model.mkl")


def test_the_transformer_comes_back_with_all_its_columns(tmp_path):
    model = AlignedKernel(KERNELS, alignment="qp").fit(X, y)
    assert len(reopened(model, tmp_path).get_feature_names_out()) == len(X)
    np.testing.assert_allclose(reopened(model, tmp_path).transform(X), model.transform(X))


def test_a_learner_that_is_no_set_of_numbers_is_named(tmp_path):
    class Own(GaussianProcessRegressor):
        def fit(self, K, y):
            self.mean = float(np.mean(y))
            return self

        def predict(self, K):
            return np.full(len(K), self.mean)

    model = TwoStageMKLRegressor(KERNELS, learner=Own(kernel="precomputed"), random_state=0).fit(X, X[:, 0])
    with pytest.raises(TypeError, match="learner Own cannot be saved"):
        model.save(tmp_path / "model.mkl")
