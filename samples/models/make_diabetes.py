"""Trains a regression of scikit-learn's on ten measures of patients with diabetes, and writes it as diabetes.onnx.

    python make_diabetes.py

It needs scikit-learn and skl2onnx.
"""

from pathlib import Path

from skl2onnx import to_onnx
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

data = load_diabetes(scaled=False)
model = make_pipeline(StandardScaler(), SVR(C=50)).fit(data.data[:340], data.target[:340])
print(f"R² on patients that it has not seen: {model.score(data.data[340:], data.target[340:]):.2f}")

proto = to_onnx(model, data.data[:1].astype("float32"), target_opset=18)
(Path(__file__).parent / "diabetes.onnx").write_bytes(proto.SerializeToString())
print(*data.feature_names)
