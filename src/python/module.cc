// clustergcn._core: the engine's facade for Python. The package in python/clustergcn gives it the form that people use;
// here is nothing but the passage between the two languages.
#include <pybind11/stl.h>

#include "clustergcn/clustergcn.h"
#include "download/download_store.h"
#include "engine/content.h"
#include "process/launch.h"
#include "python/callbacks.h"
#include "python/values.h"
#include "report/page.h"
#include "report/run_record.h"

namespace clustergcn::python {
namespace {

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

// how: threads, run, resume, log, on_epoch.
py::tuple train_model(const Graph& graph, const std::string& recipe, const Settings& settings, const py::dict& how) {
  Options options;
  if (!recipe.empty()) options.recipe(recipe);
  for (const auto& [name, value] : settings) options.set(name, value);
  Callbacks callbacks(how["log"], how["on_epoch"]);
  Session session = callbacks.session(how["threads"].cast<uint32_t>());
  session.run = how["run"].cast<std::string>();
  session.resume = how["resume"].cast<bool>();
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

void bind_errors(py::module_& module) {
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
}

void bind_graph(py::module_& module) {
  py::class_<Graph>(module, "Graph")
      .def_static("open", &Graph::open, py::call_guard<py::gil_scoped_release>())
      .def_static("from_arrays",
                  [](const py::dict& given, uint32_t threads, py::object log) {
                    const GraphArrays arrays = to_arrays(given);
                    Callbacks callbacks(std::move(log));
                    const Session session = callbacks.session(threads);
                    return run(callbacks, [&] { return Graph::from_arrays(arrays, session); });
                  })
      .def_static("import_files",
                  [](const std::string& source, const std::string& store, const Settings& settings, py::object log) {
                    Callbacks callbacks(std::move(log));
                    const Session session = callbacks.session(0);
                    return run(callbacks, [&] { return Graph::import(source, store, settings, session); });
                  })
      .def_static("download",
                  [](const std::string& dataset, const std::string& store, const Settings& settings, py::object log) {
                    Callbacks callbacks(std::move(log));
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
                    Callbacks callbacks;
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
}

void bind_model(py::module_& module) {
  py::class_<Model>(module, "Model")
      .def_static("load", &Model::load, py::call_guard<py::gil_scoped_release>())
      .def_static("from_bytes", [](const py::bytes& bytes) { return Model::from_bytes(bytes); })
      .def("to_bytes", [](const Model& model) { return py::bytes(model.to_bytes()); })
      .def("save", &Model::save, py::call_guard<py::gil_scoped_release>())
      .def("in_precision", &Model::in_precision)
      .def("probabilities",
           [](const Model& model, const Graph& graph, const py::object& nodes, bool calibrated,
              const std::string& smooth, uint32_t threads, py::object log) {
             const std::vector<uint32_t> wanted = to_nodes(nodes);
             Callbacks callbacks(std::move(log));
             const Session session = callbacks.session(threads);
             return to_numpy(run(callbacks, [&] {
               return model.probabilities(graph, wanted, session, {calibrated, smooth});
             }));
           })
      .def("classes",
           [](const Model& model, const Graph& graph, const py::object& nodes, const std::string& smooth,
              uint32_t threads, py::object log) {
             const std::vector<uint32_t> wanted = to_nodes(nodes);
             Callbacks callbacks(std::move(log));
             const Session session = callbacks.session(threads);
             return to_numpy(run(callbacks, [&] { return model.classes(graph, wanted, session, {false, smooth}); }));
           })
      .def("values",
           [](const Model& model, const Graph& graph, const py::object& nodes, uint32_t threads, py::object log) {
             const std::vector<uint32_t> wanted = to_nodes(nodes);
             Callbacks callbacks(std::move(log));
             const Session session = callbacks.session(threads);
             return to_numpy(run(callbacks, [&] { return model.values(graph, wanted, session); }));
           })
      .def("embeddings",
           [](const Model& model, const Graph& graph, uint32_t layer, const py::object& nodes, uint32_t threads,
              py::object log) {
             const std::vector<uint32_t> wanted = to_nodes(nodes);
             Callbacks callbacks(std::move(log));
             const Session session = callbacks.session(threads);
             return to_numpy(run(callbacks, [&] { return model.embeddings(graph, layer, wanted, session); }));
           })
      .def("evaluate",
           [](const Model& model, const Graph& graph, const std::string& smooth, uint32_t threads, py::object log) {
             Callbacks callbacks(std::move(log));
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
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The engine of clustergcn; use the package, not this module.";
  module.attr("version") = version();
  bind_errors(module);
  bind_graph(module);
  bind_model(module);
  module.def("options", [] {
    py::list all;
    using namespace py::literals;
    for (const OptionInfo& option : Options::all())
      all.append(py::dict("name"_a = option.name, "kind"_a = option.kind, "default"_a = option.default_value,
                          "help"_a = option.help, "group"_a = option.group, "choices"_a = option.choices));
    return all;
  });
  module.def("train", &train_model);
  module.def("report", [](const std::vector<std::string>& runs) {
    return call({}, [&] {
      return cgcn::make_page(cgcn::read_runs(std::vector<cgcn::fs::path>(runs.begin(), runs.end())), /*live=*/false);
    });
  });
}

}  // namespace clustergcn::python
