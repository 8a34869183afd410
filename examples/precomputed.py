"""Precomputed kernels: texts, compared by their pieces of 2, 3 and 4 letters.

Any similarity that is a kernel will do: of strings, graphs, molecules. The matrices are made once for all samples, and
X is the column of sample numbers, so that cross-validation cuts them like any other data. Here the samples are names of
animals and of chemical elements, and the question is which length of pieces tells the two apart.
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score

from manykernels import MKLClassifier
from manykernels.kernels import KernelBank

animals = """antelope badger beaver buffalo camel cheetah chicken coyote donkey dolphin elephant ferret giraffe
gorilla hamster hedgehog jackal jaguar kangaroo leopard lizard mongoose monkey ocelot octopus ostrich
otter panther parrot pelican penguin pigeon rabbit raccoon rooster salmon sparrow squirrel tiger
tortoise turkey turtle vulture walrus weasel zebra"""
elements = """aluminium americium barium beryllium bromine cadmium caesium calcium carbon cerium chlorine chromium
curium fluorine francium gallium germanium hafnium helium hydrogen indium iodine iridium lithium
magnesium neodymium niobium nitrogen osmium oxygen palladium platinum plutonium polonium potassium
radium rhenium rhodium rubidium ruthenium scandium selenium silicon sodium strontium tellurium thallium
thorium titanium tungsten uranium vanadium yttrium zirconium"""
names = animals.split() + elements.split()
y = np.array(["animal"] * len(animals.split()) + ["element"] * len(elements.split()))

kernels = []
for length in (2, 3, 4):
    counts = CountVectorizer(analyzer="char_wb", ngram_range=(length, length)).fit_transform(names)
    kernels.append((counts @ counts.T).toarray().astype(float))
bank = KernelBank.from_arrays(np.stack(kernels), names=[f"pieces of {length}" for length in (2, 3, 4)])

numbers = np.arange(len(names)).reshape(-1, 1)
model = MKLClassifier(bank, norm=1.0, normalize="cosine", C=10.0)
print(f"cross-validated accuracy {cross_val_score(model, numbers, y, cv=5).mean():.3f}")
model.fit(numbers, y)
for name, weight in zip(model.kernel_names_, model.weights_, strict=True):
    print(f"{weight:.3f}  {name}")
