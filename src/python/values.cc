#include "python/values.h"

#include <pybind11/stl.h>

namespace clustergcn::python {
namespace {

// A Python object that C++ keeps: it is let go with the interpreter's lock held, on whichever thread.
std::shared_ptr<const void> keep(py::object object) {
  return {new py::object(std::move(object)), [](const void* kept) {
            if (!Py_IsInitialized()) return;  // the interpreter is gone, and all objects with it
            const py::gil_scoped_acquire lock;
            delete static_cast<const py::object*>(kept);
          }};
}

Type type_of(const py::dtype& dtype) {
  const char kind = dtype.kind();
  const auto size = dtype.itemsize();
  if (kind == 'b') return Type::kBool;
  if (kind == 'f')
    return size == 2 ? Type::kFloat16 : size == 4 ? Type::kFloat32 : size == 8 ? Type::kFloat64 : Type::kNone;
  if (kind == 'i') return size == 1 ? Type::kInt8 : size == 2 ? Type::kInt16 : size == 4 ? Type::kInt32 : Type::kInt64;
  if (kind == 'u')
    return size == 1 ? Type::kUint8 : size == 4 ? Type::kUint32 : size == 8 ? Type::kUint64 : Type::kNone;
  return Type::kNone;
}

Array to_array(const py::dict& arrays, const char* name) {
  if (!arrays.contains(name)) return {};
  const py::object object = arrays[name];
  if (object.is_none()) return {};
  const py::array array = py::reinterpret_borrow<py::array>(object);
  const bool matrix = array.ndim() == 2;
  Array out{array.data(), type_of(array.dtype()), static_cast<uint64_t>(array.shape(0)),
            matrix ? static_cast<uint64_t>(array.shape(1)) : 0, keep(array)};
  if (out.type == Type::kNone || array.ndim() < 1 || array.ndim() > 2 || (array.flags() & py::array::c_style) == 0)
    throw Error(std::string(name) + " cannot be read", "is not an array of numbers in C order", name, {});
  return out;
}

}  // namespace

py::object to_numpy(const Array& array) {
  if (array.empty()) return py::none();
  static constexpr const char* kNames[] = {"",       "bool",  "int8",   "uint8",   "int16",   "int32",
                                           "uint32", "int64", "uint64", "float16", "float32", "float64"};
  auto* owner = new std::shared_ptr<const void>(array.owner);
  const py::capsule base(owner, [](void* kept) { delete static_cast<std::shared_ptr<const void>*>(kept); });
  std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(array.rows)};
  if (array.columns > 0) shape.push_back(static_cast<py::ssize_t>(array.columns));
  py::array view(py::dtype(kNames[static_cast<int>(array.type)]), shape, {}, array.data, base);
  view.attr("flags").attr("writeable") = false;
  return view;
}

py::array_t<float> to_numpy(Matrix matrix) {
  auto* values = new std::vector<float>(std::move(matrix.values));
  const py::capsule base(values, [](void* kept) { delete static_cast<std::vector<float>*>(kept); });
  const std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(matrix.rows), static_cast<py::ssize_t>(matrix.columns)};
  return py::array_t<float>(shape, values->data(), base);
}

GraphArrays to_arrays(const py::dict& given) {
  GraphArrays arrays;
  arrays.name = given["name"].cast<std::string>();
  arrays.nodes = given["nodes"].cast<uint64_t>();
  arrays.directed = given["directed"].cast<bool>();
  arrays.keep_self_loops = given["keep_self_loops"].cast<bool>();
  arrays.feature_width = given["feature_width"].cast<uint64_t>();
  arrays.regression = given.contains("regression") && given["regression"].cast<bool>();
  arrays.class_names = given["class_names"].cast<std::vector<std::string>>();
  arrays.feature_names = given["feature_names"].cast<std::vector<std::string>>();
  if (given.contains("split_shares")) arrays.split_shares = given["split_shares"].cast<std::string>();
  for (const auto& [name, array] : {std::pair{"offsets", &arrays.offsets},
                                    {"targets", &arrays.targets},
                                    {"from", &arrays.from},
                                    {"to", &arrays.to},
                                    {"weights", &arrays.weights},
                                    {"features", &arrays.features},
                                    {"feature_offsets", &arrays.feature_offsets},
                                    {"feature_columns", &arrays.feature_columns},
                                    {"feature_values", &arrays.feature_values},
                                    {"labels", &arrays.labels},
                                    {"split", &arrays.split},
                                    {"train", &arrays.train},
                                    {"validation", &arrays.validation},
                                    {"test", &arrays.test}})
    *array = to_array(given, name);
  return arrays;
}

py::dict to_dict(const Scores& scores) {
  using namespace py::literals;
  if (scores.r2)
    return py::dict("nodes"_a = scores.nodes, "r2"_a = *scores.r2, "mae"_a = *scores.mae, "rmse"_a = *scores.rmse,
                    "loss"_a = scores.loss);
  py::dict made("nodes"_a = scores.nodes, "micro_f1"_a = scores.micro_f1, "macro_f1"_a = scores.macro_f1,
                "accuracy"_a = scores.accuracy, "loss"_a = scores.loss,
                "calibration_error"_a = scores.calibration_error);
  if (scores.calibrated_error) made["calibrated_error"] = *scores.calibrated_error;
  if (scores.roc_auc) made["roc_auc"] = *scores.roc_auc;
  if (scores.average_precision) made["average_precision"] = *scores.average_precision;
  return made;
}
py::dict to_dict(const Evaluation& evaluation) {
  using namespace py::literals;
  return py::dict("train"_a = to_dict(evaluation.train), "validation"_a = to_dict(evaluation.validation),
                  "test"_a = to_dict(evaluation.test));
}
py::dict to_dict(const Epoch& epoch) {
  using namespace py::literals;
  return py::dict("epoch"_a = epoch.number, "epochs"_a = epoch.of, "loss"_a = epoch.loss,
                  "learning_rate"_a = epoch.learning_rate, "seconds"_a = epoch.seconds,
                  "validation"_a = epoch.validation ? py::object(to_dict(*epoch.validation)) : py::none());
}

}  // namespace clustergcn::python
