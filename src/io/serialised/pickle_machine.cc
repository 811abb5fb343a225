// The stack machine of a pickle: runs the opcodes and leaves the values in the Pickle.
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "common/error.h"
#include "io/serialised/pickle.h"
#include "io/serialised/python_text.h"

namespace cgcn {

class PickleMachine {
 public:
  using Kind = Pickle::Kind;
  using Value = Pickle::Value;

  PickleMachine(Pickle& pickle, SharedBytes bytes) : pickle_(pickle), bytes_(std::move(bytes)), text_(bytes_.text()) {}

  Value run() {
    for (;;) {
      opcode_at_ = at_;
      const char opcode = take(1)[0];
      if (opcode == '.') return pop();
      const Action act = actions()[static_cast<unsigned char>(opcode)];
      if (act == nullptr) refuse(opcode);
      act(*this);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("broken pickle: {}", what), fmt::format("{}: byte {}", pickle_.where_, opcode_at_),
                "copy or download the file again");
  }
  [[noreturn]] void refuse_name(std::string_view name) const {
    throw Error(fmt::format("the pickle asks for '{}', which is not one of NumPy's, SciPy's or Python's plain types",
                            show(name)),
                fmt::format("{}: byte {}", pickle_.where_, opcode_at_),
                "nothing was executed; save the data as NumPy arrays instead");
  }
  [[noreturn]] void refuse(char opcode) const {
    const auto code = static_cast<unsigned char>(opcode);
    if (opcode_at_ == 0 && code != 0x80) throw Error("is not a pickle", pickle_.where_);
    throw Error(fmt::format("the pickle uses opcode 0x{:02x}, which is not read", code),
                fmt::format("{}: byte {}", pickle_.where_, opcode_at_), "save it again with pickle.dump(value, file)");
  }
  static std::string show(std::string_view name) {
    std::string shown(name.substr(0, 80));
    for (char& c : shown)
      if (c < ' ' || c > '~') c = '?';
    return shown;
  }

  // Bytes of the file.
  std::string_view take(uint64_t count) {
    if (count > text_.size() - at_) fail("it is cut off");
    const std::string_view piece = text_.substr(at_, count);
    at_ += count;
    return piece;
  }
  std::string_view take_line() {
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) fail("it is cut off");
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }
  template <class T>
  T take_number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  template <class T>
  T parse_line(std::string_view line) const {
    T value{};
    const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (status != std::errc() || end != line.data() + line.size()) fail("a number is malformed or too large");
    return value;
  }
  int64_t take_long(uint64_t count) {  // little-endian two's complement of any length
    const std::string_view bytes = take(count);
    if (count > 8) fail("an integer has more than 64 bits");
    uint64_t value = count > 0 && static_cast<signed char>(bytes.back()) < 0 ? ~uint64_t{0} : 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return static_cast<int64_t>(value);
  }

  SharedBytes own(std::optional<std::string> text, const char* problem) const {
    if (!text) fail(problem);
    return SharedBytes::own(std::move(*text));
  }

  // What the opcodes do; null: they are not read.
  using Action = void (*)(PickleMachine&);
  using Actions = std::array<Action, 256>;
  static const Actions& actions();

  void check_protocol() {
    if (const auto protocol = take_number<uint8_t>(); protocol > 5)
      throw Error(fmt::format("is a pickle of protocol {}; 0 to 5 are read", protocol), pickle_.where_,
                  "save it again with pickle.dump(value, file, protocol=5)");
  }
  int64_t take_long_line() {
    std::string_view line = take_line();
    if (line.ends_with('L')) line.remove_suffix(1);
    return parse_line<int64_t>(line);
  }
  double take_double() {
    uint64_t bits = 0;  // big-endian
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }
  template <class Length>
  void push_text_with_length() {
    push_text_in_place(take(take_number<Length>()));
  }

