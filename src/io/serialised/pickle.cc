// What a pickle holds, as arrays, matrices and lists; pickle_machine.cc made the values.
#include "io/serialised/pickle.h"

#include <charconv>

#include "common/error.h"

namespace cgcn {

Pickle::Pickle(const fs::path& path) : Pickle(SharedBytes::map(path), path.string()) {}

Pickle::Pickle(SharedBytes bytes, std::string where) : where_(std::move(where)) {
  if (bytes.span.empty()) throw Error("is empty", where_);
  run(std::move(bytes));
}

void Pickle::fail(const std::string& what) const { throw Error("the pickle " + what, where_); }

const Pickle::Object* Pickle::object(const Value& value, std::string_view type) const {
  if (value.kind != Kind::kObject || objects_[value.index].type != type) return nullptr;
  return &objects_[value.index];
}

const Pickle::Value* Pickle::find(const Value& dict, std::string_view key) const {
  const std::vector<Value>& pairs = items(dict);
  for (size_t i = 0; i < pairs.size(); i += 2)
    if (pairs[i].kind == Kind::kText && text(pairs[i]) == key) return &pairs[i + 1];
  return nullptr;
}

// dtype('f4') with the state (version, '<', …).
NpyHeader Pickle::make_header(const Value& dtype) const {
  const Object* type = object(dtype, "dtype");
  if (type == nullptr || type->state.kind != Kind::kTuple) fail("has an array without a type");
  const std::vector<Value>& state = items(type->state);
  NpyHeader header;
  const std::string& code = type->detail;
  const char* end = code.data() + code.size();
  if (code.size() < 2 || std::from_chars(code.data() + 1, end, header.item_bytes).ptr != end || state.size() < 2 ||
      state[1].kind != Kind::kText)
    fail("has an array of a type that is not understood");
  header.kind = code[0];
  header.big_endian = text(state[1]) == ">";
  return header;
}

// An ndarray's state is (version, shape, dtype, in Fortran order, bytes).
Array Pickle::make_array(const Value& value) const {
  const Object* array = object(value, "ndarray");
  if (array == nullptr) fail("does not hold an array");
  if (array->state.kind != Kind::kTuple || items(array->state).size() != 5) fail("has an array without contents");
  const std::vector<Value>& state = items(array->state);
  NpyHeader header = make_header(state[2]);
  if (state[1].kind != Kind::kTuple || state[3].kind != Kind::kInteger) fail("has an array without a shape");
  unsigned __int128 bytes = header.item_bytes;
  for (const Value& extent : items(state[1])) {
    if (extent.kind != Kind::kInteger || extent.integer < 0 || header.shape.size() == 8) fail("has a wrong shape");
    header.shape.push_back(static_cast<uint64_t>(extent.integer));
    bytes *= static_cast<uint64_t>(extent.integer);
    if (bytes > UINT64_MAX) fail("declares more elements than any file can hold");
  }
  header.fortran_order = state[3].integer != 0;
  if (state[4].kind != Kind::kText) fail("has an array of Python objects, which are not read");
  const SharedBytes& elements = texts_[state[4].index];
  if (bytes != elements.span.size())
    fail(fmt::format("declares {} of shape ({}), {} bytes, but holds {}", header.dtype(), fmt::join(header.shape, ", "),
                     static_cast<uint64_t>(bytes), elements.span.size()));
  return {std::move(header), elements, where_};
}

Array Pickle::array() const { return make_array(root_); }

SparseMatrix Pickle::matrix() const {
  const Object* csr = object(root_, "csr_matrix");
  if (csr == nullptr || csr->state.kind != Kind::kDict) fail("does not hold a SciPy CSR matrix");
  const auto field = [&](const char* name) -> const Value& {
    const Value* found = find(csr->state, name);
    if (found == nullptr) fail(fmt::format("has a matrix without '{}'", name));
    return *found;
  };
  SparseMatrix matrix;
  matrix.values = make_array(field("data"));
  matrix.indices = make_array(field("indices"));
  matrix.starts = make_array(field("indptr"));
  const Value& shape = field("_shape");
  if (shape.kind != Kind::kTuple || items(shape).size() != 2) fail("has a matrix without a shape");
  for (const Value& extent : items(shape))
    if (extent.kind != Kind::kInteger || extent.integer < 0) fail("has a matrix with a wrong shape");
  matrix.rows = static_cast<uint64_t>(items(shape)[0].integer);
  matrix.columns = static_cast<uint64_t>(items(shape)[1].integer);
  matrix.check();
  return matrix;
}

std::vector<std::string> Pickle::texts() const {
  const Object* array = object(root_, "ndarray");
  if (array == nullptr || array->state.kind != Kind::kTuple || items(array->state).size() != 5 ||
      items(array->state)[4].kind != Kind::kList)
    fail("does not hold an array of texts");
  std::vector<std::string> texts;
  for (const Value& item : items(items(array->state)[4])) {
    if (item.kind != Kind::kText) fail("does not hold an array of texts");
    texts.emplace_back(text(item));
  }
  return texts;
}

void Pickle::for_each_list(const std::function<void(int64_t, std::span<const int64_t>)>& use) const {
  if (root_.kind != Kind::kDict) fail("does not hold a dict of lists");
  const std::vector<Value>& pairs = items(root_);
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (pairs[i].kind != Kind::kInteger) fail("has a key that is no integer");
    if (pairs[i + 1].kind != Kind::kList && pairs[i + 1].kind != Kind::kTuple)
      fail(fmt::format("does not hold a list for node {}", pairs[i].integer));
    numbers.clear();
    for (const Value& item : items(pairs[i + 1])) {
      if (item.kind != Kind::kInteger)
        fail(fmt::format("lists something that is no node under node {}", pairs[i].integer));
      numbers.push_back(item.integer);
    }
    use(pairs[i].integer, numbers);
  }
}

}  // namespace cgcn
