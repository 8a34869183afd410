"""Two stages: a kernel by its alignment with the classes, then any learner.

The kernel is learned once, without a predictor; each learner only sees the matrix. With one width for all features the
alignment is lower than with one for each; `held_out_alignment_` says whether that lasts on new samples.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC

from manykernels import AlignedKernel, TwoStageMKLClassifier
from manykernels.alignment import Target, alignments
from manykernels.banks import bind
from manykernels.kernels import Gaussian, GaussianFamily, KernelBank

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# Which features are aligned with the classes, each by itself?
bank = bind(KernelBank([Gaussian(1.0, columns=[j]) for j in range(X.shape[1])]), X_train)
own = alignments(bank, Target.of_classes(y_train))
print("best features:", ", ".join(f"{bank.names[j]} ({own[j]:.2f})" for j in own.argsort()[::-1][:3]))

# One width for all features, then one for each.
kernel = AlignedKernel(GaussianFamily(0.1, 100.0)).fit(X_train, y_train)
print(f"one width: alignment {kernel.alignment_:.3f}, no weights exceed {kernel.alignment_bound_:.3f}")
K, K_test = kernel.transform(X_train), kernel.transform(X_test)
for learner in (SVC(C=10.0, kernel="precomputed"), NuSVC(nu=0.1, kernel="precomputed")):
    print(f"  {type(learner).__name__}: {learner.fit(K, y_train).score(K_test, y_test):.3f}")

model = TwoStageMKLClassifier(GaussianFamily(0.1, 100.0, per_feature=True, shrinkage="auto"), random_state=0)
model.fit(X_train, y_train)
print(f"a width for each feature: alignment {model.alignment_:.3f}, held out {model.held_out_alignment_:.3f}")
print(f"  SVC with C = {model.best_params_['C']:g}: {model.score(X_test, y_test):.3f}")