  // The stack.
  void push(Value value) { stack_.push_back(value); }
  void push_real(double real) { push({.kind = Kind::kReal, .real = real}); }
  void push_integer(int64_t integer) { push({.kind = Kind::kInteger, .integer = integer}); }
  void push_text(SharedBytes text, Kind kind = Kind::kText) {
    pickle_.texts_.push_back(std::move(text));
    push({.kind = kind, .index = pickle_.texts_.size() - 1});
  }
  void push_text_in_place(std::string_view piece) {  // text that lies in the file as it is
    push_text(bytes_.slice(static_cast<size_t>(piece.data() - text_.data()), piece.size()));
  }
  void push_sequence(Kind kind, std::vector<Value> values = {}) {
    pickle_.sequences_.push_back(std::move(values));
    push({.kind = kind, .index = pickle_.sequences_.size() - 1});
  }
  Value pop() {
    if (stack_.empty() || stack_.back().kind == Kind::kMark) fail("a value is missing");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<Value> pop_to_mark() {
    size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1].kind != Kind::kMark) --mark;
    if (mark == 0) fail("a mark is missing");
    std::vector<Value> values(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return values;
  }
  std::vector<Value> pop_count(size_t count) {
    std::vector<Value> values(count);
    while (count > 0) values[--count] = pop();
    return values;
  }
  std::vector<Value>& top_sequence(Kind kind) {
    if (stack_.empty() || stack_.back().kind != kind) fail("items for something that is not a container");
    return pickle_.sequences_[stack_.back().index];
  }

  void append(Kind kind, const std::vector<Value>& values) {
    std::vector<Value>& target = top_sequence(kind);
    target.insert(target.end(), values.begin(), values.end());
  }
  std::vector<Value> check_pairs(std::vector<Value> values) const {
    if (values.size() % 2 != 0) fail("a dict has a key without a value");
    return values;
  }

