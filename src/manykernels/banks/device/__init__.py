"""Kernels on a device (:mod:`manykernels.compute.gpu`): the bank's capabilities, with the matrices kept there."""
