// clustergcn._core: the engine's facade for Python. The package in python/clustergcn gives it the form that people use;
// here is nothing but the passage between the two languages.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include "clustergcn/clustergcn.h"
#include "download/download_store.h"
#include "engine/content.h"
#include "process/launch.h"
#include "report/page.h"
#include "report/run_record.h"

namespace py = pybind11;
using namespace clustergcn;

namespace {

// Threads that are at work when the interpreter ends must not touch it any more: they wait for the end of the process.
bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}
void stay_away_from_an_ending_interpreter() {
  while (interpreter_ends()) ::pause();
}
class Locked {
 public:
  Locked() {
    stay_away_from_an_ending_interpreter();
    state_ = PyGILState_Ensure();
  }
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};
class Unlocked {
 public:
  ~Unlocked() {
    stay_away_from_an_ending_interpreter();
    PyEval_RestoreThread(state_);
  }
  Unlocked() = default;
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_ = PyEval_SaveThread();
};

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

// A read-only look at what the engine holds; the array keeps its owner alive.
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

// What Python's functions throw inside of the engine's callbacks waits here until the engine has returned.
class Callbacks {
 public:
  Callbacks(py::object on_epoch, py::object log) : on_epoch_(std::move(on_epoch)), log_(std::move(log)) {}

  Session session(uint32_t threads) {
    Session session;
    session.threads = threads;
    session.log = [this](const std::string& line) {
      const Locked lock;
      if (!log_.is_none()) guard([&] { log_(line); });
    };
    session.wants_stop = [this] {
      const Locked lock;
      if (PyErr_CheckSignals() != 0) guard([] { throw py::error_already_set(); });  // on other threads: never
      return failed_;
    };
    session.on_epoch = [this](const Epoch& epoch) {
      const Locked lock;
      bool go_on = true;
      if (!on_epoch_.is_none()) guard([&] { go_on = !on_epoch_(to_dict(epoch)).is(py::bool_(false)); });
      return go_on && !failed_;
    };
    return session;
  }
  void rethrow() {
    if (failed_) std::rethrow_exception(failure_);
  }

 private:
  template <class Work>
  void guard(Work&& work) {
    try {
      work();
    } catch (...) {
      if (!failed_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  py::object on_epoch_, log_;
  std::exception_ptr failure_;
  bool failed_ = false;
};

// The engine works without the interpreter's lock. What a callback threw comes before what the engine made of it.
template <class Work>
auto run(Callbacks& callbacks, Work&& work) {
  try {
    auto result = [&] {
      const Unlocked unlocked;
      return work();
    }();
    callbacks.rethrow();
    return result;
  } catch (...) {
    callbacks.rethrow();
    throw;
  }
}

// R processes that train the same model, and write to the same folder, are never what was meant.
void require_one_process() {
  try {
    cgcn::dist::require_alone("fit",
                              "train with mpirun … clustergcn train, and load the run; with CLUSTERGCN_ALONE=1 "
                              "in the environment every process trains a model of its own");
  } catch (const cgcn::Error& error) {
    throw Error(error.what(), error.problem(), error.where(), error.hint());
  }
}

using Settings = std::vector<std::pair<std::string, std::string>>;

py::tuple train_model(const Graph& graph, const std::string& recipe, const Settings& settings, uint32_t threads,
                      const std::string& folder, bool resume, py::object on_epoch, py::object log) {
  Options options;
  if (!recipe.empty()) options.recipe(recipe);
  for (const auto& [name, value] : settings) options.set(name, value);
  Callbacks callbacks(std::move(on_epoch), std::move(log));
  Session session = callbacks.session(threads);
  session.run = folder;
  session.resume = resume;
  const Training training = run(callbacks, [&] {
    require_one_process();
    return train(graph, options, session);
  });
  py::list history;
  for (const Epoch& epoch : training.history) history.append(to_dict(epoch));
  using namespace py::literals;
  return py::make_tuple(training.model, history, to_dict(training.evaluation),
                        py::dict("kept_epoch"_a = training.kept_epoch, "stopped_early"_a = training.stopped_early,
                                 "seconds"_a = training.seconds, "run"_a = training.run));
}

std::vector<uint32_t> to_nodes(const py::object& nodes) {
  if (nodes.is_none()) return {};
  return nodes.cast<std::vector<uint32_t>>();
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The engine of clustergcn; use the package, not this module.";
  module.attr("version") = version();

  // The package's own error classes: it sets them when it is imported.
  static py::object error_class = py::none();
  module.def("set_error_class", [](py::object made) { error_class = std::move(made); });
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const py::object made = error_class(error.what(), error.problem(), error.where(), error.hint());
      PyErr_SetObject(error_class.ptr(), made.ptr());
    }
  });
  module.add_object("_cleanup", py::capsule([] { error_class.release().dec_ref(); }));