  Value top() const {
    if (stack_.empty() || stack_.back().kind == Kind::kMark) fail("a value is missing");
    return stack_.back();
  }
  void remember(uint64_t number) { memo_[number] = top(); }
  void recall(uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) fail("it refers to a value that does not exist");
    push(found->second);
  }

  void push_named_line() {
    const std::string_view module = take_line(), name = take_line();
    push_name(module, name);
  }
  void push_named_on_stack() {
    const Value name = pop(), module = pop();
    if (name.kind != Kind::kText || module.kind != Kind::kText) fail("a name that is no text");
    push_name(pickle_.text(module), pickle_.text(name));
  }
  void reduce() {
    const Value arguments = pop(), function = pop();
    if (function.kind != Kind::kName || arguments.kind != Kind::kTuple) fail("a call of something that is no function");
    call(std::string(pickle_.text(function)), pickle_.items(arguments));
  }
  void make_object() {  // without state
    const Value arguments = pop(), type = pop();
    if (type.kind != Kind::kName || arguments.kind != Kind::kTuple) fail("a new object of something that is no type");
    push_object(std::string(pickle_.text(type)));
  }
  void build() {
    const Value state = pop();
    if (top().kind != Kind::kObject) fail("state for something that has none");
    pickle_.objects_[top().index].state = state;
  }

  void push_name(std::string_view module, std::string_view name) {
    push_text(SharedBytes::own(known_name(fmt::format("{}.{}", module, name))), Kind::kName);
  }

  // The whole list of what a pickle may name. The short names are what call() and push_object() know.
  std::string known_name(const std::string& name) const {
    static const std::unordered_map<std::string, const char*> kNames = {
        {"numpy.ndarray", "ndarray"},
        {"numpy.dtype", "dtype"},
        {"numpy.core.multiarray._reconstruct", "reconstruct"},
        {"numpy._core.multiarray._reconstruct", "reconstruct"},
        {"numpy.core.multiarray.scalar", "scalar"},
        {"numpy._core.multiarray.scalar", "scalar"},
        {"numpy.core.numeric._frombuffer", "frombuffer"},
        {"numpy._core.numeric._frombuffer", "frombuffer"},
        {"scipy.sparse.csr.csr_matrix", "csr_matrix"},
        {"scipy.sparse._csr.csr_matrix", "csr_matrix"},
        {"scipy.sparse._arrays.csr_array", "csr_matrix"},
        {"scipy.sparse._csr.csr_array", "csr_matrix"},
        {"collections.defaultdict", "defaultdict"},
        {"__builtin__.list", "list"},
        {"builtins.list", "list"},
        {"__builtin__.object", "object"},
        {"builtins.object", "object"},
        {"copy_reg._reconstructor", "reconstructor"},
        {"copyreg._reconstructor", "reconstructor"},
        {"_codecs.encode", "encode"},
    };
    const auto found = kNames.find(name);
    if (found == kNames.end()) refuse_name(name);
    return found->second;
  }

  void push_object(const std::string& type, std::string detail = {}) {
    if (type != "csr_matrix" && type != "ndarray" && type != "dtype") refuse_name(type);
    pickle_.objects_.push_back({type, {}, std::move(detail)});
    push({.kind = Kind::kObject, .index = pickle_.objects_.size() - 1});
  }

  void call(const std::string& function, const std::vector<Value>& arguments) {
    const auto need = [&](size_t i, Kind kind) -> const Value& {
      if (i >= arguments.size() || arguments[i].kind != kind) fail(fmt::format("{} is called wrongly", function));
      return arguments[i];
    };
    if (function == "reconstruct") {  // ndarray, shape, type: BUILD brings the real ones
      if (pickle_.text(need(0, Kind::kName)) != "ndarray") refuse_name(pickle_.text(arguments[0]));
      push_object("ndarray");
    } else if (function == "frombuffer") {  // how protocol 5 makes an array: bytes, dtype, shape, "C" or "F"
      push_array(need(0, Kind::kText), need(1, Kind::kObject), need(2, Kind::kTuple), need(3, Kind::kText));
    } else if (function == "dtype") {
      push_object("dtype", std::string(pickle_.text(need(0, Kind::kText)).substr(0, 16)));
    } else if (function == "reconstructor") {  // how protocols 0 and 1 make an object
      push_object(std::string(pickle_.text(need(0, Kind::kName))));
    } else if (function == "defaultdict") {
      push_sequence(Kind::kDict);
    } else if (function == "encode") {  // how Python 3 writes bytes in protocol 2: as text, to be taken as Latin-1
      push_text(own(latin1_bytes(pickle_.text(need(0, Kind::kText))), "bytes are not Latin-1 text"));
    } else if (function == "scalar") {
      push_scalar(need(0, Kind::kObject), need(1, Kind::kText));
    } else {
      refuse_name(function);
    }
  }

  // As the state that BUILD gives an array of the other protocols.
  void push_array(Value bytes, Value dtype, Value shape, Value order) {
    const Value version{.kind = Kind::kInteger, .integer = 1};
    const Value fortran{.kind = Kind::kInteger, .integer = pickle_.text(order) == "F" ? 1 : 0};
    push_sequence(Kind::kTuple, {version, shape, dtype, fortran, bytes});
    const Value state = pop();
    push_object("ndarray");
    pickle_.objects_.back().state = state;
  }

  void push_scalar(const Value& dtype, const Value& bytes) {
    NpyHeader header = pickle_.make_header(dtype);
    if (header.item_bytes != pickle_.text(bytes).size()) fail("a number has the wrong size");
    const Array array(std::move(header), pickle_.texts_[bytes.index], pickle_.where_);
    Value value;
    if (array.is_integer()) {
      value.kind = Kind::kInteger;
      array.read(0, 1, 1, &value.integer);
    } else {
      array.require_numbers("numbers in a pickle");
      value.kind = Kind::kReal;
      array.read(0, 1, 1, &value.real);
    }
    push(value);
  }

  Pickle& pickle_;
  SharedBytes bytes_;
  std::string_view text_;
  uint64_t at_ = 0, opcode_at_ = 0;
  std::vector<Value> stack_;
  std::unordered_map<uint64_t, Value> memo_;
};

