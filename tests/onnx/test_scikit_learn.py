"""Models of scikit-learn, as skl2onnx writes them: values are its predictions, and gradients their differences."""

import warnings

import numpy as np
import pytest

from tests.onnx.builder import onnx

skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
from sklearn import ensemble, gaussian_process, linear_model, neighbors, neural_network, pipeline, preprocessing, svm  # noqa: E402

STEP = 1e-4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] ** 2 + np.sin(X[:, 1]) - X[:, 2]
KIND = (Y > 0).astype(int) + (Y > 1)
FEW = {"max_iter": 400, "random_state": 0}  # steps of training, each time the same
POINT = np.array([[0.25, -0.5, 1.5]])


def scaled(model):
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model)


REGRESSIONS = {
    "ridge": scaled(linear_model.Ridge()),
    "polynomial": pipeline.make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.LinearRegression()),
    "network": scaled(neural_network.MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", **FEW)),
    "support vectors": scaled(svm.SVR(C=10)),
    "power transform": pipeline.make_pipeline(preprocessing.PowerTransformer(), linear_model.Lasso(0.01)),
    "process": gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.RBF(), alpha=0.1, optimizer=None),
}
CLASSIFIERS = {
    "logistic": scaled(linear_model.LogisticRegression()),
    "network": neural_network.MLPClassifier(hidden_layer_sizes=(4,), activation="logistic", **FEW),
}


SINGLE = {"power transform"}  # which skl2onnx converts in float32 alone


def saved(model, target, folder, single=False, **options):
    """Return a file of a model that has learnt, in float64 but for what skl2onnx keeps in float32."""
    types = skl2onnx.common.data_types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, target)
        kinds = [("X", (types.FloatTensorType if single else types.DoubleTensorType)([None, 3]))]
        proto = skl2onnx.convert_sklearn(model, initial_types=kinds, target_opset=18, **options)
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return str(path)


def differences(predict, k=None):
    """Return the central differences of the predictions at the point."""
    moved = np.concatenate([POINT + STEP * np.eye(3), POINT - STEP * np.eye(3)])
    values = predict(moved).reshape(6, -1)[:, 0 if k is None else k]
    return (values[:3] - values[3:]) / (2 * STEP)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_sensitivities_of_a_regression(name, cli, tmp_path):
    model = REGRESSIONS[name]
    path = saved(model, Y, tmp_path, name in SINGLE)
    result = cli.json("backward", "-F", path, "--at", f"X={POINT.tolist()}")
    np.testing.assert_allclose(np.ravel(next(iter(result["value"].values()))), model.predict(POINT), rtol=1e-5)
    np.testing.assert_allclose(result["grad"]["X"][0], differences(model.predict), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"options": {"zipmap": False}}], ids=["ZipMap", "array"])
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_the_sensitivities_of_a_probability(model, options, cli, tmp_path):
    path = saved(model, KIND, tmp_path, **options)
    outcome = cli.done("backward", "-F", path, "--at", f"X={POINT.tolist()}", "--v", "onehot:2", "-f", "json")
    result = cli.json("backward", "-F", path, "--at", f"X={POINT.tolist()}", "--v", "onehot:2")
    (probabilities,) = result["value"].values()
    np.testing.assert_allclose(probabilities, model.predict_proba(POINT), rtol=1e-5)
    np.testing.assert_allclose(result["grad"]["X"][0], differences(model.predict_proba, 2), rtol=1e-3, atol=1e-5)
    assert "label` is left out" in outcome.err
    assert ("are the classes 0, 1, 2" in outcome.err) != bool(options)


def test_trees_have_a_gradient_of_0_and_a_note_says_so(cli, tmp_path):
    path = saved(ensemble.RandomForestRegressor(5, random_state=0), Y, tmp_path)
    outcome = cli.done("backward", "-F", path, "--at", f"X={POINT.tolist()}", "-f", "json")
    assert '"grad": {"X": [[0.0, 0.0, 0.0]]}' in outcome.out
    assert "tree" in outcome.err


def test_votes_of_neighbours_have_a_gradient_of_0(cli, tmp_path):
    model = neighbors.KNeighborsClassifier(5)
    path = saved(model, KIND, tmp_path)
    result = cli.json("backward", "-F", path, "--at", f"X={POINT.tolist()}", "--v", "onehot:1")
    (probabilities,) = result["value"].values()
    np.testing.assert_allclose(probabilities, model.predict_proba(POINT))
    assert result["grad"]["X"] == [[0, 0, 0]]
