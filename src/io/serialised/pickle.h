// Python pickles of NumPy arrays, SciPy matrices and dicts of lists, protocols 0 to 5, as the Planetoid files hold
// them.
//
// A pickle is a program for a stack machine. This one knows the opcodes that build such values and a fixed list of
// names that may be called, each of which is a case in pickle_machine.cc: nothing is looked up, imported or executed.
// Everything else is refused with its name and place. Memory is a small multiple of the file, and nothing recurses.
#pragma once

#include <deque>
#include <functional>

#include "io/numpy/array.h"
#include "io/numpy/sparse_matrix.h"

namespace cgcn {

class Pickle {
 public:
  explicit Pickle(const fs::path& path);
  Pickle(SharedBytes bytes, std::string where);

  // What the pickle holds, as one of these; Error if it is something else.
  Array array() const;
  SparseMatrix matrix() const;
  std::vector<std::string> texts() const;  // an array of str objects
  // A dict from node to list of nodes: use(key, items), in the order of the file.
  void for_each_list(const std::function<void(int64_t, std::span<const int64_t>)>& use) const;

 private:
  friend class PickleMachine;
  enum class Kind : uint8_t { kMark, kNone, kInteger, kReal, kText, kTuple, kList, kDict, kName, kObject };
  struct Value {
    Kind kind = Kind::kNone;
    union {
      int64_t integer = 0;
      double real;
      uint64_t index;  // into texts_ (kText, kName), sequences_ (kTuple, kList, kDict) or objects_
    };
  };
  struct Object {  // of a class that this file knows, by its short name: "ndarray", "dtype", "csr_matrix"
    std::string type;
    Value state;         // what BUILD gave it
    std::string detail;  // dtype: "f4"
  };

  void run(SharedBytes bytes);  // the opcodes, up to the root's value
  const std::vector<Value>& items(const Value& value) const { return sequences_[value.index]; }
  std::string_view text(const Value& value) const { return texts_[value.index].text(); }
  Array make_array(const Value& value) const;
  NpyHeader make_header(const Value& dtype) const;
  const Value* find(const Value& dict, std::string_view key) const;
  const Object* object(const Value& value, std::string_view type) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string where_;
  std::deque<SharedBytes> texts_;
  std::deque<std::vector<Value>> sequences_;  // a dict is key, value, key, value …
  std::deque<Object> objects_;
  Value root_;
};

}  // namespace cgcn