const PickleMachine::Actions& PickleMachine::actions() {
  using M = PickleMachine;
  static const Actions kActions = [] {
    Actions act{};
    const auto on = [&](char opcode, Action action) { act[static_cast<unsigned char>(opcode)] = action; };
    on('\x80', [](M& m) { m.check_protocol(); });
    on('\x95', [](M& m) { m.take_number<uint64_t>(); });  // a frame: how much to read at once; it was all read

    on('N', [](M& m) { m.push({}); });
    on('\x88', [](M& m) { m.push_integer(1); });
    on('\x89', [](M& m) { m.push_integer(0); });
    on('K', [](M& m) { m.push_integer(m.take_number<uint8_t>()); });
    on('M', [](M& m) { m.push_integer(m.take_number<uint16_t>()); });
    on('J', [](M& m) { m.push_integer(m.take_number<int32_t>()); });
    on('\x8a', [](M& m) { m.push_integer(m.take_long(m.take_number<uint8_t>())); });
    on('\x8b', [](M& m) { m.push_integer(m.take_long(m.take_number<uint32_t>())); });
    on('I', [](M& m) { m.push_integer(m.parse_line<int64_t>(m.take_line())); });  // I01 and I00 are True and False
    on('L', [](M& m) { m.push_integer(m.take_long_line()); });
    on('F', [](M& m) { m.push_real(m.parse_line<double>(m.take_line())); });
    on('G', [](M& m) { m.push_real(m.take_double()); });
    for (const char opcode : {'U', 'C', '\x8c'}) on(opcode, [](M& m) { m.push_text_with_length<uint8_t>(); });
    for (const char opcode : {'T', 'B', 'X'}) on(opcode, [](M& m) { m.push_text_with_length<uint32_t>(); });
    for (const char opcode : {'\x8d', '\x8e', '\x96'})  // text, bytes and bytearray
      on(opcode, [](M& m) { m.push_text_with_length<uint64_t>(); });
    on('S', [](M& m) { m.push_text(m.own(decode_python_string(m.take_line()), "a string is malformed")); });
    on('V', [](M& m) { m.push_text(m.own(decode_raw_unicode(m.take_line()), "a string is malformed")); });

    on('(', [](M& m) { m.push({.kind = Kind::kMark, .integer = 0}); });
    on('0', [](M& m) { m.pop(); });
    on('1', [](M& m) { m.pop_to_mark(); });
    on('2', [](M& m) { m.push(m.top()); });
    on(')', [](M& m) { m.push_sequence(Kind::kTuple); });
    on(']', [](M& m) { m.push_sequence(Kind::kList); });
    on('}', [](M& m) { m.push_sequence(Kind::kDict); });
    on('t', [](M& m) { m.push_sequence(Kind::kTuple, m.pop_to_mark()); });
    on('l', [](M& m) { m.push_sequence(Kind::kList, m.pop_to_mark()); });
    on('d', [](M& m) { m.push_sequence(Kind::kDict, m.check_pairs(m.pop_to_mark())); });
    on('\x85', [](M& m) { m.push_sequence(Kind::kTuple, m.pop_count(1)); });
    on('\x86', [](M& m) { m.push_sequence(Kind::kTuple, m.pop_count(2)); });
    on('\x87', [](M& m) { m.push_sequence(Kind::kTuple, m.pop_count(3)); });
    on('a', [](M& m) { m.append(Kind::kList, m.pop_count(1)); });
    on('e', [](M& m) { m.append(Kind::kList, m.pop_to_mark()); });
    on('s', [](M& m) { m.append(Kind::kDict, m.pop_count(2)); });
    on('u', [](M& m) { m.append(Kind::kDict, m.check_pairs(m.pop_to_mark())); });

    on('p', [](M& m) { m.remember(m.parse_line<uint64_t>(m.take_line())); });
    on('q', [](M& m) { m.remember(m.take_number<uint8_t>()); });
    on('r', [](M& m) { m.remember(m.take_number<uint32_t>()); });
    on('\x94', [](M& m) { m.remember(m.memo_.size()); });
    on('g', [](M& m) { m.recall(m.parse_line<uint64_t>(m.take_line())); });
    on('h', [](M& m) { m.recall(m.take_number<uint8_t>()); });
    on('j', [](M& m) { m.recall(m.take_number<uint32_t>()); });

    on('c', [](M& m) { m.push_named_line(); });
    on('\x93', [](M& m) { m.push_named_on_stack(); });
    on('R', [](M& m) { m.reduce(); });
    on('\x81', [](M& m) { m.make_object(); });
    on('b', [](M& m) { m.build(); });
    return act;
  }();
  return kActions;
}

void Pickle::run(SharedBytes bytes) { root_ = PickleMachine(*this, std::move(bytes)).run(); }

}  // namespace cgcn
