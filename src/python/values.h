// Values between the two languages: arrays of NumPy, which neither side copies, and the engine's results as
// dictionaries.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "clustergcn/clustergcn.h"

namespace clustergcn::python {

namespace py = pybind11;

GraphArrays to_arrays(const py::dict& given);
// A read-only look at what the engine holds; the array keeps its owner alive.
py::object to_numpy(const Array& array);
py::array_t<float> to_numpy(Matrix matrix);

py::dict to_dict(const Scores& scores);
py::dict to_dict(const Evaluation& evaluation);
py::dict to_dict(const Epoch& epoch);

}  // namespace clustergcn::python