  module.def("options", [] {
    py::list all;
    using namespace py::literals;
    for (const OptionInfo& option : Options::all())
      all.append(py::dict("name"_a = option.name, "kind"_a = option.kind, "default"_a = option.default_value,
                          "help"_a = option.help, "group"_a = option.group, "choices"_a = option.choices));
    return all;
  });

  py::class_<Graph>(module, "Graph")
      .def_static("open", &Graph::open, py::call_guard<py::gil_scoped_release>())
      .def_static("from_arrays",
                  [](const py::dict& given, uint32_t threads, py::object log) {
                    const GraphArrays arrays = to_arrays(given);
                    Callbacks callbacks(py::none(), std::move(log));
                    const Session session = callbacks.session(threads);
                    return run(callbacks, [&] { return Graph::from_arrays(arrays, session); });
                  })
      .def_static("import_files",
                  [](const std::string& source, const std::string& store, const Settings& settings, py::object log) {
                    Callbacks callbacks(py::none(), std::move(log));
                    const Session session = callbacks.session(0);
                    return run(callbacks, [&] { return Graph::import(source, store, settings, session); });
                  })
      .def_static("download",
                  [](const std::string& dataset, const std::string& store, const Settings& settings, py::object log) {
                    Callbacks callbacks(py::none(), std::move(log));
                    const Session session = callbacks.session(0);
                    return run(callbacks, [&] {
                      call(session, [&] {
                        cgcn::DownloadRequest request;
                        cgcn::OptionList list;
                        request.list_options(list);
                        for (const auto& [name, value] : settings) set_option(list, name, value);
                        cgcn::download_store(dataset, store, request);
                      });
                      return Graph::open(store);
                    });
                  })
      .def_static("generate",
                  [](const std::string& store, const Settings& settings) {
                    Callbacks callbacks{py::none(), py::none()};
                    const Session session = callbacks.session(0);
                    return run(callbacks, [&] { return Graph::generate(store, settings, session); });
                  })
      .def("save", &Graph::save, py::arg("store"), py::arg("replace") = false, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("name", &Graph::name)
      .def_property_readonly("store", &Graph::store)
      .def_property_readonly("num_nodes", &Graph::num_nodes)
      .def_property_readonly("num_edges", &Graph::num_edges)
      .def_property_readonly("num_features", &Graph::num_features)
      .def_property_readonly("num_classes", &Graph::num_classes)
      .def_property_readonly("directed", &Graph::directed)
      .def_property_readonly("multi_label", &Graph::multi_label)
      .def_property_readonly("regression", &Graph::regression)
      .def_property_readonly("split_sizes", &Graph::split_sizes)
      .def_property_readonly("class_names", &Graph::class_names)
      .def_property_readonly("feature_names", &Graph::feature_names)
      .def_property_readonly("node_ids", &Graph::node_ids)
      .def_property_readonly("hash", &Graph::hash)
      .def_property_readonly("indptr", [](const Graph& graph) { return to_numpy(graph.offsets()); })
      .def_property_readonly("indices", [](const Graph& graph) { return to_numpy(graph.targets()); })
      .def_property_readonly("weights", [](const Graph& graph) { return to_numpy(graph.weights()); })
      .def_property_readonly("dense_features", [](const Graph& graph) { return to_numpy(graph.features()); })
      .def_property_readonly("sparse_features",
                             [](const Graph& graph) {
                               const auto [offsets, columns, values] = graph.sparse_features();
                               return py::make_tuple(to_numpy(offsets), to_numpy(columns), to_numpy(values));
                             })
      .def_property_readonly("labels", [](const Graph& graph) { return to_numpy(graph.labels()); })
      .def_property_readonly("split", [](const Graph& graph) { return to_numpy(graph.split()); });

  py::class_<Model>(module, "Model")
      .def_static("load", &Model::load, py::call_guard<py::gil_scoped_release>())
      .def_static("from_bytes", [](const py::bytes& bytes) { return Model::from_bytes(bytes); })
      .def("to_bytes", [](const Model& model) { return py::bytes(model.to_bytes()); })
      .def("save", &Model::save, py::call_guard<py::gil_scoped_release>())
      .def("probabilities",
           [](const Model& model, const Graph& graph, const py::object& nodes, bool calibrated,
              const std::string& smooth, uint32_t threads, py::object log) {
             const std::vector<uint32_t> wanted = to_nodes(nodes);
             Callbacks callbacks(py::none(), std::move(log));
             const Session session = callbacks.session(threads);
             return to_numpy(run(callbacks, [&] {
               return model.probabilities(graph, wanted, session, {calibrated, smooth});
             }));
           })
      .def("values",
           [](const Model& model, const Graph& graph, const py::object& nodes, uint32_t threads, py::object log) {
             const std::vector<uint32_t> wanted = to_nodes(nodes);
             Callbacks callbacks(py::none(), std::move(log));
             const Session session = callbacks.session(threads);
             return to_numpy(run(callbacks, [&] { return model.values(graph, wanted, session); }));
           })
      .def("embeddings",
           [](const Model& model, const Graph& graph, uint32_t layer, const py::object& nodes, uint32_t threads,
              py::object log) {
             const std::vector<uint32_t> wanted = to_nodes(nodes);
             Callbacks callbacks(py::none(), std::move(log));
             const Session session = callbacks.session(threads);
             return to_numpy(run(callbacks, [&] { return model.embeddings(graph, layer, wanted, session); }));
           })
      .def("evaluate",
           [](const Model& model, const Graph& graph, const std::string& smooth, uint32_t threads, py::object log) {
             Callbacks callbacks(py::none(), std::move(log));
             const Session session = callbacks.session(threads);
             return to_dict(run(callbacks, [&] { return model.evaluate(graph, session, {false, smooth}); }));
           })
      .def_property_readonly("num_layers", &Model::num_layers)
      .def_property_readonly("num_features", &Model::num_features)
      .def_property_readonly("num_classes", &Model::num_classes)
      .def_property_readonly("multi_label", &Model::multi_label)
      .def_property_readonly("regression", &Model::regression)
      .def_property_readonly("thresholds",
                             [](const Model& model) {
                               const std::vector<float> values = model.thresholds();
                               return py::array_t<float>(static_cast<py::ssize_t>(values.size()), values.data());
                             })
      .def_property_readonly("temperature", &Model::temperature)
      .def_property_readonly("class_names", &Model::class_names)
      .def_property_readonly("feature_names", &Model::feature_names)
      .def("option", [](const Model& model, const std::string& name) { return model.options().get(name); });

  module.def("train", &train_model);
  module.def("report", [](const std::vector<std::string>& runs) {
    return call({}, [&] {
      return cgcn::make_page(cgcn::read_runs(std::vector<cgcn::fs::path>(runs.begin(), runs.end())), /*live=*/false);
    });
  });
}
